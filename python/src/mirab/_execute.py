"""Runs one call: permission, body, end, and again when it is to be tried again. Once plain, once async."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from mirab._context import Body, Run, current, entered
from mirab._names import filled_in
from mirab._offline import OfflineRun, OfflineTicket
from mirab._options import TaskOptions
from mirab._pool import TaskPool, in_thread
from mirab.errors import Cancelled


@dataclass(eq=False)
class Call:
    """One call of a task, or of a flow."""

    options: TaskOptions
    body: Callable[[], Any]
    key: str
    is_flow: bool
    arguments: Callable[[], Mapping[str, Any]]
    attempts: int = 0

    def resources(self) -> dict[str, int]:
        """Units by plain name: parameters in a name are filled in from this call's arguments."""
        return filled_in(self.options.resources, self.arguments())


def enclosing() -> tuple[Body, bool]:
    """The body around this code, or the outside of a new offline run; and whether there was one."""
    body = current()
    if body is not None:
        return body, True
    return Body(OfflineRun(), OfflineTicket(), TaskPool(), in_task=False), False


def execute(call: Call, parent: Body) -> Any:
    """Runs a plain call to its end."""
    run = parent.run
    while True:
        ticket = _admit(run, call, parent)
        try:
            value = run_body(call, run, ticket, parent.pool)
        except BaseException as error:
            delay = run.finish(call, ticket, error)
            if delay is None:
                raise
        else:
            run.finish(call, ticket, None)
            return value
        run.pause(delay)


async def execute_async(call: Call, parent: Body) -> Any:
    """Runs an async call to its end; the loop is never blocked."""
    run = parent.run
    while True:
        ticket = await in_thread(
            lambda: _admit(run, call, parent), undo=lambda ticket: run.finish(call, ticket, Cancelled())
        )
        try:
            value = await run_body_async(call, run, ticket, parent.pool)
        except BaseException as error:
            delay = await _finish(run, call, ticket, error)
            if delay is None:
                raise
        else:
            await _finish(run, call, ticket, None)
            return value
        await asyncio.sleep(delay)


def run_body(call: Call, run: Run, ticket: Any, pool: TaskPool) -> Any:
    """Runs a plain body that may start; what it submitted has ended when it returns."""
    if not call.is_flow:
        with entered(Body(run, ticket, pool, in_task=True)):
            return call.body()
    own = TaskPool()
    try:
        with entered(Body(run, ticket, own, in_task=False)):
            value = call.body()
    except BaseException:
        own.close(cancel=True)
        raise
    own.close(cancel=False)
    return value


async def run_body_async(call: Call, run: Run, ticket: Any, pool: TaskPool) -> Any:
    """The same for an async body."""
    if not call.is_flow:
        with entered(Body(run, ticket, pool, in_task=True)):
            return await _awaitable(call)
    own = TaskPool()
    try:
        with entered(Body(run, ticket, own, in_task=False)):
            value = await _awaitable(call)
    except BaseException:
        await in_thread(lambda: own.close(cancel=True), undo=_nothing)
        raise
    await in_thread(lambda: own.close(cancel=False), undo=_nothing)
    return value


def _admit(run: Run, call: Call, parent: Body) -> Any:
    ticket = run.admit(call, parent.ticket)
    call.attempts += 1
    return ticket


async def _finish(run: Run, call: Call, ticket: Any, error: BaseException | None) -> float | None:
    return await in_thread(lambda: run.finish(call, ticket, error), undo=_nothing)


def _awaitable(call: Call) -> Awaitable[Any]:
    started: Awaitable[Any] = call.body()
    return started


def _nothing(_: object) -> None:
    """There is nothing to undo."""
