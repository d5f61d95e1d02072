"""Events, snapshots and explanations; how a scheduler ends, and who may use it."""

from __future__ import annotations

import asyncio
import threading

import pytest
from scheduler_clock import hold, now, played

from mirab import Context, Event, Handle, Lagged, Pool, Resource, Scheduler, errors
from mirab.testing import VirtualClock


@played
async def test_events_tell_what_happens_and_end_with_the_scheduler() -> None:
    seen: list[tuple[float, int, str]] = []
    async with Scheduler([Pool("p", hold, slots=1)]) as scheduler:
        events = scheduler.events()
        await scheduler.submit(2.0)
        second = await scheduler.submit(2.0)
        second.set_priority(3)
    async for event in events:
        assert isinstance(event, Event)
        seen.append((event.at, event.task_id, event.what))
    assert seen == [
        (0.0, 1, "submitted"),
        (0.0, 1, "queued"),
        (0.0, 1, "started"),
        (0.0, 2, "submitted"),
        (0.0, 2, "queued"),
        (0.0, 2, "reprioritised"),
        (2.0, 1, "ended"),
        (2.0, 2, "started"),
        (4.0, 2, "ended"),
    ]


@played
async def test_a_reader_that_lags_is_told_how_much_it_missed() -> None:
    async with Scheduler([Pool("p", hold)]) as scheduler:
        slow, quick = scheduler.events(limit=4), scheduler.events(limit=100)
        await scheduler.submit_many([1.0] * 3)
        assert await anext(slow) == Lagged(5)
        left = [await anext(slow) for _ in range(4)]
        assert [event.task_id for event in left if isinstance(event, Event)] == [2, 3, 3, 3]
        assert [await anext(quick) for _ in range(9)][5:] == left
        await slow.aclose()
        with pytest.raises(StopAsyncIteration):
            await anext(slow)
        waiting = asyncio.ensure_future(anext(quick))  # type: ignore[arg-type]
        await asyncio.sleep(1.5)
        event = await waiting
        assert isinstance(event, Event) and event.details["state"] == "Completed"


@played
async def test_a_snapshot_counts_what_is_there() -> None:
    pools = [Pool("p", hold, slots=2, max_queued=7)]
    async with Scheduler(pools, [Resource.semaphore("gpu", 4)]) as scheduler:
        for _ in range(3):
            await scheduler.submit(4.0, resources={"gpu": 1})
        await asyncio.sleep(1.0)
        snapshot = scheduler.snapshot()
        pool, gpu = snapshot.pools["p"], snapshot.resources["gpu"]
        assert (pool.slots, pool.max_queued, pool.waiting, pool.running) == (2, 7, 1, 2)
        assert (gpu.kind, gpu.capacity, gpu.used, gpu.free, gpu.waiting) == ("semaphore", 4, 2, 2, 1)
        assert snapshot.priority_inversions == 0
        await asyncio.sleep(4.0)
        waits = scheduler.snapshot().pools["p"].waits
        assert waits.count == 3 and 4.0 <= waits.p99 <= 5.0


@played
async def test_explain_says_what_is_short_who_holds_it_and_until_when() -> None:
    resources = [Resource.semaphore("gpu", 2), Resource.token_bucket("api", 0.1, 1)]
    async with Scheduler([Pool("p", hold)], resources) as scheduler:
        holder = await scheduler.submit(4.0, resources={"gpu": 2, "api": 1})
        waiter = await scheduler.submit(1.0, resources={"gpu": 1, "api": 1})
        explained = waiter.explain()
        assert explained is not None and explained.position == 1 and explained.promise is not None
        gpu, api = sorted(explained.blocked_on, key=lambda blocked: blocked.resource, reverse=True)
        assert (gpu.resource, gpu.need, gpu.free, gpu.capacity, gpu.ahead) == ("gpu", 1, 0, 2, 0)
        assert [(each.task_id, each.units, each.since) for each in gpu.holders] == [(holder.id, 2, 0.0)]
        assert api.tokens_at == 10.0
        assert holder.explain() is None
        assert await waiter == 10.0


@played
async def test_leaving_the_block_lets_all_work_end() -> None:
    async with Scheduler([Pool("p", hold, slots=1)]) as scheduler:
        handles = await scheduler.submit_many([1.0] * 5)
    assert now() == 5.0 and [await handle for handle in handles] == [0.0, 1.0, 2.0, 3.0, 4.0]
    with pytest.raises(errors.SchedulerClosed, match="shut down"):
        await scheduler.submit(1.0)


@played
async def test_after_the_grace_the_rest_is_cancelled_and_nothing_is_left() -> None:
    async with Scheduler([Pool("p", hold, slots=1)], grace=1.5) as scheduler:
        handles = await scheduler.submit_many([1.0] * 3)
        far = await scheduler.submit(1.0, not_before=1e6)
    assert now() == 1.5 and await handles[0] == 0.0
    for handle in [*handles[1:], far]:
        with pytest.raises(errors.TaskCancelled):
            await handle
    assert len(asyncio.all_tasks()) == 1


@played
async def test_an_error_in_the_block_cancels_at_once_and_waits_for_bodies() -> None:
    ended: list[float] = []

    async def slow_to_end(ctx: Context, payload: None) -> None:
        try:
            await asyncio.sleep(100.0)
        finally:
            await asyncio.sleep(2.0)
            ended.append(now())

    with pytest.raises(KeyError):
        async with Scheduler([Pool("p", slow_to_end)]) as scheduler:
            await scheduler.submit(None)
            await asyncio.sleep(1.0)
            raise KeyError
    assert ended == [3.0]


@played
async def test_tasks_may_submit_tasks_but_not_while_it_shuts_down() -> None:
    async def parent(ctx: Context, levels: int) -> int:
        if levels == 0:
            return 0
        return 1 + int(await (await scheduler.submit(levels - 1)))

    scheduler = Scheduler([Pool("p", parent)])
    async with scheduler:
        assert await (await scheduler.submit(3)) == 3
        late = await scheduler.submit(1, not_before=5.0)
    with pytest.raises(errors.TaskFailed) as failed:
        await late
    assert isinstance(failed.value.__cause__, errors.SchedulerClosed)


def test_a_scheduler_that_was_not_started_or_whose_loop_is_gone_says_so() -> None:
    async def begin() -> tuple[Scheduler, Handle[float]]:
        scheduler = await Scheduler([Pool("p", hold)]).__aenter__()
        return scheduler, await scheduler.submit(1.0, not_before=100.0)

    async def use(scheduler: Scheduler, handle: Handle[float] | None) -> None:
        with pytest.raises(errors.SchedulerClosed):
            await scheduler.submit(1.0)
        if handle is not None:
            with pytest.raises(errors.SchedulerClosed, match="loop of this scheduler is gone"):
                await handle

    scheduler, handle = VirtualClock().run(begin())
    asyncio.run(use(scheduler, handle))
    with pytest.raises(errors.SchedulerClosed):
        handle.cancel()
    asyncio.run(use(Scheduler([Pool("p", hold)]), None))


@played
async def test_another_thread_is_told_to_go_through_the_loop() -> None:
    async with Scheduler([Pool("p", hold)]) as scheduler:
        handle = await scheduler.submit(1.0)
        errors_seen: list[BaseException] = []

        def elsewhere() -> None:
            for use in (handle.cancel, scheduler.snapshot, lambda: scheduler.set_slots("p", 1)):
                try:
                    use()
                except RuntimeError as error:
                    errors_seen.append(error)

        thread = threading.Thread(target=elsewhere)
        thread.start()
        thread.join()
        assert len(errors_seen) == 3
        assert all("run_coroutine_threadsafe" in str(error) for error in errors_seen)
        assert await handle == 0.0


@played
async def test_case_l2_a_loop_that_was_blocked_starts_nothing_twice() -> None:
    runs: list[tuple[str, int]] = []

    async def work(ctx: Context, name: str) -> None:
        runs.append((name, ctx.attempt))
        if name == "blocks":
            # A loop that does not turn for an hour: the clock goes on, nothing else does.
            asyncio.get_running_loop().clock.time += 3_600.0  # type: ignore[attr-defined]
        await asyncio.sleep(1.0)

    async with Scheduler([Pool("p", work)], [Resource.token_bucket("api", 1.0, 2)]) as scheduler:
        for name in ("blocks", "beside", "after", "last"):
            await scheduler.submit(name, resources={"api": 1})
    assert runs == [("blocks", 1), ("beside", 1), ("after", 1), ("last", 1)]
