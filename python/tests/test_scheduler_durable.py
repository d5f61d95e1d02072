"""Schedulers with a store: what was accepted goes on after the process has gone."""

from __future__ import annotations

import asyncio
import os
import pickle
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from mirab import Codec, Context, Handle, Pool, Resource, Scheduler, errors, sqlite
from mirab.testing import VirtualClock


def doubling(calls: list[int]) -> Pool[int, int]:
    """Notes its attempts, and gives twice what it is given."""

    async def double(ctx: Context, n: int) -> int:
        calls.append(n)
        return 2 * n

    return Pool("p", double)


def endless() -> Pool[int, int]:
    """Never ends by itself."""

    async def wait(ctx: Context, n: int) -> int:
        await asyncio.Event().wait()
        return n

    return Pool("p", wait, slots=1)


def started(path: Path, *pools: Pool[Any, Any], codec: Codec | None = None) -> Scheduler:
    return Scheduler(pools, [Resource.token_bucket("api", 0.001, 3)], store=sqlite(path / "state.db", codec=codec))


def test_what_waits_and_what_was_executing_goes_on_in_the_next_scheduler(tmp_path: Path) -> None:
    calls: list[int] = []

    async def first() -> int:
        async with started(tmp_path, endless()) as scheduler:
            handles = [await scheduler.submit(n, key=f"k{n}") for n in range(4)]
            last = await scheduler.submit(4, after=[handles[3]], priority=7)
            assert handles[0].status().state == "Running"
            await scheduler.shutdown(0)
            with pytest.raises(errors.TaskCancelled):
                await handles[0]
            return last.id

    async def second(last: int) -> None:
        async with started(tmp_path, doubling(calls)) as scheduler:
            for n in range(4):
                assert await (await scheduler.submit(n, key=f"k{n}")) == 2 * n
        assert sorted(calls) == [0, 1, 2, 3, 4], "the one that came after another as well"

    asyncio.run(second(asyncio.run(first())))


def test_results_of_keys_and_balances_of_buckets_are_kept(tmp_path: Path) -> None:
    calls: list[int] = []

    async def round_() -> None:
        async with started(tmp_path, doubling(calls)) as scheduler:
            assert await (await scheduler.submit(21, key="k", resources={"api": 2})) == 42
            with pytest.raises(errors.KeyConflict):
                await scheduler.submit(22, key="k", resources={"api": 2})
            assert scheduler.snapshot().resources["api"].free == 1

    for _ in range(3):
        asyncio.run(round_())
    assert calls == [21]


def test_retries_are_counted_without_the_attempts_that_went_with_their_process(tmp_path: Path) -> None:
    async def fail(ctx: Context, n: int) -> int:
        raise ValueError(f"no luck in attempt {ctx.attempt}")

    async def interrupted() -> None:
        async with started(tmp_path, endless()) as scheduler:
            await scheduler.submit(1, key="k", retries=1, retry_delay=0)
            await scheduler.shutdown(0)

    async def last() -> None:
        async with started(tmp_path, Pool("p", fail)) as scheduler:
            with pytest.raises(errors.TaskFailed, match="no luck in attempt 4"):
                await (await scheduler.submit(1, key="k", retries=1, retry_delay=0))

    asyncio.run(interrupted())
    asyncio.run(interrupted())
    # Two were lost, one failed, and the one retry failed.
    asyncio.run(last())


def test_a_second_scheduler_on_the_file_is_refused_until_the_first_has_gone(tmp_path: Path) -> None:
    async def main() -> None:
        async with started(tmp_path, doubling([])):
            with pytest.raises(errors.StoreLocked, match=r"state\.db is in use by another scheduler"):
                async with started(tmp_path, doubling([])):
                    raise AssertionError
        async with started(tmp_path, doubling([])):
            pass

    asyncio.run(main())


def test_what_cannot_be_stored_or_read_is_told(tmp_path: Path) -> None:
    async def refused(scheduler: Scheduler, match: str) -> None:
        with pytest.raises(errors.InvalidOption, match=match):
            async with scheduler:
                raise AssertionError

    async def main() -> None:
        async with started(tmp_path, endless()) as scheduler:
            with pytest.raises(errors.InvalidOption, match="the payload cannot be stored"):
                await scheduler.submit(object())
            assert scheduler.snapshot().counts.submitted == 0
            await scheduler.submit(1)
            await scheduler.shutdown(0)
        await refused(
            started(tmp_path, endless(), codec=Pickle()), "task 1 in the store cannot be read .*'json'.*'pickle'"
        )
        await refused(started(tmp_path, Pool("q", print)), "for pool 'p', which is not declared")
        # The file is free again after each.
        async with started(tmp_path, doubling([])):
            pass

    asyncio.run(main())
    with pytest.raises(errors.InvalidOption, match="virtual clock"):
        VirtualClock().run(main())


class Pickle:
    """Any value of Python's."""

    name = "pickle"

    def encode(self, value: Any) -> bytes:
        return pickle.dumps(value)

    def decode(self, data: bytes) -> Any:
        return pickle.loads(data)


def test_another_codec_writes_payloads_and_results_and_says_what_it_cannot(tmp_path: Path) -> None:
    async def give(ctx: Context, name: str) -> Any:
        return (name, {1: name}) if name != "bad" else (lambda: None)

    async def main() -> None:
        async with started(tmp_path, Pool("p", give), codec=Pickle()) as scheduler:
            assert await (await scheduler.submit("a", key="a")) == ("a", {1: "a"})
            with pytest.raises(errors.TaskFailed, match="Can't pickle"):
                await (await scheduler.submit("bad", key="bad", retries=5))
            assert scheduler.snapshot().counts.started == 2, "no attempt is made twice, also after a restart"

    asyncio.run(main())
    asyncio.run(main())


def test_threads_and_tasks_that_wait_for_a_time_survive_too(tmp_path: Path) -> None:
    async def first() -> None:
        async with started(tmp_path, Pool("p", lambda ctx, n: n + 1)) as scheduler:
            assert await (await scheduler.submit(1)) == 2
            await scheduler.submit(5, not_before=3_600, key="later")
            await scheduler.submit(6, start_within=0.001, not_before=3_600, key="late")
            await scheduler.shutdown(0)

    async def second() -> None:
        async with started(tmp_path, doubling([])) as scheduler:
            later: Handle[int] = await scheduler.submit(5, not_before=3_600, key="later")
            status = later.status()
            assert status.state == "Scheduled"
            assert status.due_at is not None
            assert 3_500 < status.due_at - asyncio.get_running_loop().time() < 3_600
            with pytest.raises(errors.TaskExpired):
                await (await scheduler.submit(6, start_within=0.001, not_before=3_600, key="late"))
            await scheduler.shutdown(0)

    asyncio.run(first())
    asyncio.run(second())


CHILD = """
import asyncio, itertools, sys
from mirab import Pool, Scheduler, sqlite

def say(word, n):
    sys.stdout.write(f"{word} {n}\\n")
    sys.stdout.flush()

async def call(ctx, n):
    say("started", n)
    await asyncio.sleep(0)
    return n

async def main():
    async with Scheduler([Pool("p", call, slots=8)], store=sqlite(sys.argv[1])) as scheduler:
        for n in itertools.count(scheduler.snapshot().counts.submitted):
            await scheduler.submit(n)
            say("accepted", n)

asyncio.run(main())
"""


def test_a_scheduler_that_is_killed_again_and_again_runs_all_that_it_accepted(tmp_path: Path) -> None:
    rounds = 100 if "MIRAB_SOAK" in os.environ else 4
    accepted: set[int] = set()
    begun: Counter[int] = Counter()
    for number in range(rounds):
        child = subprocess.Popen(
            [sys.executable, "-c", CHILD, str(tmp_path / "state.db")], stdout=subprocess.PIPE, text=True
        )
        assert child.stdout is not None
        for at, line in enumerate(child.stdout):
            if at == 2 + number * 37 % 60:
                child.kill()
            if line.endswith("\n"):
                word, n = line.split()
                if word == "started":
                    begun[int(n)] += 1
                else:
                    assert int(n) not in accepted, "accepted twice"
                    accepted.add(int(n))
        child.wait()
        child.stdout.close()

    async def finish() -> None:
        async with Scheduler([doubling([])], store=sqlite(tmp_path / "state.db")) as scheduler:
            pass
        assert not scheduler._shards["default"].live

    async def counted() -> None:
        async with Scheduler([doubling([])], store=sqlite(tmp_path / "state.db")) as scheduler:
            counts = scheduler.snapshot().counts
            assert len(accepted) > rounds
            assert counts.submitted >= len(accepted)
            assert counts.completed == counts.submitted, "none is lost"

    asyncio.run(finish())
    asyncio.run(counted())
    # Eight execute at once: no kill makes more than eight run again.
    assert sum(times - 1 for times in begun.values()) <= 8 * rounds


FULL = """
import asyncio, resource, sys
from mirab import Pool, Scheduler, errors, sqlite

started = []

async def call(ctx, text):
    started.append(ctx.task_id)
    await asyncio.Event().wait()

async def main():
    accepted = 0
    async with Scheduler([Pool("p", call, slots=4)], store=sqlite(sys.argv[1]), grace=0) as scheduler:
        await scheduler.submit("first")
        resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))
        try:
            while True:
                accepted += 1
                await scheduler.submit("x" * 50_000)
        except errors.StoreUnavailable:
            pass
        for again in (scheduler.submit("no more"), scheduler.submit_many(["no more"])):
            try:
                await again
            except errors.StoreUnavailable:
                pass
            else:
                raise AssertionError("what is not stored is not accepted")
        assert scheduler.snapshot().pools["p"].waiting == 0, "nothing waits for a start that can never be stored"
    print(accepted)

asyncio.run(main())
"""


def test_a_full_disk_refuses_what_it_cannot_store_and_loses_nothing(tmp_path: Path) -> None:
    child = [sys.executable, "-c", FULL, str(tmp_path / "state.db")]
    done = subprocess.run(child, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    accepted = int(done.stdout)

    async def finish() -> None:
        calls: list[Any] = []

        async def note(ctx: Context, text: str) -> None:
            calls.append(text)

        async with Scheduler([Pool("p", note)], store=sqlite(tmp_path / "state.db")):
            pass
        assert len(calls) == accepted, "the first, and all that came before the one that was refused"

    asyncio.run(finish())
