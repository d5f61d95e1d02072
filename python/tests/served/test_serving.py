"""`mirab serve`: what keeps it from starting, further directories, and flows that change."""

import socket
from collections.abc import Iterator

import pytest
from served_home import FLOWS, Refused, Served, eventually, serving

OTHER = """
from gate import hold as wait_at
from mirab import flow


@flow(resources={"db": 1})
def other() -> str:
    return wait_at("other")
"""
DEPLOYED = """
from gate import hold as wait_at
from mirab import flow


@flow(resources={"db": %s})
def deployed() -> str:
    return wait_at("%s")
"""


@pytest.fixture(scope="module")
def server() -> Iterator[Served]:
    with serving("[resources]\ndb = 5\n", {"flows.py": FLOWS, "deployed.py": DEPLOYED % (1, "old")}) as server:
        yield server


@pytest.fixture
def idle() -> Iterator[Served]:
    """A folder that is not served yet."""
    with serving("", start=False) as served:
        yield served


@pytest.mark.parametrize(
    ("config", "line", "said"),
    [
        ("[resources]\ndb = 1\n\n[servr]\nport = 1\n", 4, 'unknown key "servr"'),
        ("[server]\nport = 0\nmax_engine = 2\n", 3, "did you mean max_engines?"),
        ("[server]\nport = 70000\n", 2, "from 0 to 65535"),
        ('[resources]\ndb = "four"\n', 2, 'resource "db"'),
        ("[resources]\ndb = -1\n", 2, 'resource "db"'),
        ("[resources]\ndb = 1\n\ndb = 2\n", 4, "duplicate key"),
        ('[resources]\ndb = 1\n" db" = 2\n', 3, 'resource "db" is declared twice, first at '),
        ('[resources]\napi = { kind = "token_bucket", rate = 0, burst = 1 }\n', 2, "rate"),
        ('[resources]\napi = { kind = "bucket", rate = 1, burst = 1 }\n', 2, '"token_bucket"'),
        ("[resources]\ngpu = { permits = 2 }\n", 2, "lacks kind"),
        ('[resources]\n"pool:default" = 2\n', 2, "pool:"),
        ('[resources]\n"" = 2\n', 2, "the name is empty"),
        ('[resources]\n"a\\nb" = 2\n', 2, "control character"),
        ("[resources]\ndb = \n", 2, "correct the TOML"),
        ("[server]\nmax_engines = 100000\n", 2, "on this machine"),
    ],
)
def test_a_bad_configuration_is_an_error_that_names_the_line(idle: Served, config: str, line: int, said: str) -> None:
    (idle.folder / "mirab.toml").write_text(config, encoding="utf-8")
    ended = idle.cli("serve", str(idle.folder), "--port", "0")
    assert (ended.returncode, ended.stdout) == (5, "")
    assert f"{idle.folder}/mirab.toml:{line}:" in ended.stderr and said in ended.stderr


def test_two_files_that_give_one_name_different_values_are_both_named(idle: Served) -> None:
    idle.home.mkdir()
    (idle.home / "mirab.toml").write_text("[resources]\ndb = 1\n", encoding="utf-8")
    (idle.folder / "mirab.toml").write_text("[resources]\n\ndb = 2\n", encoding="utf-8")
    ended = idle.cli("serve", str(idle.folder), "--port", "0")
    assert ended.returncode == 5
    assert f"{idle.folder}/mirab.toml:3" in ended.stderr and f"{idle.home}/mirab.toml:2" in ended.stderr


def test_a_port_in_use_is_an_error_that_names_it(idle: Served) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        ended = idle.cli("serve", str(idle.folder), "--port", str(port))
    assert ended.returncode == 5
    assert f"port {port} on 127.0.0.1 is in use" in ended.stderr and "--port" in ended.stderr


def test_two_folders_of_one_name_are_both_named(idle: Served) -> None:
    second = idle.home.parent / "else" / "shop"
    second.parent.mkdir()
    idle.write(second, {"other.py": OTHER})
    ended = idle.cli("serve", str(idle.folder), str(second), "--port", "0")
    assert ended.returncode == 5
    assert '"shop"' in ended.stderr and str(idle.folder) in ended.stderr and str(second) in ended.stderr


def test_a_directory_that_is_none_is_a_wrong_call(idle: Served) -> None:
    ended = idle.cli("serve", str(idle.folder / "nothing"), "--port", "0")
    assert ended.returncode == 2 and "is not a directory" in ended.stderr


def test_an_interpreter_without_the_package_is_a_wrong_set_up(idle: Served) -> None:
    ended = idle.cli("serve", str(idle.folder), "--port", "0", "--python", "/bin/false")
    assert ended.returncode == 5 and "/bin/false" in ended.stderr


def test_a_folder_without_flows_is_served(idle: Served) -> None:
    (idle.folder / "flows.py").unlink()
    api = idle.start()
    assert api.get("/flows")["flows"] == []


def test_a_second_serve_adds_its_directory_and_shares_the_limits(served: Served) -> None:
    api, gates = served.api, served.gates
    second = served.home.parent / "second"
    served.write(second, {"other.py": OTHER})
    added = served.cli("serve", str(second))
    assert added.returncode == 0 and added.stdout.startswith("added second to the server at ")
    assert [project["name"] for project in api.get("/flows")["projects"]] == ["second", "shop"]
    holder = api.hold("holder", resources={"db": 5})
    gates.wait_for("holder")
    waiting = api.submit("second/other")
    assert (waiting["state"], waiting["project"]) == ("AwaitingResource", "second")
    assert api.why(waiting["id"])["waiting"][0]["blocked_on"][0]["holders"][0]["run_id"] == holder
    gates.let("holder", "other")
    assert api.completed(holder, waiting["id"]) == ["holder", "other"]


def test_a_second_serve_with_late_flags_says_that_they_have_no_effect(served: Served) -> None:
    added = served.cli("serve", str(served.folder), "--port", "4747")
    assert added.returncode == 0 and "--port had no effect" in added.stderr


def test_a_second_serve_of_a_doubled_name_is_refused(served: Served) -> None:
    doubled = served.home.parent / "else" / "shop"
    doubled.parent.mkdir()
    served.write(doubled, {"other.py": OTHER})
    added = served.cli("serve", str(doubled))
    assert added.returncode == 4 and '"shop" is served already' in added.stderr
    with pytest.raises(Refused, match="InvalidConfig"):
        served.api.call("POST", "/projects", {"path": str(doubled)})


def test_a_second_serve_with_a_bad_configuration_is_refused(served: Served) -> None:
    third = served.home.parent / "third"
    served.write(third, {"mirab.toml": "[server]\nport = 1\n"})
    added = served.cli("serve", str(third))
    assert added.returncode == 4 and "mirab.toml:2" in added.stderr


def test_a_short_name_that_two_projects_have_must_be_said_in_full(served: Served) -> None:
    fourth = served.home.parent / "fourth"
    served.write(fourth, {"flows.py": FLOWS})
    assert served.cli("serve", str(fourth)).returncode == 0
    api = served.api
    with pytest.raises(Refused, match="fourth/quick, shop/quick") as refused:
        api.submit("quick")
    assert refused.value.code == "UnknownFlow"
    assert api.completed(api.submit("fourth/quick", {"name": "x"})["id"]) == ["x"]
    # The other tests of this server use the short names.
    (fourth / "flows.py").unlink()
    assert served.cli("serve", str(fourth)).returncode == 0


def test_a20_a_lease_keeps_its_units_when_its_flow_is_deployed_anew(served: Served) -> None:
    api, gates = served.api, served.gates
    first = api.submit("deployed")["id"]
    gates.wait_for("old")
    served.write(served.folder, {"deployed.py": DEPLOYED % (5, "changed")})
    assert served.cli("serve", str(served.folder)).returncode == 0
    assert api.get("/flows/deployed")["options"]["resources"] == {"db": 5}
    [holder] = api.resource("db")["holders"]
    assert (holder["run_id"], holder["units"], api.resource("db")["used"]) == (first, 1, 1)
    second = api.submit("deployed")["id"]
    [blocker] = api.why(second)["waiting"][0]["blocked_on"]
    assert (blocker["need"], blocker["free"]) == (5, 4)
    gates.let("old")
    # Exactly the one unit came back, so that all five are there, and the new code runs.
    gates.wait_for("changed")
    assert api.resource("db")["used"] == 5
    gates.let("changed")
    assert api.completed(first, second) == ["old", "changed"]


def test_a_deployed_flow_runs_its_new_code_in_a_fresh_engine(served: Served) -> None:
    api, gates = served.api, served.gates
    before = api.submit("deployed")["id"]
    gates.let("changed")
    api.completed(before)
    served.write(served.folder, {"deployed.py": DEPLOYED % (1, "changed once more")})
    assert served.cli("serve", str(served.folder)).returncode == 0
    after = api.submit("deployed")["id"]
    gates.let("changed once more")
    assert api.completed(after) == ["changed once more"]


def test_a_flow_that_is_gone_is_not_served_any_more(served: Served) -> None:
    served.write(served.folder, {"passing.py": "from mirab import flow\n\n\n@flow\ndef passing() -> None:\n    pass\n"})
    assert served.cli("serve", str(served.folder)).returncode == 0
    served.api.completed(served.api.submit("passing")["id"])
    (served.folder / "passing.py").unlink()
    assert served.cli("serve", str(served.folder)).returncode == 0
    with pytest.raises(Refused, match="UnknownFlow"):
        served.api.submit("passing")


def test_engines_that_cannot_start_are_named_as_the_reason_until_they_can(idle: Served) -> None:
    api = idle.start()
    moved = idle.folder.rename(idle.folder.with_name("moved"))
    run = api.submit("quick", {"name": "x"})["id"]
    why = eventually(lambda: (why := api.why(run))["reason"].count("end before they take a run") and why, "the reason")
    assert why["state"] == "Pending" and "engines of project shop" in why["reason"]
    moved.rename(idle.folder)
    assert api.completed(run) == ["x"]
