"""Runs and tasks that share limits: who waits, for whom, and in which order they go."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from served_home import Refused, Served, eventually, most_at_once, serving

RATE, BURST = 20.0, 3
CONFIG = f"""
[resources]
db = 1
spare = 1
pair = 2
wide = 3
closed = 1
slow = {{ kind = "token_bucket", rate = {RATE}, burst = {BURST} }}
trickle = {{ kind = "token_bucket", rate = 0.001, burst = 1 }}
"api:*" = 1
"tag:heavy" = 1
"""


@pytest.fixture(scope="module")
def server() -> Iterator[Served]:
    with serving(CONFIG) as server:
        yield server


def test_k1_r8_a_waiting_task_names_its_holder_and_since_when(served: Served) -> None:
    api, gates = served.api, served.gates
    first = api.calls("first", {"db": 1})
    gates.wait_for("first")
    second = api.calls("second", {"db": 1})
    row = api.waiting_task(second)
    [holding] = api.tasks(first)
    holder = {"id": holding["id"], "kind": "task", "run_id": first, "name": "call/work", "units": 1}
    holder["since"] = holding["started_at"]
    [blocker] = row["blocked_on"]
    assert (row["state"], row["name"], row["run_id"]) == ("AwaitingResource", "call/work", second)
    assert (blocker["resource"], blocker["need"], blocker["free"], blocker["capacity"]) == ("db", 1, 0, 1)
    assert (blocker["holders"], blocker["holders_total"]) == ([holder], 1)
    assert f"held by task {holding['id']} (call/work) of run {first}" in row["reason"]
    why = api.why(second)
    assert why["state"] == "Running" and row["reason"].split(" for ")[0] in why["reason"]
    assert [waiting["id"] for waiting in why["waiting"]] == [row["id"]]
    detail = api.resource("db")
    assert (detail["used"], detail["free"], detail["waiters"]) == (1, 0, 1)
    assert (detail["holders"], detail["first_waiters"]) == ([holder], [row["id"]])
    short = [event for event in api.events(second) if event["kind"] == "resource.exhausted"]
    assert [(event["task_id"], event["reason"]) for event in short] == [(row["id"], "needs 1 of `db`, 0 free")]
    gates.let("first", "second")
    assert api.completed(first, second) == ["first", "second"]
    [followed] = api.tasks(second)
    ended = api.tasks(first)[0]["ended_at"]
    assert row["since"] < ended <= followed["started_at"]


def test_k1_every_shortage_is_named_not_only_the_first(served: Served) -> None:
    api, gates = served.api, served.gates
    holders = [api.hold("one", resources={"db": 1}), api.hold("other", resources={"spare": 1})]
    gates.wait_for("one", "other")
    waiting = api.hold("both", resources={"db": 1, "spare": 1})
    [row] = api.why(waiting)["waiting"]
    named = {blocker["resource"]: blocker["holders"][0]["run_id"] for blocker in row["blocked_on"]}
    assert named == {"db": holders[0], "spare": holders[1]}
    gates.let("one")
    api.completed(holders[0])
    # It has taken nothing of what it waits for.
    assert api.resource("db")["used"] == 0
    gates.let("other", "both")
    api.completed(holders[1], waiting)


def test_k2_a_run_that_waits_for_a_limit_is_awaiting_resource(served: Served) -> None:
    api, gates = served.api, served.gates
    first = api.hold("holder", resources={"db": 1})
    gates.wait_for("holder")
    second = api.submit("hold", {"name": "waiter"}, resources={"db": 1})
    assert (second["state"], second["started_at"]) == ("AwaitingResource", None)
    assert api.get("/runs?state=AwaitingResource")["runs"][0]["id"] == second["id"]
    gates.let("holder", "waiter")
    api.completed(first, second["id"])
    # The wait is no part of the run's duration.
    assert api.run(second["id"])["started_at"] >= api.run(first)["ended_at"]


def test_fifty_hand_overs_keep_the_order_of_call(served: Served) -> None:
    api = served.api
    runs = [api.submit("fan", {"name": name, "count": 26, "wants": {"db": 1}})["id"] for name in "ab"]
    api.completed(*runs)
    tasks = [task for run in runs for task in api.tasks(run)]
    assert len(tasks) == 52
    assert most_at_once([(task["started_at"], task["ended_at"]) for task in tasks]) == 1
    for run in runs:
        starts = [task["started_at"] for task in sorted(api.tasks(run), key=lambda task: task["id"])]
        assert starts == sorted(starts)


def test_a10_r6_a_task_shares_what_its_run_holds(served: Served) -> None:
    api, gates = served.api, served.gates
    run = api.calls("inner", {"db": 1}, resources={"db": 1})
    gates.wait_for("inner")
    assert [holder["run_id"] for holder in api.resource("db")["holders"]] == [run]
    assert api.resource("db")["used"] == 1
    gates.let("inner")
    assert api.completed(run) == ["inner"]


def test_a10_a_task_that_wants_more_than_its_run_holds_fails_at_once(served: Served) -> None:
    api = served.api
    run = api.in_state(api.calls("never", {"pair": 2}, resources={"pair": 1}), "Failed")
    assert run["error"]["type"] == "ResourceExceedsCapacity"


def test_b8_who_waits_for_tokens_holds_nothing(served: Served) -> None:
    api, gates = served.api, served.gates
    api.completed(api.submit("quick", resources={"trickle": 1})["id"])
    waiting = api.hold("never", resources={"spare": 1, "trickle": 1})
    assert [blocker["resource"] for blocker in api.why(waiting)["waiting"][0]["blocked_on"]] == ["trickle"]
    assert api.resource("spare")["used"] == 0
    other = api.hold("other", resources={"spare": 1})
    gates.let("other")
    api.completed(other)
    assert api.cancel(waiting)["state"] == "Cancelled"


def test_b10_two_that_want_all_of_it_alternate(served: Served) -> None:
    api, gates = served.api, served.gates
    names = [f"{side}{turn}" for turn in range(3) for side in "ab"]
    runs = [api.hold(name, resources={"pair": 2}) for name in names]
    for name, run in zip(names, runs, strict=True):
        gates.wait_for(name)
        detail = api.resource("pair")
        assert (detail["used"], [holder["run_id"] for holder in detail["holders"]]) == (2, [run])
        gates.let(name)
    api.completed(*runs)
    assert [name for name in gates.arrivals if name in names] == names


def test_c7_many_that_wait_for_one_limit_hide_nobody(served: Served) -> None:
    api, gates = served.api, served.gates
    keeper = api.hold("keeper", resources={"closed": 1})
    gates.wait_for("keeper")
    with ThreadPoolExecutor(8) as callers:
        waiting = list(callers.map(lambda _: api.submit("quick", resources={"closed": 1})["id"], range(400)))
        free = api.submit("quick", {"name": "free"})
        assert free["state"] == "Pending"
        assert api.completed(free["id"]) == ["free"]
        assert api.queue()["total"] == api.resource("closed")["waiters"] == 400
        list(callers.map(api.cancel, waiting))
    gates.let("keeper")
    api.completed(keeper)


def test_i3_each_of_twenty_waiters_is_handed_the_unit(served: Served) -> None:
    api, gates = served.api, served.gates
    gates.open("passes")
    runs = [api.hold("keeper", resources={"db": 1})]
    gates.wait_for("keeper")
    runs += [api.hold("passes", resources={"db": 1}) for _ in range(20)]
    gates.let("keeper")
    api.completed(*runs)
    ends = [api.run(run)["ended_at"] for run in runs]
    admitted = [next(event["at"] for event in api.events(run) if event["state"] == "Pending") for run in runs]
    gaps = [start - end for end, start in zip(ends, admitted[1:], strict=False)]
    # Nothing polls: the unit goes on in the very step in which it comes back.
    assert all(0 <= gap < 1 for gap in gaps), gaps


def test_a_tag_takes_a_unit_of_its_limit(served: Served) -> None:
    api, gates = served.api, served.gates
    first = api.hold("heavy one", tags=["heavy"])
    gates.wait_for("heavy one")
    second, light = api.hold("heavy two", tags=["heavy", "x"]), api.hold("light", tags=["x"])
    gates.let("light")
    assert [blocker["resource"] for blocker in api.why(second)["waiting"][0]["blocked_on"]] == ["tag:heavy"]
    gates.let("heavy one", "heavy two")
    api.completed(first, second, light)
    with pytest.raises(Refused, match="InvalidResource"):
        api.hold("never", resources={"tag:heavy": 1})


def test_a_pattern_gives_each_name_its_own_limit(served: Served) -> None:
    api, gates = served.api, served.gates
    runs = [api.hold(f"tenant {name}", resources={f"api:{name}": 1}) for name in "xy"]
    gates.wait_for("tenant x", "tenant y")
    again = api.hold("again", resources={"api:x": 1})
    assert api.why(again)["waiting"][0]["blocked_on"][0]["holders"][0]["run_id"] == runs[0]
    detail = api.resource("api:x")
    assert (detail["used"], detail["declared_as"], detail["origin"]) == (1, "api:*", f"{served.folder}/mirab.toml:13")
    gates.let("tenant x", "tenant y", "again")
    api.completed(*runs, again)


def test_a_token_bucket_bounds_the_tasks_of_all_runs_together(served: Served) -> None:
    api = served.api
    runs = [api.submit("fan", {"name": name, "count": 8, "wants": {"slow": 1}})["id"] for name in "abc"]
    api.completed(*runs)
    starts = sorted(task["started_at"] for run in runs for task in api.tasks(run))
    assert len(starts) == 24
    for first, at in enumerate(starts):
        for last in range(first, len(starts)):
            # A microsecond is what rounding costs.
            assert last - first + 1 <= BURST + RATE * (starts[last] - at + 1e-6)
    # And nobody waited for long after there were tokens.
    assert starts[-1] - starts[0] < (24 - BURST) / RATE + 1


def test_a_map_is_never_above_its_limit(served: Served) -> None:
    api, gates = served.api, served.gates
    run = api.submit("spread", {"name": "mapped", "count": 12, "wants": {"wide": 1}})["id"]
    gates.wait_for(*["mapped"] * 3)
    eventually(lambda: api.resource("wide")["waiters"] == 9, "the other nine to wait")
    assert (gates.held().count("mapped"), api.resource("wide")["used"]) == (3, 3)
    gates.open("mapped")
    assert api.completed(run) == [12]
    assert most_at_once(spans(api.tasks(run))) == 3


def spans(tasks: list[dict[str, Any]]) -> list[tuple[float, float]]:
    return [(task["started_at"], task["ended_at"]) for task in tasks]
