"""Options of flows and tasks: one frozen dataclass each, filled by the decorator and by ``with_options`` alike."""

import dataclasses
import difflib
import math
import unicodedata
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, TypeVar

from mirab._names import check_template, is_template
from mirab.errors import InvalidOption, InvalidResource

_ON_OVERLAP = ("enqueue", "skip", "cancel_new")
_ON_OVERLAP_LATER = ("cancel_old", "buffer_one")
_RESERVED = ("tag:", "flow:", "backfill:", "pool:")
_LATER = {
    "flow": {"timeout", "disable_after", "schedule", "schedules", "start_deadline", "run_name", "isolated"},
    "task": {"timeout"},
}
_U32 = 2**32 - 1


@dataclass(frozen=True, kw_only=True)
class TaskOptions:
    """Options of a task."""

    name: str
    resources: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))
    retries: int = 0
    retry_delay: float = 0.0
    tags: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class FlowOptions(TaskOptions):
    """Options of a flow."""

    max_concurrent: int | None = None
    on_overlap: str = "enqueue"
    priority: int = 0
    crash_retries: int = 0


Options = TypeVar("Options", bound=TaskOptions)


def make(kind: type[Options], given: Mapping[str, Any]) -> Options:
    """Checked options from what a decorator was given."""
    what = _what(kind)
    known = [each.name for each in dataclasses.fields(kind)]
    for name in given:
        if name in _LATER[what]:
            raise InvalidOption(f"{what} option '{name}' is not there yet: leave it out; there are {_listed(known)}")
        if name not in known:
            raise InvalidOption(f"unknown {what} option '{name}'{near(name, known)}: there are {_listed(known)}")
    return kind(**{name: _CHECKS[name](name, value) for name, value in given.items()})


def changed(options: Options, changes: Mapping[str, Any]) -> Options:
    """A checked copy with some options replaced."""
    return make(type(options), {**as_mapping(options), **changes})


def as_mapping(options: TaskOptions) -> Mapping[str, Any]:
    """What ``.options`` shows: read-only."""
    names = (each.name for each in dataclasses.fields(options))
    return MappingProxyType({name: getattr(options, name) for name in names})


def near(name: str, known: Iterable[str]) -> str:
    """A hint at names that look alike, for the middle of an error."""
    alike = difflib.get_close_matches(name, list(known), n=3)
    return f" (did you mean {' or '.join(repr(each) for each in alike)}?)" if alike else ""


def _what(kind: type[TaskOptions]) -> str:
    return "flow" if kind is FlowOptions else "task"


def _listed(names: Iterable[str]) -> str:
    return ", ".join(sorted(names))


def _whole(low: int, high: int) -> Callable[[str, object], int]:
    def check(name: str, value: object) -> int:
        # True and False are ints to Python, but never meant as numbers here.
        if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
            raise InvalidOption(f"option '{name}' must be a whole number from {low} to {high}, got {value!r}")
        return value

    return check


def _cap(name: str, value: object) -> int | None:
    return None if value is None else _whole(1, _U32)(name, value)


def _seconds(name: str, value: object) -> float:
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if not number or not math.isfinite(value) or value < 0:  # type: ignore[arg-type, operator]
        raise InvalidOption(f"option '{name}' must be seconds as a number of at least 0, got {value!r}")
    return float(value)  # type: ignore[arg-type]


def _name(name: str, value: object) -> str:
    if not isinstance(value, str) or not value.strip() or "/" in value or "*" in value:
        raise InvalidOption(f"option '{name}' must be a text without '/' and '*' that is not empty, got {value!r}")
    return value.strip()


def _overlap(name: str, value: object) -> str:
    listed = ", ".join(_ON_OVERLAP)
    if value in _ON_OVERLAP_LATER:
        raise InvalidOption(f"option '{name}' cannot be {value!r} yet: use one of {listed}")
    if value not in _ON_OVERLAP:
        raise InvalidOption(f"option '{name}' must be one of {listed}, got {value!r}")
    return str(value)


def _tags(name: str, value: object) -> tuple[str, ...]:
    if isinstance(value, str) or not isinstance(value, Iterable):
        raise InvalidOption(f"option '{name}' must be a list of texts, got {value!r}")
    tags = tuple(value)
    for tag in tags:
        if not isinstance(tag, str) or not tag.strip():
            raise InvalidOption(f"option '{name}' must be a list of texts that are not empty, got {tag!r} in it")
    return tags


def _resources(name: str, value: object) -> Mapping[str, int]:
    if not isinstance(value, Mapping):
        raise InvalidResource(f"option '{name}' must map names to units, as in {{'gpu': 1}}, got {value!r}")
    found: dict[str, int] = {}
    for key, units in value.items():
        resource = resource_name(key)
        if isinstance(units, bool) or not isinstance(units, int) or not 1 <= units <= _U32:
            raise InvalidResource(
                f"units of resource '{resource}' must be a whole number of at least 1, got {units!r}; "
                "leave the name out to ask for none"
            )
        # Two spellings of one name are one name: a resource named twice is summed.
        found[resource] = found.get(resource, 0) + units
    return MappingProxyType(found)


def resource_name(key: object) -> str:
    """A name as the gate keeps it: trimmed and in NFC; refused when it cannot be requested."""
    if not isinstance(key, str):
        raise InvalidResource(f"a resource's name must be a text, got {key!r}")
    name = unicodedata.normalize("NFC", key.strip())
    if is_template(name):
        check_template(name)
    if not 1 <= len(name) <= 200 or any(unicodedata.category(letter) == "Cc" for letter in name):
        raise InvalidResource(f"a resource's name must have 1 to 200 characters and no control characters, got {key!r}")
    if "*" in name:
        raise InvalidResource(f"resource '{name}' is a pattern, which can only be declared: ask for one matching name")
    if name.startswith(_RESERVED):
        raise InvalidResource(f"resource '{name}' is one of Mirab's own, which nobody can ask for: choose another name")
    return name


_CHECKS: dict[str, Callable[[str, Any], Any]] = {
    "name": _name,
    "resources": _resources,
    "retries": _whole(0, _U32),
    "retry_delay": _seconds,
    "tags": _tags,
    "max_concurrent": _cap,
    "on_overlap": _overlap,
    "priority": _whole(-(2**31), 2**31 - 1),
    "crash_retries": _whole(0, _U32),
}
