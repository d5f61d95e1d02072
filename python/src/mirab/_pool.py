"""Threads: for submitted tasks, and for waits that must not block an event loop."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextvars import copy_context
from typing import TypeVar

T = TypeVar("T")

_LIMIT = 32


class TaskPool:
    """The submitted tasks of one body of a flow; they end before it does."""

    def __init__(self, limit: int = _LIMIT) -> None:
        self._limit = limit
        self._lock = threading.Lock()
        self._executor: ThreadPoolExecutor | None = None
        self._live: set[Future[object]] = set()

    def submit(self, work: Callable[[], T], nested: bool) -> Future[T]:
        """Runs ``work`` in a thread, in the caller's context.

        From a task's body (``nested``) it gets a thread of its own: the bounded ones may all be taken by tasks that
        wait for such a call.
        """
        future = own_thread(work) if nested else self._bounded().submit(copy_context().run, work)
        with self._lock:
            self._live.add(future)  # type: ignore[arg-type]
        future.add_done_callback(self._forget)
        return future

    def close(self, cancel: bool) -> None:
        """Waits for all tasks; with ``cancel``, those that have not begun never begin."""
        try:
            if not cancel:
                self._drain()
        except BaseException:
            cancel = True
            raise
        finally:
            if cancel:
                for future in self._snapshot():
                    future.cancel()
            self._drain()
            if self._executor:
                self._executor.shutdown()

    def _bounded(self) -> ThreadPoolExecutor:
        with self._lock:
            if self._executor is None:
                self._executor = ThreadPoolExecutor(self._limit, thread_name_prefix="mirab-task")
            return self._executor

    def _forget(self, future: Future[T]) -> None:
        with self._lock:
            self._live.discard(future)

    def _snapshot(self) -> set[Future[object]]:
        with self._lock:
            return set(self._live)

    def _drain(self) -> None:
        # Tasks may submit further ones while they are waited for.
        while live := self._snapshot():
            wait(live)


def own_thread(work: Callable[[], T]) -> Future[T]:
    """Runs ``work`` in a new thread, in the caller's context."""
    future: Future[T] = Future()
    context = copy_context()

    def run() -> None:
        if not future.set_running_or_notify_cancel():
            return
        try:
            value = context.run(work)
        except BaseException as error:
            future.set_exception(error)
        else:
            future.set_result(value)

    threading.Thread(target=run, name="mirab-task").start()
    return future


async def in_thread(work: Callable[[], T], undo: Callable[[T], object]) -> T:
    """Waits for ``work`` in a thread of its own without blocking the loop.

    If the waiting is cancelled meanwhile, the outcome of ``work`` is given to ``undo`` once it is there.
    """
    loop = asyncio.get_running_loop()
    outcome: asyncio.Future[T] = loop.create_future()

    def deliver(done: Future[T]) -> None:
        try:
            loop.call_soon_threadsafe(settle, done)
        except RuntimeError:  # the loop is closed: nobody waits any more
            _undo(done, undo)

    def settle(done: Future[T]) -> None:
        if outcome.done():
            own_thread(lambda: _undo(done, undo))
        elif (error := done.exception()) is not None:
            outcome.set_exception(error)
        else:
            outcome.set_result(done.result())

    own_thread(work).add_done_callback(deliver)
    try:
        return await outcome
    except asyncio.CancelledError:
        # Cancelled after the outcome had come, before this coroutine went on.
        if outcome.done() and not outcome.cancelled() and outcome.exception() is None:
            value = outcome.result()
            own_thread(lambda: undo(value))
        raise


def _undo(done: Future[T], undo: Callable[[T], object]) -> None:
    if done.exception() is None:
        undo(done.result())
