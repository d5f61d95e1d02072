"""A task from the outside, its handle, and from the inside, its context."""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Callable, Generator
from concurrent.futures import Future as ThreadFuture
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from mirab._scheduler_checks import seconds as seconds_of
from mirab._scheduler_checks import whole
from mirab._scheduler_views import Explanation, Status
from mirab.errors import (
    MirabError,
    SchedulerClosed,
    TaskCancelled,
    TaskExpired,
    TaskFailed,
    TaskSkipped,
    TaskTimedOut,
)

if TYPE_CHECKING:
    from mirab._scheduler_pool import Pool
    from mirab._scheduler_shard import Shard

T = TypeVar("T")


class Handle(Generic[T]):
    """A task that was accepted. Awaiting it gives the result of its body, or raises how it ended."""

    # A waiting task is this object and a record of the machine: nothing else is made before it starts or is awaited.
    __slots__ = ("_attempt", "_context", "_end", "_key", "_payload", "_pool", "_shard", "_value", "_waiters", "id")

    id: int

    def __init__(self, shard: Shard, pool: Pool[Any, Any], payload: Any, key: str | None) -> None:
        self._shard = shard
        self._pool = pool
        self._payload = payload
        self._key = key
        # Its bodies see the variables of who submitted it, not of who freed its slot.
        self._context: contextvars.Context | None = contextvars.copy_context()
        self._attempt: Context | None = None
        self._waiters: list[asyncio.Future[None]] | None = None
        self._end: str | None = None
        # The result once it has completed, else what its last attempt raised.
        self._value: Any = None

    @classmethod
    def restored(cls, task_id: int, shard: Shard, pool: Pool[Any, Any], payload: Any, key: str | None) -> Handle[T]:
        """Of a task that was stored."""
        handle = cls(shard, pool, payload, key)
        handle.id = task_id
        return handle

    def __await__(self) -> Generator[Any, None, T]:
        if self._end is None:
            yield from self._wait().__await__()
        if self._end == "Completed":
            value: T = self._value
            return value
        raise self._error() from self._cause()

    async def _wait(self) -> None:
        self._shard.check_loop()
        if self._shard.is_closed:
            raise SchedulerClosed(f"task {self.id} can never end: its scheduler has been shut down")
        waiter = self._shard.loop.create_future()
        if self._waiters is None:
            self._waiters = []
        self._waiters.append(waiter)
        try:
            await waiter
        finally:
            if self._waiters is not None:
                self._waiters.remove(waiter)

    def _ended(self, end: str, message: str | None, timed_out: bool) -> None:
        self._end = "TimedOut" if timed_out else "Kept" if end == "Cancelled" and self._shard.is_kept else end
        self._context = None
        if end == "Skipped":
            self._value = message
        if self._key is None:
            self._payload = None
        waiters, self._waiters = self._waiters, None
        for waiter in waiters or ():
            if not waiter.done():
                waiter.set_result(None)

    def _error(self) -> MirabError:
        name = f"task {self.id} of pool {self._pool.name!r}"
        match self._end:
            case "Cancelled":
                return TaskCancelled(f"{name} was cancelled")
            case "Kept":
                why = f"its store failed: {self._shard.failure}" if self._shard.failure else "its scheduler has ended"
                return TaskCancelled(f"{name} was cancelled, for {why}; it stays stored and goes on at the next start")
            case "Expired":
                return TaskExpired(f"{name} did not start in time, and has consumed nothing")
            case "Skipped":
                return TaskSkipped(f"{name} was skipped: {self._value}")
            case "TimedOut":
                return TaskTimedOut(f"{name}: its last attempt took longer than its timeout")
        if isinstance(self._value, BaseException):
            return TaskFailed(f"{name} failed: {described(self._value)}")
        return TaskFailed(f"{name} failed: {self._value}")

    def _cause(self) -> BaseException | None:
        return self._value if isinstance(self._value, BaseException) else None

    def done(self) -> bool:
        """Whether it has ended."""
        return self._end is not None

    def cancel(self) -> bool:
        """Ends a task that waits at once, and asks the body of one that executes to stop.

        Its slot and units are held until that has really ended. False when it has ended, or was asked before.
        """
        return self._end is None and self._shard.cancel(self.id)

    def set_priority(self, priority: int) -> bool:
        """Moves a task that waits; one that executes has it from its next attempt on. False when it has ended."""
        return self._end is None and self._shard.reprioritise(self.id, priority)

    def status(self) -> Status:
        """Where it stands."""
        return self._shard.status(self.id)

    def explain(self) -> Explanation | None:
        """Why it waits in line; None when it does not."""
        return self._shard.explain(self.id)

    def __repr__(self) -> str:
        return f"<Handle of task {self.id} in pool {self._pool.name!r}>"


class Context:
    """What an executor is told, and may say, of the attempt that it executes; plain ones use it from their thread."""

    __slots__ = ("_fence", "_handle", "_runner", "attempt", "cancelled", "deadline", "is_void", "task_id")

    def __init__(self, handle: Handle[Any], fence: int, attempt: int, deadline: float | None) -> None:
        self.task_id = handle.id
        #: Number of this attempt, from 1.
        self.attempt = attempt
        #: When it is stopped, by the event loop's clock.
        self.deadline = deadline
        #: True once it was cancelled or timed out: a plain function is to return then, nothing else stops it.
        self.cancelled = False
        # True when it could not be handed to a thread: one that comes later is not to begin.
        self.is_void = False
        self._handle = handle
        self._fence = fence
        self._runner: asyncio.Future[Any] | None = None

    @property
    def pool(self) -> str:
        """The name of its pool."""
        return self._handle._pool.name

    @property
    def key(self) -> str | None:
        """The key it was submitted with."""
        return self._handle._key

    def settle(self, resource: str, actual: int) -> None:
        """Corrects what this attempt took of a token bucket: the difference is given back, or owed.

        ``StaleLease`` once the attempt has ended.
        """
        whole("actual", actual)
        self._on_loop(lambda shard: shard.settle(self.task_id, self._fence, resource, actual))

    def cooldown(self, resource: str, seconds: float) -> None:
        """Nothing that needs this token bucket starts within so many seconds, as after an HTTP 429."""
        seconds_of("seconds", seconds)
        self._on_loop(lambda shard: shard.cooldown(resource, seconds))

    def _on_loop(self, do: Callable[[Shard], None]) -> None:
        """Does it now on the event loop's thread; a plain function's thread waits until that has done it."""
        shard = self._handle._shard
        if self._handle._pool.is_async or _runs(shard.loop):
            shard.check_loop()
            do(shard)
            return
        answer: ThreadFuture[None] = ThreadFuture()

        def there() -> None:
            try:
                do(shard)
                answer.set_result(None)
            except BaseException as error:
                answer.set_exception(error)

        shard.loop.call_soon_threadsafe(there)
        answer.result()

    def _done(self, runner: asyncio.Future[Any]) -> None:
        self._handle._shard.body_ended(self, runner)


def _runs(loop: asyncio.AbstractEventLoop) -> bool:
    """Whether this is the thread of a loop."""
    try:
        return asyncio.get_running_loop() is loop
    except RuntimeError:
        return False


def described(error: BaseException) -> str:
    """An exception in a line, whatever it is."""
    try:
        # Half characters cannot be written anywhere.
        text = str(error).encode(errors="backslashreplace").decode()
    except Exception:
        text = "its text cannot be told"
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
