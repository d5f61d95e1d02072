"""Flows and tasks that correct token buckets, and flows that are called in runs."""

from collections.abc import Iterator

import pytest
from served_home import FLOWS, Served, serving

MORE = """
import mirab
from mirab import flow, task
from gate import hold as wait_at


@task(resources={"api": 6})
def pay(actual: int) -> None:
    mirab.settle("api", actual)


@flow
def pays(actual: int) -> None:
    pay(actual)


@task
def inner(actual: int) -> None:
    mirab.settle("mail", actual)


@flow(resources={"mail": 1})
def pays_for_its_run(actual: int) -> None:
    inner(actual)


@flow
def took_none() -> None:
    mirab.settle("api", 1)


@flow
def cools(seconds: float) -> None:
    mirab.cooldown("calm", seconds)


@flow
def pauses_a_semaphore() -> None:
    mirab.cooldown("db", 1)


@flow(max_concurrent=1, resources={"db": 1})
def single(name: str) -> str:
    return wait_at(name)


@flow
def outer(name: str) -> str:
    return single(name)


@flow(resources={"db": 1})
def covers(name: str) -> str:
    return single(name)
"""
CONFIG = """
[resources]
db = 2
api = { kind = "token_bucket", rate = 0.001, burst = 10 }
mail = { kind = "token_bucket", rate = 0.001, burst = 10 }
calm = { kind = "token_bucket", rate = 0.001, burst = 10 }
"""


@pytest.fixture(scope="module")
def server() -> Iterator[Served]:
    with serving(CONFIG, {"flows.py": FLOWS, "more.py": MORE}) as server:
        yield server


def test_a_task_settles_what_it_took(served: Served) -> None:
    api = served.api
    api.completed(api.submit("pays", {"actual": 2})["id"])
    assert api.resource("api")["free"] == 8


def test_a_task_settles_what_its_run_took(served: Served) -> None:
    api = served.api
    api.completed(api.submit("pays_for_its_run", {"actual": 4})["id"])
    assert api.resource("mail")["free"] == 6


def test_settling_what_nobody_took_is_an_error_of_the_flow(served: Served) -> None:
    run = served.api.in_state(served.api.submit("took_none")["id"], "Failed")
    assert run["error"]["type"] == "InvalidResource" and "took no tokens" in run["error"]["message"]


def test_nothing_starts_while_a_bucket_cools(served: Served) -> None:
    api = served.api
    api.completed(api.submit("cools", {"seconds": 3600})["id"])
    waiting = api.submit("quick", resources={"calm": 1})
    assert waiting["state"] == "AwaitingResource"
    api.cancel(waiting["id"])
    run = api.in_state(api.submit("pauses_a_semaphore")["id"], "Failed")
    assert "only a token bucket can cool down" in run["error"]["message"]


def test_a_flow_that_is_called_in_a_run_counts_for_its_cap(served: Served) -> None:
    api, gates = served.api, served.gates
    first = api.submit("single", {"name": "first"})["id"]
    gates.wait_for("first")
    second = api.submit("outer", {"name": "second"})["id"]
    row = api.waiting_task(second)
    project = api.run(second)["project"]
    assert [blocker["resource"] for blocker in row["blocked_on"]] == [f"flow:{project}/single"]
    gates.let("first", "second")
    assert api.completed(first, second) == ["first", "second"]


def test_what_the_run_holds_covers_a_flow_that_it_calls(served: Served) -> None:
    api, gates = served.api, served.gates
    run = api.submit("covers", {"name": "covered"})["id"]
    gates.wait_for("covered")
    assert api.resource("db")["used"] == 1
    gates.let("covered")
    api.completed(run)


def test_e14_a_priority_is_changed_while_its_run_waits(served: Served) -> None:
    api, gates = served.api, served.gates
    first = api.hold("holder", resources={"db": 2})
    gates.wait_for("holder")
    runs = [api.hold(name, resources={"db": 2}) for name in ("early", "late")]
    assert served.json("priority", str(runs[1]), "5")["priority"] == 5
    gates.let("holder", "late", "early")
    api.completed(first, *runs)
    assert api.run(runs[1])["started_at"] < api.run(runs[0])["started_at"]
    refused = served.cli("priority", str(first), "1")
    assert refused.returncode == 4 and "error[RunEnded]" in refused.stderr
