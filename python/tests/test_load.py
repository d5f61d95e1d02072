"""Importing the files of a project, again when they change."""

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from mirab._load import Freshness, load_module, use_project


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    # Python tells cached bytecode by whole seconds and the size; these files change faster.
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    before, path = set(sys.modules), list(sys.path)
    use_project(tmp_path)
    yield tmp_path
    sys.path[:] = path
    for name in set(sys.modules) - before:
        del sys.modules[name]


def write(file: Path, text: str) -> None:
    """Writes a file so that its time of change moves on, however coarse the file system's clock is."""
    later = file.stat().st_mtime_ns + 10_000_000 if file.exists() else None
    file.write_text(text)
    if later is not None:
        os.utime(file, ns=(later, later))


def test_an_unchanged_file_is_imported_once(project: Path) -> None:
    write(project / "fresh_a.py", "value = object()")
    files = Freshness(project)
    first = load_module(project, "fresh_a.py").value
    files.note()
    files.forget_changed()
    assert load_module(project, "fresh_a.py").value is first


@pytest.mark.parametrize("edited", ["fresh_flows.py", "fresh_helper.py"])
def test_a_changed_file_and_what_imports_it_are_imported_anew(project: Path, edited: str) -> None:
    write(project / "fresh_helper.py", "greeting = 'hello'")
    write(project / "fresh_flows.py", "from fresh_helper import greeting\nword = greeting\n")
    files = Freshness(project)
    assert load_module(project, "fresh_flows.py").word == "hello"
    files.note()
    text = (project / edited).read_text().replace("'hello'", "'salut'").replace("word = greeting", "word = 'salut'")
    write(project / edited, text)
    files.forget_changed()
    assert load_module(project, "fresh_flows.py").word == "salut"
    files.note()
    files.forget_changed()
    assert load_module(project, "fresh_flows.py").word == "salut"
