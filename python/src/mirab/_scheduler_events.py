"""The stream of what happens to tasks."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened to a task: ``submitted``, ``queued``, ``started``, ``retrying``, ``stopping``,
    ``reprioritised`` or ``ended``."""

    at: float
    task_id: int
    what: str
    details: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Lagged:
    """The reader was too slow: so many events before the next one were dropped."""

    missed: int


class EventStream:
    """Events from the moment it was made, oldest first; ends when the scheduler has shut down."""

    __slots__ = ("__weakref__", "_closed", "_events", "_leave", "_limit", "_missed", "_waiter")

    def __init__(self, limit: int, leave: Callable[[EventStream], None]) -> None:
        self._events: deque[Event] = deque()
        self._limit = limit
        self._missed = 0
        self._waiter: asyncio.Future[None] | None = None
        self._closed = False
        self._leave = leave

    def put(self, event: Event) -> None:
        """Takes one over; the oldest is dropped, and counted, when there are too many."""
        if len(self._events) == self._limit:
            self._events.popleft()
            self._missed += 1
        self._events.append(event)
        self._wake()

    def finish(self) -> None:
        """Nothing is to come."""
        self._closed = True
        self._wake()

    async def aclose(self) -> None:
        """Stops watching."""
        self._leave(self)
        self.finish()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def __aiter__(self) -> EventStream:
        return self

    async def __anext__(self) -> Event | Lagged:
        while not self._events:
            if self._closed:
                raise StopAsyncIteration
            if self._waiter is None or self._waiter.done():
                self._waiter = asyncio.get_running_loop().create_future()
            # There may be several readers; each event goes to one of them.
            await asyncio.shield(self._waiter)
        if self._missed:
            missed, self._missed = self._missed, 0
            return Lagged(missed)
        return self._events.popleft()
