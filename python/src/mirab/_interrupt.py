"""Stops the body in the main thread when the server asks for it.

The request comes in on a native thread. A signal to the main thread gets it out of a sleep, a lock or a loop; a signal
of our own, because a parent may have left SIGINT ignored.
"""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from mirab.errors import Cancelled, StaleLease

T = TypeVar("T")

_SIGNAL = signal.SIGUSR1


class Interrupt:
    """Raises Cancelled in the main thread, at most once for a body, and never after the body has ended."""

    def __init__(self) -> None:
        self._main = threading.get_ident()
        self._task: asyncio.Task[Any] | None = None
        self.reset()

    def install(self) -> None:
        """Takes the signal over; called from the main thread."""
        signal.signal(_SIGNAL, lambda *_: self._on_signal())
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {_SIGNAL})

    def reset(self) -> None:
        """Gets ready for the next body, before its lease is taken."""
        self.why: str | None = None
        self.stopping = threading.Event()
        self._armed = False
        self._fired = False

    def ask(self, why: str) -> None:
        """Asks the body to stop, for ``cancel`` or because the lease is ``stale``; called from any thread."""
        self.why = why
        self.stopping.set()
        signal.pthread_kill(self._main, _SIGNAL)

    def guard(self, body: Callable[[], T]) -> T:
        """Runs a body that may be stopped."""
        try:
            self._arm()
            value = body()
            self._armed = False
            return value
        finally:
            self._armed = False

    def guard_async(self, body: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Runs an async body that may be stopped: its main task is cancelled as asyncio does it."""

        async def main() -> T:
            self._task = asyncio.current_task()
            try:
                self._arm()
                return await body()
            finally:
                self._armed = False
                self._task = None

        try:
            return asyncio.run(main())
        except asyncio.CancelledError as error:
            if self._fired:
                raise self.exception() from error
            raise

    def pause(self, seconds: float) -> None:
        """Sleeps, but not on when the body is to stop."""
        if self.stopping.wait(seconds):
            self.note_raised()
            raise self.exception()

    def exception(self) -> Cancelled:
        """What a body that is to stop gets."""
        return StaleLease("the run was given to another engine") if self.why == "stale" else Cancelled()

    def note_raised(self) -> None:
        """The main thread learned of it by itself: it is not told twice."""
        if threading.get_ident() == self._main and self._task is None:
            self._armed = False
            self._fired = True

    def _arm(self) -> None:
        self._armed = True
        # Asked before the body began.
        if self.why:
            self._on_signal()

    def _on_signal(self) -> None:
        if not self._armed or self._fired or not self.why:
            return
        self._fired = True
        self._armed = False
        if self._task is not None:
            # Raised between two callbacks of the loop it would be swallowed.
            self._task.get_loop().call_soon_threadsafe(self._task.cancel)
        else:
            raise self.exception()
