"""Schedulers as a file says."""

from __future__ import annotations

from pathlib import Path

import pytest
from scheduler_clock import hold, played

from mirab import Pool, Scheduler, errors

TEXT = """
[server]
port = 4747
[gate]
aging = "10m"
assumed_duration = "2s"
[resources]
db = 4
gpu = { kind = "semaphore", permits = 2 }
api = { kind = "token_bucket", rate = 0.1, burst = 100 }
"api:*" = 1
[pools.llm]
slots = 3
max_queued = 5
priority = 7
"""


def file(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "mirab.toml"
    path.write_text(text)
    return path


def test_resources_and_pools_are_as_the_file_says(tmp_path: Path) -> None:
    @played
    async def test() -> None:
        async with Scheduler.from_config(file(tmp_path, TEXT), [Pool("llm", hold, slots=99)]) as scheduler:
            handle = await scheduler.submit(1.0, resources={"gpu": 2, "api": 100, "api:a": 1, "db": 4})
            assert handle.status().priority == 7
            with pytest.raises(errors.ResourceExceedsCapacity):
                await scheduler.submit(1.0, resources={"gpu": 3})
            snapshot = scheduler.snapshot()
            assert (snapshot.pools["llm"].slots, snapshot.pools["llm"].max_queued) == (3, 5)
            assert (snapshot.resources["api"].rate, snapshot.resources["api"].free) == (0.1, 0)

    test()


def test_shards_may_stand_in_the_file(tmp_path: Path) -> None:
    text = '[resources]\neu = { kind = "semaphore", permits = 1, shard = "eu" }\n[pools.p]\nshard = "eu"\n'

    @played
    async def test() -> None:
        async with Scheduler.from_config(file(tmp_path, text), [Pool("p", hold)], shards=["eu", "us"]) as scheduler:
            assert await (await scheduler.submit(1.0, resources={"eu": 1})) == 0.0

    test()


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("[pools.lm]\nslots = 1\n", r"mirab\.toml:1:8: pool 'lm' has no executor"),
        ("[pools.llm]\nslot = 1\n", r"did you mean slots\?"),
        ("[pools.llm]\npriority = 1.5\n", r"mirab\.toml:2"),
        ('[resources]\napi = { kind = "token_bucket", rate = 0, burst = 1 }\n', r"mirab\.toml:2"),
        ("[resources", r"mirab\.toml:1"),
    ],
)
def test_what_is_wrong_is_told_with_its_place(tmp_path: Path, text: str, told: str) -> None:
    with pytest.raises(errors.InvalidConfig, match=told):
        Scheduler.from_config(file(tmp_path, text), [Pool("llm", hold)])


def test_a_file_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(errors.InvalidConfig, match="cannot be read"):
        Scheduler.from_config(tmp_path / "none.toml", [])
