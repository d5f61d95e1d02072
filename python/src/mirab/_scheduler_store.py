"""Durable mode: what is accepted is in a file before it is answered or started, and goes on after a restart."""

from __future__ import annotations

import asyncio
import json
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b
from os import PathLike, fspath
from typing import TYPE_CHECKING, Any, Protocol

from mirab import _native
from mirab._scheduler_pool import Pool, Resource
from mirab._scheduler_task import Handle
from mirab.errors import InvalidOption, from_code

if TYPE_CHECKING:
    from mirab._scheduler_shard import Shard

Effects = Sequence[tuple[Any, ...]]


class Codec(Protocol):
    """Writes payloads and results as bytes, and reads them again."""

    @property
    def name(self) -> str:
        """Stored with the bytes: they are read by a codec of the same name only."""

    def encode(self, value: Any) -> bytes:
        """Raises for a value that it cannot write: the submission is refused, the attempt fails."""

    def decode(self, data: bytes) -> Any:
        """Raises for bytes that are no such value: the scheduler does not start."""


class Json:
    """Values of JSON. A tuple comes back as a list, and keys of a dict as texts."""

    name = "json"

    def encode(self, value: Any) -> bytes:
        """As compact text."""
        return json.dumps(value, allow_nan=False, separators=(",", ":")).encode()

    def decode(self, data: bytes) -> Any:
        """From text."""
        return json.loads(data)


@dataclass(frozen=True, slots=True)
class Store:
    """Where a scheduler keeps its tasks."""

    path: str
    codec: Codec


def sqlite(path: str | PathLike[str], *, codec: Codec | None = None) -> Store:
    """A SQLite file, made when it is not there, for ``Scheduler(..., store=sqlite("state.db"))``.

    One scheduler has it at a time: a second one is refused (``StoreLocked``). Payloads and results are written by
    ``codec``, as JSON unless given.
    """
    place = fspath(path)
    if not isinstance(place, str) or place.startswith((":memory:", "file:")):
        raise InvalidOption(f'sqlite({path!r}): expected the path of a file, as in sqlite("state.db")')
    return Store(place, codec or Json())


class Ledger:
    """The open store of a scheduler: commits in order, and hands on what waited for them."""

    def __init__(self, store: Store, loop: asyncio.AbstractEventLoop) -> None:
        self.codec = store.codec
        self.native = _native.Store(store.path)
        self._loop = loop
        self._waiting: deque[tuple[int, Shard, Effects, asyncio.Future[None]]] = deque()
        self._number = 0

    def start(self) -> None:
        """From here on it is written."""
        self.native.start()
        self._loop.add_reader(self.native.fileno(), self._told)

    async def close(self) -> None:
        """Waits until all is on the disk; then another scheduler can have the file."""
        self._loop.remove_reader(self.native.fileno())
        await asyncio.to_thread(self.native.close)
        self._told()

    def commit(self, shard: Shard, effects: Effects) -> asyncio.Future[None] | None:
        """Commits what a step of the machine has left; what that wants done is done once that is on the disk."""
        if not shard.machine.commit(self._number, bool(effects)):
            return None
        stored = self._loop.create_future()
        # Nobody has to wait for it.
        stored.add_done_callback(lambda done: done.cancelled() or done.exception())
        self._waiting.append((self._number, shard, effects, stored))
        self._number += 1
        return stored

    def _told(self) -> None:
        for number, failure in self.native.poll():
            waiting, shard, effects, stored = self._waiting.popleft()
            assert waiting == number, "commits are told in their order"
            if failure is None:
                stored.set_result(None)
                shard.committed(effects)
            else:
                error = from_code(*failure)
                stored.set_exception(error)
                shard.store_failed(error, effects)

    def encode(self, what: str, value: Any) -> bytes:
        """A payload or result, to be stored."""
        try:
            data = self.codec.encode(value)
            if not isinstance(data, bytes):
                raise TypeError(f"the codec gave {type(data).__name__}, expected bytes")
            return data
        except Exception as error:
            raise InvalidOption(
                f"the {what} cannot be stored: {error}; give one that codec {self.codec.name!r} writes"
            ) from error

    def decode(self, what: str, task_id: int, stored: tuple[str, bytes] | None) -> Any:
        """A payload or result that was stored."""
        try:
            if stored is None:
                raise ValueError("it is not there")
            codec, data = stored
            if codec != self.codec.name:
                raise ValueError(f"it was written by codec {codec!r}, and is read by {self.codec.name!r}")
            return self.codec.decode(data)
        except Exception as error:
            raise InvalidOption(
                f"the {what} of task {task_id} in the store cannot be read ({error}): "
                "start with the codec that wrote it"
            ) from error


def restore(
    shard: Shard, ledger: Ledger, resources: list[tuple[Resource, str]], pools: dict[str, Pool[Any, Any]]
) -> None:
    """A shard takes up what is stored for it: live tasks, and the ends of those with keys."""
    declared = [
        (at.name, at.permits if at.kind == "semaphore" else None, (at.rate, at.burst), home) for at, home in resources
    ]
    here = [(pool.name, pool.slots, pool.max_queued) for pool in pools.values()]
    live, ended = shard.machine.restore(shard.loop.time(), ledger.native, declared, here)
    for task_id, pool, key, payload in live:
        if pool not in pools:
            raise InvalidOption(
                f"the store has task {task_id} for pool {pool!r}, which is not declared in shard {shard.name!r}: "
                "add that pool, with slots=0 if its tasks are to wait"
            )
        given = ledger.decode("payload", task_id, payload)
        shard.live[task_id] = Handle.restored(task_id, shard, pools[pool], given, key)
    for task_id, pool, key, end, result in ended:
        if pool in pools:  # nobody can submit to one that is gone
            handle = shard.keyed[task_id] = Handle.restored(task_id, shard, pools[pool], None, key)
            if end[0] == "Completed":
                handle._value = ledger.decode("result", task_id, result)
            elif end[0] == "Failed":
                handle._value = end[1]
            handle._ended(*end)


def digest(data: bytes) -> int:
    """Tells payloads apart that were submitted under one key."""
    return int.from_bytes(blake2b(data, digest_size=8).digest())
