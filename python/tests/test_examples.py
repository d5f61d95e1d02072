"""The examples of the scheduler, with their real parts."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

EXAMPLES = Path(__file__).parents[2] / "examples"


def run(name: str, *arguments: str) -> str:
    done = subprocess.run([sys.executable, EXAMPLES / name, *arguments], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, ""), done.stdout + done.stderr
    return done.stdout


def test_an_api_that_enforces_its_limit_refuses_no_call() -> None:
    # How much of the limit is used depends on what else the machine does: that is for the long proof, on a quiet one.
    told = run("rate_limited_api.py", *(() if "MIRAB_SOAK" in os.environ else ("--seconds", "2", "--least", "0.5")))
    assert "0 answered 429" in told


def test_jobs_for_all_gpus_are_not_starved_by_jobs_for_one() -> None:
    assert "4 GPUs: " in run("gpu_pool.py")
