"""A scheduler that a program holds in its hand."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import replace
from os import PathLike, fspath
from types import TracebackType
from typing import Any, TypeVar, Unpack, overload

from mirab import _native
from mirab._scheduler_checks import seconds, text, whole
from mirab._scheduler_events import EventStream
from mirab._scheduler_options import Options, TaskOptions
from mirab._scheduler_pool import DEFAULT_SHARD, Pool, Resource
from mirab._scheduler_shard import Shard
from mirab._scheduler_store import Ledger, Store, restore
from mirab._scheduler_submit import AT_ONCE, Submitter
from mirab._scheduler_task import Handle
from mirab._scheduler_views import Snapshot
from mirab.errors import InvalidConfig, InvalidOption, InvalidResource, SchedulerClosed, UnknownPool, UnknownResource

P = TypeVar("P")
R = TypeVar("R")


class Scheduler:
    """Runs tasks in pools that share limits, on the running event loop.

    ``async with`` starts it; leaving the block lets all tasks end (``grace`` seconds long, if given, then they are
    cancelled); an exception that leaves the block cancels them at once. It belongs to that one event loop and thread.
    """

    def __init__(
        self,
        pools: Iterable[Pool[Any, Any]] = (),
        resources: Iterable[Resource] = (),
        *,
        shards: Sequence[str] | None = None,
        grace: float | None = None,
        aging: float | None = None,
        assumed_duration: float = 10.0,
        retained: int = 10_000,
        store: Store | None = None,
    ) -> None:
        self._declared = (list(pools), list(resources))
        self._shard_names = list(shards) if shards is not None else [DEFAULT_SHARD]
        self._lists_shards = shards is not None
        if (
            not self._shard_names
            or len(set(self._shard_names)) < len(self._shard_names)
            or len(self._shard_names) > 256
        ):
            raise InvalidOption(f"shards={shards!r}: expected 1 to 256 names, each once")
        for name in self._shard_names:
            text("shards", name)
        for option, value in (("grace", grace), ("aging", aging), ("assumed_duration", assumed_duration)):
            if value is not None:
                seconds(option, value)
        whole("retained", retained, 0, 1 << 48)
        if store is not None and not isinstance(store, Store):
            raise InvalidOption(f'store={store!r}: expected mirab.sqlite(path), as in store=sqlite("state.db")')
        self._grace = grace
        self._gate = (aging, assumed_duration, retained)
        self._store = store
        self._ledger: Ledger | None = None
        self._shards: dict[str, Shard] = {}
        self._pools: dict[str, Pool[Any, Any]] = {}
        self._resources: dict[str, Resource] = {}
        self._submitter = Submitter(self._pools, self._shards)
        self._is_open = False
        self._is_closed = False
        self._closing: asyncio.Task[None] | None = None
        self._submitted = 0

    @classmethod
    def from_config(
        cls,
        path: str | PathLike[str],
        pools: Iterable[Pool[Any, Any]],
        *,
        shards: Sequence[str] | None = None,
        grace: float | None = None,
        retained: int = 10_000,
        store: Store | None = None,
    ) -> Scheduler:
        """A scheduler as a ``mirab.toml`` says: its ``[resources]``, ``[gate]``, and the options of ``[pools.NAME]``.

        The executors are those of ``pools``; what the file says of a pool counts above what the program says. What it
        says to a server is passed over.
        """
        aging, assumed, resources, declared = _native.read_config(fspath(path))
        pools = list(pools)
        for name, slots, max_queued, priority, shard, place in declared:
            pool = next((pool for pool in pools if pool.name == name), None)
            if pool is None:
                raise InvalidConfig(
                    f"{place}: pool {name!r} has no executor: add a pool of that name in the program, or remove it here"
                )
            pool.slots = pool.slots if slots is None else slots
            pool.max_queued = pool.max_queued if max_queued is None else max_queued
            pool.priority = pool.priority if priority is None else priority
            pool.shard = pool.shard if shard is None else shard
        limits = [
            Resource.token_bucket(name, rate, burst, shard=shard)
            if permits is None
            else Resource.semaphore(name, permits, shard=shard)
            for name, permits, rate, burst, shard in resources
        ]
        assumed = 10.0 if assumed is None else assumed
        return cls(
            pools,
            limits,
            shards=shards,
            grace=grace,
            aging=aging,
            assumed_duration=assumed,
            retained=retained,
            store=store,
        )

    # Its life.

    async def __aenter__(self) -> Scheduler:
        if self._shards:
            raise SchedulerClosed("a scheduler is started once: make a new one")
        loop = asyncio.get_running_loop()
        aging, assumed, retained = self._gate
        for number, name in enumerate(self._shard_names):
            machine = _native.Machine(name, number, aging, assumed, retained)
            self._shards[name] = Shard(name, machine, loop, retained)
        try:
            if self._store is None:
                self._declare()
            else:
                self._open(self._store, loop)
        except BaseException:
            self._is_closed = True
            for shard in self._shards.values():
                shard.close()
            raise
        self._is_open = True
        return self

    def _declare(self) -> None:
        pools, resources = self._declared
        for resource in resources:
            if resource.name in self._resources:
                raise InvalidResource(f"resource {resource.name!r} is declared twice: expected each name once")
            self.add_resource(resource)
        for pool in pools:
            self.add_pool(pool)

    def _open(self, store: Store, loop: asyncio.AbstractEventLoop) -> None:
        if hasattr(loop, "clock"):
            raise InvalidOption(
                "a scheduler on a virtual clock keeps no store, for its time does not go on: leave one of the two out"
            )
        ledger = Ledger(store, loop)
        try:
            pools, resources = self._declared
            last = ledger.native.last_shard()
            if last is not None and last >= len(self._shard_names):
                raise InvalidOption(
                    f"the store has tasks of {last + 1} shards, and {len(self._shard_names)} are listed: list those "
                    "that wrote it, in their order"
                )
            homes = [(at, self._shard_of("resource", at.name, at.shard)) for at in resources]
            for shard in self._shards.values():
                here = [pool for pool in pools if self._shard_of("pool", pool.name, pool.shard) == shard.name]
                restore(shard, ledger, homes, {pool.name: pool for pool in here})
            self._declare()
            ledger.start()
        except BaseException:
            ledger.native.close()
            raise
        self._ledger = ledger
        for shard in self._shards.values():
            shard.go_on(ledger)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.shutdown(self._grace if kind is None else 0.0)

    async def shutdown(self, grace: float | None = None) -> None:
        """Takes no task any more, lets those that are there end, and comes back when nothing executes.

        After ``grace`` seconds, if given, the rest is cancelled; so it is when this very call is. With a store, what is
        cancelled like that stays stored and goes on at the next start.
        """
        self._check_before_shutdown(grace)
        self._is_open = False
        if self._closing is None:
            self._closing = asyncio.get_running_loop().create_task(self._close())
        if grace is not None and grace > 0:
            asyncio.get_running_loop().call_later(grace, self._cancel_all)
        elif grace is not None:
            self._cancel_all()
        try:
            await asyncio.shield(self._closing)
        except asyncio.CancelledError:
            # Nothing may go on unseen.
            self._cancel_all()
            await asyncio.shield(self._closing)
            raise

    def _check_before_shutdown(self, grace: float | None) -> None:
        if grace is not None:
            seconds("grace", grace)
        try:
            self._check_loop()
        except SchedulerClosed:
            if self._ledger is not None:  # its loop is gone: another scheduler may have the file
                for shard in self._shards.values():
                    shard.let_go()
                self._ledger.native.close()
            raise
        here = asyncio.current_task()
        bodies = (handle._attempt for shard in self._shards.values() for handle in shard.live.values())
        if any(body is not None and body._runner is here for body in bodies):
            raise InvalidOption(
                "a task cannot wait for the end of its own scheduler: leave that to asyncio.create_task(...)"
            )

    async def _close(self) -> None:
        while True:
            try:
                await self._idle()
                break
            except asyncio.CancelledError:  # as a loop does that ends; bodies were cancelled too, and are waited for
                self._cancel_all()
        self._is_closed = True
        for shard in self._shards.values():
            shard.close()
        if self._ledger is not None:
            await self._ledger.close()
            self._ledger = None

    def _cancel_all(self) -> None:
        if not self._is_closed:
            for shard in self._shards.values():
                shard.cancel_all()

    async def _idle(self) -> None:
        # A task of one shard may have been submitted by one of another.
        while any(shard.live for shard in self._shards.values()):
            for shard in self._shards.values():
                await shard.idle()

    def _check_loop(self) -> None:
        for shard in self._shards.values():
            return shard.check_loop()
        raise SchedulerClosed("the scheduler was not started: use `async with scheduler`")

    def _check_usable(self) -> None:
        self._check_loop()
        if self._is_closed:
            raise SchedulerClosed("the scheduler was shut down: make a new one")

    def _check_open(self) -> None:
        self._check_loop()
        if not self._is_open:
            raise SchedulerClosed("the scheduler was shut down, or is shutting down: it takes no tasks any more")
        for shard in self._shards.values():
            if shard.failure is not None:
                raise shard.failure

    # Tasks.

    @overload
    async def submit(self, payload: P, *, pool: Pool[P, R], **options: Unpack[TaskOptions]) -> Handle[R]: ...

    @overload
    async def submit(self, payload: Any, *, pool: str | None = ..., **options: Unpack[TaskOptions]) -> Handle[Any]: ...

    async def submit(
        self, payload: Any, *, pool: Pool[Any, Any] | str | None = None, **options: Unpack[TaskOptions]
    ) -> Handle[Any]:
        """Accepts a task (for its options see :class:`mirab.TaskOptions`); it may start at once.

        Waits for nothing but the commit, where there is a store; in a long loop of them, the event loop has its turn.
        """
        self._check_open()
        handle = self._submitter.submit(payload, pool, Options(**options) if options else None)
        self._submitted += 1
        if self._ledger is not None:
            await handle._shard.stored()
        elif self._submitted % AT_ONCE == 0:
            # In a long loop of submissions, what has started has its turn.
            await asyncio.sleep(0)
        return handle

    @overload
    async def submit_many(
        self, payloads: Iterable[P], *, pool: Pool[P, R], **options: Unpack[TaskOptions]
    ) -> list[Handle[R]]: ...

    @overload
    async def submit_many(
        self, payloads: Iterable[Any], *, pool: str | None = ..., **options: Unpack[TaskOptions]
    ) -> list[Handle[Any]]: ...

    async def submit_many(
        self, payloads: Iterable[Any], *, pool: Pool[Any, Any] | str | None = None, **options: Unpack[TaskOptions]
    ) -> list[Handle[Any]]:
        """Accepts a task for each payload, all with the same options (but no ``key``).

        Every few hundred, the event loop has its turn. When one is refused, the exception has the handles of those
        before it as ``accepted``.
        """
        self._check_open()
        chosen = Options(**options) if options else None
        try:
            return await self._submitter.submit_many(payloads, pool, chosen, self._check_open)
        finally:
            # Also those before one that was refused are only accepted once they are on the disk.
            if self._ledger is not None:
                for shard in self._shards.values():
                    await shard.stored()

    # Limits, changed while work runs; each change takes effect at once.

    def add_resource(self, resource: Resource) -> None:
        """Declares a resource."""
        self.set_resource(resource)

    def set_resource(self, resource: Resource) -> None:
        """Declares a resource, or gives a declared one another limit."""
        self._check_usable()
        name = self._shard_of("resource", resource.name, resource.shard)
        for shard in self._shards.values():  # the others answer ResourceOnOtherShard
            now = shard.loop.time()
            if resource.kind == "semaphore":
                shard.machine.set_semaphore(now, resource.name, resource.permits, name)
            else:
                shard.machine.set_bucket(now, resource.name, (resource.rate, resource.burst), name)
        self._resources[resource.name] = resource
        for shard in self._shards.values():
            shard.pump()

    def set_permits(self, name: str, permits: int) -> None:
        """Changes a semaphore; 0 pauses it. Lowering takes nothing back."""
        self.set_resource(replace(self._declared_resource(name, "semaphore"), permits=permits))

    def set_rate(self, name: str, rate: float, burst: int | None = None) -> None:
        """Changes a token bucket; it keeps its tokens."""
        resource = self._declared_resource(name, "token_bucket")
        self.set_resource(replace(resource, rate=rate, burst=resource.burst if burst is None else burst))

    def remove_resource(self, name: str) -> None:
        """Takes a resource away that nobody holds or waits for."""
        self._check_usable()
        for shard in self._shards.values():
            if self._resources.get(name) is None or self._home_of(self._resources[name].shard) == shard.name:
                shard.machine.remove_resource(shard.loop.time(), name)
        self._resources.pop(name, None)

    def add_pool(self, pool: Pool[Any, Any]) -> None:
        """Adds a pool."""
        self._check_usable()
        if pool.name in self._pools:
            raise InvalidOption(
                f"pool {pool.name!r} is there already: expected each name once; change it with set_slots"
            )
        shard = self._shards[self._shard_of("pool", pool.name, pool.shard)]
        shard.machine.set_pool(shard.loop.time(), pool.name, pool.slots, pool.max_queued)
        self._pools[pool.name] = pool
        shard.pump()

    def remove_pool(self, name: str) -> None:
        """Takes a pool away in which nothing waits or executes."""
        shard = self._shard_of_pool(name)
        shard.machine.remove_pool(shard.loop.time(), name)
        del self._pools[name]
        self._submitter.forget()

    def set_slots(self, name: str, slots: int) -> None:
        """Changes how many attempts of a pool execute at once; 0 pauses it. What executes goes on."""
        whole("slots", slots)
        shard = self._shard_of_pool(name)
        shard.machine.set_pool(shard.loop.time(), name, slots, self._pools[name].max_queued)
        shard.pump()

    # Watching.

    def events(self, limit: int = 1_000) -> EventStream:
        """What happens to tasks from now on, as an async iterator that ends with the scheduler.

        A reader that is more than ``limit`` events behind loses the oldest, and is told how many by a
        :class:`mirab.Lagged`.
        """
        self._check_loop()
        whole("limit", limit, 1)
        stream = EventStream(limit, self._leave)
        for shard in self._shards.values():
            shard.watch(stream)
        return stream

    def _leave(self, stream: EventStream) -> None:
        for shard in self._shards.values():
            shard.leave(stream)

    def snapshot(self) -> Snapshot:
        """What waits, executes and is used, the shards added up."""
        self._check_loop()
        for shard in self._shards.values():
            shard.look()
        return Snapshot.read(shard.machine.snapshot() for shard in self._shards.values())

    # Names.

    def _home_of(self, shard: str | None) -> str:
        return DEFAULT_SHARD if shard is None else shard

    def _shard_of(self, what: str, name: str, shard: str | None) -> str:
        listed = ", ".join(map(repr, self._shard_names))
        if shard is None and self._lists_shards:
            raise InvalidOption(f"{what} {name!r} names no shard: expected shard= one of {listed}")
        home = self._home_of(shard)
        if home not in self._shards:
            raise InvalidOption(f"{what} {name!r}: there is no shard {home!r}, expected one of {listed}")
        return home

    def _shard_of_pool(self, name: str) -> Shard:
        self._check_usable()
        if name not in self._pools:
            raise UnknownPool(f"there is no pool named {name!r}, expected one of {', '.join(self._pools) or 'none'}")
        return self._shards[self._home_of(self._pools[name].shard)]

    def _declared_resource(self, name: str, kind: str) -> Resource:
        self._check_usable()
        resource = self._resources.get(name)
        if resource is None:
            raise UnknownResource(f"no resource named {name!r} is declared: add it with add_resource")
        if resource.kind != kind:
            raise InvalidResource(f"resource {name!r} is a {resource.kind}, expected a {kind}: use set_resource")
        return resource
