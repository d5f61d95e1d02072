"""Tests of a scheduler on a virtual clock."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from mirab import Context
from mirab.testing import VirtualClock


def played(main: Callable[[], Coroutine[Any, Any, None]]) -> Callable[[], None]:
    """A test on a clock that starts at 0 and moves when nothing else can happen."""

    def test() -> None:
        VirtualClock().run(main())

    test.__name__ = main.__name__
    return test


def now() -> float:
    """Seconds by the event loop's clock."""
    return asyncio.get_running_loop().time()


async def hold(ctx: Context, seconds: float) -> float:
    """Executes for so long; gives when it started."""
    started = now()
    await asyncio.sleep(seconds)
    return started
