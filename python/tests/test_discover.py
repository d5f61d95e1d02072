"""The discovery process, as the server starts it."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

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
