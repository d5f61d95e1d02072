"""E7: names of any kind work everywhere: in the configuration, in requests, in paths and on the command line."""

import json
from collections.abc import Iterator

import pytest
from served_home import Served, serving

NAMES = [
    "a/b",
    "my/private/repo-master",
    "a b",
    "%2F",
    "100%",
    "a&b=c;d,e",
    "<b>",
    'say "so"',
    "it's",
    "back\\slash",
    "#1",
    "?a=b",
    "a+b",
    "ünïcode",
    "日本",
    "🙂",
    "شارة",
    ".",
    "..",
    "../db",
    "-x",
    "--json",
    "$HOME",
    "x" * 200,
    "日" * 200,
]
# The same letter in two ways: as one character, and as a letter with a mark.
COMPOSED, DECOMPOSED = "caf\u00e9", "cafe\u0301"


@pytest.fixture(scope="module")
def server() -> Iterator[Served]:
    names = [*NAMES, DECOMPOSED]
    with serving(
        "[resources]\n" + "".join(f"{json.dumps(name, ensure_ascii=False)} = 1\n" for name in names)
    ) as server:
        yield server


@pytest.mark.parametrize("name", NAMES)
def test_e7_an_odd_name_is_created_read_and_used(served: Served, name: str) -> None:
    api, gates = served.api, served.gates
    run, waiting = (api.hold(gate, resources={name: 1}) for gate in ("used", "waits"))
    gates.wait_for("used")
    detail = api.resource(name)
    assert (detail["name"], detail["used"], detail["first_waiters"]) == (name, 1, [waiting])
    assert [holder["run_id"] for holder in detail["holders"]] == [run]
    assert api.resources()[name]["used"] == 1
    assert api.why(waiting)["waiting"][0]["blocked_on"][0]["resource"] == name
    shown = served.json("resources", "--", name)
    assert (shown["name"], shown["used"]) == (name, 1)
    gates.let("used", "waits")
    assert api.completed(run, waiting) == ["used", "waits"]
    assert api.resource(name)["used"] == 0


def test_e7_a_name_is_the_same_however_its_letters_are_composed(served: Served) -> None:
    api, gates = served.api, served.gates
    assert COMPOSED != DECOMPOSED
    runs = [api.hold("one", resources={COMPOSED: 1}), api.hold("two", resources={DECOMPOSED: 1})]
    gates.wait_for("one")
    assert api.run(runs[1])["state"] == "AwaitingResource"
    for name in (COMPOSED, DECOMPOSED, f" {COMPOSED} "):
        assert (api.resource(name)["name"], api.resource(name)["used"]) == (COMPOSED, 1)
    gates.let("one", "two")
    api.completed(*runs)


def test_e7_a_run_is_submitted_with_an_odd_name_on_the_command_line(served: Served) -> None:
    for name in ("a/b", "a&b=c;d,e", "🙂"):
        run = served.json("submit", "quick", "--resource", f"{name}=1", "--wait")
        assert (run["state"], run["needs"][name]) == ("Completed", 1)


def test_a18_an_odd_name_that_was_held_over_a_restart_is_free_afterwards() -> None:
    name = "my/private/repo-master"
    with serving(f'[resources]\n"{name}" = 1\n') as served:
        run = served.api.hold("holder", resources={name: 1})
        served.gates.wait_for("holder")
        api = served.restart()
        assert api.resource(name)["used"] == 1
        served.gates.let("holder")
        api.completed(run)
        assert api.resource(name)["used"] == 0
