"""The life of tasks: keys, times, retries, timeouts, cancels, tasks that come after others."""

from __future__ import annotations

import asyncio
import gc
from datetime import UTC, datetime, timedelta

import pytest
from scheduler_clock import hold, now, played

from mirab import Context, Handle, Permanent, Pool, Resource, Retryable, Scheduler, errors


class Fails:
    """Raises what it is told to, attempt by attempt, then returns when it started."""

    def __init__(self, *errors: BaseException) -> None:
        self.errors = list(errors)
        self.starts: list[float] = []

    async def __call__(self, ctx: Context, payload: object) -> int:
        self.starts.append(now())
        if self.errors:
            raise self.errors.pop(0)
        return ctx.attempt


@played
async def test_a_key_means_the_same_task() -> None:
    async with Scheduler([Pool("p", hold)], [Resource.semaphore("db", 9)]) as scheduler:
        first = await scheduler.submit(1.0, key="k")
        assert await scheduler.submit(1.0, key="k", priority=3) is first
        # Case S26: another task under the key is told as such.
        with pytest.raises(errors.KeyConflict, match="differs in payload"):
            await scheduler.submit(2.0, key="k")
        with pytest.raises(errors.KeyConflict, match="differs in pool, kind, resources"):
            await scheduler.submit(1.0, key="k", resources={"db": 1})
        assert await first == 0.0
        assert await (await scheduler.submit(1.0, key="k")) == 0.0
        assert scheduler.snapshot().counts.submitted == 1


@played
async def test_a_key_is_free_once_its_task_is_forgotten() -> None:
    async with Scheduler([Pool("p", hold)], retained=1) as scheduler:
        first = await scheduler.submit(1.0, key="k")
        await first
        await (await scheduler.submit(1.0))
        again = await scheduler.submit(1.0, key="k")
        assert again is not first and await again == 2.0
        with pytest.raises(errors.UnknownTask):
            first.status()


@played
async def test_not_before_and_deadlines_to_start() -> None:
    async with Scheduler([Pool("p", hold, slots=1)], [Resource.token_bucket("api", 0.001, 1)]) as scheduler:
        later = await scheduler.submit(1.0, not_before=3600)
        assert later.status().state == "Scheduled" and later.status().due_at == 3600.0
        await scheduler.submit(10.0)
        late = await scheduler.submit(1.0, start_within=5.0, resources={"api": 1})
        in_time = await scheduler.submit(1.0, start_by=datetime.now(UTC) + timedelta(hours=1))
        with pytest.raises(errors.TaskExpired):
            await late
        assert now() == 5.0 and scheduler.snapshot().resources["api"].free == 1
        assert (await in_time, await later) == (10.0, 3600.0)
        with pytest.raises(errors.InvalidOption, match="aware datetime"):
            await scheduler.submit(1.0, not_before=datetime(2030, 1, 1))


@played
async def test_failures_keep_their_cause_and_are_tried_again_after_a_pause_of_full_jitter() -> None:
    flaky = Fails(ValueError("one"), ValueError("two"))
    async with Scheduler([Pool("p", flaky)]) as scheduler:
        assert await (await scheduler.submit(None, retries=2, retry_delay=8.0)) == 3
        first, second = (later - earlier for earlier, later in zip(flaky.starts, flaky.starts[1:], strict=False))
        assert 0.0 <= first <= 8.0 and 0.0 <= second <= 16.0
        flaky.errors = [ValueError("no luck")]
        handle = await scheduler.submit(None)
        for _ in range(2):
            with pytest.raises(errors.TaskFailed, match="ValueError: no luck") as failed:
                await handle
            assert isinstance(failed.value.__cause__, ValueError)
        assert (handle.status().state, handle.status().message) == ("Failed", "ValueError: no luck")


@played
async def test_retryable_says_when_and_permanent_says_never() -> None:
    flaky = Fails(Retryable("busy", retry_after=7.5), Permanent("gone"))
    async with Scheduler([Pool("p", flaky)]) as scheduler:
        handle = await scheduler.submit(None, retries=9)
        with pytest.raises(errors.TaskFailed, match="gone") as failed:
            await handle
        assert isinstance(failed.value.__cause__, Permanent)
        assert flaky.starts == [0.0, 7.5] and handle.status().attempts == 2


@played
async def test_case_f1_f3_f5_a_retry_holds_nothing_and_passes_the_same_gate_at_its_old_rank() -> None:
    flaky = Fails(Retryable(retry_after=600.0))
    starts: dict[str, float] = {}

    async def work(ctx: Context, name: str) -> None:
        starts[name] = now()
        if name == "retried":
            await flaky(ctx, None)
        else:
            await asyncio.sleep(300.0)

    async with Scheduler([Pool("p", work)], [Resource.semaphore("db", 1)]) as scheduler:
        retried = await scheduler.submit("retried", key="k", priority=5, retries=5, resources={"db": 1})
        for name in "abcd":
            await scheduler.submit(name, resources={"db": 1})
        await asyncio.sleep(1.0)
        assert retried.status().state == "AwaitingRetry" and starts == {"retried": 0.0, "a": 0.0}
        await retried
        # Two others used db meanwhile; at 600 s it goes before those that still wait.
        assert (starts["b"], starts["retried"]) == (300.0, 600.0)
        assert "c" not in starts
        assert await scheduler.submit("retried", key="k", priority=5, retries=5, resources={"db": 1}) is retried


@played
async def test_a_timeout_reaches_the_body_and_is_told_apart() -> None:
    cleaned: list[float] = []

    async def work(ctx: Context, payload: None) -> None:
        assert ctx.deadline == now() + 2.0
        try:
            await asyncio.sleep(100.0)
        finally:
            cleaned.append(now())

    async with Scheduler([Pool("p", work)]) as scheduler:
        handle = await scheduler.submit(None, timeout=2.0, retries=1, retry_delay=0.0)
        with pytest.raises(errors.TaskTimedOut) as timed_out:
            await handle
        assert isinstance(timed_out.value, errors.TaskFailed)
        assert cleaned == [2.0, 4.0]


@played
async def test_a_cancelled_body_holds_its_slot_until_it_has_ended() -> None:
    async def work(ctx: Context, name: str) -> float:
        started = now()
        try:
            await asyncio.sleep(100.0)
        except asyncio.CancelledError:
            assert ctx.cancelled
            await asyncio.sleep(5.0)  # it takes its time
            raise
        return started

    async with Scheduler([Pool("p", work, slots=1)], [Resource.semaphore("gpu", 1)]) as scheduler:
        first = await scheduler.submit("first", resources={"gpu": 1})
        second = await scheduler.submit("second", resources={"gpu": 1})
        await asyncio.sleep(1.0)
        assert first.cancel() and first.status().state == "Stopping"
        await asyncio.sleep(1.0)
        assert scheduler.snapshot().resources["gpu"].used == 1 and second.status().state == "Queued"
        with pytest.raises(errors.TaskCancelled):
            await first
        assert now() == 6.0 and not first.cancel()
        assert await second == 6.0


@played
async def test_a_body_that_was_cancelled_before_its_first_step_leaves_nothing() -> None:
    async with Scheduler([Pool("p", hold, slots=1)], [Resource.semaphore("gpu", 1)]) as scheduler:
        first = await scheduler.submit(9.0, resources={"gpu": 1})
        assert first.cancel()
        assert await (await scheduler.submit(1.0, resources={"gpu": 1})) == 0.0
        with pytest.raises(errors.TaskCancelled):
            await first


@played
async def test_a_body_that_ends_well_though_it_was_cancelled_has_completed() -> None:
    async def work(ctx: Context, payload: None) -> str:
        try:
            await asyncio.sleep(100.0)
        except asyncio.CancelledError:
            return "saved"
        return "never"

    async with Scheduler([Pool("p", work)]) as scheduler:
        handle = await scheduler.submit(None)
        await asyncio.sleep(1.0)
        assert handle.cancel() and await handle == "saved"


@played
async def test_tasks_come_after_others_by_how_those_end() -> None:
    async def work(ctx: Context, fails: bool) -> float:
        started = now()
        await asyncio.sleep(1.0)
        if fails:
            raise ValueError("no luck")
        return started

    async with Scheduler([Pool("p", work)]) as scheduler:
        well, badly = await scheduler.submit(False), await scheduler.submit(True)
        after_well = await scheduler.submit(False, after=[well])
        after_failure = await scheduler.submit(False, after=[badly.id], on="failure")
        after_both = await scheduler.submit(False, after=[well, badly], on="completion")
        skipped = await scheduler.submit(False, after=[badly])
        skipped_too = await scheduler.submit(False, after=[skipped])
        assert after_both.status().state == "Blocked"
        assert [await handle for handle in (after_well, after_failure, after_both)] == [1.0] * 3
        for handle in (skipped, skipped_too):
            with pytest.raises(errors.TaskSkipped, match="was to complete before, ended"):
                await handle
        # A circle cannot be said: a task names only tasks that are there.
        with pytest.raises(errors.UnknownTask):
            await scheduler.submit(False, after=[skipped_too.id + 1])


@played
async def test_several_wait_for_one_task_and_who_gives_up_disturbs_nobody() -> None:
    async with Scheduler([Pool("p", hold)]) as scheduler:
        handle = await scheduler.submit(5.0)

        async def wait(handle: Handle[float]) -> float:
            return await handle

        with pytest.raises(TimeoutError):
            await asyncio.wait_for(wait(handle), 1.0)
        assert await asyncio.gather(handle, wait(handle), handle) == [0.0] * 3


@played
async def test_tags_and_kinds() -> None:
    async with Scheduler([Pool("p", hold)], [Resource.semaphore("tag:heavy", 1)]) as scheduler:
        handles = [await scheduler.submit(1.0, tags=["heavy"], kind="train") for _ in range(2)]
        light = await scheduler.submit(1.0, tags=["light"])
        assert [await handle for handle in [*handles, light]] == [0.0, 1.0, 0.0]
        with pytest.raises(errors.InvalidOption, match="expected a list"):
            await scheduler.submit(1.0, tags="heavy")


@pytest.mark.parametrize(
    "options",
    [{"timeout": -1.0}, {"retries": -1}, {"priority": 1 << 40}, {"on": "luck"}, {"retry_delay": float("nan")}],
)
def test_options_that_make_no_sense_are_refused_by_name(options: dict[str, object]) -> None:
    @played
    async def play() -> None:
        async with Scheduler([Pool("p", hold)]) as scheduler:
            with pytest.raises(errors.InvalidOption, match=next(iter(options))):
                await scheduler.submit(1.0, **options)  # type: ignore[arg-type]

    play()


@played
async def test_case_s17_s23_tasks_that_have_ended_leave_no_objects_and_no_timers() -> None:
    async def nothing(ctx: Context, payload: int) -> None:
        return None

    async with Scheduler([Pool("p", nothing)], retained=100_000) as scheduler:
        for round in range(3):
            for handle in await scheduler.submit_many(range(10_000), timeout=3600.0):
                await handle
            gc.collect()
            if round == 0:
                before = len(gc.get_objects())
        assert scheduler.snapshot().counts.completed == 30_000
        assert len(gc.get_objects()) - before < 1_000
        assert len(asyncio.get_running_loop()._scheduled) <= 2  # type: ignore[attr-defined]
