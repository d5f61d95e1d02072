"""Turns a value into what an annotation says, where nothing is lost by it.

Values of served runs come as JSON and those of the command line as text; a plain call passes Python objects, which are
left alone when they fit.
"""

from __future__ import annotations

import collections.abc
import datetime
import decimal
import enum
import inspect
import pathlib
import types
import typing
import uuid
from collections.abc import Callable
from typing import Any, NoReturn

_WORDS = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}
_FROM_TEXT: dict[type, Callable[[str], Any]] = {
    pathlib.Path: pathlib.Path,
    datetime.datetime: datetime.datetime.fromisoformat,
    datetime.date: datetime.date.fromisoformat,
    datetime.time: datetime.time.fromisoformat,
    decimal.Decimal: decimal.Decimal,
    uuid.UUID: uuid.UUID,
}
_SEQUENCES: dict[Any, Callable[[list[Any]], Any]] = {
    list: list,
    collections.abc.Sequence: list,
    collections.abc.Iterable: list,
    set: set,
    frozenset: frozenset,
}


class Mismatch(Exception):
    """The value does not fit; the text says what was expected and what came."""


def coerce(value: Any, annotation: Any) -> Any:
    """``value`` as ``annotation`` wants it; raises Mismatch."""
    if annotation is Any or annotation is inspect.Parameter.empty or isinstance(annotation, (str, typing.TypeVar)):
        return value
    origin = typing.get_origin(annotation) or annotation
    if origin is typing.Annotated:
        return coerce(value, typing.get_args(annotation)[0])
    if origin in (typing.Union, types.UnionType):
        return _union(value, annotation)
    if origin is typing.Literal:
        return _literal(value, annotation)
    if origin in _SEQUENCES:
        return _sequence(value, annotation, origin)
    if origin is tuple:
        return _tuple(value, annotation)
    if origin in (dict, collections.abc.Mapping):
        return _mapping(value, annotation)
    return _plain(value, annotation, origin)


def spelled(annotation: Any) -> str:
    """An annotation as a person writes it."""
    if isinstance(annotation, str):
        return annotation
    if annotation is None or annotation is type(None):
        return "None"
    return inspect.formatannotation(annotation)


def _refuse(value: Any, annotation: Any) -> NoReturn:
    shown = repr(value)
    shown = shown if len(shown) <= 80 else shown[:77] + "..."
    raise Mismatch(f"{spelled(annotation)}, got {shown} ({type(value).__name__})")


def _union(value: Any, annotation: Any) -> Any:
    choices = typing.get_args(annotation)
    # What fits as it is goes first, so that "5" stays a text for `int | str`.
    if any(isinstance(choice, type) and type(value) is choice for choice in choices):
        return value
    for choice in choices:
        try:
            return coerce(value, choice)
        except Mismatch:
            continue
    _refuse(value, annotation)


def _literal(value: Any, annotation: Any) -> Any:
    for choice in typing.get_args(annotation):
        if value == choice and type(value) is type(choice):
            return choice
    _refuse(value, annotation)


def _sequence(value: Any, annotation: Any, origin: Any) -> Any:
    if isinstance(value, (str, bytes)) or not isinstance(value, collections.abc.Iterable):
        _refuse(value, annotation)
    (inner,) = typing.get_args(annotation) or (Any,)
    if inner is Any and isinstance(value, origin):
        return value
    return _SEQUENCES[origin]([coerce(each, inner) for each in value])


def _tuple(value: Any, annotation: Any) -> Any:
    if not isinstance(value, (list, tuple)):
        _refuse(value, annotation)
    inner = typing.get_args(annotation) or (Any, ...)
    if len(inner) == 2 and inner[1] is ...:
        inner = (inner[0],) * len(value)
    if len(inner) != len(value):
        _refuse(value, annotation)
    return tuple(coerce(each, kind) for each, kind in zip(value, inner, strict=True))


def _mapping(value: Any, annotation: Any) -> Any:
    if not isinstance(value, collections.abc.Mapping):
        _refuse(value, annotation)
    key, inner = typing.get_args(annotation) or (Any, Any)
    if key is Any and inner is Any:
        return value
    return {coerce(name, key): coerce(each, inner) for name, each in value.items()}


def _plain(value: Any, annotation: Any, origin: Any) -> Any:
    if origin is None or origin is type(None):
        return None if value is None else _refuse(value, annotation)
    if not isinstance(origin, type):
        return value
    if origin in (int, float, bool):
        return _number(value, annotation, origin)
    if _is_instance(value, origin):
        return value
    try:
        if isinstance(value, str) and origin in _FROM_TEXT:
            return _FROM_TEXT[origin](value)
        if issubclass(origin, enum.Enum):
            return origin(value)
    except (ValueError, ArithmeticError):
        pass
    _refuse(value, annotation)


def _is_instance(value: Any, kind: type) -> bool:
    try:
        return isinstance(value, kind)
    except TypeError:  # a protocol that cannot be asked
        return True


def _number(value: Any, annotation: Any, kind: type) -> Any:
    if type(value) is kind:
        return value
    if kind is bool:
        return (
            _WORDS[value.lower()] if isinstance(value, str) and value.lower() in _WORDS else _refuse(value, annotation)
        )
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        # Such as a number of a numeric library, which says itself that it is one.
        return value if _is_instance(value, kind) and not isinstance(value, bool) else _refuse(value, annotation)
    try:
        number = kind(value)
    except (ValueError, OverflowError):
        _refuse(value, annotation)
    # 1.5 is no int; "1.5" did not even parse.
    return number if isinstance(value, str) or number == value else _refuse(value, annotation)
