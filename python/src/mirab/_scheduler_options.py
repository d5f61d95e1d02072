"""What a submission may say beside payload and pool."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Literal, TypedDict

from mirab._scheduler_checks import MOST_PRIORITY, seconds, text, whole
from mirab.errors import InvalidOption

if TYPE_CHECKING:
    from mirab._scheduler_task import Handle

_KINDS_OF_END = ("success", "failure", "completion")


class TaskOptions(TypedDict, total=False):
    """The options of a task, all by name."""

    #: Higher first; the pool's unless given.
    priority: int | None
    #: Units by name; those of the pool stay for names that are not here.
    resources: Mapping[str, int] | None
    #: Submitted again with it, the same task is meant, while that lives or is remembered.
    key: str | None
    #: Seconds from now, or an instant: before, it does not join the line.
    not_before: float | datetime | None
    #: Unless its first attempt has started within so many seconds, or by then, it ends Expired.
    start_within: float | None
    start_by: datetime | None
    #: Seconds for each attempt.
    timeout: float | None
    #: Further attempts after a failure, each after a pause drawn from 0 to ``retry_delay`` times 1, 2, 4...
    retries: int
    retry_delay: float
    #: The most that a pause is drawn from.
    retry_max_delay: float
    #: A declared resource ``tag:NAME`` limits the tasks that carry it.
    tags: Sequence[str]
    #: What durations are learned by, within the pool.
    kind: str
    #: It joins the line once these have ended, by ``on``; when one ends otherwise, it ends Skipped.
    after: Iterable[Handle[Any] | int]
    on: Literal["success", "failure", "completion"]


@dataclass(slots=True)
class Options:
    """What a submission may say beside payload and pool."""

    priority: int | None = None
    resources: Mapping[str, int] | None = None
    key: str | None = None
    not_before: float | datetime | None = None
    start_within: float | None = None
    start_by: datetime | None = None
    timeout: float | None = None
    retries: int = 0
    retry_delay: float = 1.0
    retry_max_delay: float = 300.0
    tags: Sequence[str] = ()
    kind: str = ""
    after: Iterable[Handle[Any] | int] = ()
    on: str = "success"

    def __post_init__(self) -> None:
        for name in ("start_within", "timeout", "retry_delay", "retry_max_delay"):
            value = getattr(self, name)
            if value is not None:
                seconds(name, value)
        whole("retries", self.retries, 0, (1 << 32) - 1)
        if self.priority is not None:
            whole("priority", self.priority, -MOST_PRIORITY - 1, MOST_PRIORITY)
        if self.key is not None:
            text("key", self.key)
        text("kind", self.kind or "-")
        if isinstance(self.tags, str):
            raise InvalidOption(f"tags={self.tags!r}: expected a list of names, as in tags=[{self.tags!r}]")
        if self.on not in _KINDS_OF_END:
            raise InvalidOption(f"on={self.on!r}: expected one of {', '.join(_KINDS_OF_END)}")
        if self.start_within is not None and self.start_by is not None:
            raise InvalidOption("start_within and start_by say the same thing: expected one of them")

    @property
    def is_plain(self) -> bool:
        """Whether spec and priority say it all."""
        return not (
            self.key is not None
            or self.not_before is not None
            or self.start_within is not None
            or self.start_by
            or self.after
        )


PLAIN = Options()


def instant(at: float | datetime | None, now: float) -> float | None:
    """On the event loop's clock."""
    if at is None:
        return None
    if isinstance(at, datetime):
        if at.tzinfo is None:
            raise InvalidOption(f"{at!r} has no time zone: expected an aware datetime, as datetime.now(UTC) gives")
        return now + (at - datetime.now(UTC)).total_seconds()
    if not math.isfinite(at):
        raise InvalidOption(f"not_before={at!r}: expected seconds from now, or an instant")
    return now + at
