"""Corrections of token buckets without a server."""

import pytest

import mirab
from mirab import flow, task
from mirab.errors import InvalidResource


def test_offline_they_are_accepted_and_do_nothing() -> None:
    @task(resources={"api": 3})
    def asks() -> str:
        mirab.settle("api", 1)
        mirab.cooldown("api", 3600)
        return "asked"

    @flow
    def twice() -> list[str]:
        return [asks(), asks()]

    assert twice() == ["asked", "asked"]
    assert asks() == "asked"


def test_outside_of_a_body_they_are_errors() -> None:
    for call in (lambda: mirab.settle("api", 1), lambda: mirab.cooldown("api", 1)):
        with pytest.raises(mirab.MirabError, match="outside of a flow and of a task"):
            call()


@pytest.mark.parametrize("wrong", [-1, 1.5, True, "3", 2**64])
def test_units_are_whole_and_not_negative(wrong: object) -> None:
    with pytest.raises(InvalidResource, match="expected a whole number"):
        mirab.settle("api", wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize("wrong", [-0.1, float("nan"), float("inf"), True, "3"])
def test_seconds_are_finite_and_not_negative(wrong: object) -> None:
    with pytest.raises(InvalidResource, match="expected a number of seconds"):
        mirab.cooldown("api", wrong)  # type: ignore[arg-type]
