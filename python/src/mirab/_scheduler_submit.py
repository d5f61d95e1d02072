"""From the options of a submission to what the machine takes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any

from mirab import _native
from mirab._scheduler_checks import whole
from mirab._scheduler_options import PLAIN, Options, instant
from mirab._scheduler_pool import DEFAULT_SHARD, Pool
from mirab._scheduler_shard import Shard
from mirab._scheduler_task import Handle
from mirab.errors import InvalidOption, KeyConflict, UnknownPool

# So many tasks are accepted before the event loop has its turn: what they let start is not to wait for the rest.
AT_ONCE = 256
# So many distinct specs are kept converted.
SPECS_KEPT = 4_096


class Submitter:
    """Accepts tasks for the pools of a scheduler."""

    def __init__(self, pools: dict[str, Pool[Any, Any]], shards: dict[str, Shard]) -> None:
        self._pools = pools
        self._shards = shards
        self._specs: dict[tuple[Any, ...], _native.Spec] = {}

    def forget(self) -> None:
        """A pool has gone."""
        self._specs.clear()

    def submit(self, payload: Any, pool: Pool[Any, Any] | str | None, options: Options | None) -> Handle[Any]:
        """One task."""
        chosen, shard, spec, priority = self._prepare(pool, options or PLAIN)
        if options is None or options.is_plain:
            handle: Handle[Any] = Handle(shard, chosen, payload, None)
            shard.accept(handle, spec, priority)
        else:
            handle = self._submit_with(payload, chosen, shard, spec, priority, options)
        shard.pump()
        return handle

    async def submit_many(
        self,
        payloads: Iterable[Any],
        pool: Pool[Any, Any] | str | None,
        options: Options | None,
        check_open: Callable[[], None],
    ) -> list[Handle[Any]]:
        """Many with the same options. What starts meanwhile has its turn now and then, and so has everybody else."""
        options = options or PLAIN
        if options.key is not None:
            raise InvalidOption("key= names one task: expected it with submit, not with submit_many")
        options.after = list(options.after)
        chosen, shard, spec, priority = self._prepare(pool, options)
        is_plain = options.is_plain
        accepted: list[Handle[Any]] = []
        try:
            for payload in payloads:
                if is_plain:
                    handle: Handle[Any] = Handle(shard, chosen, payload, None)
                    shard.accept(handle, spec, priority)
                else:
                    handle = self._submit_with(payload, chosen, shard, spec, priority, options)
                accepted.append(handle)
                if len(accepted) % AT_ONCE == 0:
                    shard.pump()
                    await asyncio.sleep(0)
                    check_open()
        except Exception as error:
            with suppress(AttributeError):  # of an error that takes no attributes
                error.accepted = accepted  # type: ignore[attr-defined]
            raise
        finally:
            shard.pump()
        return accepted

    def _prepare(
        self, pool: Pool[Any, Any] | str | None, options: Options
    ) -> tuple[Pool[Any, Any], Shard, _native.Spec, int]:
        chosen = self._pool(pool)
        shard = self._shards[chosen.shard or DEFAULT_SHARD]
        resources = chosen.resources if options.resources is None else {**chosen.resources, **options.resources}
        asked = (
            chosen.name,
            options.kind,
            tuple(resources.items()),
            tuple(options.tags),
            options.timeout,
            options.retries,
            options.retry_delay,
            options.retry_max_delay,
        )
        spec = self._specs.get(asked)
        if spec is None:
            spec = self._convert(asked)
        return chosen, shard, spec, chosen.priority if options.priority is None else options.priority

    def _convert(self, asked: tuple[Any, ...]) -> _native.Spec:
        for name, units in asked[2]:
            if not isinstance(units, int) or isinstance(units, bool) or not 0 <= units < 1 << 64:
                raise InvalidOption(f"resources={{{name!r}: {units!r}}}: expected a whole number of units, at least 1")
        if len(self._specs) >= SPECS_KEPT:
            self._specs.clear()
        spec = self._specs[asked] = _native.Spec(*asked)
        return spec

    def _pool(self, pool: Pool[Any, Any] | str | None) -> Pool[Any, Any]:
        name = pool.name if isinstance(pool, Pool) else pool
        if name is None:
            if len(self._pools) == 1:
                return next(iter(self._pools.values()))
            raise UnknownPool(f"no pool was named: expected pool= one of {', '.join(self._pools) or 'none'}")
        found = self._pools.get(name)
        if found is None or (isinstance(pool, Pool) and pool is not found):
            known = ", ".join(self._pools) or "none: add a pool first"
            raise UnknownPool(f"there is no pool named {name!r}, expected one of {known}")
        return found

    def _submit_with(
        self,
        payload: Any,
        pool: Pool[Any, Any],
        shard: Shard,
        spec: _native.Spec,
        priority: int,
        options: Options,
    ) -> Handle[Any]:
        now = shard.loop.time()
        not_before = instant(options.not_before, now)
        start_by = now + options.start_within if options.start_within is not None else instant(options.start_by, now)
        after = [(self._earlier(task, shard), options.on) for task in options.after]
        handle: Handle[Any] = Handle(shard, pool, payload, options.key)
        accepted = shard.accept_with(handle, spec, priority, (not_before, start_by), after)
        if accepted is not handle and shard.ledger is None and not _same(accepted._payload, payload):
            raise KeyConflict(
                f"key {options.key!r} belongs to task {accepted.id}, which differs in payload: "
                "use another key, or submit the very same task"
            )
        return accepted

    def _earlier(self, task: Handle[Any] | int, shard: Shard) -> int:
        if not isinstance(task, Handle):
            whole("after", task)
            return task
        if task._shard is not shard:
            raise InvalidOption(
                f"after: task {task.id} belongs to another shard or scheduler, expected one of {shard.name!r}"
            )
        return task.id


def _same(one: Any, other: Any) -> bool:
    """Whether two payloads are equal; those that cannot be compared differ unless they are one."""
    try:
        return one is other or bool(one == other)
    except Exception:
        return False
