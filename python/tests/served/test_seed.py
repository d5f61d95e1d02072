"""The example of the documents, served unchanged."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from served_home import FLOWS, Served, serving

EXAMPLE = (Path(__file__).parents[1] / "nightly_example.py").read_text()


@pytest.fixture(scope="module")
def server() -> Iterator[Served]:
    flows = {"nightly.py": EXAMPLE, "flows.py": FLOWS}
    with serving("[resources]\ndb = 1\ngpu = 1\n", flows) as server:
        yield server


def test_seed_nightly_completes_with_its_result(served: Served) -> None:
    api = served.api
    default = api.submit("nightly")["id"]
    assert api.completed(default) == [10]
    assert api.completed(api.submit("nightly", {"rows": 3})["id"]) == [3]
    assert api.states(default) == ["Waiting", "Pending", "Running", "Completed"]


def test_seed_second_nightly_is_skipped_at_once(served: Served) -> None:
    api, gates = served.api, served.gates
    keeper = api.hold("keeper", resources={"db": 1})
    gates.wait_for("keeper")
    first = api.submit("nightly")["id"]
    api.waiting_task(first)
    second = api.submit("nightly")
    assert (second["state"], second["message"]) == ("Skipped", "previous run still active")
    assert second["ended_at"] is not None and second["started_at"] is None
    told = [event for event in api.events(second["id"]) if event["kind"] == "run.skipped"]
    assert [event["reason"] for event in told] == ["previous run still active"]
    gates.let("keeper")
    assert api.completed(keeper, first) == ["keeper", 10]
