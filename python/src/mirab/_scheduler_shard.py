"""The host of one shard: it gives the event loop's time to the machine, and carries its effects out."""

from __future__ import annotations

import asyncio
import contextvars
import inspect
from collections import OrderedDict
from collections.abc import Awaitable
from concurrent.futures import ThreadPoolExecutor
from random import Random
from typing import Any
from weakref import WeakSet

from mirab import _native
from mirab._scheduler_events import Event, EventStream
from mirab._scheduler_pool import Pool
from mirab._scheduler_store import Effects, Ledger, digest
from mirab._scheduler_task import Context, Handle, described
from mirab._scheduler_timer import Timer
from mirab._scheduler_views import Explanation, Status
from mirab.errors import Permanent, Retryable, SchedulerClosed, UnknownTask

# The gate says how many threads there are; this only must not be fewer than it allows.
MOST_THREADS = 1 << 16
START, STOP = 0, 1
# Seconds until an attempt that somebody else cancelled is told to have failed where there is a store. When the loop is
# ending, they never pass: the attempt has gone with its process, and another follows at the next start.
LOST_AFTER = 1.0
# As good as never: seconds that the machine's clock can hold.
MOST_PAUSE = 1e9


class Shard:
    """Tasks of one shard. Everything here is called on the event loop's thread."""

    def __init__(self, name: str, machine: _native.Machine, loop: asyncio.AbstractEventLoop, retained: int) -> None:
        self.name = name
        self.machine = machine
        self.loop = loop
        self.is_closed = False
        self.live: dict[int, Handle[Any]] = {}
        self.streams: WeakSet[EventStream] = WeakSet()
        self._is_watched = False
        self._retained = retained
        self.keyed: OrderedDict[int, Handle[Any]] = OrderedDict()
        # A loop with its own clock has its own dice too, so that a test is the same every time.
        self._random: Random = getattr(loop, "random", None) or Random()
        self._threads: ThreadPoolExecutor | None = None
        self._timer = Timer(loop, self._due)
        self._pumping = False
        self._idle: asyncio.Future[None] | None = None
        # Of a durable scheduler: its store while it is written, the last commit, and why there will be no other.
        self.ledger: Ledger | None = None
        self._last_commit: asyncio.Future[None] | None = None
        self.failure: BaseException | None = None
        # True once what is cancelled stays stored.
        self.is_kept = False

    def check_loop(self) -> None:
        """Raises unless this is the scheduler's own event loop and thread."""
        try:
            running: asyncio.AbstractEventLoop | None = asyncio.get_running_loop()
        except RuntimeError:
            running = None
        if running is self.loop:
            return
        if self.loop.is_closed():
            raise SchedulerClosed("the event loop of this scheduler is gone: make a new scheduler in the running one")
        raise RuntimeError(
            "a scheduler belongs to the event loop that it was started in: from another thread, use "
            "asyncio.run_coroutine_threadsafe with that loop"
        )

    # Tasks come and are changed.

    def accept(self, handle: Handle[Any], spec: _native.Spec, priority: int) -> None:
        """Submits a task that needs nothing but what its spec says. Effects are left to :meth:`pump`."""
        ledger = self.ledger
        data = ledger.encode("payload", handle._payload) if ledger is not None else b""
        handle.id = task_id = self.machine.submit(self.loop.time(), spec, priority)
        self.live[task_id] = handle
        if ledger is not None:
            self.machine.put_payload(task_id, ledger.codec.name, data)

    def accept_with(
        self,
        handle: Handle[Any],
        spec: _native.Spec,
        priority: int,
        times: tuple[float | None, float | None],
        after: list[tuple[int, str]],
    ) -> Handle[Any]:
        """The same with all that a task can have; gives the handle of an earlier one with the same key."""
        ledger = self.ledger
        data = ledger.encode("payload", handle._payload) if ledger is not None else b""
        # Without a store, who submits compares the payloads themselves.
        key = None if handle._key is None else (handle._key, 0 if ledger is None else digest(data))
        stamped = (self.loop.time(), *times)
        handle.id, is_new = self.machine.submit_with(stamped, spec, priority, key, after)
        if not is_new:
            return self.live.get(handle.id) or self.keyed[handle.id]
        self.live[handle.id] = handle
        if ledger is not None:
            self.machine.put_payload(handle.id, ledger.codec.name, data)
        return handle

    def cancel(self, task_id: int) -> bool:
        self.check_loop()
        done = self.machine.cancel(self.loop.time(), task_id)
        self.pump()
        return done

    def reprioritise(self, task_id: int, priority: int) -> bool:
        self.check_loop()
        done = self.machine.reprioritise(self.loop.time(), task_id, priority)
        self.pump()
        return done

    def settle(self, task_id: int, fence: int, resource: str, actual: int) -> None:
        self.machine.settle(self.loop.time(), task_id, fence, resource, actual)
        self.pump()

    def cooldown(self, resource: str, seconds: float) -> None:
        self.machine.cooldown(self.loop.time(), resource, seconds)
        self.pump()

    def status(self, task_id: int) -> Status:
        text = self.machine.status(task_id)
        if text is None:
            raise UnknownTask(f"task {task_id} ended so long ago that it is not remembered: raise `retained`")
        return Status.read(text)

    def explain(self, task_id: int) -> Explanation | None:
        self.look()
        text = self.machine.explain(task_id)
        return Explanation.read(text) if text is not None else None

    def look(self) -> None:
        """Lets the machine know what time it is: what it tells of token buckets is as of then."""
        self.machine.handle_timeout(self.loop.time())
        self.pump()

    # Effects.

    def pump(self) -> None:
        """Carries out what the machine has decided, and sets the timer."""
        if self._pumping:  # the outer call goes on until nothing is left
            return
        self._pumping = True
        machine = self.machine
        try:
            if self.ledger is not None:
                self._commit(self.ledger)
            else:
                while (effects := machine.poll()) is not None:
                    self._carry_out(effects)
        finally:
            self._pumping = False
        if self._is_watched:
            self.tell()
        # It is not set back: when what it was for has gone, the machine looks once and it is set anew.
        at = machine.timeout()
        if at is not None and at < self._timer.at:
            self._timer.set(at)

    def _carry_out(self, effects: Effects) -> None:
        for effect in effects:
            if effect[0] == START:
                self._start(*effect[1:])
            elif effect[0] == STOP:
                self._stop(effect[1])
            else:
                self._end(*effect[1:])

    def _start(self, task_id: int, fence: int, attempt: int, deadline: float | None) -> None:
        handle = self.live[task_id]
        context = handle._attempt = Context(handle, fence, attempt, deadline)
        pool = handle._pool
        # What an attempt sets is its own.
        variables = handle._context.copy() if handle._context is not None else contextvars.copy_context()
        runner: asyncio.Future[Any]
        try:
            if pool.is_async:
                body = variables.run(pool.executor, context, handle._payload)
                runner = self.loop.create_task(body, context=variables)
            else:
                runner = self._start_thread(pool, context, handle._payload, variables)
        except BaseException as error:
            context.is_void = True
            runner = self.loop.create_future()
            # No future can carry a StopIteration.
            runner.set_exception(RuntimeError(described(error)) if isinstance(error, StopIteration) else error)
        context._runner = runner
        runner.add_done_callback(context._done)

    def _start_thread(
        self, pool: Pool[Any, Any], context: Context, payload: Any, variables: contextvars.Context
    ) -> asyncio.Future[Any]:
        if self._threads is None:
            self._threads = ThreadPoolExecutor(MOST_THREADS, thread_name_prefix=f"mirab-{self.name}")
        return self.loop.run_in_executor(self._threads, variables.run, _call_plain, pool, context, payload)

    def _stop(self, task_id: int) -> None:
        context = self.live[task_id]._attempt
        if context is None or context._runner is None:
            return
        context.cancelled = True
        if context._handle._pool.is_async:
            context._runner.cancel()

    def body_ended(self, context: Context, runner: asyncio.Future[Any]) -> None:
        """Tells the machine how an attempt ended, whatever it was."""
        if runner.cancelled() and not context.cancelled and self.ledger is not None:
            self.loop.call_later(LOST_AFTER, self._report, context, runner)
        else:
            self._report(context, runner)

    def _report(self, context: Context, runner: asyncio.Future[Any]) -> None:
        handle, now, fence = context._handle, self.loop.time(), context._fence
        handle._attempt = context._runner = None
        random = self._random.getrandbits(64)
        if runner.cancelled():
            handle._value = asyncio.CancelledError()
            self.machine.stopped(now, context.task_id, fence, random)
        elif (error := runner.exception()) is not None:
            handle._value = error
            self.machine.failed(now, context.task_id, fence, described(error), _again(error), random)
        else:
            handle._value = runner.result()
            self._completed(handle, now, fence)
        self.pump()

    def _completed(self, handle: Handle[Any], now: float, fence: int) -> None:
        if self.ledger is not None:
            try:
                data = self.ledger.encode("result", handle._value)
            except Exception as error:
                handle._value = error
                self.machine.failed(now, handle.id, fence, described(error), -1.0, 0)
                return
            self.machine.put_result(handle.id, self.ledger.codec.name, data)
        self.machine.completed(now, handle.id, fence)

    def _end(self, task_id: int, end: str, message: str | None, timed_out: bool) -> None:
        handle = self.live.pop(task_id)
        if handle._key is not None:
            self.keyed[task_id] = handle
            if len(self.keyed) > self._retained:
                self.keyed.popitem(last=False)
        if end == "Failed" and handle._value is None:
            handle._value = message
        handle._ended(end, message, timed_out)
        if not self.live and self._idle is not None and not self._idle.done():
            self._idle.set_result(None)

    # Durable mode.

    def go_on(self, ledger: Ledger) -> None:
        """From here on, everything is stored before it is done."""
        self.ledger = ledger
        self.machine.store_in(ledger.native)
        self.pump()

    def _commit(self, ledger: Ledger) -> None:
        stored = ledger.commit(self, self.machine.poll() or ())
        if stored is not None:
            self._last_commit = stored

    def let_go(self) -> None:
        """What happens from here on is not stored."""
        self.ledger = None
        self.machine.store_in(None)

    async def stored(self) -> None:
        """Waits until all that was accepted is on the disk."""
        if self._last_commit is not None:
            await asyncio.shield(self._last_commit)

    def committed(self, effects: Effects) -> None:
        """What waited for a commit is done."""
        if self.ledger is not None:
            self._carry_out(effects)
        else:
            self._drop_starts(effects)

    def store_failed(self, error: BaseException, effects: Effects) -> None:
        """Nothing is accepted and nothing starts any more."""
        if self.failure is None:
            self.failure = error
            self.cancel_all()
        self._drop_starts(effects)

    def _drop_starts(self, effects: Effects) -> None:
        """Of a scheduler that has ended: what was to start has not, all else is done."""
        for effect in effects:
            if effect[0] == START:
                task_id, fence = effect[1:3]
                self.live[task_id]._value = asyncio.CancelledError()
                self.machine.stopped(self.loop.time(), task_id, fence, 0)
            else:
                self._carry_out((effect,))
        self.pump()

    # Time.

    def _due(self, now: float) -> None:
        self.machine.handle_timeout(now)
        self.pump()

    # Watching.

    def watch(self, stream: EventStream) -> None:
        if self.is_closed:
            stream.finish()
            return
        self.streams.add(stream)
        self._is_watched = True
        self.machine.watch(True)

    def leave(self, stream: EventStream) -> None:
        self.streams.discard(stream)

    def tell(self) -> None:
        """Hands on what has happened, while somebody reads it."""
        if not self.streams:
            self._is_watched = False
            self.machine.watch(False)
            return
        for told in self.machine.events():
            event = Event(*told)
            for stream in self.streams:
                stream.put(event)

    # The end.

    async def idle(self) -> None:
        """Waits until no task is live."""
        while self.live:
            if self._idle is None or self._idle.done():
                self._idle = self.loop.create_future()
            await asyncio.shield(self._idle)

    def cancel_all(self) -> None:
        """Ends what waits and asks what executes to stop. What is stored stays so, and goes on at the next start."""
        self.is_kept = self.is_kept or self.ledger is not None
        self.let_go()
        now = self.loop.time()
        for task_id in list(self.live):
            self.machine.cancel(now, task_id)
        self.pump()

    def close(self) -> None:
        """Leaves nothing behind: no timer, no thread, no reader that waits."""
        self.is_closed = True
        self.let_go()
        self._timer.close()
        if self._threads is not None:
            self._threads.shutdown(wait=True)
        for stream in list(self.streams):
            stream.finish()


def _again(error: BaseException) -> float | None:
    """After how many seconds it is tried again; None: as its options say, below 0: not at all."""
    if isinstance(error, Permanent):
        return -1.0
    after = error.retry_after if isinstance(error, Retryable) else None
    # One that was set by hand may be anything.
    return min(max(0.0, after), MOST_PAUSE) if isinstance(after, (int, float)) and after == after else None


def _call_plain(pool: Pool[Any, Any], context: Context, payload: Any) -> Any:
    """Runs in a thread."""
    if context.is_void:
        return None
    try:
        result = pool.executor(context, payload)
    except StopIteration as error:  # no future can carry it
        raise RuntimeError(f"the executor of pool {pool.name!r} raised StopIteration") from error
    if inspect.isgenerator(result) or inspect.isasyncgen(result):
        raise TypeError(
            f"the executor of pool {pool.name!r} is a generator, whose body never ran: return the result instead of "
            "yielding it"
        )
    if isinstance(result, Awaitable):
        if asyncio.iscoroutine(result):
            result.close()
        raise TypeError(
            f"the executor of pool {pool.name!r} gave an awaitable, but is no async function: "
            "define it with `async def`, so that it executes on the event loop"
        )
    return result
