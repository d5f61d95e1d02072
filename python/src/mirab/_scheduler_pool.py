"""What a scheduler is made of: pools and resources."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar, overload

from mirab._scheduler_checks import MOST_PRIORITY, text, whole
from mirab.errors import InvalidOption

if TYPE_CHECKING:
    from mirab._scheduler_task import Context

P = TypeVar("P")
R = TypeVar("R")

DEFAULT_SHARD = "default"


@dataclass(frozen=True, slots=True)
class Resource:
    """A named, shared limit. Made by :meth:`semaphore` or :meth:`token_bucket`."""

    name: str
    kind: Literal["semaphore", "token_bucket"]
    permits: int = 0
    rate: float = 0.0
    burst: int = 0
    shard: str | None = None

    def __post_init__(self) -> None:
        text("name", self.name)
        whole("permits", self.permits)
        whole("burst", self.burst)
        if isinstance(self.rate, bool) or not isinstance(self.rate, (int, float)):
            raise InvalidOption(f"rate={self.rate!r}: expected units a second, as in rate=50.0")

    @staticmethod
    def semaphore(name: str, permits: int, *, shard: str | None = None) -> Resource:
        """At most ``permits`` units are held at once. For what is held while working: GPUs, connections, licences."""
        return Resource(name, "semaphore", permits=permits, shard=shard)

    @staticmethod
    def token_bucket(name: str, rate: float, burst: int, *, shard: str | None = None) -> Resource:
        """Units are consumed and refill at ``rate`` per second up to ``burst``. For rates: requests a second."""
        return Resource(name, "token_bucket", rate=rate, burst=burst, shard=shard)


class Pool(Generic[P, R]):
    """Where tasks execute: an executor, and how many attempts of it at once.

    The executor takes a :class:`mirab.Context` and the payload. An ``async`` function executes on the event loop, a
    plain one in a thread. A thread cannot be stopped: cancelled or timed out, its task keeps its slot and units until
    the function returns; ``ctx.cancelled`` tells it to.
    """

    __slots__ = ("executor", "is_async", "max_queued", "name", "priority", "resources", "shard", "slots")

    @overload
    def __init__(
        self: Pool[P, R],
        name: str,
        executor: Callable[[Context, P], Awaitable[R]],
        *,
        slots: int = ...,
        max_queued: int | None = ...,
        resources: Mapping[str, int] | None = ...,
        priority: int = ...,
        shard: str | None = ...,
    ) -> None: ...

    @overload
    def __init__(
        self: Pool[P, R],
        name: str,
        executor: Callable[[Context, P], R],
        *,
        slots: int = ...,
        max_queued: int | None = ...,
        resources: Mapping[str, int] | None = ...,
        priority: int = ...,
        shard: str | None = ...,
    ) -> None: ...

    def __init__(
        self,
        name: str,
        executor: Callable[[Context, P], Any],
        *,
        slots: int = 16,
        max_queued: int | None = None,
        resources: Mapping[str, int] | None = None,
        priority: int = 0,
        shard: str | None = None,
    ) -> None:
        if not callable(executor):
            raise InvalidOption(
                f"pool {name!r}: {executor!r} cannot be called; expected a function of context and payload"
            )
        text("name", name)
        whole("slots", slots)
        whole("priority", priority, -MOST_PRIORITY - 1, MOST_PRIORITY)
        if max_queued is not None:
            whole("max_queued", max_queued)
        self.name = name
        self.executor = executor
        self.is_async = is_async(executor)
        self.slots = slots
        self.max_queued = max_queued
        self.resources = dict(resources or {})
        self.priority = priority
        self.shard = shard


def is_async(executor: Callable[..., Any]) -> bool:
    """Whether calling it gives a coroutine; an object may have an ``async __call__``."""
    while isinstance(executor, functools.partial):
        executor = executor.func
    call = getattr(executor, "__call__", None)  # noqa: B004 - its kind is asked for, not whether it is there
    return inspect.iscoroutinefunction(executor) or inspect.iscoroutinefunction(call)
