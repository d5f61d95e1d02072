"""What is wrong with a value, said before anything happens."""

from __future__ import annotations

import math

from mirab.errors import InvalidOption

# What the gate's counters hold.
MOST = 2**64 - 1
MOST_PRIORITY = 2**31 - 1


def whole(name: str, value: object, least: int = 0, most: int = MOST) -> None:
    """A number without a fraction, within bounds."""
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise InvalidOption(f"{name}={value!r}: expected a whole number from {least} to {most}")


def seconds(name: str, value: object) -> None:
    """Seconds that pass."""
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if not is_number or not 0 <= value < math.inf:  # type: ignore[operator]
        raise InvalidOption(f"{name}={value!r}: expected seconds, 0 or more")


def text(name: str, value: object) -> None:
    """A text that can be written as UTF-8, and is not empty."""
    if not isinstance(value, str) or not value:
        raise InvalidOption(f"{name}={value!r}: expected a text that is not empty")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise InvalidOption(f"{name}={value!r}: expected a text of whole characters, this one has halves") from None
