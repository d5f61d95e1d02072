"""Pools, resources and tasks of a scheduler in this process, on a clock that the tests move."""

from __future__ import annotations

import asyncio
import threading

import pytest
from scheduler_clock import hold, played

import mirab
from mirab import Context, Pool, Resource, Scheduler


async def call_llm(ctx: Context, prompt: str) -> str:
    return f"{prompt}!"


def test_the_example_of_the_product(capsys: pytest.CaptureFixture[str]) -> None:
    async def main() -> None:
        async with mirab.Scheduler(
            pools=[mirab.Pool("llm", call_llm, slots=16)],
            resources=[mirab.Resource.semaphore("gpu", 4), mirab.Resource.token_bucket("api", rate=50.0, burst=100)],
        ) as scheduler:
            handle = await scheduler.submit("hi", pool="llm", priority=5, resources={"gpu": 1, "api": 1})
            print(await handle)

    asyncio.run(main())
    assert capsys.readouterr().out == "hi!\n"


@played
async def test_resources_of_the_first_seed() -> None:
    resources = [Resource.semaphore("gpu", 4), Resource.token_bucket("api", rate=50.0, burst=100)]
    async with Scheduler([Pool("p", hold)], resources) as scheduler:
        with pytest.raises(mirab.errors.ResourceExceedsCapacity, match=r"5 of .*gpu.*4"):
            await scheduler.submit(1.0, resources={"gpu": 5})
        with pytest.raises(mirab.errors.ResourceExceedsCapacity, match=r"101 of .*api.*100"):  # case D8
            await scheduler.submit(1.0, resources={"api": 101})
        with pytest.raises(mirab.errors.UnknownResource, match="did you mean gpu"):
            await scheduler.submit(1.0, resources={"gpuu": 1})
        with pytest.raises(mirab.errors.UnknownPool, match=r"expected one of p$"):
            await scheduler.submit(1.0, pool="q")
        with pytest.raises(mirab.errors.InvalidResource):
            await scheduler.submit(1.0, resources={"gpu": 0})
        assert scheduler.snapshot().counts.submitted == 0
        handles = [await scheduler.submit(1.0, resources={"gpu": 1}) for _ in range(6)]
        assert [await handle for handle in handles] == [0.0] * 4 + [1.0] * 2


@played
async def test_what_cannot_start_hides_nobody_and_a_slot_is_a_limit_too() -> None:
    async with Scheduler([Pool("p", hold, slots=2)], [Resource.semaphore("db", 1)]) as scheduler:
        first = await scheduler.submit(5.0, resources={"db": 1})
        blocked = await scheduler.submit(1.0, priority=9, resources={"db": 1})
        other = await scheduler.submit(1.0)
        assert (await other, await first, await blocked) == (0.0, 0.0, 5.0)


@played
async def test_higher_priority_first_equals_in_order_and_an_edit_moves() -> None:
    async with Scheduler([Pool("p", hold, slots=1, priority=1)]) as scheduler:
        handles = [await scheduler.submit(1.0, priority=priority) for priority in (None, None, 0, 5, 5)]
        assert handles[2].set_priority(7)
        assert [await handle for handle in handles] == [0.0, 4.0, 1.0, 2.0, 3.0]
        assert not handles[2].set_priority(7)
        assert scheduler.snapshot().priority_inversions == 0


@played
async def test_pool_defaults_give_way_to_what_a_task_says() -> None:
    pool = Pool("p", hold, resources={"gpu": 2, "db": 1})
    async with Scheduler([pool], [Resource.semaphore("gpu", 4), Resource.semaphore("db", 2)]) as scheduler:
        await scheduler.submit(1.0)
        await scheduler.submit(1.0, resources={"gpu": 1})
        used = {name: resource.used for name, resource in scheduler.snapshot().resources.items()}
        assert used == {"gpu": 3, "db": 2}


@played
async def test_a_pool_refuses_more_than_may_wait() -> None:
    async with Scheduler([Pool("p", hold, slots=1, max_queued=2)]) as scheduler:
        with pytest.raises(mirab.errors.QueueFull) as refused:
            await scheduler.submit_many([1.0] * 5)
        assert [await handle for handle in refused.value.accepted] == [0.0, 1.0, 2.0]  # type: ignore[attr-defined]
        assert await (await scheduler.submit(1.0)) == 3.0


def test_plain_functions_run_in_threads_and_give_their_slot_back_when_they_return() -> None:
    entered, may_end = threading.Event(), threading.Event()

    def work(ctx: Context, name: str) -> tuple[str, bool]:
        if name == "stubborn":
            entered.set()
            may_end.wait()
        return threading.current_thread().name, ctx.cancelled

    async def main() -> None:
        async with Scheduler([Pool("threads", work, slots=1)]) as scheduler:
            stubborn = await scheduler.submit("stubborn")
            after = await scheduler.submit("after")
            await asyncio.to_thread(entered.wait)
            assert stubborn.cancel() and not stubborn.cancel()
            assert (stubborn.status().state, after.status().state) == ("Stopping", "Queued")
            may_end.set()
            name, cancelled = await stubborn
            assert name.startswith("mirab-default") and cancelled
            assert await after == (name, False)

    asyncio.run(main())


def test_an_executor_that_is_async_in_disguise_is_told_so() -> None:
    async def main() -> None:
        async with Scheduler([Pool("p", lambda ctx, payload: call_llm(ctx, payload))]) as scheduler:
            with pytest.raises(mirab.errors.TaskFailed, match="define it with `async def`"):
                await (await scheduler.submit("x"))

    asyncio.run(main())


class Caller:
    async def __call__(self, ctx: Context, payload: int) -> int:
        return payload + 1


@played
async def test_objects_with_an_async_call_are_executors() -> None:
    async with Scheduler([Pool("p", Caller())]) as scheduler:
        assert await (await scheduler.submit(1)) == 2
