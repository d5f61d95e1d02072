"""``mirab check`` finds what cannot work as it is written, before anything is served."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

CONFIG = """
[server]
max_engines = 1
[resources]
db = 2
"api:*" = 1
"*:eu" = 3
hour = { kind = "token_bucket", rate = 0.2777, burst = 5 }
minute = { kind = "token_bucket", rate = 0.0833, burst = 5 }
"""
FLOWS = """
from mirab import flow, task

@task(resources={"dbb": 1})
def load(rows): ...

@task(resources={"db": 3})
def wide(rows): ...

@flow(resources={"api:{{ tenannt }}": 1}, max_concurrent=5)
def misspelt(tenant): ...

@flow(resources={"api:{{ tenant }}": 1, "hour": 1, "minute": 1})
def fine(tenant): ...
"""


def check(folder: Path, *arguments: str) -> tuple[int, list[dict[str, Any]]]:
    command = [
        sys.executable,
        "-m",
        "mirab",
        "--json",
        "--home",
        str(folder / "home"),
        "check",
        str(folder),
        *arguments,
    ]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    return ended.returncode, json.loads(ended.stdout)


def test_e1_e2_e8_d23_everything_wrong_is_found_with_its_place(tmp_path: Path) -> None:
    (tmp_path / "mirab.toml").write_text(CONFIG)
    (tmp_path / "flows.py").write_text(FLOWS)
    code, findings = check(tmp_path)
    found = {(each["code"], each["warning"], Path(each["place"]).name) for each in findings}
    assert code == 1
    assert found == {
        ("TemplateError", False, "flows.py"),
        ("UnknownResource", False, "flows.py"),
        ("ResourceExceedsCapacity", False, "flows.py"),
        ("OverlappingPatterns", True, "mirab.toml:6"),
        ("UnusedResource", True, "mirab.toml:7"),
        ("NeverBinds", True, "mirab.toml:8"),
        ("NeverBinds", True, "flows.py"),
    }
    told = " ".join(each["message"] for each in findings)
    assert "did you mean db?" in told and "did you mean tenant?" in told


def test_what_a_task_takes_by_a_star_has_no_name_and_by_two_any(tmp_path: Path) -> None:
    (tmp_path / "mirab.toml").write_text('[resources]\n"api:*" = 2\n')
    task = '@task(resources={"api:{%s}": 1})\ndef %s(first, *rest, **more): ...\n'
    stars = task.replace(", **more", "") % ("rest", "stars")
    (tmp_path / "flows.py").write_text("from mirab import task\n\n" + task % ("tenant", "fine") + stars)
    code, findings = check(tmp_path)
    assert code == 1
    assert [each["code"] for each in findings] == ["TemplateError"]
    assert 'needs the parameter "rest"' in findings[0]["message"]


def test_a_clean_directory_is_told_so_and_strict_minds_warnings(tmp_path: Path) -> None:
    (tmp_path / "mirab.toml").write_text("[resources]\ndb = 2\n")
    (tmp_path / "flows.py").write_text("from mirab import flow\n\n@flow(resources={'db': 1})\ndef fine(): ...\n")
    assert check(tmp_path) == (0, [])
    (tmp_path / "mirab.toml").write_text("[resources]\ndb = 2\nspare = 1\n")
    assert check(tmp_path)[0] == 0 and check(tmp_path, "--strict")[0] == 1


def test_a_bucket_binds_when_more_of_it_is_asked_for_than_the_narrower_one_keeps_back(tmp_path: Path) -> None:
    bucket = '{ kind = "token_bucket", rate = %s, burst = %s }'
    (tmp_path / "mirab.toml").write_text(
        f"[resources]\nwide = {bucket % ('50.0', 100)}\nnarrow = {bucket % ('10.0', 10)}\n"
    )
    flows = "from mirab import flow\n\n@flow(resources={'wide': %s, 'narrow': 1})\ndef call(): ...\n"
    for units, codes in [(5, ["NeverBinds"]), (6, [])]:
        (tmp_path / "flows.py").write_text(flows % units)
        assert [each["code"] for each in check(tmp_path)[1]] == codes


def test_tags_of_tasks_and_exact_names_behind_a_template_count(tmp_path: Path) -> None:
    (tmp_path / "mirab.toml").write_text('[resources]\n"tag:x" = 1\n"tenant:acme" = 1\n')
    (tmp_path / "flows.py").write_text(
        "from mirab import flow, task\n\n@task(tags=['x'])\ndef load(): ...\n\n"
        "@flow(resources={'tenant:{t}': 1})\ndef sync(t): ...\n"
    )
    assert check(tmp_path) == (0, [])


def test_a_broken_config_and_a_broken_file_are_findings(tmp_path: Path) -> None:
    (tmp_path / "mirab.toml").write_text("[resources]\ndb = -1\n")
    (tmp_path / "flows.py").write_text("import mirab\nraise RuntimeError('no')\n")
    code, findings = check(tmp_path)
    assert code == 1 and {each["code"] for each in findings} == {"InvalidConfig", "ImportError"}
