"""A run that the server started: its tasks ask the server for their limits."""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mirab._failure import failure
from mirab._interrupt import Interrupt
from mirab.errors import Cancelled

if TYPE_CHECKING:
    from mirab._execute import Call
    from mirab._native import Engine


@dataclass(frozen=True)
class ServedTicket:
    """The claim of a task's body; None for the body of the run itself, which its lease covers."""

    claim: int | None = None


class ServedRun:
    """One attempt of a run under a lease."""

    def __init__(self, engine: Engine, interrupt: Interrupt) -> None:
        self._engine = engine
        self._interrupt = interrupt
        self._numbers = itertools.count(1)

    def new_key(self, name: str) -> str:
        """Unique in this attempt: the same key asks about the same claim."""
        return f"{name}-{next(self._numbers)}"

    def admit(self, call: Call, parent: ServedTicket) -> ServedTicket:
        """Waits until the server lets the task start."""
        options = call.options
        request = {
            "key": call.key,
            "name": options.name,
            "resources": call.resources(),
            "tags": list(options.tags),
            "retries": options.retries,
            "retry_delay_s": options.retry_delay,
            # Only flows have a cap; one that is called in a run claims it like a resource.
            "max_concurrent": getattr(options, "max_concurrent", None),
            "parent": parent.claim,
        }
        try:
            return ServedTicket(json.loads(self._engine.claim(json.dumps(request)))["id"])
        except Cancelled:
            self._interrupt.note_raised()
            raise

    def finish(self, call: Call, ticket: ServedTicket, error: BaseException | None) -> float | None:
        """Tells the server that the body has ended; it says whether and when to try again."""
        end: dict[str, Any] = {"claim": ticket.claim, "outcome": "completed", "error": None}
        if error is not None:
            stopped = isinstance(error, (Cancelled, asyncio.CancelledError))
            end.update(outcome="cancelled" if stopped else "failed", error=failure(error))
        retry_in_s: float | None = json.loads(self._engine.end_claim(json.dumps(end)))["retry_in_s"]
        # Only a failure is worth another try; anything else has to go on up.
        return retry_in_s if isinstance(error, Exception) else None

    def settle(self, resource: str, actual: int, ticket: ServedTicket) -> None:
        """Tells the server what was really used."""
        self._tell(self._engine.settle, {"claim": ticket.claim, "resource": resource, "actual": actual})

    def cooldown(self, resource: str, seconds: float, ticket: ServedTicket) -> None:
        """Asks the server for a pause."""
        self._tell(self._engine.cooldown, {"claim": ticket.claim, "resource": resource, "seconds": seconds})

    def _tell(self, tell: Callable[[str], None], what: dict[str, Any]) -> None:
        try:
            tell(json.dumps(what))
        except Cancelled:
            self._interrupt.note_raised()
            raise

    def pause(self, seconds: float) -> None:
        """Waits, but not for a run that is to stop."""
        self._interrupt.pause(seconds)
