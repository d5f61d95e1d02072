"""Latency of a served system on this machine: from submission to user code, and from a release to the next holder.

Prints p50 and p99 over warm engines. `python bench/served.py [--runs N]`
"""

import argparse
import platform
import sys
import tempfile
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.append(str(HERE.parent / "examples"))

from serving import TERMINAL, Server, served  # noqa: E402


def finished(server: Server, run: int) -> dict[str, Any]:
    """Looks every few milliseconds; what is measured was stamped by the bodies and the server themselves."""
    while True:
        found: dict[str, Any] = server.call("GET", f"/runs/{run}")
        if found["state"] in TERMINAL:
            assert found["state"] == "Completed", found
            return found
        time.sleep(0.005)


def quantiles(seconds: list[float]) -> str:
    ordered = sorted(seconds)
    p50, p99 = ordered[len(ordered) // 2], ordered[min(len(ordered) - 1, len(ordered) * 99 // 100)]
    return f"p50 {p50 * 1e3:6.2f} ms   p99 {p99 * 1e3:6.2f} ms   ({len(ordered)} samples)"


def submit_to_user_code(server: Server, runs: int) -> list[float]:
    waits = []
    for _ in range(runs):
        submitted = time.time()
        run = server.call("POST", "/runs", {"flow": "stamp"})
        waits.append(finished(server, run["id"])["result"] - submitted)
    return waits


def hand_overs(server: Server, times: int) -> tuple[list[float], list[float]]:
    """Two runs contend for `db = 1`: gaps between task runs as stored, and between their bodies."""
    pair = [server.call("POST", "/runs", {"flow": "contend", "params": {"times": times}})["id"] for _ in range(2)]
    bodies = sorted((body, run) for run in pair for body in map(tuple, finished(server, run)["result"]))
    stored = []
    for run in pair:
        stored += [(t["started_at"], t["ended_at"], run) for t in server.call("GET", f"/runs/{run}/tasks")["tasks"]]
    stored.sort()
    # Only where it goes from one run to the other did somebody wait for the release.
    stored_gaps = [b[0] - a[1] for a, b in pairwise(stored) if a[2] != b[2]]
    body_gaps = [b[0][0] - a[0][1] for a, b in pairwise(bodies) if a[1] != b[1]]
    return stored_gaps, body_gaps


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=300, help="runs measured one after the other (300)")
    asked = parser.parse_args()
    with (
        tempfile.TemporaryDirectory(prefix="mirab-bench-") as home,
        served(HERE / "served_flows", Path(home)) as server,
    ):
        submit_to_user_code(server, 5)  # Engines start and import.
        print(f"served, {platform.machine()}, {platform.python_implementation()} {platform.python_version()}")
        print(f"submission to user code        {quantiles(submit_to_user_code(server, asked.runs))}")
        stored, bodies = hand_overs(server, 60)
        print(f"release to next start, stored  {quantiles(stored)}")
        print(f"body to next body              {quantiles(bodies)}")


if __name__ == "__main__":
    main()
