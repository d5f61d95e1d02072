"""Hashes every file below a path and publishes the list, politely: two reads at once, five publications a second."""

import csv
import hashlib
import os
from pathlib import Path

from mirab import flow, task

# What is built, fetched or private is nobody's content.
PASSED_OVER = {"target", "node_modules", "__pycache__"}


def files_below(path: Path) -> list[Path]:
    """All regular files at or below `path`, in a fixed order, without hidden and built ones."""
    if path.is_file():
        return [path]
    found: list[Path] = []
    for folder, folders, names in os.walk(path):
        folders[:] = sorted(name for name in folders if name not in PASSED_OVER and not name.startswith("."))
        found += [Path(folder, name) for name in sorted(names) if not name.startswith(".")]
    return [file for file in found if file.is_file() and not file.is_symlink()]


@task(resources={"disk": 1})
def sha256(file: str) -> tuple[str, int, str]:
    """Path, size in bytes and SHA-256 of a file."""
    content = Path(file).read_bytes()
    return file, len(content), hashlib.sha256(content).hexdigest()


@task(resources={"publish": 1})
def publish(draft: str, out: str) -> None:
    """Makes the finished list visible under its name, in one step."""
    os.replace(draft, out)


@flow(crash_retries=2)
def digest(path: str, out: str) -> int:
    """Writes the manifest of `path` to `out`; returns how many files it lists."""
    rows = [hashed.result() for hashed in sha256.map(str(file) for file in files_below(Path(path)))]
    draft = f"{out}.part"
    with open(draft, "w", newline="", encoding="utf-8", errors="surrogateescape") as sheet:
        writer = csv.writer(sheet)
        writer.writerow(["path", "bytes", "sha256"])
        writer.writerows(rows)
    publish(draft, out)
    return len(rows)
