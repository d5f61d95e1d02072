"""What programs do to a scheduler that it must survive: odd exceptions, odd values, ends at odd moments."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from contextvars import ContextVar
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from scheduler_clock import hold, now, played

from mirab import Context, Handle, Lagged, Pool, Resource, Retryable, Scheduler, errors, sqlite
from mirab.testing import VirtualClock


class Unspeakable(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no words")


class Wordless(Exception):
    def __str__(self) -> str:
        return 5  # type: ignore[return-value]


def later(error: BaseException, after: Any) -> BaseException:
    error.retry_after = after  # type: ignore[attr-defined]
    return error


@pytest.mark.parametrize(
    "failure",
    [
        Unspeakable,
        Wordless,
        lambda: ValueError("\ud800"),
        lambda: Retryable("429", retry_after="30"),  # type: ignore[arg-type]
        lambda: Retryable("429", retry_after=timedelta(seconds=1)),  # type: ignore[arg-type]
        lambda: Retryable("429", retry_after=10**400),
        lambda: later(Retryable("429"), "30"),
        lambda: StopIteration(1),
        lambda: GeneratorExit(),
        lambda: asyncio.CancelledError(),
    ],
)
@pytest.mark.parametrize("is_async", [True, False])
def test_whatever_a_body_raises_its_slot_is_free_again(failure: Callable[[], BaseException], is_async: bool) -> None:
    def plain(ctx: Context, fails: bool) -> str:
        if fails:
            raise failure()
        return "well"

    async def body(ctx: Context, fails: bool) -> str:
        return plain(ctx, fails)

    @played
    async def test() -> None:
        async with Scheduler([Pool("p", body if is_async else plain, slots=1)]) as scheduler:
            bad = await scheduler.submit(True)
            assert await (await scheduler.submit(False)) == "well"
            with pytest.raises(errors.TaskFailed):
                await bad

    test()


@played
async def test_a_retry_after_that_has_passed_is_now() -> None:
    async def body(ctx: Context, _: None) -> int:
        if ctx.attempt < 3:
            raise Retryable("429", retry_after=-0.01)
        return ctx.attempt

    async with Scheduler([Pool("p", body)]) as scheduler:
        assert await (await scheduler.submit(None, retries=5)) == 3
        assert now() == 0.0


TENANT: ContextVar[str] = ContextVar("tenant", default="nobody")


@pytest.mark.parametrize("is_async", [True, False])
def test_a_body_sees_the_variables_of_who_submitted_it(is_async: bool) -> None:
    def plain(ctx: Context, n: int) -> str:
        seen = TENANT.get()
        TENANT.set("changed by another task")
        if ctx.attempt == 1:
            raise Retryable("once more", retry_after=0)
        return seen

    async def body(ctx: Context, n: int) -> str:
        return plain(ctx, n)

    @played
    async def test() -> None:
        async with Scheduler([Pool("p", body if is_async else plain, slots=1)]) as scheduler:

            async def of(n: int) -> str:
                TENANT.set(f"tenant {n}")
                handle: Handle[str] = await scheduler.submit(n, retries=1)
                return await handle

            assert await asyncio.gather(*map(of, range(4))) == [f"tenant {n}" for n in range(4)]

    test()


@played
async def test_shutdowns_at_once_all_come_back_and_the_soonest_counts() -> None:
    async with Scheduler([Pool("p", hold)]) as scheduler:
        handle = await scheduler.submit(100.0)
        await asyncio.gather(scheduler.shutdown(), scheduler.shutdown(5.0), scheduler.shutdown(50.0))
        assert now() == 5.0
        with pytest.raises(errors.TaskCancelled):
            await handle


@played
async def test_a_shutdown_that_is_cancelled_goes_on_unseen_until_all_has_ended() -> None:
    release = asyncio.Event()

    async def stubborn(ctx: Context, _: None) -> str:
        try:
            await asyncio.sleep(1_000)
        except asyncio.CancelledError:
            await release.wait()
        return "in the end"

    scheduler = await Scheduler([Pool("p", stubborn)]).__aenter__()
    handle = await scheduler.submit(None)
    await asyncio.sleep(0)
    ending = asyncio.create_task(scheduler.shutdown())
    for _ in range(2):
        await asyncio.sleep(1)
        ending.cancel()
    with pytest.raises(asyncio.CancelledError):
        await ending
    release.set()
    assert await handle == "in the end"
    await scheduler.shutdown()
    with pytest.raises(errors.SchedulerClosed):
        scheduler.set_slots("p", 3)


@played
async def test_a_task_cannot_wait_for_the_end_of_its_own_scheduler() -> None:
    async def end(ctx: Context, _: None) -> None:
        with pytest.raises(errors.InvalidOption, match="its own scheduler"):
            await scheduler.shutdown()

    async with Scheduler([Pool("p", end)]) as scheduler:
        await (await scheduler.submit(None))


@played
async def test_readers_that_leave_or_come_late_or_share_a_stream() -> None:
    async with Scheduler([Pool("p", hold)]) as scheduler:

        async def first_only() -> None:
            async for _ in scheduler.events():
                break

        reader = asyncio.create_task(first_only())
        await asyncio.sleep(0)
        await (await scheduler.submit(0.0))
        await reader
        await (await scheduler.submit(0.0))
        assert scheduler._shards["default"].machine.events() == [], "nobody watches, nothing gathers"
        stream = scheduler.events()
        seen: list[int] = []

        async def share() -> None:
            async for event in stream:
                assert not isinstance(event, Lagged)
                seen.append(event.task_id)

        readers = [asyncio.create_task(share()) for _ in range(2)]
        await asyncio.sleep(0)
        await (await scheduler.submit(1.0))
    await asyncio.gather(*readers)
    assert seen == [3] * 4
    assert [event async for event in scheduler.events()] == []


def test_threads_that_cannot_be_started_begin_nothing_later(monkeypatch: pytest.MonkeyPatch) -> None:
    begun: list[int] = []

    def note(ctx: Context, n: int) -> None:
        begun.append(n)

    async def main() -> None:
        async with Scheduler([Pool("p", note)]) as scheduler:
            import threading

            with monkeypatch.context() as broken:
                # The system has no thread left: the pool has queued the work by then.
                broken.setattr(threading.Thread, "start", lambda self: (_ for _ in ()).throw(RuntimeError("no thread")))
                bad = await scheduler.submit(1)
                with pytest.raises(errors.TaskFailed, match="no thread"):
                    await bad
            await (await scheduler.submit(2))

    asyncio.run(main())
    assert begun == [2]


@played
async def test_generators_are_no_executors() -> None:
    def plain(ctx: Context, _: None) -> Any:
        yield 1

    async def spread(ctx: Context, _: None) -> Any:
        yield 1

    async with Scheduler([Pool("a", plain), Pool("b", spread)]) as scheduler:
        for pool in "ab":
            with pytest.raises(errors.TaskFailed, match="is a generator"):
                await (await scheduler.submit(None, pool=pool))


@played
async def test_a_context_on_the_loops_thread_stops_no_loop() -> None:
    loop = asyncio.get_running_loop()

    async def client(ctx: Context) -> None:
        ctx.cooldown("api", 0.1)

    def plain(ctx: Context, _: None) -> None:
        asyncio.run_coroutine_threadsafe(client(ctx), loop).result()

    async with Scheduler([Pool("p", plain)], [Resource.token_bucket("api", 1.0, 1)]) as scheduler:
        await (await scheduler.submit(None))


@played
async def test_who_settles_too_late_is_told_so() -> None:
    contexts: list[Context] = []

    async def body(ctx: Context, _: None) -> None:
        contexts.append(ctx)

    async with Scheduler([Pool("p", body)], [Resource.token_bucket("api", 1.0, 1)]) as scheduler:
        await (await scheduler.submit(None, resources={"api": 1}))
        with pytest.raises(errors.StaleLease):
            contexts[0].settle("api", 0)


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: Resource.semaphore("gpu", -1),
        lambda: Resource.semaphore("gpu", 1 << 64),
        lambda: Resource.semaphore("gpu", 1.5),  # type: ignore[arg-type]
        lambda: Resource.semaphore("\ud800", 1),
        lambda: Resource.token_bucket("api", "50", 1),  # type: ignore[arg-type]
        lambda: Resource.token_bucket("api", 50.0, -1),
        lambda: Pool("p", hold, slots=-1),
        lambda: Pool("p", hold, priority=1 << 40),
        lambda: Pool("p", hold, max_queued=True),
        lambda: Pool("", hold),
        lambda: Scheduler(retained=-1),
        lambda: Scheduler(grace=float("nan")),
        lambda: Scheduler(aging=-1.0),
        lambda: Scheduler(shards=[""]),
        lambda: Scheduler(store="state.db"),  # type: ignore[arg-type]
        lambda: sqlite(":memory:"),
        lambda: sqlite(b"state.db"),  # type: ignore[call-overload,arg-type]
    ],
)
def test_what_makes_no_sense_is_told_where_it_is_said(wrong: Callable[[], object]) -> None:
    with pytest.raises(errors.InvalidOption, match="expected"):
        wrong()


@played
async def test_a_pool_belongs_to_who_made_it() -> None:
    pool = Pool("p", hold, slots=3)
    for _ in range(2):
        async with Scheduler([pool]) as scheduler:
            assert scheduler.snapshot().pools["p"].slots == 3
            scheduler.set_slots("p", 1)
            await (await scheduler.submit(0.0))


def test_an_iterator_that_fails_leaves_the_handles_of_those_before() -> None:
    def payloads() -> Any:
        yield 0.0
        raise OSError("no more")

    @played
    async def test() -> None:
        async with Scheduler([Pool("p", hold)]) as scheduler:
            with pytest.raises(OSError, match="no more") as failed:
                await scheduler.submit_many(payloads())
            (handle,) = failed.value.accepted  # type: ignore[attr-defined]
            assert await handle == 0.0

    test()


# Virtual clocks.


@pytest.mark.parametrize("start", [0.0, 1.7e7, 1.8e9])
def test_a_clock_that_starts_late_moves_as_well(start: float) -> None:
    clock = VirtualClock(start=start)
    clock.run(asyncio.sleep(1))
    assert clock.time == pytest.approx(start + 1)
    clock.run(asyncio.sleep(2e7))
    assert clock.time == pytest.approx(start + 2e7 + 1)


def test_threads_of_the_loop_itself_end_with_it() -> None:
    for _ in range(5):
        clock = VirtualClock()
        clock.run(asyncio.to_thread(time.sleep, 0.001))
        assert clock.time == 0.0


def test_threads_that_wait_for_the_clock_see_it_move() -> None:
    def poll(ctx: Context, _: None) -> bool:
        while not ctx.cancelled:
            time.sleep(0.001)
        return True

    async def main() -> float:
        async with Scheduler([Pool("p", poll)]) as scheduler:
            handle = await scheduler.submit(None, timeout=60.0)
            assert await handle is True
            other = await scheduler.submit(None)
            await asyncio.sleep(10.0)
            other.cancel()
            assert await other is True
        return now()

    assert VirtualClock(patience=0.05).run(main()) == 70.0


# With a store.


def test_a_codec_that_gives_no_bytes_leaves_no_trace(tmp_path: Path) -> None:
    class Loose:
        name = "loose"

        def encode(self, value: Any) -> bytes:
            return value if value == "bad" else str(value).encode()  # type: ignore[no-any-return]

        def decode(self, data: bytes) -> Any:
            return data.decode()

    async def echo(ctx: Context, text: str) -> str:
        return "bad" if text == "turns bad" else text

    async def main(rounds: int) -> None:
        store = sqlite(tmp_path / "state.db", codec=Loose())
        async with Scheduler([Pool("p", echo)], store=store) as scheduler:
            with pytest.raises(errors.InvalidOption, match="expected bytes"):
                await scheduler.submit("bad")
            assert await (await scheduler.submit("good")) == "good"
            with pytest.raises(errors.TaskFailed, match="expected bytes"):
                await (await scheduler.submit("turns bad", retries=3))
            assert scheduler.snapshot().counts.submitted == 2 * rounds

    for rounds in (1, 2):
        asyncio.run(main(rounds))


def test_a_loop_that_ends_without_shutdown_leaves_its_tasks_as_they_were(tmp_path: Path) -> None:
    async def slow(ctx: Context, text: str) -> str:
        await asyncio.sleep(3_600)
        return text

    async def quick(ctx: Context, text: str) -> str:
        return text

    kept: list[Scheduler] = []

    async def leave() -> None:
        scheduler = await Scheduler([Pool("p", slow)], store=sqlite(tmp_path / "state.db")).__aenter__()
        kept.append(scheduler)
        await scheduler.submit("job", key="job")
        await asyncio.sleep(0.01)

    async def go_on() -> None:
        # The first one's loop is gone: it lets go of the file when it is asked to.
        with pytest.raises(errors.SchedulerClosed):
            await kept[0].shutdown()
        async with Scheduler([Pool("p", quick)], store=sqlite(tmp_path / "state.db")) as scheduler:
            assert await (await scheduler.submit("job", key="job")) == "job"

    asyncio.run(leave())
    asyncio.run(go_on())


def test_what_a_refused_crowd_had_accepted_is_on_the_disk(tmp_path: Path) -> None:
    async def crowd() -> None:
        pool = Pool("p", hold, slots=0, max_queued=3)
        async with Scheduler([pool], store=sqlite(tmp_path / "state.db"), grace=0) as scheduler:
            with pytest.raises(errors.QueueFull) as refused:
                await scheduler.submit_many([0.0] * 10)
            assert len(refused.value.accepted) == 3  # type: ignore[attr-defined]
            assert scheduler._ledger is not None
            assert not scheduler._ledger._waiting, "all is committed"
            (first, *_) = refused.value.accepted  # type: ignore[attr-defined]
        with pytest.raises(errors.TaskCancelled, match="stays stored"):
            await first

    async def count() -> None:
        async with Scheduler([Pool("p", hold)], store=sqlite(tmp_path / "state.db")):
            pass

    asyncio.run(crowd())
    asyncio.run(count())


def test_tasks_of_a_shard_that_is_not_listed_any_more_are_told_of(tmp_path: Path) -> None:
    async def start(shards: list[str] | None, pool: Pool[Any, Any]) -> None:
        async with Scheduler([pool], shards=shards, store=sqlite(tmp_path / "state.db"), grace=0) as scheduler:
            await scheduler.submit(0.0)

    asyncio.run(start(["a", "b"], Pool("p", hold, slots=0, shard="b")))
    with pytest.raises(errors.InvalidOption, match="tasks of 2 shards, and 1 are listed"):
        asyncio.run(start(None, Pool("p", hold)))
