"""The server dies: nothing is lost, nothing runs twice, and what executes goes on."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from served_home import FLOWS, Served, eventually, serving

# How often the main test is run: each round kills at another moment.
ROUNDS = 20 if os.environ.get("MIRAB_SOAK") == "1" else 3
WAITING = 20

RECORDED = """
import os

from gate import hold as wait_at
from mirab import flow, task


def note(log: str, word: str, name: str) -> None:
    line = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    os.write(line, f"{word} {name}\\n".encode())
    os.close(line)


@flow(resources={"db": 1})
def recorded(name: str, log: str) -> str:
    note(log, "start", name)
    wait_at(name)
    note(log, "end", name)
    return name


@flow(max_concurrent=1)
def capped(name: str) -> str:
    return wait_at(name)


@flow(max_concurrent=1, on_overlap="skip")
def skipping(name: str) -> str:
    return wait_at(name)
"""


@pytest.fixture
def server() -> Iterator[Served]:
    with serving("[resources]\ndb = 1\n", {"flows.py": FLOWS, "recorded.py": RECORDED}) as server:
        yield server


def fence_of_holder(served: Served) -> tuple[int, float]:
    [holder] = served.api.resource("db")["holders"]
    return holder["run_id"], holder["since"]


@pytest.mark.parametrize("round_", range(ROUNDS))
def test_kill_nine_of_the_server_loses_nothing_and_runs_nothing_twice(served: Served, round_: int) -> None:
    api, gates, log = served.api, served.gates, served.home.parent / "log"
    names = [f"run {number}" for number in range(1 + WAITING)]
    runs = [api.submit("recorded", {"name": name, "log": str(log)})["id"] for name in names]
    # Some have ended by then; one executes and the others wait.
    ended = round_ % 7
    gates.let(*names[:ended])
    gates.wait_for(names[ended])
    served.kill()
    if round_ % 2:
        # Its body ends while there is no server.
        gates.let(names[ended])
        eventually(lambda: f"end {names[ended]}\n" in log.read_text(), "the body to end")
    api = served.start()
    if round_ % 2 == 0:
        # Its body goes on, so its units are still held, by the very same lease.
        assert api.run(runs[ended])["state"] == "Running"
        assert fence_of_holder(served)[0] == runs[ended]
        assert [row["id"] for row in api.queue()["waiting"]] == runs[ended + 1 :]
        assert gates.held() == [names[ended]]
    gates.open(*names)
    assert api.completed(*runs) == names
    assert [api.run(run)["attempt"] for run in runs] == [1] * len(runs)
    # One after the other, in the order of submission, each exactly once.
    assert log.read_text() == "".join(f"start {name}\nend {name}\n" for name in names)


@pytest.mark.parametrize("how", ["kill", "interrupt", "terminate"])
def test_r1_a_restart_keeps_the_units_of_a_live_body(served: Served, how: str) -> None:
    api, gates = served.api, served.gates
    first = api.hold("first", resources={"db": 1})
    gates.wait_for("first")
    before = fence_of_holder(served)
    if how == "kill":
        served.kill()
    else:
        assert served.end(signal.SIGINT if how == "interrupt" else signal.SIGTERM) == 0
    api = served.start()
    second = api.submit("hold", {"name": "second"}, resources={"db": 1})
    assert second["state"] == "AwaitingResource"
    assert fence_of_holder(served) == before == (first, before[1])
    assert gates.held() == ["first"]
    gates.let("first")
    gates.wait_for("second")
    assert api.run(first)["state"] == "Completed"
    gates.let("second")
    assert api.completed(first, second["id"]) == ["first", "second"]
    assert api.run(first)["attempt"] == 1


def test_r2_a_restart_keeps_the_cap_of_a_flow_that_enqueues(served: Served) -> None:
    api, gates = served.api, served.gates
    first = api.submit("capped", {"name": "first"})["id"]
    gates.wait_for("first")
    api = served.restart()
    second = api.submit("capped", {"name": "second"})
    assert second["state"] == "AwaitingResource"
    [blocker] = api.why(second["id"])["waiting"][0]["blocked_on"]
    assert blocker["resource"] == "flow:shop/capped"
    assert [holder["run_id"] for holder in blocker["holders"]] == [first]
    gates.let("first", "second")
    assert api.completed(first, second["id"]) == ["first", "second"]


def test_r2_a_restart_keeps_the_cap_of_a_flow_that_skips(served: Served) -> None:
    api, gates = served.api, served.gates
    first = api.submit("skipping", {"name": "first"})["id"]
    gates.wait_for("first")
    api = served.restart()
    second = api.submit("skipping", {"name": "second"})
    assert (second["state"], second["message"]) == ("Skipped", "previous run still active")
    gates.let("first")
    api.completed(first)
    third = api.submit("skipping", {"name": "third"})["id"]
    gates.let("third")
    assert api.completed(third) == ["third"]


def test_q14_a_body_that_ended_as_the_server_died_is_completed(served: Served) -> None:
    api, gates = served.api, served.gates
    run = api.hold("body", resources={"db": 1})
    gates.let("body")
    served.kill()
    api = served.start()
    assert api.completed(run) == ["body"]
    assert api.run(run)["attempt"] == 1


def test_q14_a_body_that_ended_while_there_was_no_server_is_completed(served: Served) -> None:
    api, gates = served.api, served.gates
    run = api.hold("body", resources={"db": 1})
    gates.wait_for("body")
    served.kill()
    gates.let("body")
    gates.wait_gone("body")
    api = served.start()
    assert api.completed(run) == ["body"]
    assert api.states(run) == ["Waiting", "Pending", "Running", "Completed"]


def test_q14_a_body_that_failed_while_there_was_no_server_has_failed(served: Served) -> None:
    api, gates = served.api, served.gates
    run = api.hold("body")
    gates.wait_for("body")
    served.kill()
    gates.fail("body")
    api = served.start()
    assert api.in_state(run, "Failed")["error"]["message"] == "body was told to fail"


def test_a7_an_engine_that_died_while_there_was_no_server_holds_nothing(served: Served) -> None:
    api, gates = served.api, served.gates
    first, second = api.hold("first", resources={"db": 1}), api.hold("second", resources={"db": 1})
    gates.wait_for("first")
    pid = api.engine_of(first)["pid"]
    served.kill()
    os.kill(pid, signal.SIGKILL)
    gates.wait_gone("first")
    api = served.start()
    crashed = api.in_state(first, "Crashed")
    assert crashed["message"] == "engine process ended while the server was away"
    gates.let("second")
    assert api.completed(second) == ["second"]


def test_a14_a_run_goes_on_with_its_tasks_after_a_restart(served: Served) -> None:
    api, gates = served.api, served.gates
    # The task of the one shares what its run holds; the task of the other waits for it.
    sharing = api.calls("sharing", {"db": 1}, resources={"db": 1})
    gates.wait_for("sharing")
    waiting = api.calls("waiting", {"db": 1})
    row = api.waiting_task(waiting)
    api = served.restart()
    # The task that waited is in line again by its own key: the same task, not a second one.
    assert api.waiting_task(waiting)["id"] == row["id"]
    [holder] = api.resource("db")["holders"]
    assert holder["run_id"] == sharing
    gates.let("sharing", "waiting")
    assert api.completed(sharing, waiting) == ["sharing", "waiting"]
    assert [(task["id"], task["attempt"]) for task in api.tasks(waiting)] == [(row["id"], 1)]


def test_waiting_runs_keep_their_order_over_a_restart(served: Served) -> None:
    api, gates = served.api, served.gates
    runs = [api.hold("first", resources={"db": 1})]
    gates.wait_for("first")
    runs += [api.hold(name, resources={"db": 1}, priority=rank) for name, rank in [("b", 0), ("c", 0), ("a", 5)]]
    line = [row["id"] for row in api.queue()["waiting"]]
    assert line == [runs[3], runs[1], runs[2]]
    api = served.restart()
    assert [row["id"] for row in api.queue()["waiting"]] == line
    gates.let("first", "a", "b", "c")
    api.completed(*runs)


def test_a_server_that_ends_in_order_leaves_no_idle_engine_and_no_discovery_file(served: Served) -> None:
    served.api.completed(served.api.submit("quick")["id"])
    assert len(served.engines()) == 1
    assert served.end(signal.SIGTERM) == 0
    eventually(lambda: not served.engines(), "the idle engine to end")
    assert not Path(served.home, "server.json").exists()
    served.start()


def test_only_its_owner_can_read_the_home(served: Served) -> None:
    served.api.completed(served.api.submit("quick")["id"])
    assert served.home.stat().st_mode & 0o777 == 0o700
