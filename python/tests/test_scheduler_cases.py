"""Cases of groups C and D, as users of the library meet them: who starts, who waits, and who is not held up by it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any

import pytest
from scheduler_clock import now, played

from mirab import Context, Handle, Pool, Resource, Scheduler, TaskOptions, errors

HOUR = 3_600.0


class Log:
    """An executor that notes who starts when. A payload is a number and seconds."""

    def __init__(self) -> None:
        self.entries: list[tuple[int, float]] = []

    async def __call__(self, ctx: Context, payload: tuple[int, float]) -> None:
        number, seconds = payload
        self.entries.append((number, now()))
        if seconds:
            await asyncio.sleep(seconds)

    @property
    def order(self) -> list[int]:
        return [number for number, _ in self.entries]

    def start_of(self, number: int) -> float | None:
        return dict(self.entries).get(number)


class World(Scheduler):
    """A scheduler of one pool, whose work is cancelled at the end of the test."""

    def __init__(self, *resources: Resource, pools: Iterable[str] = ("p",), **options: Any) -> None:
        self.log = Log()
        super().__init__([Pool(name, self.log, slots=10_000) for name in pools], resources, grace=0, **options)

    async def put(self, number: int, seconds: float = 0.0, *needs: str, **options: Any) -> Handle[None]:
        chosen = TaskOptions(resources={name: 1 for name in needs}) | options
        return await self.submit((number, seconds), **chosen)  # type: ignore[misc]


@played
async def test_case_c1_a_crowd_that_waits_hides_nobody_who_could_start() -> None:
    async with World(Resource.semaphore("a", 1), Resource.semaphore("b", 20)) as world:
        await world.put(0, HOUR, "a")
        for n in range(1_000):
            await world.put(1_000 + n, HOUR, "a", priority=2)
        for n in range(100):
            await world.put(5_000 + n, HOUR, "b", priority=1)
        await asyncio.sleep(0)
        assert world.log.order == [0, *range(5_000, 5_020)]


@played
async def test_case_c2_a_large_request_starts() -> None:
    async with World(Resource.semaphore("db", 4)) as world:
        for n in range(1, 5):
            await world.put(n, float(n), "db")
        for n in range(500):
            await world.put(100 + n, 1.0, "db")
        await asyncio.sleep(0.5)
        await (await world.put(99, 1.0, resources={"db": 4}, priority=10))
        assert world.log.start_of(99) == 4.0


@played
async def test_cases_c7_and_c9_one_who_needs_something_else_starts_now() -> None:
    async with World(Resource.semaphore("gate", 1), Resource.semaphore("key:*", 1)) as world:
        for n in range(2_000):
            await world.put(n, HOUR, "gate")
            await world.put(10_000 + n, HOUR, "key:1")
        await (await world.put(90_000))
        await (await world.put(90_001, 0.0, "key:2"))
        assert (now(), world.log.order) == (0.0, [0, 10_000, 90_000, 90_001])


@played
async def test_case_c8_a_place_in_line_is_kept_for_life() -> None:
    for seed in range(1, 21):
        async with World(Resource.semaphore("a", 1), Resource.semaphore("b", 1)) as world:
            await world.put(0, 1.0, "a")
            await world.put(1, 1.0, "b")
            handles = [await world.put(n, 0.0, "ab"[n * seed % 3 == 0]) for n in range(2, 22)]
            for n, handle in enumerate(handles):
                # Who is moved and moved back stands where it stood.
                assert (n * seed) % 5 >= 2 or (handle.set_priority(7) and handle.set_priority(0))
            for handle in handles:
                await handle
            for of_b in (False, True):
                order = [n for n in world.log.order if n > 1 and (n * seed % 3 == 0) == of_b]
                assert order == sorted(order)


@played
async def test_case_c10_expired_tasks_consume_nothing_and_keys_do_not_stall_each_other() -> None:
    async with World(Resource.token_bucket("api:*", rate=1 / 60, burst=1)) as world:
        await (await world.put(0, 0.0, "api:1"))
        expiring = [await world.put(n, 0.0, "api:1", start_within=59.0) for n in range(1, 101)]
        await (await world.put(200, 0.0, "api:2"))
        assert now() == 0.0
        for handle in expiring:
            with pytest.raises(errors.TaskExpired):
                await handle
        await (await world.put(300, 0.0, "api:1"))
        assert world.log.order == [0, 200, 300]
        assert world.log.start_of(300) == pytest.approx(60.0, abs=1e-6)


@played
async def test_case_c11_unknown_names_are_refused_and_stop_nobody() -> None:
    async with World(Resource.semaphore("db", 1)) as world:
        for n in range(64):
            with pytest.raises(errors.UnknownResource, match=r'did you mean "?db'):
                await world.put(n, 0.0, "bd")
            with pytest.raises(errors.UnknownPool):
                await world.put(n, 0.0, pool="q")
        await (await world.put(100, 0.0, "db"))
        assert (world.log.order, now()) == ([100], 0.0)


@played
async def test_cases_c13_and_c16_who_waits_for_a_resource_takes_no_slot() -> None:
    async with World(Resource.semaphore("license", 1)) as world:
        world.set_slots("p", 4)
        for n in range(4):
            await world.put(n, HOUR, "license")
        for n in range(10, 20):
            await world.put(n, HOUR)
        await asyncio.sleep(0)
        assert world.log.order == [0, 10, 11, 12]


@played
async def test_case_c18_priority_counts_in_a_crowd() -> None:
    async with World(Resource.semaphore("db", 1)) as world:
        for n in range(1_000):
            await world.put(n, 1.0, "db")
        await (await world.put(9_999, 1.0, "db", priority=5))
        assert world.log.start_of(9_999) == 1.0


@played
async def test_case_c19_priority_holds_among_those_who_wait_for_one_resource() -> None:
    async with World(Resource.semaphore("db", 3), Resource.semaphore("gpu", 2)) as world:
        rank = [n * 7_919 % 13 for n in range(300)]
        handles = [await world.put(n, 1.0, ("db", "gpu")[n % 2], priority=rank[n]) for n in range(300)]
        for handle in handles:
            await handle
        for parity, at_once in ((0, 3), (1, 2)):
            # The first ones found it free.
            order = [rank[n] for n in world.log.order if n % 2 == parity][at_once:]
            assert order == sorted(order, reverse=True)
        assert world.snapshot().priority_inversions == 0


@played
async def test_case_c21_whoever_waits_long_enough_ranks_first() -> None:
    async with World(Resource.semaphore("db", 1), aging=60.0) as world:
        await world.put(0, 1.0, "db", priority=3)
        patient = await world.put(1, 1.0, "db")
        for n in range(2, 400):
            await world.put(n, 1.0, "db", priority=3)
            await asyncio.sleep(1.0)
        await patient
        started = world.log.start_of(1)
        assert started is not None
        assert 120.0 < started <= 181.0


@played
async def test_case_d8_more_than_the_burst_is_refused_with_both_numbers() -> None:
    async with World(Resource.token_bucket("api", rate=10.0, burst=100)) as world:
        with pytest.raises(errors.ResourceExceedsCapacity, match=r"101.*100"):
            await world.put(0, resources={"api": 101})
        await (await world.put(0, resources={"api": 100}))


@played
async def test_cases_d10_and_d15_a_thousand_seconds_of_calls_hold_up_nobody_else() -> None:
    async with World(Resource.token_bucket("api", rate=1 / 300, burst=2)) as world:
        handles = [await world.put(n, 0.0, "api") for n in range(100)]
        await (await world.put(100))
        assert (world.log.order, now()) == ([0, 1, 100], 0.0)
        assert world.snapshot().pools["p"].waiting == 98
        for handle in handles:
            await handle
        assert now() == pytest.approx(98 * 300.0, abs=1e-3)


@played
async def test_case_d11_a_changed_rate_counts_for_those_who_wait() -> None:
    async with World(Resource.token_bucket("api", rate=0.01, burst=1)) as world:
        handles = [await world.put(n, 0.0, "api") for n in range(11)]
        await asyncio.sleep(50.0)
        world.set_rate("api", 1.0)  # half a token is there
        for handle in handles:
            await handle
        assert (world.log.start_of(1), now()) == (pytest.approx(50.5), pytest.approx(59.5))


@played
async def test_case_d12_pools_share_one_rate() -> None:
    async with World(Resource.token_bucket("api", rate=2.0, burst=1), pools="abcd") as world:
        handles = [await world.put(n, 0.0, "api", pool="abcd"[n % 4]) for n in range(21)]
        for handle in handles:
            await handle
        assert world.log.entries == [(n, pytest.approx(n / 2)) for n in range(21)]


@played
async def test_cases_d16_and_d17_each_key_has_a_bucket_of_its_own() -> None:
    async with World(Resource.token_bucket("api:*", rate=0.1, burst=1)) as world:
        for n in range(10):
            await (await world.put(n, 0.0, f"api:{n}"))
        again = await world.put(10, 0.0, "api:0")
        await (await world.put(11, 0.0, "api:other"))
        assert now() == 0.0
        await again
        assert now() == pytest.approx(10.0)


@played
async def test_case_d25_a_ramp_and_a_ceiling_count_together() -> None:
    async with World(Resource.semaphore("db", 100), Resource.token_bucket("ramp", rate=5 / 30, burst=5)) as world:
        for n in range(300):
            await world.put(n, 10_000.0, "db", "ramp")
        running = []
        for _ in range(4):
            running.append(world.snapshot().pools["p"].running)
            await asyncio.sleep(30.001)
        assert running == [5, 10, 15, 20]
        await asyncio.sleep(3_600.0)
        assert world.snapshot().pools["p"].running == 100


@played
async def test_case_s26_a_key_of_another_task_is_told_as_such() -> None:
    async with World(Resource.semaphore("db", 1)) as world:
        first = await world.put(1, HOUR, "db", key="k")
        assert await world.put(1, HOUR, "db", key="k") is first
        for other in (
            world.put(2, HOUR, "db", key="k"),
            world.put(1, HOUR, key="k"),
            world.put(1, HOUR, "db", key="k", retries=3),
        ):
            with pytest.raises(errors.KeyConflict):
                await other
        assert world.snapshot().counts.submitted == 1
