"""Parameters are coerced by their annotations; a wrong one is an error that names it."""

import datetime
import enum
from pathlib import Path
from typing import Any, Literal, Optional

import pytest

from mirab import flow
from mirab._coerce import Mismatch, coerce
from mirab.errors import InvalidParams


class Color(enum.Enum):
    RED = "red"


@pytest.mark.parametrize(
    ("value", "annotation", "expected"),
    [
        ("5", int, 5),
        (5.0, int, 5),
        (5, float, 5.0),
        ("1.5", float, 1.5),
        ("true", bool, True),
        ("No", bool, False),
        ("x", str, "x"),
        ("a/b", Path, Path("a/b")),
        ("2026-01-02", datetime.date, datetime.date(2026, 1, 2)),
        ("2026-01-02T03:04:05", datetime.datetime, datetime.datetime(2026, 1, 2, 3, 4, 5)),
        (None, Optional[int], None),  # noqa: UP045 the older spelling
        ("5", int | None, 5),
        ("5", int | str, "5"),
        (["1", 2], list[int], [1, 2]),
        ([1, 2], set[int], {1, 2}),
        ([1, "2"], tuple[int, int], (1, 2)),
        ({"a": "1"}, dict[str, int], {"a": 1}),
        ("a", Literal["a", "b"], "a"),
        ("red", Color, Color.RED),
        (object, Any, object),
    ],
)
def test_coercion(value: object, annotation: Any, expected: object) -> None:
    got = coerce(value, annotation)
    assert got == expected and type(got) is type(expected)


@pytest.mark.parametrize(
    ("value", "annotation"),
    [
        ("five", int),
        (1.5, int),
        (True, int),
        (None, int),
        (float("inf"), int),
        (True, float),
        (1, bool),
        (5, str),
        (5, Path),
        ("soon", datetime.date),
        ("abc", list[str]),
        (["x"], list[int]),
        ([1], dict[str, int]),
        ([1], tuple[int, int]),
        ("c", Literal["a", "b"]),
        ("blue", Color),
        (1, None),
    ],
)
def test_what_does_not_fit_is_refused(value: object, annotation: Any) -> None:
    with pytest.raises(Mismatch, match="got"):
        coerce(value, annotation)


@flow
def report(rows: int, label: "str | None" = None) -> tuple[int, str | None]:
    return rows, label


def test_a_flow_coerces_what_it_is_given() -> None:
    assert report("3") == (3, None)  # type: ignore[arg-type]
    assert report(rows=4, label="x") == (4, "x")


def test_errors_name_the_parameter() -> None:
    with pytest.raises(InvalidParams, match=r"parameter 'rows' of flow 'report' must be int, got 'many' \(str\)"):
        report("many")  # type: ignore[arg-type]
    with pytest.raises(InvalidParams, match=r"no parameter 'row' \(did you mean 'rows'\?\): it takes rows: int"):
        report(row=3)  # type: ignore[call-arg]
    with pytest.raises(InvalidParams, match="missing a required argument: 'rows'"):
        report()  # type: ignore[call-arg]


def test_further_names_are_taken_where_the_function_takes_them() -> None:
    @flow
    def loose(a: int = 1, **rest: float) -> dict[str, object]:
        return {"a": a, **rest}

    assert loose(b="2") == {"a": 1, "b": 2.0}  # type: ignore[arg-type]
    with pytest.raises(InvalidParams, match="parameter 'b' of flow 'loose' must be float"):
        loose(b="x")  # type: ignore[arg-type]


def test_annotations_for_type_checkers_alone_do_no_harm() -> None:
    @flow
    def odd(a: "NotThere", b: int) -> int:  # type: ignore[name-defined]  # noqa: F821
        return b

    assert odd(object(), 2) == 2


def test_parameters_that_cannot_be_named_are_refused() -> None:
    with pytest.raises(ValueError, match="cannot be given by name"):
        flow(lambda *rows: None)
