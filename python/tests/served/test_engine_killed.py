"""An engine dies in the middle of a run."""

import os
import signal
import time
from collections.abc import Iterator

import pytest
from served_home import FLOWS, Served, eventually, serving

RERUN = """
from gate import hold as wait_at
from mirab import flow


@flow(crash_retries=1, resources={"db": 1})
def stubborn() -> str:
    return wait_at("stubborn")


@flow(resources={"db": 1})
def starts_a_child() -> None:
    import subprocess
    import sys

    # What a body starts itself must not go on without it.
    subprocess.run([sys.executable, "-c", "from gate import hold; hold('child')"], check=True)
"""


@pytest.fixture(scope="module")
def server() -> Iterator[Served]:
    with serving("[resources]\ndb = 1\n", {"flows.py": FLOWS, "rerun.py": RERUN}) as server:
        yield server


def kill_engine_of(served: Served, run: int) -> float:
    """kill -9; gives the time of it."""
    pid, at = served.api.engine_of(run)["pid"], time.time()
    os.kill(pid, signal.SIGKILL)
    return at


def stored_at(served: Served, run: int, state: str) -> float:
    """When the run last came to a state."""
    return [event["at"] for event in served.api.events(run) if event["state"] == state and not event["task_id"]][-1]


def test_a1_a_killed_holder_frees_its_units_and_a_waiting_run_starts(served: Served) -> None:
    api, gates = served.api, served.gates
    holder, waiter = api.hold("holder", resources={"db": 1}), api.hold("waiter", resources={"db": 1})
    gates.wait_for("holder")
    [named] = api.why(waiter)["waiting"][0]["blocked_on"][0]["holders"]
    assert (named["run_id"], named["since"]) == (holder, stored_at(served, holder, "Pending"))
    killed_at = kill_engine_of(served, holder)
    gates.wait_for("waiter")
    crashed = api.run(holder)
    assert (crashed["state"], crashed["message"]) == ("Crashed", "engine process ended by signal 9")
    crashed_at = stored_at(served, holder, "Crashed")
    assert crashed_at - killed_at < 5
    # In the very step that ended the one the other was admitted.
    assert 0 <= stored_at(served, waiter, "Pending") - crashed_at < 1
    assert [holder["run_id"] for holder in api.resource("db")["holders"]] == [waiter]
    gates.let("waiter")
    api.completed(waiter)


def test_a1_a_killed_run_gives_back_what_its_task_held(served: Served) -> None:
    api, gates = served.api, served.gates
    holder, waiter = api.calls("holder", {"db": 1}), api.calls("waiter", {"db": 1})
    gates.wait_for("holder")
    api.waiting_task(waiter)
    kill_engine_of(served, holder)
    gates.let("waiter")
    api.completed(waiter)
    assert api.run(holder)["state"] == "Crashed"
    [lost] = api.tasks(holder)
    assert lost["state"] == "Crashed"
    assert lost["ended_at"] <= api.tasks(waiter)[0]["started_at"]


def test_a1_a_crashed_run_is_rerun_from_its_old_place_as_often_as_it_may(served: Served) -> None:
    api, gates = served.api, served.gates
    run, *others = api.submit("stubborn")["id"], *(api.hold(name, resources={"db": 1}) for name in ("next", "last"))
    gates.wait_for("stubborn")
    kill_engine_of(served, run)
    # The rerun goes before the two that waited for what it held.
    eventually(lambda: gates.arrivals.count("stubborn") == 2, "the rerun to begin")
    again = api.in_state(run, "Running")
    assert again["attempt"] == 2 and [api.run(other)["state"] for other in others] == ["AwaitingResource"] * 2
    kill_engine_of(served, run)
    gates.let("next", "last")
    api.completed(*others)
    ended = api.run(run)
    assert (ended["state"], ended["attempt"], ended["message"]) == ("Crashed", 2, "engine process ended by signal 9")
    rerun = ["Waiting", "Pending", "Running"]
    assert api.states(run) == [*rerun, *rerun, "Crashed"]
    reasons = [event["reason"] for event in api.events(run) if event["state"] == "Waiting"]
    assert reasons[1] == "crashed, to be run again: engine process ended by signal 9"


def test_a1_a_rerun_that_returns_is_completed(served: Served) -> None:
    api, gates = served.api, served.gates
    run = api.submit("stubborn")["id"]
    gates.wait_for("stubborn")
    kill_engine_of(served, run)
    gates.wait_gone("stubborn")
    gates.let("stubborn")
    assert api.completed(run) == ["stubborn"]


def test_a1_a_body_that_began_is_not_begun_again_unasked(served: Served) -> None:
    api, gates = served.api, served.gates
    names = [f"began {number}" for number in range(10)]
    for name in names:
        run = api.hold(name)
        gates.wait_for(name)
        # However early the body is lost, it is known by then that it executes.
        kill_engine_of(served, run)
        crashed = api.in_state(run, "Crashed")
        assert (crashed["attempt"], crashed["message"]) == (1, "engine process ended by signal 9")
    assert [name for name in gates.arrivals if name in names] == names


def test_a1_an_engine_that_hangs_is_killed_when_its_lease_has_lapsed(served: Served) -> None:
    api, gates = served.api, served.gates
    run, waiter = api.hold("hanging", resources={"db": 1}), api.hold("waiter", resources={"db": 1})
    gates.wait_for("hanging")
    os.kill(api.engine_of(run)["pid"], signal.SIGSTOP)
    gates.let("waiter")
    api.completed(waiter)
    crashed = api.run(run)
    assert (crashed["state"], crashed["message"]) == ("Crashed", "no heartbeat for 15 s")
    # It was reaped before its units went on.
    gates.wait_gone("hanging")


def test_a1_what_the_body_started_ends_with_its_engine(served: Served) -> None:
    api, gates = served.api, served.gates
    run = api.submit("starts_a_child")["id"]
    gates.wait_for("child")
    kill_engine_of(served, run)
    api.in_state(run, "Crashed")
    gates.wait_gone("child")


def test_a1_an_engine_that_ends_by_itself_crashes_its_run(served: Served) -> None:
    api, gates = served.api, served.gates
    run = api.hold("holder", resources={"db": 1})
    gates.wait_for("holder")
    os.kill(api.engine_of(run)["pid"], signal.SIGTERM)
    assert "signal 15" in api.in_state(run, "Crashed")["message"]
    assert api.resource("db")["used"] == 0


def test_a3_every_unit_has_a_holder_whatever_happens(served: Served) -> None:
    api, gates = served.api, served.gates
    names = [f"turn {number}" for number in range(12)]
    runs = [api.hold(name, resources={"db": 1}) for name in names]
    for number, (name, run) in enumerate(zip(names, runs, strict=True)):
        gates.wait_for(name)
        detail = api.resource("db")
        assert (detail["used"], [holder["run_id"] for holder in detail["holders"]]) == (1, [run])
        if number % 3 == 0:
            gates.let(name)
        elif number % 3 == 1:
            api.cancel(run)
        else:
            kill_engine_of(served, run)
    eventually(lambda: api.resource("db")["used"] == 0, "all units to come back")
    assert [api.run(run)["state"] for run in runs] == ["Completed", "Cancelled", "Crashed"] * 4
