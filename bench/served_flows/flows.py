"""Flows whose bodies say when they ran."""

import time

from mirab import flow, task


@flow
def stamp() -> float:
    """When user code began, seconds since the epoch."""
    return time.time()


@task(resources={"db": 1})
def use_db() -> tuple[float, float]:
    """When its body began and ended; it holds `db` for some milliseconds."""
    began = time.time()
    time.sleep(0.004)
    return began, time.time()


@flow
def contend(times: int) -> list[tuple[float, float]]:
    return [use_db() for _ in range(times)]
