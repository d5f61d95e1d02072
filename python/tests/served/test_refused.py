"""Everything that is refused while a server runs: a clear error with its code, and nothing is left behind."""

from collections.abc import Iterator
from typing import Any

import pytest
from served_home import FLOWS, Refused, Served, serving

MORE = """
from mirab import flow, task


@flow
def count(rows: int, day: str = "monday", fast: bool = False) -> int:
    return rows


@task(resources={"dbb": 1})
def misspelt() -> None:
    pass


@flow
def calls_misspelt() -> None:
    misspelt()


@flow
def raises() -> None:
    raise LookupError("no rows")
"""
BROKEN = "from mirab import flow\n\nimport no_such_module\n"


@pytest.fixture(scope="module")
def server() -> Iterator[Served]:
    flows = {"flows.py": FLOWS, "more.py": MORE, "broken.py": BROKEN}
    config = '[resources]\ndb = 2\napi = { kind = "token_bucket", rate = 10.0, burst = 100 }\n"tag:heavy" = 1\n'
    with serving(config, flows) as server:
        yield server


def refusal(served: Served, **body: Any) -> tuple[int, str, str]:
    """Status, code and detail of a run that is refused, of which nothing may be stored."""
    before = [run["id"] for run in served.api.get("/runs")["runs"]]
    with pytest.raises(Refused) as refused:
        served.api.call("POST", "/runs", {"flow": "quick", **body})
    assert [run["id"] for run in served.api.get("/runs")["runs"]] == before
    return refused.value.status, refused.value.code, refused.value.detail


def test_e1_an_unknown_resource_is_refused_with_what_is_near(served: Served) -> None:
    status, code, detail = refusal(served, resources={"dbb": 1})
    assert (status, code) == (422, "UnknownResource")
    assert '"dbb"' in detail and "did you mean db?" in detail


def test_e1_a_task_with_an_unknown_resource_fails_and_so_does_its_run(served: Served) -> None:
    api = served.api
    run = api.in_state(api.submit("calls_misspelt")["id"], "Failed")
    assert run["error"]["type"] == "UnknownResource" and "did you mean db?" in run["error"]["message"]


@pytest.mark.parametrize(("wants", "names"), [({"db": 9}, ("9", "2")), ({"api": 101}, ("101", "100"))])
def test_e2_d8_more_than_there_is_is_refused(served: Served, wants: dict[str, int], names: tuple[str, str]) -> None:
    status, code, detail = refusal(served, resources=wants)
    assert (status, code) == (422, "ResourceExceedsCapacity")
    assert all(name in detail for name in names)


def test_e2_a_task_that_wants_more_than_there_is_fails_at_once(served: Served) -> None:
    api = served.api
    run = api.in_state(api.calls("never", {"db": 9}), "Failed")
    assert run["error"]["type"] == "ResourceExceedsCapacity"


@pytest.mark.parametrize(
    "name",
    ["", " ", "d\nb", "x" * 201, "api:*", "tag:heavy", "pool:default", "flow:shop/quick", "backfill:1"],
)
def test_e7_a_bad_or_reserved_name_is_refused(served: Served, name: str) -> None:
    assert refusal(served, resources={name: 1})[:2] == (422, "InvalidResource")


def test_e7_a_name_with_a_field_that_the_run_lacks_is_refused(served: Served) -> None:
    assert refusal(served, resources={"api:{tenant}": 1})[:2] == (422, "TemplateError")


def test_bad_units_are_refused(served: Served) -> None:
    assert refusal(served, resources={"db": 0})[:2] == (422, "InvalidResource")
    for units in (-1, 1.5, "one", None):
        assert refusal(served, resources={"db": units})[:2] == (400, "BadRequest"), units


@pytest.mark.parametrize(
    ("params", "said"),
    [
        ({}, 'needs the parameter "rows"'),
        ({"rows": 1, "dya": "x"}, 'has no parameter "dya"'),
        ({"rows": "many"}, 'parameter "rows" of flow "count" is the text "many", expected int'),
        ({"rows": 1, "fast": 3}, "is the number 3, expected bool"),
    ],
)
def test_a_bad_parameter_is_refused_by_its_name(served: Served, params: dict[str, Any], said: str) -> None:
    status, code, detail = refusal(served, flow="count", params=params)
    assert (status, code) == (422, "InvalidParams") and said in detail


def test_a_parameter_that_only_the_flow_can_tell_fails_the_run(served: Served) -> None:
    api = served.api
    run = api.in_state(api.submit("call", {"name": "x", "wants": {"db": "a few"}})["id"], "Failed")
    assert run["error"]["type"] == "InvalidParams" and "wants" in run["error"]["message"]


def test_an_unknown_flow_is_refused_with_what_is_near(served: Served) -> None:
    status, code, detail = refusal(served, flow="quik")
    assert (status, code) == (404, "UnknownFlow")
    assert "quik" in detail and "did you mean shop/quick?" in detail


def test_unknown_runs_paths_fields_and_states_are_refused(served: Served) -> None:
    api = served.api
    for method, path, code in [
        ("GET", "/runs/4711", "UnknownRun"),
        ("GET", "/runs/4711/why", "UnknownRun"),
        ("GET", "/runs/4711/tasks", "UnknownRun"),
        ("GET", "/runs/4711/events", "UnknownRun"),
        ("POST", "/runs/4711/cancel", "UnknownRun"),
        ("GET", "/flows/quik", "UnknownFlow"),
        ("GET", "/resources/dbb", "NotFound"),
        ("GET", "/nothing", "NotFound"),
        ("GET", "/runs/one", "BadRequest"),
        ("GET", "/runs?state=Done", "BadRequest"),
        ("GET", "/runs?limit=0", "BadRequest"),
    ]:
        with pytest.raises(Refused) as refused:
            api.call(method, path)
        assert refused.value.code == code, path
    assert refusal(served, resorces={"db": 1})[:2] == (400, "BadRequest")


def test_the_same_idempotency_key_gives_the_same_run_and_refuses_another(served: Served) -> None:
    api = served.api
    first = api.submit("quick", {"name": "a"}, idempotency_key="k")
    assert api.submit("quick", {"name": "a"}, idempotency_key="k")["id"] == first["id"]
    assert refusal(served, params={"name": "b"}, idempotency_key="k")[1] == "BadRequest"


def test_a_flow_that_raises_has_failed_with_its_traceback(served: Served) -> None:
    api = served.api
    run = api.in_state(api.submit("raises")["id"], "Failed")
    assert (run["error"]["type"], run["error"]["message"]) == ("LookupError", "no rows")
    assert 'raise LookupError("no rows")' in run["error"]["traceback"]
    assert run["message"] == "attempt 1 failed: LookupError: no rows"


def test_a_file_that_does_not_import_is_listed_and_the_others_are_served(served: Served) -> None:
    api = served.api
    listed = api.get("/flows")
    [broken] = listed["projects"][0]["broken"]
    assert (broken["file"], broken["error"]["type"]) == ("broken.py", "ModuleNotFoundError")
    assert "import no_such_module" in broken["error"]["traceback"]
    assert {"quick", "count"} <= {flow["name"] for flow in listed["flows"]}
    assert "broken.py did not import: ModuleNotFoundError" in served.cli("flows").stdout
    assert api.completed(api.submit("quick", {"name": "x"})["id"]) == ["x"]
