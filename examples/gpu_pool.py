"""Four GPUs, and a stream of jobs that need one to four of them: the large ones are not starved by the small.

Jobs come faster than they are done. All have the same priority; each prints how long it waited.
"""

from __future__ import annotations

import asyncio
import random
import sys
import time
from collections import defaultdict
from dataclasses import dataclass
from statistics import mean

from mirab import Context, Pool, Resource, Scheduler

GPUS, JOBS = 4, 200


@dataclass
class Job:
    """What a job needs, and when it came."""

    gpus: int
    seconds: float
    came: float = 0.0


async def train(ctx: Context, job: Job) -> float:
    """Gives how long the job waited."""
    waited = time.monotonic() - job.came
    await asyncio.sleep(job.seconds)
    return waited


async def main() -> int:
    """1 when some size waited, on average, over three times as long as the jobs for one GPU."""
    chance = random.Random(7)
    jobs = [Job(chance.choice([1, 1, 1, 1, 2, 2, 3, 4]), chance.uniform(0.01, 0.05)) for _ in range(JOBS)]
    waits: dict[int, list[float]] = defaultdict(list)
    begun = time.monotonic()
    async with Scheduler([Pool("train", train)], [Resource.semaphore("gpu", GPUS)]) as scheduler:
        handles = []
        for job in jobs:
            job.came = time.monotonic()
            handles.append(await scheduler.submit(job, resources={"gpu": job.gpus}))
            await asyncio.sleep(0.01)
        for job, handle in zip(jobs, handles, strict=True):
            waits[job.gpus].append(await handle)
    took = time.monotonic() - begun
    busy = sum(job.gpus * job.seconds for job in jobs) / (GPUS * took)
    for gpus, waited in sorted(waits.items()):
        print(f"{gpus} GPUs: {len(waited):3} jobs, waited {mean(waited):.2f} s on average, {max(waited):.2f} s at most")
    print(f"{JOBS} jobs in {took:.1f} s, GPUs busy {busy:.0%} of the time")
    return int(max(mean(waited) for waited in waits.values()) > 3 * mean(waits[1]))


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
