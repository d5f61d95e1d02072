"""The one timer of a shard."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable

from mirab import _native

# Seconds by which two readings of one clock may differ.
SAME_CLOCK = 0.1


class Timer:
    """Calls ``due`` at an instant of the event loop's clock, once for each time that it is set."""

    def __init__(self, loop: asyncio.AbstractEventLoop, due: Callable[[float], None]) -> None:
        self._loop = loop
        self._due = due
        #: When it goes off.
        self.at = math.inf
        self._handle: asyncio.TimerHandle | None = None
        self._alarm = self._watched_alarm()

    def _watched_alarm(self) -> _native.Alarm | None:
        # Of a loop whose time is that of the machine's clock; others may let it stand still or jump.
        if abs(self._loop.time() - time.monotonic()) > SAME_CLOCK:
            return None
        alarm = _native.Alarm()
        try:
            self._loop.add_reader(alarm.fileno(), self._gone_off)
        except NotImplementedError:
            return None
        return alarm

    def set(self, at: float) -> None:
        """Sets it anew."""
        self.at = at
        if self._alarm is not None:
            self._alarm.set(max(0.0, at - self._loop.time()))
            return
        if self._handle is not None:
            self._handle.cancel()
        self._handle = self._loop.call_at(at, self._gone_off)

    def _gone_off(self) -> None:
        at, self.at, self._handle = self.at, math.inf, None
        # A loop may call within the resolution of its clock before the instant: it has come all the same.
        self._due(max(at, self._loop.time()) if at < math.inf else self._loop.time())
        if self._alarm is not None and self.at == math.inf:
            self._alarm.set(None)

    def close(self) -> None:
        """It does not go off any more."""
        if self._handle is not None:
            self._handle.cancel()
        if self._alarm is not None:
            self._loop.remove_reader(self._alarm.fileno())
            self._alarm = None
