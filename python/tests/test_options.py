"""Options: checked where they are written, read-only, copied by ``with_options``."""

from typing import Any

import pytest

from mirab import flow, task
from mirab.errors import InvalidOption, InvalidResource


def nothing() -> None:
    pass


def make_flow(**options: Any) -> Any:
    return flow(**options)(nothing)


def make_task(**options: Any) -> Any:
    return task(**options)(nothing)


def test_options_are_a_read_only_mapping() -> None:
    made = make_flow(max_concurrent=1, on_overlap="skip", priority=5, resources={"gpu": 1}, tags=["a"], retries=2)
    assert made.options["max_concurrent"] == 1
    assert dict(made.options["resources"]) == {"gpu": 1}
    assert made.options["tags"] == ("a",)
    assert make_flow().options["name"] == "nothing"
    with pytest.raises(TypeError):
        made.options["priority"] = 1
    with pytest.raises(TypeError):
        made.options["resources"]["gpu"] = 2


def test_with_options_copies() -> None:
    made = make_flow(priority=5)
    copy = made.with_options(name="urgent", priority=9)
    assert (made.options["priority"], copy.options["priority"], copy.options["name"]) == (5, 9, "urgent")
    assert make_task(retries=1).with_options(resources={"db": 2}).options["retries"] == 1
    with pytest.raises(InvalidResource):
        make_task().with_options(resources={"db": 0})


@pytest.mark.parametrize("make", [make_flow, make_task])
@pytest.mark.parametrize("units", [0, -1, True, 1.0, "1", None])
def test_units_below_one_are_refused(make: Any, units: object) -> None:
    with pytest.raises(InvalidResource, match="units of resource 'db' must be a whole number of at least 1"):
        make(resources={"db": units})


@pytest.mark.parametrize("name", ["", "  ", "x" * 201, "a\nb", "api:*", "flow:a/b", "pool:x", "tag:x", "backfill:1", 3])
def test_bad_and_reserved_names_are_refused(name: object) -> None:
    with pytest.raises(InvalidResource):
        make_task(resources={name: 1})


def test_names_of_any_language_are_trimmed_normalised_and_summed() -> None:
    made = make_task(resources={" a/b ": 1, "u\u0308": 1, "\u00fc": 2, "🙂": 1, "%2F": 1, "..": 1})
    assert dict(made.options["resources"]) == {"a/b": 1, "\u00fc": 3, "🙂": 1, "%2F": 1, "..": 1}


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"priority": 1.5}, "'priority' must be a whole number"),
        ({"priority": 2**31}, "'priority' must be a whole number"),
        ({"max_concurrent": 0}, "'max_concurrent' must be a whole number from 1"),
        ({"retries": -1}, "'retries' must be a whole number from 0"),
        ({"crash_retries": True}, "'crash_retries' must be a whole number from 0"),
        ({"retry_delay": -0.1}, "'retry_delay' must be seconds"),
        ({"retry_delay": float("nan")}, "'retry_delay' must be seconds"),
        ({"on_overlap": "queue"}, "must be one of enqueue, skip, cancel_new"),
        ({"on_overlap": "cancel_old"}, "cannot be 'cancel_old' yet"),
        ({"on_overlap": "buffer_one"}, "cannot be 'buffer_one' yet"),
        ({"tags": "gpu"}, "'tags' must be a list of texts"),
        ({"name": "a/b"}, "'name' must be a text without '/'"),
        ({"name": "a*"}, "'name' must be a text without '/' and '\\*'"),
        ({"timeout": 3}, "'timeout' is not there yet"),
        ({"schedule": None}, "'schedule' is not there yet"),
        ({"isolated": True}, "'isolated' is not there yet"),
        ({"priorty": 3}, "unknown flow option 'priorty' \\(did you mean 'priority'\\?\\)"),
    ],
)
def test_wrong_flow_options_say_what_is_wrong(options: dict[str, object], text: str) -> None:
    with pytest.raises(InvalidOption, match=text):
        make_flow(**options)


def test_a_task_has_fewer_options() -> None:
    with pytest.raises(InvalidOption, match="unknown task option 'max_concurrent'"):
        make_task(max_concurrent=1)
    with pytest.raises(InvalidOption, match="'timeout' is not there yet"):
        make_task(timeout=1)
