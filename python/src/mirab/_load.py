"""Imports the files of a project, each once and under one name."""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import sys
from pathlib import Path
from types import ModuleType

from mirab._flow import Flow
from mirab.errors import UnknownFlow


def use_project(directory: Path) -> None:
    """Lets the project's files import each other by name."""
    sys.path.insert(0, str(directory))


class Freshness:
    """Knows what the project's modules were loaded from, so that an edited file is not run in its old form."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._seen: dict[str, tuple[int, int]] = {}

    def note(self) -> None:
        """Remembers the state of files that were imported since the last time."""
        for name, path in self._modules():
            if name not in self._seen:
                self._seen[name] = _state(path)

    def forget_changed(self) -> None:
        """If a file changed since its import, forgets all modules of the project: they may hold parts of each other."""
        modules = self._modules()
        if any(self._seen.get(name, _state(path)) != _state(path) for name, path in modules):
            for name, _ in modules:
                del sys.modules[name]
            self._seen.clear()
            importlib.invalidate_caches()

    def _modules(self) -> list[tuple[str, Path]]:
        """Loaded modules below the project's directory, but for packages of an environment inside it."""
        found = []
        for name, module in list(sys.modules.items()):
            file = getattr(module, "__file__", None)
            if name != "__main__" and file and self._is_own(Path(file)):
                found.append((name, Path(file)))
        return found

    def _is_own(self, path: Path) -> bool:
        return path.is_relative_to(self._directory) and "site-packages" not in path.parts


def _state(path: Path) -> tuple[int, int]:
    try:
        found = path.stat()
    except OSError:
        return (0, 0)
    return (found.st_mtime_ns, found.st_size)


def load_module(directory: Path, file: str) -> ModuleType:
    """The module of a file, given relative to the project's directory; imported on first use."""
    path = directory / file
    name = _own_name(path, file)
    if name is not None:
        return importlib.import_module(name)
    name = f"mirab_project_{hashlib.sha256(file.encode()).hexdigest()[:12]}"
    if name in sys.modules:
        return sys.modules[name]
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path} cannot be imported: it is no Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


def load_flow(directory: Path, file: str, function: str) -> Flow[..., object]:
    """The flow that an attribute of a file's module holds."""
    found = getattr(load_module(directory, file), function, None)
    if not isinstance(found, Flow):
        raise UnknownFlow(f"{file} has no flow named '{function}' any more: was the file changed since it was served?")
    return found


_DEEPEST = 8


def _own_name(path: Path, file: str) -> str | None:
    """The name by which other files import this one; None where that name means another file or none."""
    parts = Path(file).with_suffix("").parts
    # Folders without `__init__` take twice the time for each level to look through, and nobody imports from so deep.
    if len(parts) > _DEEPEST:
        return None
    if not all(part.isidentifier() for part in parts) or parts[-1] == "__init__":
        return None
    name = ".".join(parts)
    try:
        spec = importlib.util.find_spec(name)
    except (ImportError, AttributeError, ValueError):
        return None
    same = spec is not None and spec.origin is not None and Path(spec.origin).resolve() == path.resolve()
    return name if same else None
