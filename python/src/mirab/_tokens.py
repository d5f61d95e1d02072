"""Corrections of token buckets, from inside a flow or task."""

from __future__ import annotations

import math

from mirab._context import Body, current
from mirab.errors import InvalidResource, MirabError

# What the server's counters hold.
_MOST_UNITS = 2**64 - 1


def settle(resource: str, actual: int) -> None:
    """Says how many units of a token bucket this body really used, once that is known.

    The difference to what it took is given back, never above the burst, or owed, down to minus one burst: then later
    work waits for it. The last word counts, held against what was charged in truth. The tokens are those of the nearest
    flow or task around this code that took any. Without a server there are no buckets, and this does nothing.
    """
    if isinstance(actual, bool) or not isinstance(actual, int) or not 0 <= actual <= _MOST_UNITS:
        raise InvalidResource(f"actual is {actual!r}, expected a whole number of units, from 0 to {_MOST_UNITS}")
    body = _body("settle")
    body.run.settle(resource, actual, body.ticket)


def cooldown(resource: str, seconds: float) -> None:
    """Keeps everything that needs a token bucket from starting for so many seconds, as after an HTTP 429.

    Its rate and burst stay as they are. Without a server there are no buckets, and this does nothing.
    """
    if isinstance(seconds, bool) or not isinstance(seconds, (int, float)) or not math.isfinite(seconds) or seconds < 0:
        raise InvalidResource(f"seconds is {seconds!r}, expected a number of seconds, at least 0")
    body = _body("cooldown")
    body.run.cooldown(resource, seconds, body.ticket)


def _body(what: str) -> Body:
    body = current()
    if body is None:
        raise MirabError(f"{what}() is called outside of a flow and of a task: call it where the tokens are used")
    return body
