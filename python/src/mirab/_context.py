"""Which body of a flow or task executes here, if any."""

from __future__ import annotations

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

    def pause(self, seconds: float) -> None:
        """Waits between two attempts; raises when the run is to stop."""


@dataclass(frozen=True)
class Body:
    """One executing body."""

    run: Run
    ticket: Any
    pool: TaskPool
    in_task: bool


_body: ContextVar[Body | None] = ContextVar("mirab_body", default=None)


def current() -> Body | None:
    """The innermost body around this code."""
    return _body.get()


@contextmanager
def entered(body: Body) -> Iterator[None]:
    """Makes ``body`` the current one."""
    token = _body.set(body)
    try:
        yield
    finally:
        _body.reset(token)
