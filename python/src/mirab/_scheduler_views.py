"""What a scheduler tells of itself."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Waits:
    """Seconds in line of those that started: quantiles, at most a quarter too large."""

    count: int
    p50: float
    p90: float
    p99: float


@dataclass(frozen=True, slots=True)
class PoolSnapshot:
    """A pool: tasks that wait (for their time, for others, or in line), attempts that run, and its limits."""

    slots: int
    max_queued: int | None
    waiting: int
    running: int
    waits: Waits


@dataclass(frozen=True, slots=True)
class ResourceSnapshot:
    """A resource as the gate enforces it. ``capacity`` is ``permits`` or ``burst``."""

    kind: str
    capacity: int
    rate: float | None
    used: int
    free: int
    waiting: int
    declared_as: str
    waits: Waits


@dataclass(frozen=True, slots=True)
class Counts:
    """Tasks and attempts so far."""

    submitted: int
    started: int
    retried: int
    completed: int
    failed: int
    cancelled: int
    expired: int
    skipped: int


@dataclass(frozen=True, slots=True)
class Snapshot:
    """All that is going on, the shards added up."""

    pools: dict[str, PoolSnapshot]
    resources: dict[str, ResourceSnapshot]
    counts: Counts
    priority_inversions: int

    @staticmethod
    def read(shards: Iterable[str]) -> Snapshot:
        """From what each shard's machine tells."""
        pools: dict[str, PoolSnapshot] = {}
        resources: dict[str, ResourceSnapshot] = {}
        counts: Counter[str] = Counter()
        inversions = 0
        for text in shards:
            told = json.loads(text)
            for name, pool in told["pools"].items():
                pools[name] = PoolSnapshot(**{**pool, "waits": Waits(**pool["waits"])})
            for name, resource in told["resources"].items():
                resources[name] = ResourceSnapshot(**{**resource, "waits": Waits(**resource["waits"])})
            counts.update(told["counts"])
            inversions += told["priority_inversions"]
        return Snapshot(pools, resources, Counts(**counts), inversions)


@dataclass(frozen=True, slots=True)
class Status:
    """Where a task stands: ``Blocked``, ``Scheduled``, ``Queued``, ``Running``, ``Stopping``, ``AwaitingRetry``,
    ``Completed``, ``Failed``, ``Cancelled``, ``Expired`` or ``Skipped``."""

    state: str
    attempts: int
    priority: int
    due_at: float | None = None
    message: str | None = None
    timed_out: bool = False

    @staticmethod
    def read(text: str) -> Status:
        return Status(**json.loads(text))


@dataclass(frozen=True, slots=True)
class Holder:
    """A task that holds units."""

    task_id: int
    units: int
    since: float


@dataclass(frozen=True, slots=True)
class Blocked:
    """Why one resource does not let a task start. A pool's slots are the resource ``pool:NAME``."""

    resource: str
    need: int
    free: int
    capacity: int
    holders: tuple[Holder, ...]
    holders_total: int
    behind: tuple[int, ...]
    ahead: int
    tokens_at: float | None
    passed_by: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Promise:
    """When a waiting task is expected to start, and what that rests on. Instants are of the event loop's clock."""

    at: float
    earliest: float
    latest: float | None
    decided_by: str | None
    known: int
    assumed: int


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why a task waits in line, from the very state that decides."""

    position: int | None
    blocked_on: tuple[Blocked, ...]
    unsatisfiable: bool
    promise: Promise | None

    @staticmethod
    def read(text: str) -> Explanation:
        told = json.loads(text)
        promise = told["promise"]
        blocked = tuple(_blocked(each) for each in told["blocked_on"])
        return Explanation(told["position"], blocked, told["unsatisfiable"], promise and Promise(**promise))


def _blocked(told: dict[str, Any]) -> Blocked:
    holders = tuple(Holder(**holder) for holder in told.pop("holders"))
    behind, passed_by = tuple(told.pop("behind")), tuple(told.pop("passed_by"))
    return Blocked(holders=holders, behind=behind, passed_by=passed_by, **told)
