"""Which body of a flow or task executes here, if any."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from mirab._execute import Call
    from mirab._pool import TaskPool


class Run(Protocol):
    """Where bodies get their permission to start: this process offline, or the server for a served run."""

    def new_key(self, name: str) -> str:
        """Names one call of a task within this attempt of the run."""

    def admit(self, call: Call, parent: Any) -> Any:
        """Blocks until the call may start; gives its ticket. ``parent`` is the enclosing body's ticket."""

    def finish(self, call: Call, ticket: Any, error: BaseException | None) -> float | None:
        """The body has ended. Gives the seconds after which to try again, or None."""

    def settle(self, resource: str, actual: int, ticket: Any) -> None:
        """What the body with this ticket really used of a token bucket."""

    def cooldown(self, resource: str, seconds: float, ticket: Any) -> None:
        """Nothing that needs this token bucket is to start for so many seconds."""

    def pause(self, seconds: float) -> None:
        """Waits between two attempts; raises when the run is to stop."""


@dataclass(frozen=True)
class Body:
    """One executing body."""

    run: Run
    ticket: Any
    pool: TaskPool
    in_task: bool


@dataclass
class Process:
    """What holds for the whole process: threads that a flow makes by itself carry no context."""

    is_engine: bool = False
    is_forked: bool = False
    body: Body | None = None


process = Process()

_body: ContextVar[Body | None] = ContextVar("mirab_body", default=None)


def current() -> Body | None:
    """The innermost body around this code. In an engine there is always one, except while a file is imported."""
    if not process.is_engine:
        return _body.get()
    if process.is_forked:
        raise RuntimeError(
            "a process that a flow has forked is no part of its run: call tasks in the flow's own process"
        )
    body = _body.get() or process.body
    if body is None and threading.current_thread() is not threading.main_thread():
        raise RuntimeError("the run that started this thread has ended: nothing can be called in it any more")
    return body


@contextmanager
def entered(body: Body) -> Iterator[None]:
    """Makes ``body`` the current one."""
    token = _body.set(body)
    is_outermost = process.is_engine and process.body is None
    if is_outermost:
        process.body = body
    try:
        yield
    finally:
        _body.reset(token)
        if is_outermost:
            process.body = None
