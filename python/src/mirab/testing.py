"""For tests of programs that use a scheduler: time that passes only when nothing is left to do."""

from __future__ import annotations

import asyncio
import math
import selectors
from collections.abc import Callable, Coroutine
from random import Random
from typing import Any, TypeVar

__all__ = ["VirtualClock"]

T = TypeVar("T")


class VirtualClock:
    """Runs a coroutine on an event loop whose time jumps to the next timer as soon as nothing else can happen.

    An hour of rate-limited work takes milliseconds, and the same every time::

        assert mirab.testing.VirtualClock().run(main()) == ...

    While threads of a pool (or of ``asyncio.to_thread``) execute, time stands still; when none of them has come back
    for ``patience`` seconds of real time, they are taken to wait for the clock, as a function that polls
    ``ctx.cancelled`` does, and it moves on. Nothing else of the real world holds it: replace network calls, processes,
    and threads of your own in such a test. Pauses before retries are drawn from ``seed``.
    """

    def __init__(self, start: float = 0.0, seed: int = 0, patience: float = 2.0) -> None:
        #: Seconds now.
        self.time = start
        #: Real seconds that threads have, until time moves on without them.
        self.patience = patience
        self._seed = seed

    def run(self, main: Coroutine[Any, Any, T]) -> T:
        """Runs it to its end; time goes on where an earlier run ended."""
        with asyncio.Runner(loop_factory=self.loop) as runner:
            return runner.run(main)

    def loop(self) -> asyncio.AbstractEventLoop:
        """A new event loop on this clock, for runners that want a ``loop_factory``."""
        return _VirtualLoop(self, Random(self._seed))


class _VirtualLoop(asyncio.SelectorEventLoop):
    def __init__(self, clock: VirtualClock, random: Random) -> None:
        self.clock = clock
        self.random = random
        self.outside = 0
        super().__init__(_JumpingSelector(self))
        self.move(0.0)

    def time(self) -> float:
        return self.clock.time

    async def shutdown_default_executor(self, *args: Any, **kwargs: Any) -> None:
        # It waits for a thread that nobody else knows of.
        self.outside += 1
        try:
            await super().shutdown_default_executor(*args, **kwargs)
        finally:
            self.outside -= 1

    def move(self, seconds: float) -> None:
        """Time passes."""
        self.clock.time += seconds
        # Late instants are far apart as numbers: what is due at the nearest one is due.
        self._clock_resolution = max(1e-9, 2 * math.ulp(self.clock.time))

    def run_in_executor(self, executor: Any, func: Callable[..., T], *args: Any) -> asyncio.Future[T]:  # type: ignore[override]
        future = super().run_in_executor(executor, func, *args)
        self.outside += 1
        future.add_done_callback(self._came_back)
        return future

    def _came_back(self, _: object) -> None:
        self.outside -= 1


class _JumpingSelector(selectors.DefaultSelector):
    """Waits for threads for as long as it takes, and for timers not at all."""

    def __init__(self, loop: _VirtualLoop) -> None:
        super().__init__()
        self._loop = loop

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if self._loop.outside:
            # A timer that is due by now is not kept waiting.
            real = None if timeout is None else 0.0 if timeout <= 0 else self._loop.clock.patience
            came = super().select(real)
            if not came and timeout is not None and timeout > 0:
                self._loop.move(timeout)
            return came
        ready: list[tuple[selectors.SelectorKey, int]] = super().select(0)
        if ready or timeout is None or timeout <= 0:
            return ready if ready or timeout is not None else self._stuck()
        self._loop.move(timeout)
        return ready

    def _stuck(self) -> list[tuple[selectors.SelectorKey, int]]:
        if len(self.get_map()) > 1:  # someone waits for a socket of the real world
            return super().select(None)
        raise RuntimeError(
            "nothing is left to happen: the test waits for something that no task, timer or thread will do"
        )
