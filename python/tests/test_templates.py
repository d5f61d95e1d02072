"""Names of resources that hold parameters, offline."""

import dataclasses
from typing import Any

import pytest

from mirab import flow, task
from mirab._names import filled_in
from mirab.errors import InvalidResource, MirabError, TemplateError


@dataclasses.dataclass
class Order:
    tenant: str


@pytest.mark.parametrize(
    ("name", "arguments", "plain"),
    [
        ("api:{{ tenant }}", {"tenant": "acme"}, "api:acme"),
        ("api:{tenant}", {"tenant": 7}, "api:7"),
        ("api:{fast}", {"fast": True}, "api:true"),
        ("api:{order.tenant}", {"order": {"tenant": "acme"}}, "api:acme"),
        ("api:{order.tenant}", {"order": Order("acme")}, "api:acme"),
        ("api:{rate}", {"rate": 1e16}, "api:1e+16"),
        ("api:{rate}", {"rate": 0.1}, "api:0.1"),
        ("db", {}, "db"),
    ],
)
def test_parameters_are_filled_in(name: str, arguments: dict[str, Any], plain: str) -> None:
    assert filled_in({name: 2}, arguments) == {plain: 2}


def test_names_that_come_out_the_same_are_summed() -> None:
    assert filled_in({"api:{a}": 1, "api:{b}": 2, "api:x": 4}, {"a": "x", "b": "x"}) == {"api:x": 7}


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        ({}, "missing"),
        ({"tenant": ""}, "empty"),
        ({"tenant": "  "}, "empty"),
        ({"tenant": None}, "null"),
        ({"tenant": float("nan")}, "null"),
        ({"tenant": 2**64 + 1}, "a number too large"),
        ({"tenant": [1]}, "a list"),
        ({"tenant": {"a": 1}}, "an object"),
        ({"tenant": Order("acme")}, "an object"),
    ],
)
def test_case_e8_a_field_without_text_is_told_by_name(arguments: dict[str, Any], what: str) -> None:
    with pytest.raises(TemplateError, match=f"`tenant` is {what}"):
        filled_in({"api:{tenant}": 1}, arguments)


def test_a_text_that_is_no_unicode_is_told() -> None:
    with pytest.raises(TemplateError, match="no JSON"):
        filled_in({"api:{tenant}": 1}, {"tenant": "\ud800"})


@pytest.mark.parametrize("value", ["*", "{x}", "a\nb"])
def test_case_r13_a_value_cannot_become_more_than_a_name(value: str) -> None:
    with pytest.raises(MirabError):
        filled_in({"api:{tenant}": 1}, {"tenant": value})
    with pytest.raises(InvalidResource):
        filled_in({"{tenant}": 1}, {"tenant": "pool:default"})


def test_malformed_templates_are_refused_where_they_are_written() -> None:
    for name in ["api:{", "api:{}", "api:{a b}", "api:}"]:
        with pytest.raises(TemplateError):
            task(resources={name: 1})(lambda: None)
    assert dict(flow(resources={"api:{tenant}": 1})(lambda tenant: tenant).options["resources"]) == {"api:{tenant}": 1}


def test_a_call_fills_in_its_own_arguments_and_defaults() -> None:
    @task(resources={"api:{{ tenant }}": 1})
    def load(rows: int, tenant: str = "acme") -> str:
        return f"{tenant} {rows}"

    @flow(resources={"day:{day}": 1})
    def nightly(day: str) -> list[str]:
        return [load(1), load(2, tenant="zeta"), load.submit(3).result()]

    assert nightly("monday") == ["acme 1", "zeta 2", "acme 3"]


def test_what_a_task_takes_by_two_stars_has_a_name_and_what_it_takes_by_one_has_none() -> None:
    @task(resources={"api:{{ tenant }}": 1})
    def load(*rows: int, **more: str) -> int:
        return len(rows)

    @task(resources={"api:{{ rows }}": 1})
    def wrong(*rows: int) -> None: ...

    assert load(1, 2, tenant="acme") == 2
    with pytest.raises(TemplateError, match="`tenant` is missing"):
        load(1, 2)
    with pytest.raises(TemplateError, match="`rows` is missing"):
        wrong(1, 2)


def test_an_empty_argument_fails_the_call_before_its_body() -> None:
    ran = []

    @task(resources={"api:{{ tenant }}": 1})
    def load(tenant: str) -> None:
        ran.append(tenant)

    with pytest.raises(TemplateError, match="`tenant`"):
        load("")
    assert ran == []
