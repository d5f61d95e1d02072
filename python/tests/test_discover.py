"""The discovery process, as the server starts it."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

FLOW = "from mirab import flow\n@flow\ndef {name}(rows: int = 10, label: 'str | None' = None, *, day):\n    pass\n"


def discover(directory: Path) -> dict[str, Any]:
    out = directory / ".out.json"
    command = [sys.executable, "-m", "mirab._discover", str(directory), str(out)]
    env = {"PYTHONPATH": str(Path(__file__).parents[1] / "src"), "PYTHONDONTWRITEBYTECODE": "1"}
    subprocess.run(command, check=True, env=env, capture_output=True, timeout=60)
    found: dict[str, Any] = json.loads(out.read_text())
    return found


def write(directory: Path, **files: str) -> None:
    for name, text in files.items():
        path = directory / (name.replace("__", "/") + ".py")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def test_a_flow_is_described_with_options_and_parameters(tmp_path: Path) -> None:
    write(tmp_path, nightly=Path(__file__).with_name("nightly_example.py").read_text(), sub__more=FLOW.format(name="b"))
    found = discover(tmp_path)
    assert found["broken"] == []
    nightly, more = found["flows"]
    assert nightly == {
        "name": "nightly",
        "file": "nightly.py",
        "function": "nightly",
        "options": {
            "resources": {"gpu": 1},
            "retries": 0,
            "retry_delay_s": 0.0,
            "tags": [],
            "max_concurrent": 1,
            "on_overlap": "skip",
            "priority": 5,
            "crash_retries": 0,
        },
        "params": [{"name": "rows", "required": False, "annotation": "int", "default": 10}],
        "any_params": False,
    }
    assert more["file"] == "sub/more.py"
    assert more["params"][1:] == [
        {"name": "label", "required": False, "annotation": "str | None", "default": None},
        {"name": "day", "required": True, "annotation": None, "default": None},
    ]


def test_broken_files_are_told_and_the_others_served(tmp_path: Path) -> None:
    write(
        tmp_path,
        good=FLOW.format(name="good"),
        raises="import mirab\nprint('noise')\n1 / 0\n",
        syntax="import mirab\ndef (\n",
        leaves="import sys, mirab\nsys.exit(3)\n",
        bad_option="from mirab import flow\n@flow(resources={'db': 0})\ndef f(): pass\n",
        other="from cereyan import flow\n",
        unrelated="1 / 0\n",
    )
    found = discover(tmp_path)
    assert [flow["name"] for flow in found["flows"]] == ["good"]
    broken = {each["file"]: each["error"] for each in found["broken"]}
    assert {file: error["type"] for file, error in broken.items()} == {
        "raises.py": "ZeroDivisionError",
        "syntax.py": "SyntaxError",
        "leaves.py": "SystemExit",
        "bad_option.py": "InvalidResource",
        "other.py": "ModuleNotFoundError",
    }
    assert "line 3" in broken["raises.py"]["traceback"]
    assert "_load.py" not in broken["raises.py"]["traceback"]


def test_one_name_twice_is_refused_for_the_second_file(tmp_path: Path) -> None:
    write(tmp_path, a=FLOW.format(name="same"), b=FLOW.format(name="same"))
    found = discover(tmp_path)
    assert [flow["file"] for flow in found["flows"]] == ["a.py"]
    assert found["broken"][0]["file"] == "b.py"
    assert "flow 'same' is defined in a.py too" in found["broken"][0]["error"]["message"]


def test_imports_between_files_make_no_second_flow(tmp_path: Path) -> None:
    write(
        tmp_path,
        base=FLOW.format(name="shared"),
        json=FLOW.format(name="named_like_a_module"),
        uses="from mirab import flow\nfrom base import shared\nalias = shared\n"
        "fast = shared.with_options(name='fast', priority=3)\n",
    )
    found = discover(tmp_path)
    assert found["broken"] == []
    assert [(flow["name"], flow["file"]) for flow in found["flows"]] == [
        ("shared", "base.py"),
        ("named_like_a_module", "json.py"),
        ("fast", "uses.py"),
    ]


def test_other_peoples_directories_are_not_searched(tmp_path: Path) -> None:
    text = FLOW.format(name="f")
    for folder in (".hidden", ".venv", "env", "__pycache__", "node_modules", "tests"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "f.py").write_text(text)
    (tmp_path / "env" / "pyvenv.cfg").write_text("")
    assert discover(tmp_path) == {"flows": [], "broken": [], "tasks": []}


def test_a_thread_that_is_left_behind_and_a_pipe_with_the_name_of_a_file_hold_nothing_up(tmp_path: Path) -> None:
    thread = "import threading\nthreading.Thread(target=threading.Event().wait).start()\n"
    write(tmp_path, left=thread + FLOW.format(name="left"), good=FLOW.format(name="good"))
    os.mkfifo(tmp_path / "pipe.py")
    found = discover(tmp_path)
    assert ([flow["name"] for flow in found["flows"]], found["broken"]) == (["good", "left"], [])


def test_half_a_character_breaks_its_file_only(tmp_path: Path) -> None:
    half = "from mirab import flow\n@flow(resources={'\\ud800': 1})\ndef half():\n    pass\n"
    write(tmp_path, half=half, good=FLOW.format(name="good"))
    found = discover(tmp_path)
    assert [flow["name"] for flow in found["flows"]] == ["good"]
    assert [(each["file"], each["error"]["type"]) for each in found["broken"]] == [("half.py", "UnicodeEncodeError")]


def test_the_file_that_ends_the_process_is_named(tmp_path: Path) -> None:
    write(tmp_path, bad="import os\n# mirab\nos._exit(3)\n")
    with pytest.raises(subprocess.CalledProcessError):
        discover(tmp_path)
    assert (tmp_path / ".out.json.at").read_text() == "bad.py"


def test_files_in_deep_folders_are_found_in_no_time(tmp_path: Path) -> None:
    deep = tmp_path.joinpath(*["d"] * 60)
    deep.mkdir(parents=True)
    (deep / "far.py").write_text(FLOW.format(name="far"))
    assert [flow["name"] for flow in discover(tmp_path)["flows"]] == ["far"]
