"""``python -m mirab._discover DIR OUTFILE``: finds the flows of a project.

A process of its own, because it imports the user's files. What it found is written to OUTFILE as JSON, so that whatever
those files print does no harm. OUTFILE.at holds the file that is being imported: should that never end, or end the
process, it can be named.
"""

from __future__ import annotations

import ctypes
import json
import os
import re
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from mirab._failure import failure
from mirab._flow import Flow
from mirab._load import load_module, use_project
from mirab._task import Task
from mirab.errors import InvalidOption

_SKIPPED = {"__pycache__", "node_modules", "site-packages", "tests", "venv"}
# A file written for the other package of these decorators is shown as broken rather than passed over in silence.
_MENTION = re.compile(rb"\b(mirab|cereyan)\b")


def discover(directory: Path, begin: Callable[[str], object] = lambda file: None) -> dict[str, Any]:
    """All flows below ``directory``, and the files that did not import. ``begin`` is told each file first."""
    use_project(directory)
    flows: list[dict[str, Any]] = []
    broken: list[dict[str, Any]] = []
    tasks: list[dict[str, Any]] = []
    seen: dict[str, str] = {}
    for file in files(directory):
        begin(file)
        try:
            found = _flows_of(directory, file, seen)
            _text([found, _tasks_of(directory, file)])
        except BaseException as error:  # a file may even call sys.exit() when it is imported
            broken.append({"file": file, "error": failure(error)})
        else:
            flows += found
            tasks += _tasks_of(directory, file)
            seen.update((each["name"], file) for each in found)
    return {"flows": flows, "broken": broken, "tasks": tasks}


def files(directory: Path) -> Iterator[str]:
    """The files that may hold flows, in order, relative to ``directory``."""
    for place, folders, names in os.walk(directory):
        folders[:] = sorted(each for each in folders if _is_searched(Path(place, each)))
        for name in sorted(names):
            path = Path(place, name)
            # A pipe or a device of such a name would be waited for without end.
            if name.endswith(".py") and not name.startswith(".") and path.is_file() and _mentions(path):
                yield path.relative_to(directory).as_posix()


def _is_searched(folder: Path) -> bool:
    hidden = folder.name.startswith(".") or folder.name in _SKIPPED
    return not hidden and not (folder / "pyvenv.cfg").exists()


def _mentions(path: Path) -> bool:
    try:
        return _MENTION.search(path.read_bytes()) is not None
    except OSError:
        return True  # let the import say what is wrong with it


def _flows_of(directory: Path, file: str, seen: dict[str, str]) -> list[dict[str, Any]]:
    module = load_module(directory, file)
    held: dict[int, tuple[str, Flow[..., Any]]] = {}
    for attribute, value in vars(module).items():
        # An alias is no second flow, and what is imported from another file is found there.
        if isinstance(value, Flow) and value.is_of(module.__name__):
            held.setdefault(id(value), (attribute, value))
    found = [flow.describe(file, attribute) for attribute, flow in sorted(held.values(), key=lambda each: each[1].line)]
    names = dict(seen)
    for each in found:
        _refuse_twice(each, file, names)
        names[each["name"]] = file
    return found


def _tasks_of(directory: Path, file: str) -> list[dict[str, Any]]:
    """Tasks at the top level of a file that was imported before."""
    module = load_module(directory, file)
    held = {id(value): value for value in vars(module).values() if isinstance(value, Task)}
    return [task.describe(file) for task in held.values() if task.is_of(module.__name__)]


def _refuse_twice(found: dict[str, Any], file: str, names: dict[str, str]) -> None:
    name = found["name"]
    if name in names:
        where = "twice in this file" if names[name] == file else f"in {names[name]} too"
        raise InvalidOption(
            f"flow '{name}' is defined {where}: names are unique in a project, so give one of them another with "
            "@flow(name=...)"
        )


def main(argv: list[str]) -> int:
    """Writes the file whole or not at all."""
    directory, out = Path(argv[0]).resolve(), Path(argv[1]).resolve()
    os.chdir(directory)
    at = out.with_name(out.name + ".at")
    found = discover(directory, begin=lambda file: at.write_text(file, encoding="utf-8", errors="replace"))
    draft = out.with_name(out.name + ".part")
    draft.write_bytes(_text(found, errors="replace"))
    draft.replace(out)
    at.unlink(missing_ok=True)
    return 0


def _text(found: object, errors: str = "strict") -> bytes:
    """JSON in UTF-8; half a character, which Python can hold and nobody else can read, is an error of its file."""
    return json.dumps(found, ensure_ascii=False).encode("utf-8", errors)


def _die_with_parent() -> None:
    """Whoever asked may be stopped: then nobody reads the answer, and a file whose import never ends would go on."""
    if sys.platform == "linux":
        set_parent_death_signal = 1
        ctypes.CDLL(None).prctl(set_parent_death_signal, signal.SIGKILL)


if __name__ == "__main__":
    _die_with_parent()
    code = main(sys.argv[1:])
    sys.stdout.flush()
    sys.stderr.flush()
    # Threads that a file left behind are not waited for.
    os._exit(code)
