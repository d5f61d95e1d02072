"""Limits without a server: each resource name is a semaphore of size one inside this process.

Any amount takes the whole of it. A name that an enclosing body holds is shared by the calls inside that body, one at a
time: so a name is locked within the innermost body that holds it, and process-wide where none does.
"""

from __future__ import annotations

import itertools
import threading
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mirab._execute import Call

# A name, and the number of the body within which it is locked; 0 is the process.
Key = tuple[str, int]


@dataclass(eq=False)
class _Waiter:
    run: int
    keys: frozenset[Key]
    admitted: bool = False


class LocalGate:
    """All keys of a call are taken together or not at all; a call that waits holds nothing."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._busy: set[Key] = set()
        self._held_by_run: Counter[int] = Counter()
        self._line: list[_Waiter] = []

    def acquire(self, run: int, keys: frozenset[Key]) -> None:
        """Waits in line until all keys are free, and takes them."""
        if not keys:
            return
        waiter = _Waiter(run, keys)
        with self._changed:
            self._line.append(waiter)
            self._admit()
            try:
                while not waiter.admitted:
                    self._changed.wait()
            except BaseException:
                self._withdraw(waiter)
                raise

    def release(self, run: int, keys: frozenset[Key]) -> None:
        """Gives the keys back."""
        with self._changed:
            self._give_back(run, keys)

    def waiting(self) -> int:
        """How many calls wait."""
        with self._changed:
            return len(self._line)

    def _withdraw(self, waiter: _Waiter) -> None:
        if waiter.admitted:
            self._give_back(waiter.run, waiter.keys)
        else:
            self._line.remove(waiter)
            self._admit()

    def _give_back(self, run: int, keys: frozenset[Key]) -> None:
        self._busy -= keys
        self._held_by_run[run] -= len(keys)
        if not self._held_by_run[run]:
            del self._held_by_run[run]
        self._admit()

    def _admit(self) -> None:
        """Starts, in order of call, all that can start.

        Who waits earlier keeps its free keys from those behind it, so that a call for many is not starved. Only from
        runs that hold nothing, though: holding back one that others may be waiting for could stop them all.
        """
        wanted: set[Key] = set()
        for waiter in list(self._line):
            in_turn = waiter.run in self._held_by_run or wanted.isdisjoint(waiter.keys)
            if in_turn and self._busy.isdisjoint(waiter.keys):
                self._line.remove(waiter)
                self._busy |= waiter.keys
                self._held_by_run[waiter.run] += len(waiter.keys)
                waiter.admitted = True
            else:
                wanted |= waiter.keys
        self._changed.notify_all()


GATE = LocalGate()
_numbers = itertools.count(1)


@dataclass(frozen=True)
class OfflineTicket:
    """What a body holds, and which body locks each name for the calls inside it."""

    keys: frozenset[Key] = frozenset()
    scope: Mapping[str, int] = field(default_factory=dict)


class OfflineRun:
    """A run in this process, known to no server."""

    def __init__(self) -> None:
        self._number = next(_numbers)

    def new_key(self, name: str) -> str:
        """Keys mean nothing offline."""
        return name

    def admit(self, call: Call, parent: OfflineTicket) -> OfflineTicket:
        """Waits for the local semaphores."""
        names = call.resources()
        keys = frozenset((name, parent.scope.get(name, 0)) for name in names)
        GATE.acquire(self._number, keys)
        return OfflineTicket(keys, {**parent.scope, **dict.fromkeys(names, next(_numbers))})

    def finish(self, call: Call, ticket: OfflineTicket, error: BaseException | None) -> float | None:
        """Gives the semaphores back; an error is tried again as often as the options say."""
        if ticket.keys:
            GATE.release(self._number, ticket.keys)
        again = isinstance(error, Exception) and call.attempts <= call.options.retries
        return call.options.retry_delay if again else None

    def settle(self, resource: str, actual: int, ticket: OfflineTicket) -> None:
        """There are no token buckets here: nothing to correct."""

    def cooldown(self, resource: str, seconds: float, ticket: OfflineTicket) -> None:
        """There are no token buckets here: nothing to pause."""

    def pause(self, seconds: float) -> None:
        """Sleeps."""
        time.sleep(seconds)
