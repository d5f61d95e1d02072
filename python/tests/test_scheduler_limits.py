"""Token buckets, live changes and shards of a scheduler; cases from the field about rates."""

from __future__ import annotations

import asyncio
import threading

import pytest
from scheduler_clock import hold, now, played

from mirab import Context, Pool, Resource, Scheduler, errors
from mirab.testing import VirtualClock


async def start(ctx: Context, payload: object) -> float:
    """Gives when it started."""
    return now()


@played
async def test_case_c12_waiters_of_a_bucket_are_served_in_order() -> None:
    async with Scheduler([Pool("p", start, slots=200)], [Resource.token_bucket("tb", 5.0, 1)]) as scheduler:
        handles = await scheduler.submit_many(range(101), resources={"tb": 1})
        starts = [await handle for handle in handles]
        assert starts == pytest.approx([n / 5 for n in range(101)], abs=1e-6)


@played
async def test_case_d9_one_a_minute_is_one_a_minute_from_the_first_on() -> None:
    async with Scheduler([Pool("p", start)], [Resource.token_bucket("tb", 1 / 60, 1)]) as scheduler:
        handles = await scheduler.submit_many(range(3), resources={"tb": 1})
        assert [await handle for handle in handles] == pytest.approx([0.0, 60.0, 120.0], abs=1e-6)


@played
async def test_case_d18_d19_who_waits_is_woken_and_tokens_are_read_at_reading_time() -> None:
    async with Scheduler([Pool("p", start, slots=20_000)], [Resource.token_bucket("tb", 30.0, 30)]) as scheduler:
        handles = await scheduler.submit_many(range(16_000), resources={"tb": 1})
        assert await handles[-1] == pytest.approx((16_000 - 30) / 30, abs=1e-6)
        assert scheduler.snapshot().resources["tb"].free == 0
        await asyncio.sleep(0.5)
        assert scheduler.snapshot().resources["tb"].free == 15


@played
async def test_case_d20_d21_a_limit_that_is_declared_again_keeps_its_holders() -> None:
    async with Scheduler([Pool("p", hold)], [Resource.semaphore("api:*", 1)]) as scheduler:
        handles = [await scheduler.submit(10.0, resources={"api:k": 1}) for _ in range(3)]
        for _ in range(100):
            scheduler.set_resource(Resource.semaphore("api:*", 1))
        assert scheduler.snapshot().resources["api:k"].used == 1
        assert [await handle for handle in handles] == [0.0, 10.0, 20.0]


@played
async def test_case_d22_a_cooldown_leaves_the_capacity_alone() -> None:
    async def call(ctx: Context, payload: int) -> float:
        if payload == 0:
            ctx.cooldown("api", 20.0)
        return now()

    async with Scheduler([Pool("p", call)], [Resource.token_bucket("api", 1.0, 1)]) as scheduler:
        first, second, third = await scheduler.submit_many(range(3), resources={"api": 1})
        assert (await first, await second, await third) == (0.0, 20.0, 21.0)
        assert scheduler.snapshot().resources["api"].capacity == 1


@played
async def test_settle_gives_back_or_owes() -> None:
    async def call(ctx: Context, actual: int) -> float:
        started = now()
        ctx.settle("tokens", actual)
        with pytest.raises(errors.InvalidResource):
            ctx.settle("gpu", 1)
        return started

    resources = [Resource.token_bucket("tokens", 1.0, 10), Resource.semaphore("gpu", 1)]
    async with Scheduler([Pool("p", call, resources={"tokens": 10, "gpu": 1})], resources) as scheduler:
        cheap, dear, last = await scheduler.submit_many([4, 13, 10])
        assert (await cheap, await dear, await last) == (0.0, 4.0, 17.0)


def test_a_thread_settles_and_cools_down_too() -> None:
    def call(ctx: Context, payload: None) -> str:
        ctx.settle("tokens", 4)
        with pytest.raises(errors.UnknownResource):
            ctx.cooldown("nothing", 1.0)
        return threading.current_thread().name

    async def main() -> None:
        pool = Pool("p", call, resources={"tokens": 10})
        async with Scheduler([pool], [Resource.token_bucket("tokens", 0.001, 10)]) as scheduler:
            assert await (await scheduler.submit(None)) != threading.current_thread().name
            assert scheduler.snapshot().resources["tokens"].free == 6

    asyncio.run(main())


@played
async def test_limits_change_while_work_runs() -> None:
    resources = [Resource.semaphore("gpu", 1), Resource.token_bucket("api", 1.0, 1)]
    async with Scheduler([Pool("p", hold, slots=2)], resources) as scheduler:
        handles = [await scheduler.submit(10.0, resources={"gpu": 1}) for _ in range(4)]
        await asyncio.sleep(1.0)
        scheduler.set_permits("gpu", 4)  # raising wakes: the slots are what is short now
        await asyncio.sleep(1.0)
        scheduler.set_slots("p", 4)
        assert [await handle for handle in handles] == [0.0, 1.0, 2.0, 2.0]
        scheduler.set_permits("gpu", 0)  # paused
        paused = await scheduler.submit(1.0, resources={"gpu": 3})
        await asyncio.sleep(5.0)
        scheduler.set_permits("gpu", 2)
        explained = paused.explain()
        assert explained is not None and explained.unsatisfiable
        with pytest.raises(errors.ResourceExceedsCapacity):
            await scheduler.submit(1.0, resources={"gpu": 3})
        with pytest.raises(errors.ResourceInUse):
            scheduler.remove_resource("gpu")
        with pytest.raises(errors.ResourceInUse):
            scheduler.remove_pool("p")
        scheduler.set_permits("gpu", 3)
        assert await paused == now() - 1.0


@played
async def test_a_changed_rate_moves_the_timer() -> None:
    async with Scheduler([Pool("p", start)], [Resource.token_bucket("api", 0.01, 1)]) as scheduler:
        first, second, third = await scheduler.submit_many(range(3), resources={"api": 1})
        await first
        await asyncio.sleep(50.0)
        scheduler.set_rate("api", 1.0)  # half a token is there
        assert (await second, await third) == pytest.approx((50.5, 51.5), abs=1e-6)
        scheduler.set_rate("api", 1.0, burst=5)
        await asyncio.sleep(60.0)
        assert scheduler.snapshot().resources["api"].free == 5
        with pytest.raises(errors.InvalidResource, match="expected a semaphore"):
            scheduler.set_permits("api", 1)


@played
async def test_pools_and_resources_come_and_go() -> None:
    async with Scheduler() as scheduler:
        with pytest.raises(errors.UnknownPool, match="none"):
            await scheduler.submit(1.0)
        pool: Pool[float, float] = Pool("p", hold)
        scheduler.add_pool(pool)
        scheduler.add_resource(Resource.semaphore("db", 1))
        assert await (await scheduler.submit(1.0, pool=pool, resources={"db": 1})) == 0.0
        scheduler.remove_resource("db")
        with pytest.raises(errors.UnknownResource):
            await scheduler.submit(1.0, pool="p", resources={"db": 1})
        scheduler.remove_pool("p")
        with pytest.raises(errors.UnknownPool):
            await scheduler.submit(1.0, pool=pool)
        with pytest.raises(errors.InvalidResource):
            scheduler.add_resource(Resource.token_bucket("bad", 0.0, 1))


@played
async def test_each_shard_counts_on_its_own() -> None:
    pools = [Pool("pa", hold, shard="a"), Pool("pb", hold, shard="b")]
    resources = [Resource.semaphore("gpu_a", 1, shard="a"), Resource.semaphore("gpu_b", 1, shard="b")]
    async with Scheduler(pools, resources, shards=["a", "b"]) as scheduler:
        handles = [
            await scheduler.submit(1.0, pool=f"p{shard}", resources={f"gpu_{shard}": 1})
            for shard in "ab"
            for _ in range(2)
        ]
        assert len({handle.id for handle in handles}) == 4
        with pytest.raises(errors.ResourceOnOtherShard, match=r'"gpu_b" belongs to shard "b"'):
            await scheduler.submit(1.0, pool="pa", resources={"gpu_b": 1})
        with pytest.raises(errors.InvalidOption, match="another shard"):
            await scheduler.submit(1.0, pool="pa", after=[handles[-1]])
        snapshot = scheduler.snapshot()
        assert set(snapshot.pools) == {"pa", "pb"} and set(snapshot.resources) == {"gpu_a", "gpu_b"}
        assert snapshot.counts.submitted == 4 and snapshot.counts.started == 2
        assert [await handle for handle in handles] == [0.0, 1.0, 0.0, 1.0]
        with pytest.raises(errors.InvalidOption, match="names no shard"):
            scheduler.add_pool(Pool("pc", hold))
        scheduler.remove_resource("gpu_b")


def test_an_hour_of_rate_limited_work_takes_no_time_and_is_the_same_twice() -> None:
    async def main() -> list[tuple[float, int]]:
        started: list[tuple[float, int]] = []

        async def work(ctx: Context, n: int) -> None:
            started.append((now(), n))
            if n % 7 == 0 and ctx.attempt < 3:
                raise ValueError("again")

        async with Scheduler([Pool("p", work)], [Resource.token_bucket("api", 1.0, 5)]) as scheduler:
            await scheduler.submit_many(range(3_000), resources={"api": 1}, retries=3)
        return started

    one, other = VirtualClock(), VirtualClock()
    assert one.run(main()) == other.run(main())
    assert one.time > 3_600.0


def test_a_test_that_waits_for_nothing_is_told_so() -> None:
    async def main() -> None:
        await asyncio.get_running_loop().create_future()

    with pytest.raises(RuntimeError, match="nothing is left to happen"):
        VirtualClock().run(main())


def test_time_stands_still_while_a_thread_works() -> None:
    async def main() -> None:
        may_end = threading.Event()
        async with Scheduler([Pool("p", lambda ctx, payload: may_end.wait())]) as scheduler:
            handle = await scheduler.submit(None)
            asyncio.get_running_loop().call_later(1e6, lambda: None)
            await asyncio.sleep(0)
            may_end.set()
            assert await handle and now() == 0.0

    VirtualClock().run(main())
