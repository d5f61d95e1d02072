"""A cancel, wherever the run stands."""

import os
import signal
from collections.abc import Iterator

import pytest
from served_home import FLOWS, Served, eventually, serving

BODIES = """
import time

import mirab
from gate import hold as wait_at
from mirab import flow, task


@flow(resources={"db": 1})
def sleeps() -> None:
    wait_at("body")
    time.sleep(600)


@flow(resources={"db": 1})
def loops() -> None:
    wait_at("body")
    while True:
        pass


@flow(resources={"db": 1})
async def awaits() -> None:
    import asyncio

    wait_at("body")
    await asyncio.sleep(600)


@task
def slow() -> None:
    time.sleep(600)


@flow(resources={"db": 1})
def calls_a_task_that_sleeps() -> None:
    wait_at("body")
    slow()


@flow(resources={"db": 1})
def cleans_up() -> None:
    try:
        wait_at("body")
    except mirab.Cancelled:
        wait_at("cleaning")


@flow(resources={"db": 1})
def is_deaf() -> None:
    wait_at("body")
    while True:
        try:
            time.sleep(600)
        except BaseException:
            pass
"""


@pytest.fixture(scope="module")
def server() -> Iterator[Served]:
    with serving("[resources]\ndb = 1\n", {"flows.py": FLOWS, "bodies.py": BODIES}) as server:
        yield server


def test_a9_a_cancelled_holder_lets_the_next_one_start(served: Served) -> None:
    api, gates = served.api, served.gates
    holder, waiter = api.hold("holder", resources={"db": 1}), api.hold("waiter", resources={"db": 1})
    gates.wait_for("holder")
    assert api.cancel(holder)["state"] == "Cancelling"
    ended = api.in_state(holder, "Cancelled")
    gates.wait_for("waiter")
    admitted = next(event["at"] for event in api.events(waiter) if event["state"] == "Pending")
    assert 0 <= admitted - ended["ended_at"] < 1
    assert api.states(holder) == ["Waiting", "Pending", "Running", "Cancelling", "Cancelled"]
    gates.let("waiter")
    api.completed(waiter)


def test_a9_a_cancelled_waiter_ends_at_once_and_hides_nobody(served: Served) -> None:
    api, gates = served.api, served.gates
    holder, waiter, last = (api.hold(name, resources={"db": 1}) for name in ("holder", "waiter", "last"))
    gates.wait_for("holder")
    assert api.cancel(waiter)["state"] == "Cancelled"
    assert api.cancel(waiter)["state"] == "Cancelled"
    assert api.resource("db")["first_waiters"] == [last]
    gates.let("holder", "last")
    api.completed(holder, last)
    assert "waiter" not in gates.held() and api.run(waiter)["attempt"] == 0


def test_a9_a_run_cancelled_while_its_task_waits_leaves_the_line(served: Served) -> None:
    api, gates = served.api, served.gates
    holder = api.hold("holder", resources={"db": 1})
    gates.wait_for("holder")
    waiter = api.calls("never", {"db": 1})
    api.waiting_task(waiter)
    api.cancel(waiter)
    api.in_state(waiter, "Cancelled")
    assert [task["state"] for task in api.tasks(waiter)] == ["Cancelled"]
    assert api.resource("db")["waiters"] == 0
    gates.let("holder")
    api.completed(holder)


def test_a9_a_pending_run_is_cancelled_and_its_engine_does_other_work() -> None:
    with serving("[resources]\ndb = 1\n", engines=1) as served:
        api, gates = served.api, served.gates
        api.completed(api.submit("quick")["id"])
        # The only engine is idle. While it is stopped it is offered runs, but takes none up.
        [engine] = api.queue()["engines"]
        os.kill(engine["pid"], signal.SIGSTOP)
        try:
            pending = api.submit("hold", {"name": "never"}, resources={"db": 1})
            assert pending["state"] == "Pending" and api.resource("db")["used"] == 1
            next_one = api.submit("hold", {"name": "next"}, resources={"db": 1})
            assert next_one["state"] == "AwaitingResource"
            assert api.cancel(pending["id"])["state"] == "Cancelled"
            assert api.resource("db")["holders"][0]["run_id"] == next_one["id"]
        finally:
            os.kill(engine["pid"], signal.SIGCONT)
        gates.let("next")
        assert api.completed(next_one["id"]) == ["next"]
        assert gates.arrivals == ["next"] and api.run(pending["id"])["attempt"] == 0


@pytest.mark.parametrize("flow", ["sleeps", "loops", "awaits", "calls_a_task_that_sleeps"])
def test_a_cancel_reaches_the_body(served: Served, flow: str) -> None:
    api, gates = served.api, served.gates
    run = api.submit(flow)["id"]
    gates.let("body")
    if flow == "calls_a_task_that_sleeps":
        eventually(lambda: [task["state"] for task in api.tasks(run)] == ["Running"], "the task to run")
    engine = api.engine_of(run)
    api.cancel(run)
    ended = api.in_state(run, "Cancelled")
    assert ended["message"] and api.resource("db")["used"] == 0
    # The body was asked, not killed: the engine lives and goes on with other work.
    assert engine["pid"] in [each["pid"] for each in api.queue()["engines"]]


def test_a_body_may_clean_up_and_holds_its_units_until_it_has(served: Served) -> None:
    api, gates = served.api, served.gates
    run = api.submit("cleans_up")["id"]
    gates.wait_for("body")
    api.cancel(run)
    gates.wait_for("cleaning")
    assert api.run(run)["state"] == "Cancelling" and api.resource("db")["used"] == 1
    gates.let("cleaning")
    api.in_state(run, "Cancelled")


def test_a_body_that_does_not_listen_is_killed_after_its_grace(served: Served) -> None:
    api, gates = served.api, served.gates
    run, waiter = api.submit("is_deaf")["id"], api.hold("waiter", resources={"db": 1})
    gates.let("body")
    engine = api.engine_of(run)
    api.cancel(run)
    gates.let("waiter")
    api.completed(waiter)
    assert api.run(run)["state"] == "Cancelled"
    assert engine["pid"] not in served.engines()
    asked, ended = (event["at"] for event in api.events(run) if event["state"] in ("Cancelling", "Cancelled"))
    assert ended - asked > 9.5


def test_a_cancel_of_no_run_and_of_an_ended_one(served: Served) -> None:
    api = served.api
    run = api.submit("quick")["id"]
    api.completed(run)
    assert api.cancel(run)["state"] == "Completed"
    assert api.run(run)["state"] == "Completed"
