"""Parameters of a flow: bound by name, and coerced by their annotations."""

from __future__ import annotations

import inspect
import json
import typing
from collections.abc import Callable, Mapping
from typing import Any

from mirab._coerce import Mismatch, coerce, spelled
from mirab._options import near
from mirab.errors import InvalidOption, InvalidParams

_Kind = inspect.Parameter


class Params:
    """What a flow's function takes."""

    def __init__(self, function: Callable[..., Any], flow: str) -> None:
        self._function = function
        self._flow = flow
        self._hints: Mapping[str, Any] | None = None
        self.signature = inspect.signature(function)
        for name, each in self.signature.parameters.items():
            if each.kind in (_Kind.POSITIONAL_ONLY, _Kind.VAR_POSITIONAL):
                raise InvalidOption(
                    f"parameter '{name}' of flow '{flow}' cannot be given by name, as a served run gives it: "
                    "take it without '/' or '*'"
                )

    @property
    def any_names(self) -> bool:
        """True when the function takes ``**kwargs``."""
        return any(each.kind is _Kind.VAR_KEYWORD for each in self.signature.parameters.values())

    def bind(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        """All given values by name, coerced; what is not given is left to the function's defaults."""
        self._refuse_unknown(kwargs)
        try:
            given = self.signature.bind(*args, **kwargs).arguments
        except TypeError as error:
            raise InvalidParams(f"flow '{self._flow}': {error}; it takes {self._listed()}") from None
        values: dict[str, Any] = {}
        for name, value in given.items():
            if self.signature.parameters[name].kind is _Kind.VAR_KEYWORD:
                values.update({key: self._coerced(key, each, name) for key, each in value.items()})
            else:
                values[name] = self._coerced(name, value, name)
        return values

    def describe(self) -> list[dict[str, Any]]:
        """The parameters as discovery reports them."""
        return [
            {
                "name": name,
                "required": each.default is _Kind.empty,
                "annotation": None if each.annotation is _Kind.empty else spelled(each.annotation),
                "default": _json_or_none(each.default),
            }
            for name, each in self.signature.parameters.items()
            if each.kind is not _Kind.VAR_KEYWORD
        ]

    def _refuse_unknown(self, kwargs: Mapping[str, Any]) -> None:
        known = [name for name, each in self.signature.parameters.items() if each.kind is not _Kind.VAR_KEYWORD]
        for name in kwargs:
            if name not in known and not self.any_names:
                raise InvalidParams(
                    f"flow '{self._flow}' has no parameter '{name}'{near(name, known)}: it takes {self._listed()}"
                )

    def _coerced(self, name: str, value: Any, declared: str) -> Any:
        annotation = self._annotations().get(declared, Any)
        try:
            return coerce(value, annotation)
        except Mismatch as mismatch:
            raise InvalidParams(f"parameter '{name}' of flow '{self._flow}' must be {mismatch}") from None

    def _annotations(self) -> Mapping[str, Any]:
        # Only now: an annotation may name something that the module defines after the flow.
        if self._hints is None:
            try:
                self._hints = typing.get_type_hints(self._function, include_extras=True)
            except Exception:  # a name that is there for type checkers only: such parameters are taken as they come
                raw = {name: each.annotation for name, each in self.signature.parameters.items()}
                self._hints = {name: each for name, each in raw.items() if isinstance(each, type)}
        return self._hints

    def _listed(self) -> str:
        return ", ".join(str(each) for each in self.signature.parameters.values()) or "none"


def _json_or_none(value: Any) -> Any:
    if value is _Kind.empty:
        return None
    try:
        json.dumps(value, allow_nan=False)
    except (TypeError, ValueError, RecursionError):
        return None
    return value
