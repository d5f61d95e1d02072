"""How many engines there are, and what waits for one."""

from collections.abc import Iterator

import pytest
from served_home import FLOWS, Refused, Served, eventually, serving

RETRIES = """
from gate import hold as wait_at
from mirab import flow, task


@flow(retries=1, retry_delay=1.5, resources={"db": 1})
def flaky() -> str:
    return wait_at("flaky")


@task(retries=2, retry_delay=0.5, resources={"spare": 1})
def shaky() -> str:
    return wait_at("shaky")


@flow
def calls_shaky() -> str:
    return shaky()
"""


@pytest.fixture(scope="module")
def server() -> Iterator[Served]:
    flows = {"flows.py": FLOWS, "retries.py": RETRIES}
    with serving("[resources]\ndb = 1\nspare = 1\n", flows, engines=1) as server:
        yield server


def set_engines(served: Served, count: int) -> None:
    settings = served.api.call("PATCH", "/settings", {"max_engines": count})
    assert settings["max_engines"] == count == served.api.get("/settings")["max_engines"]


def test_r23_waiting_for_an_engine_is_its_own_reason(served: Served) -> None:
    api, gates = served.api, served.gates
    first = api.hold("first")
    gates.wait_for("first")
    second = api.submit("hold", {"name": "second"})
    assert second["state"] == "Queued"
    why = api.why(second["id"])
    assert (why["state"], why["reason"]) == ("Queued", "the only engine is busy")
    [row] = api.queue()["waiting"]
    assert (row["state"], row["reason"]) == ("Queued", "the only engine is busy")
    assert not [event for event in api.events(second["id"]) if event["kind"] == "resource.exhausted"]
    gates.let("first", "second")
    api.completed(first, second["id"])


def test_r23_a_resource_that_is_short_is_named_rather_than_the_engine(served: Served) -> None:
    api, gates = served.api, served.gates
    first = api.hold("first", resources={"db": 1})
    gates.wait_for("first")
    second = api.submit("hold", {"name": "second"}, resources={"db": 1})
    assert second["state"] == "AwaitingResource"
    assert "engine" not in api.why(second["id"])["reason"]
    gates.let("first", "second")
    api.completed(first, second["id"])


def test_c16_a_run_that_waits_for_a_resource_occupies_no_engine(served: Served) -> None:
    api, gates = served.api, served.gates
    set_engines(served, 2)
    first = api.hold("first", resources={"db": 1})
    gates.wait_for("first")
    waiting = api.hold("waiting", resources={"db": 1})
    assert api.completed(api.submit("quick", {"name": "other"})["id"]) == ["other"]
    gates.let("first", "waiting")
    api.completed(first, waiting)
    set_engines(served, 1)


def test_priority_decides_who_gets_the_engine(served: Served) -> None:
    api, gates = served.api, served.gates
    runs = [api.hold("first")]
    gates.wait_for("first")
    runs += [api.hold("low", priority=-1), api.hold("high", priority=7), api.hold("high too", priority=7)]
    order = ["first", "high", "high too", "low"]
    gates.let(*order)
    api.completed(*runs)
    assert gates.arrivals[-4:] == order


def test_max_engines_can_be_raised_and_lowered_while_runs_execute(served: Served) -> None:
    api, gates = served.api, served.gates
    names = [f"engine {number}" for number in range(4)]
    runs = [api.hold(name) for name in names]
    gates.wait_for(names[0])
    assert [api.run(run)["state"] for run in runs[1:]] == ["Queued"] * 3
    set_engines(served, 3)
    gates.wait_for(*names[:3])
    set_engines(served, 1)
    # Busy ones go on until their runs have ended, and nothing starts before there are fewer than may be.
    assert gates.held() == names[:3]
    gates.let(names[1], names[2])
    api.completed(runs[1], runs[2])
    assert api.run(runs[3])["state"] == "Queued" and gates.held() == names[:1]
    gates.let(names[0], names[3])
    assert api.completed(*runs) == names
    eventually(lambda: len(served.engines()) == 1, "the spare engines to end")


def test_max_engines_is_kept_over_a_restart() -> None:
    with serving("", engines=1) as served:
        set_engines(served, 2)
        api = served.restart()
        assert api.get("/settings")["max_engines"] == 2


@pytest.mark.parametrize("count", [0, 10_000])
def test_max_engines_out_of_range_is_refused(served: Served, count: int) -> None:
    with pytest.raises(Refused, match=f"max_engines is {count}, expected 1 to ") as refused:
        served.api.call("PATCH", "/settings", {"max_engines": count})
    assert (refused.value.status, refused.value.code) == (400, "BadRequest")


def test_f1_f3_a_run_that_waits_for_its_retry_holds_nothing(served: Served) -> None:
    api, gates = served.api, served.gates
    run = api.submit("flaky")["id"]
    gates.wait_for("flaky")
    other = api.hold("other", resources={"db": 1})
    gates.fail("flaky")
    # The other one gets both the unit and the only engine.
    gates.wait_for("other")
    waiting = api.run(run)
    assert waiting["state"] == "AwaitingRetry"
    assert (waiting["error"]["type"], waiting["attempt"]) == ("ValueError", 1)
    failed_at = next(event["at"] for event in api.events(run) if event["state"] == "AwaitingRetry")
    admitted_at = next(event["at"] for event in api.events(other) if event["state"] == "Pending")
    assert 0 <= admitted_at - failed_at < 1
    # After its delay it passes the gate like anyone else.
    api.in_state(run, "AwaitingResource")
    gates.let("other", "flaky")
    api.completed(other, run)
    ended = api.run(run)
    assert (ended["attempt"], ended["error"], ended["result"]) == (2, None, "flaky")
    again_at = [event["at"] for event in api.events(run) if event["state"] == "Pending"][1]
    assert again_at - failed_at >= 1.5


def test_a_run_without_a_retry_left_has_failed(served: Served) -> None:
    api, gates = served.api, served.gates
    run = api.submit("flaky")["id"]
    gates.fail("flaky")
    gates.fail("flaky")
    ended = api.in_state(run, "Failed")
    assert (ended["attempt"], ended["error"]["message"]) == (2, "flaky was told to fail")
    assert "in flaky" in ended["error"]["traceback"] and "_execute.py" not in ended["error"]["traceback"]


def test_a_task_that_waits_for_its_retry_holds_nothing(served: Served) -> None:
    api, gates = served.api, served.gates
    set_engines(served, 2)
    run = api.submit("calls_shaky")["id"]
    gates.wait_for("shaky")
    other = api.calls("other", {"spare": 1})
    api.waiting_task(other)
    gates.fail("shaky")
    gates.wait_for("other")
    gates.let("other")
    gates.fail("shaky")
    gates.let("shaky")
    assert api.completed(other, run) == ["other", "shaky"]
    [task] = api.tasks(run)
    assert (task["state"], task["attempt"]) == ("Completed", 3)
    starts = [event for event in api.events(run) if event["task_id"] and event["state"] == "Running"]
    ends = [event for event in api.events(run) if event["task_id"] and event["state"] == "AwaitingRetry"]
    assert len(starts) == 3 and len(ends) == 2
    assert all(again["at"] - end["at"] >= 0.5 for end, again in zip(ends, starts[1:], strict=True))
    set_engines(served, 1)
