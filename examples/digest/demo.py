"""The main job: 40 runs of `digest` that share a disk and a publisher, on a server of their own.

One engine is killed on the way. Exits 0 only if every limit held and every manifest is right.
`python demo.py [PATH] [--runs N]`
"""

import argparse
import collections
import csv
import os
import signal
import subprocess
import sys
import tempfile
import time
import urllib.parse
from itertools import cycle, islice
from pathlib import Path
from typing import Any

from flows import PASSED_OVER, files_below

HERE = Path(__file__).resolve().parent
sys.path.append(str(HERE.parent))

from serving import TERMINAL, Server, served  # noqa: E402

DISK, RATE, BURST = 2, 5.0, 5


def all_runs(server: Server) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    cursor = ""
    while True:
        page = server.call("GET", f"/runs?limit=100{cursor}")
        found += page["runs"]
        if page["next_cursor"] is None:
            return found
        cursor = f"&cursor={page['next_cursor']}"


def resource(server: Server, name: str) -> dict[str, Any]:
    found: dict[str, Any] = server.call("GET", f"/resources/{urllib.parse.quote(name, safe='')}")
    return found


def submit(server: Server, path: Path, out: Path, count: int) -> dict[int, tuple[Path, Path]]:
    """One run for each entry of `path`, again from the first when there are fewer than `count`."""
    entries = sorted(entry for entry in path.iterdir() if entry.name not in PASSED_OVER and entry.name[0] != ".")
    jobs: dict[int, tuple[Path, Path]] = {}
    for number, entry in enumerate(islice(cycle(entries), count)):
        manifest = out / f"{number:02}-{entry.name}.csv"
        run = server.call("POST", "/runs", {"flow": "digest", "params": {"path": str(entry), "out": str(manifest)}})
        jobs[run["id"]] = (entry, manifest)
    return jobs


def kill_an_engine(server: Server) -> int | None:
    """Kills a busy engine the hard way; gives the run that it executed."""
    for engine in server.call("GET", "/queue?limit=1")["engines"]:
        if engine["state"] == "busy":
            os.kill(engine["pid"], signal.SIGKILL)
            return int(engine["run_id"])
    return None


def watch(server: Server, count: int) -> int | None:
    """Shows the table until all have ended; a third of the way, kills an engine. Gives the run that lost it."""
    killed: int | None = None
    live = sys.stdout.isatty()
    while True:
        states = collections.Counter(run["state"] for run in all_runs(server))
        ended = sum(states[state] for state in TERMINAL)
        disk, publisher = resource(server, "disk"), resource(server, "publish")
        waiting, running = states["Queued"] + states["AwaitingResource"], states["Pending"] + states["Running"]
        line = (
            f"waiting {waiting:3}   running {running:2}   done {ended:3}/{count}   "
            f"disk {disk['used']}/{DISK} in use, {disk['waiters']:3} tasks wait   "
            f"publish {publisher['free']}/{BURST} tokens, {publisher['waiters']:2} wait"
        )
        print(f"\r{line}" if live else line, end="" if live else "\n", flush=True)
        if ended == count:
            print()
            return killed
        if killed is None and ended >= count // 3:
            killed = kill_an_engine(server)
            if killed is not None:
                print(f"{'' if not live else chr(10)}killed the engine of run {killed} with SIGKILL")
        time.sleep(0.1 if live else 1.0)


def most_at_once(spans: list[tuple[float, float]]) -> int:
    """The most spans that overlap; one that ends as another begins does not."""
    edges = sorted([(end, 0) for _, end in spans] + [(start, 1) for start, _ in spans])
    now = most = 0
    for _, begins in edges:
        now += 1 if begins else -1
        most = max(most, now)
    return most


def bucket_held(starts: list[float]) -> bool:
    """In no interval more than the burst and what the rate allows (a microsecond is what rounding costs)."""
    ordered = sorted(starts)
    return all(
        last - first + 1 <= BURST + RATE * (ordered[last] - ordered[first] + 1e-6)
        for first in range(len(ordered))
        for last in range(first, len(ordered))
    )


def manifest_is_right(entry: Path, manifest: Path) -> bool:
    """Lists exactly the files below the entry, with the sums that `sha256sum` gives."""
    with open(manifest, newline="", encoding="utf-8", errors="surrogateescape") as sheet:
        listed = {row["path"]: row["sha256"] for row in csv.DictReader(sheet)}
    files = [str(file) for file in files_below(entry)]
    if set(files) != set(listed):
        return False
    for at in range(0, len(files), 200):
        told = subprocess.run(["sha256sum", "--zero", "--", *files[at : at + 200]], capture_output=True, check=True)
        for line in filter(None, told.stdout.split(b"\0")):
            total, name = os.fsdecode(line).split("  ", 1)
            if listed[name] != total:
                return False
    return True


def longest_wait(server: Server, runs: list[dict[str, Any]], tasks: list[dict[str, Any]]) -> str:
    """Which run or task waited longest for its first start, and what it was short of."""
    waited = [(t["started_at"] - t["created_at"], t["run_id"], t["id"]) for t in tasks if t["started_at"]]
    # Later attempts move a run's start, so that only runs of one attempt tell how long the line was.
    waited += [(r["started_at"] - r["due_at"], r["id"], None) for r in runs if r["started_at"] and r["attempt"] == 1]
    seconds, run, task = max(waited, key=lambda item: item[0])
    events = server.call("GET", f"/runs/{run}/events")["events"]
    short = [event for event in events if event["kind"] == "resource.exhausted" and event["task_id"] == task]
    who = f"run {run}" if task is None else f"task {task} of run {run}"
    return f"{seconds:.2f} s, {who}: {short[0]['reason'] if short else 'no limit, the engines were busy'}"


def report(server: Server, jobs: dict[int, tuple[Path, Path]], killed: int | None) -> bool:
    """Prints the summary, all of it read from the API; tells whether everything held."""
    runs = all_runs(server)
    tasks = [task for run in runs for task in server.call("GET", f"/runs/{run['id']}/tasks")["tasks"]]
    reads = [(t["started_at"], t["ended_at"]) for t in tasks if t["name"] == "sha256" and t["started_at"]]
    published = [t["started_at"] for t in tasks if t["name"] == "publish" and t["started_at"]]
    most = most_at_once(reads)
    busiest = max((sum(1 for other in published if at <= other < at + 1) for at in published), default=0)
    wrong = [str(manifest) for entry, manifest in jobs.values() if not manifest_is_right(entry, manifest)]
    states = collections.Counter(run["state"] for run in runs)
    leftover = sum(resource(server, name)["used"] for name in ("disk", "pool:default"))
    rerun = next((run for run in runs if run["id"] == killed), None)
    print(f"runs by state          {', '.join(f'{state} {number}' for state, number in sorted(states.items()))}")
    print(f"tasks                  {len(tasks)}")
    print(f"disk, most ever in use {most} of {DISK}")
    print(f"publishes              {len(published)}, {busiest} in the busiest second (at most {BURST} + {RATE:.0f})")
    print(f"longest wait           {longest_wait(server, runs, tasks)}")
    told = f"run {killed} was executed again: attempt {rerun['attempt']}, {rerun['state']}" if rerun else "none"
    print(f"killed engine          {told}")
    print(f"units left in use      {leftover}")
    print(f"manifests              {len(jobs) - len(wrong)} right, {len(wrong)} wrong {' '.join(wrong)}")
    return (
        states == {"Completed": len(jobs)}
        and 0 < most <= DISK
        and bucket_held(published)
        and not wrong
        and leftover == 0
        and rerun is not None
        and rerun["attempt"] > 1
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "path", nargs="?", type=Path, default=HERE.parent.parent, help="directory to hash (the repository)"
    )
    parser.add_argument("--runs", type=int, default=40, help="how many runs (40)")
    asked = parser.parse_args()
    if not asked.path.is_dir():
        sys.exit(f"{asked.path} is no directory: name one whose files shall be hashed")
    with tempfile.TemporaryDirectory(prefix="mirab-demo-") as folder:
        out = Path(folder, "manifests")
        out.mkdir()
        with served(HERE, Path(folder, "home")) as server:
            print(server.said)
            jobs = submit(server, asked.path.resolve(), out, asked.runs)
            killed = watch(server, len(jobs))
            held = report(server, jobs, killed)
    print("every limit held and every manifest is right" if held else "SOMETHING DID NOT HOLD")
    return 0 if held else 1


if __name__ == "__main__":
    sys.exit(main())
