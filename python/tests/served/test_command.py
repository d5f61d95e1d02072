"""The command line on a real server, for people and with --json; and its exit codes."""

import json
import signal
from collections.abc import Iterator

import pytest
from served_home import FLOWS, LIMIT_S, Served, eventually, serving

RAISES = "from mirab import flow\n\n\n@flow\ndef raises(rows: int = 1) -> None:\n    raise LookupError('no rows')\n"


@pytest.fixture(scope="module")
def server() -> Iterator[Served]:
    with serving("[resources]\ndb = 1\n", {"flows.py": FLOWS, "raises.py": RAISES}) as server:
        yield server


@pytest.fixture
def held(served: Served) -> Iterator[tuple[int, int]]:
    """A run that holds db, and one that waits for it."""
    api = served.api
    holder, waiter = (api.hold(name, resources={"db": 1}) for name in ("holder", "waiter"))
    served.gates.wait_for("holder")
    yield holder, waiter
    served.gates.let("holder", "waiter")
    api.completed(holder, waiter)


def ok(served: Served, *args: str) -> str:
    ended = served.cli(*args)
    assert (ended.returncode, ended.stderr) == (0, "")
    return ended.stdout


def test_serve_says_where_it_answers(served: Served) -> None:
    assert served.said[-1].startswith(f"serving shop at {served.api.url} (home {served.home})")


def test_serve_json_says_the_discovery_file() -> None:
    with serving("", start=False) as served:
        process = served.process = served.spawn("serve", str(served.folder), "--port", "0", "--json")
        assert process.stdout is not None
        said = json.loads(process.stdout.readline())
        assert said == json.loads((served.home / "server.json").read_text()) and said["pid"] == process.pid
        assert served.end(signal.SIGINT) == 0


def test_submit_puts_a_run_in_line(served: Served) -> None:
    said = ok(served, "submit", "quick", "--param", "name=x")
    [run] = served.api.get("/runs?limit=1")["runs"]
    assert said.startswith(f"run {run['id']} ")
    assert served.api.completed(run["id"]) == ["x"]


def test_submit_wait_follows_the_run_to_its_end(served: Served) -> None:
    with served.spawn("submit", "hold", "--param", "name=followed", "--wait") as following:
        served.gates.let("followed")
        said, _ = following.communicate(timeout=LIMIT_S)
    assert following.returncode == 0 and " Completed\n" in said


def test_submit_wait_tells_a_failure_by_its_exit_code(served: Served) -> None:
    ended = served.cli("submit", "raises", "--wait")
    assert ended.returncode == 1 and " Failed: LookupError: no rows\n" in ended.stdout
    run = served.json("submit", "quick", "-p", "name=x", "--priority", "-3", "--tag", "t", "--wait")
    assert (run["state"], run["result"], run["priority"], run["tags"]) == ("Completed", "x", -3, ["t"])


def test_submit_wait_goes_on_over_a_restart_of_the_server(served: Served) -> None:
    with served.spawn("--json", "submit", "hold", "-p", "name=followed", "--wait") as following:
        served.gates.wait_for("followed")
        served.restart()
        served.gates.let("followed")
        said, _ = following.communicate(timeout=LIMIT_S)
    assert following.returncode == 0 and json.loads(said)["state"] == "Completed"


def test_ps_lists_runs_newest_first(served: Served, held: tuple[int, int]) -> None:
    lines = ok(served, "ps", "--limit", "2").splitlines()
    assert [line.split()[:3] for line in lines[:3]] == [
        ["ID", "FLOW", "STATE"],
        [str(held[1]), "shop/hold", "AwaitingResource"],
        [str(held[0]), "shop/hold", "Running"],
    ]
    listed = served.json("ps", "--state", "running", "--flow", "shop/hold")
    assert [run["id"] for run in listed["runs"]] == [held[0]]


def test_queue_shows_what_waits_and_why_and_the_engines(served: Served, held: tuple[int, int]) -> None:
    said = ok(served, "queue")
    assert f"{held[1]}  run shop/hold" in said
    assert f"needs 1 of `db`, 0 of 1 free: held by run {held[0]} (hold) for " in said
    assert "busy" in said and "engine-" in said
    queue = served.json("queue")
    assert [row["id"] for row in queue["waiting"]] == [held[1]] and queue["engines"]


def test_why_names_need_free_holders_and_since_when(served: Served, held: tuple[int, int]) -> None:
    lines = ok(served, "why", str(held[1])).splitlines()
    assert lines[0].startswith(
        f"run {held[1]} is AwaitingResource: needs 1 of `db`, 0 of 1 free: held by run {held[0]}"
    )
    assert f"held by run {held[0]} (hold): 1 unit, taken " in "\n".join(lines)
    assert served.json("why", str(held[1]))["waiting"][0]["blocked_on"][0]["holders_total"] == 1


def test_resources_lists_totals_use_and_waiters(served: Served, held: tuple[int, int]) -> None:
    rows = [line.split() for line in ok(served, "resources").splitlines()]
    assert next(row for row in rows if row[0] == "db")[:6] == ["db", "semaphore", "1", "1", "0", "1"]
    said = ok(served, "resources", "db")
    assert f"held by   run {held[0]} (hold): 1 unit, taken " in said
    assert f"waiters   1, first in line: {held[1]}" in said
    assert {each["name"] for each in served.json("resources")["resources"]} >= {"db", "pool:default"}


def test_flows_lists_what_is_served(served: Served) -> None:
    assert "shop/hold" in ok(served, "flows")
    assert {flow["name"] for flow in served.json("flows")["flows"]} >= {"hold", "raises"}


def test_cancel_ends_a_waiting_run_and_an_executing_one(served: Served) -> None:
    api = served.api
    holder, waiter = (api.hold(name, resources={"db": 1}) for name in ("holder", "waiter"))
    served.gates.wait_for("holder")
    said = ok(served, "cancel", str(waiter), str(holder)).splitlines()
    assert said[0].startswith(f"run {waiter} Cancelled") and said[1].startswith(f"run {holder} Cancelling")
    api.in_state(holder, "Cancelled")
    assert served.json("cancel", str(holder))["state"] == "Cancelled"


def test_run_executes_here_and_now_without_the_server(served: Served) -> None:
    before = served.api.get("/runs")["runs"]
    assert ok(served, "run", "flows.py:quick", "--param", "name=x") == '"x"\n'
    assert served.cli("run", "raises.py:raises").returncode == 1
    assert served.api.get("/runs")["runs"] == before


@pytest.mark.parametrize(
    ("args", "code", "said"),
    [
        (["quue"], 2, "queue"),
        (["submit"], 2, "FLOW"),
        (["submit", "quick", "-p", "name"], 2, "NAME=VALUE"),
        (["submit", "quick", "-p", "name=a", "-p", "name=b"], 2, "given twice"),
        (["run", "nothing.py:quick"], 2, "is not a file"),
        (["submit", "quik"], 4, "error[UnknownFlow]"),
        (["submit", "quick", "--resource", "dbb=1"], 4, "error[UnknownResource]"),
        (["submit", "quick", "--resource", "db=9"], 4, "error[ResourceExceedsCapacity]"),
        (["submit", "quick", "--resource", "db=0"], 4, "error[InvalidResource]"),
        (["submit", "raises", "-p", "rows=many"], 4, "error[InvalidParams]"),
        (["why", "4711"], 4, "error[UnknownRun]"),
        (["cancel", "4711"], 4, "error[UnknownRun]"),
        (["resources", "dbb"], 4, "error[NotFound]"),
    ],
)
def test_a_refusal_has_its_exit_code_and_says_why(served: Served, args: list[str], code: int, said: str) -> None:
    ended = served.cli(*args)
    assert (ended.returncode, ended.stdout) == (code, "")
    assert said in ended.stderr


@pytest.mark.parametrize("args", [["ps"], ["queue"], ["resources"], ["flows"], ["submit", "quick"], ["cancel", "1"]])
def test_without_a_server_the_exit_code_is_three(args: list[str]) -> None:
    with serving("", start=False) as served:
        ended = served.cli(*args)
        assert ended.returncode == 3 and "mirab serve" in ended.stderr


def test_a_server_that_was_killed_is_told_from_one_that_never_was() -> None:
    with serving("") as served:
        served.kill()
        ended = served.cli("ps")
        assert ended.returncode == 3 and "does not answer" in ended.stderr
        eventually(lambda: served.start(), "a new server on the same home")
        assert served.cli("ps").returncode == 0
