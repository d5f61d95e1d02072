"""Names of resources that hold parameters, such as ``api:{{ tenant }}``: read and filled in by the native module."""

import dataclasses
import json
import math
from collections.abc import Mapping
from typing import Any

from mirab import errors
from mirab._native import render_name, template_fields

_MISSING: Any = object()


def is_template(name: str) -> bool:
    """True for a name with a brace, well-formed or not."""
    return "{" in name or "}" in name


def check_template(name: str) -> None:
    """Raises ``TemplateError`` where it is malformed."""
    _fields(name)


def filled_in(resources: Mapping[str, int], arguments: Mapping[str, Any]) -> dict[str, int]:
    """The resources of one call; names that come out the same are summed."""
    found: dict[str, int] = {}
    for name, units in resources.items():
        plain = _fill_in(name, arguments) if is_template(name) else name
        found[plain] = found.get(plain, 0) + units
    return found


def _fields(name: str) -> list[str]:
    answer = json.loads(template_fields(name))
    if "code" in answer:
        raise errors.from_code(answer["code"], answer["detail"])
    fields: list[str] = answer["fields"]
    return fields


def _fill_in(name: str, arguments: Mapping[str, Any]) -> str:
    found = {field: _value(arguments, field) for field in _fields(name)}
    values = {field: value for field, value in found.items() if value is not _MISSING}
    answer = json.loads(render_name(name, json.dumps(values)))
    if "code" in answer:
        raise errors.from_code(answer["code"], answer["detail"])
    plain: str = answer["name"]
    return plain


def _value(arguments: Mapping[str, Any], field: str) -> Any:
    """The value of a field as JSON can carry it; what it is as text is for the native module to say."""
    value: Any = arguments
    for part in field.split("."):
        if dataclasses.is_dataclass(value) and not isinstance(value, type):
            value = getattr(value, part, _MISSING)
        elif isinstance(value, Mapping):
            value = value.get(part, _MISSING)
        else:
            return _MISSING
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if value is None or value is _MISSING or isinstance(value, (str, bool, int)):
        return value
    # Neither can become a name, whatever is in it.
    return [] if isinstance(value, (list, tuple, set, frozenset)) else {}
