"""The embedded scheduler beside bare asyncio: throughput, memory, hand-over, accuracy of rates, durable submits.

Every measurement runs in a process of its own; what is compared is measured in turn.
`python bench/scheduler.py [--tasks N] [--seconds T]`
"""

from __future__ import annotations

import argparse
import asyncio
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from statistics import median
from typing import Any

from mirab import Context, Event, EventStream, Pool, Resource, Scheduler, sqlite

ROUNDS = 5
LIMIT = 10
Figures = dict[str, float]


def peak() -> int:
    """Most bytes that this process had resident."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


async def scheduler(tasks: int) -> Figures:
    """Coroutines that yield once, through one semaphore."""

    async def body(ctx: Context, payload: None) -> None:
        await asyncio.sleep(0)

    before = peak()
    begun = time.perf_counter()
    async with Scheduler([Pool("p", body, slots=tasks)], [Resource.semaphore("s", LIMIT)]) as held:
        for handle in await held.submit_many([None] * tasks, resources={"s": 1}):
            await handle
    return {"seconds": time.perf_counter() - begun, "bytes": peak() - before}


async def bare(tasks: int) -> Figures:
    """The same with a semaphore and tasks of asyncio, which know no priorities, rates or reasons."""
    limit = asyncio.Semaphore(LIMIT)

    async def body() -> None:
        async with limit:
            await asyncio.sleep(0)

    before = peak()
    begun = time.perf_counter()
    for task in [asyncio.create_task(body()) for _ in range(tasks)]:
        await task
    return {"seconds": time.perf_counter() - begun, "bytes": peak() - before}


async def waiting(tasks: int) -> Figures:
    """Memory of tasks that wait, and the time from one body's end to the start of the next with all of them in line."""
    gaps: list[float] = []
    ended: float | None = None

    async def body(ctx: Context, payload: None) -> None:
        nonlocal ended
        if ended is not None:
            gaps.append(time.perf_counter() - ended)
        await asyncio.sleep(0)
        ended = time.perf_counter()

    async with Scheduler([Pool("p", body, slots=0)], [Resource.semaphore("s", 1)], grace=0) as held:
        payloads = [None] * tasks
        before = peak()
        handles = await held.submit_many(payloads, resources={"s": 1})
        size = (peak() - before) / tasks
        held.set_slots("p", 1)
        await handles[10_000]
    gaps.sort()
    return {"bytes": size, "p50": gaps[len(gaps) // 2], "p99": gaps[len(gaps) * 99 // 100]}


async def rate(per_second: int, burst: int, seconds: float) -> Figures:
    """Starts through a token bucket: the share of its rate, and the most above rate and burst in any interval."""
    bodies: list[float] = []
    grants: list[float] = []

    async def body(ctx: Context, payload: None) -> None:
        bodies.append(time.perf_counter())

    async def read(events: EventStream) -> None:
        async for event in events:
            assert isinstance(event, Event), "no event was dropped"
            if event.what == "started":
                grants.append(event.at)

    tasks = int(per_second * seconds) + burst
    async with Scheduler([Pool("p", body, slots=tasks)], [Resource.token_bucket("r", per_second, burst)]) as held:
        reader = asyncio.create_task(read(held.events(limit=3 * tasks)))
        begun = time.perf_counter()
        await held.submit_many([None] * tasks, resources={"r": 1})
    took = time.perf_counter() - begun
    await reader
    assert len(grants) == len(bodies) == tasks
    return {
        "share": (tasks - burst) / took / per_second,
        "granted": most_above(grants, per_second, burst),
        "begun": most_above(bodies, per_second, burst),
    }


def most_above(starts: list[float], per_second: int, burst: int) -> float:
    """The most starts beyond ``burst + per_second * T`` in any interval of length T; not above 0 is right."""
    worst, lowest = -float("inf"), float("inf")
    for number, at in enumerate(starts):
        # number - rate * at grows where starts are denser than the rate: the largest rise is the fullest interval.
        level = number - per_second * at
        lowest = min(lowest, level)
        worst = max(worst, level - lowest + 1)
    return worst - burst


async def timer(per_second: int, seconds: float) -> Figures:
    """A bare loop over a timer: what the machine and the event loop allow at this pace."""
    done, begun = 0, time.perf_counter()
    loop = asyncio.get_running_loop()
    ticked = asyncio.Event()
    while (now := time.perf_counter()) - begun < seconds:
        ticked.clear()
        # As a bucket without a burst: the next one is due an interval after this one came.
        loop.call_at(loop.time() + 1 / per_second, ticked.set)
        await ticked.wait()
        done += 1
    return {"share": done / (now - begun) / per_second}


async def durable(tasks: int) -> Figures:
    """Tasks with a payload, accepted in batches of 1,000: each batch is on the disk before the next."""

    async def body(ctx: Context, payload: str) -> None:
        pass

    with tempfile.TemporaryDirectory() as home:
        store = sqlite(Path(home) / "state.db")
        async with Scheduler(
            [Pool("p", body, slots=0)], [Resource.semaphore("s", LIMIT)], store=store, grace=0
        ) as held:
            begun = time.perf_counter()
            for _ in range(tasks // 1_000):
                await held.submit_many(["x" * 100] * 1_000, resources={"s": 1})
            took = time.perf_counter() - begun
    return {"per_second": tasks / took}


MEASURES: dict[str, Callable[..., Awaitable[Figures]]] = {
    "scheduler": scheduler,
    "bare": bare,
    "waiting": waiting,
    "rate": rate,
    "timer": timer,
    "durable": durable,
}


def measured(name: str, *arguments: float) -> Figures:
    """In a process of its own."""
    command = [sys.executable, __file__, "--only", name, *map(str, arguments)]
    figures: Figures = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    return figures


def middle(all_of: list[Figures], what: str) -> float:
    return median(figures[what] for figures in all_of)


def report(tasks: int, seconds: float) -> None:
    """All of them."""
    rounds = [(measured("scheduler", tasks), measured("bare", tasks)) for _ in range(ROUNDS)]
    ours, theirs = [a for a, _ in rounds], [b for _, b in rounds]
    for what, unit, scale in [("seconds", "s", 1.0), ("bytes", "MiB", 2.0**20)]:
        ratio = median(a[what] / b[what] for a, b in rounds)
        print(
            f"{tasks} coroutines, semaphore of {LIMIT}: {middle(ours, what) / scale:.2f} {unit}, "
            f"bare asyncio {middle(theirs, what) / scale:.2f} {unit}: {ratio:.2f} times (bar 2)"
        )
    wait = [measured("waiting", tasks) for _ in range(ROUNDS)]
    p50, p99 = middle(wait, "p50") * 1e6, middle(wait, "p99") * 1e6
    print(f"end to next start, {tasks} waiting: p50 {p50:.0f} us, p99 {p99:.0f} us (bar 200)")
    print(f"a waiting task: {middle(wait, 'bytes'):.0f} bytes (bar 1536)")
    for per_second in (50, 1_000, 20_000):
        figures = measured("rate", per_second, per_second // 10, seconds)
        late = figures["begun"] / per_second * 1e3
        print(
            f"{per_second}/s: {figures['share']:.2%} of it; beyond burst and rate in any interval: "
            f"{figures['granted']:+.3f} granted, bodies begun {late:+.1f} ms of the rate"
        )
    for per_second in (1_000, 20_000):
        figures, loop = measured("rate", per_second, 1, seconds), measured("timer", per_second, seconds)
        ratio = figures["share"] / loop["share"]
        print(
            f"{per_second}/s, burst 1: {figures['share']:.2%} of it; a bare timer loop {loop['share']:.2%}: "
            f"{ratio:.3f} of that"
        )
    print(f"durable submits: {measured('durable', tasks)['per_second']:,.0f} a second (bar 30,000)")


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--tasks", type=int, default=100_000)
    options.add_argument("--seconds", type=float, default=10.0)
    options.add_argument("--only", nargs="+", metavar="NAME", help="one measurement, as JSON")
    given = options.parse_args()
    if given.only is None:
        return report(given.tasks, given.seconds)
    name, *arguments = given.only
    numbers: list[Any] = [float(text) if "." in text else int(text) for text in arguments]
    print(json.dumps(asyncio.run(MEASURES[name](*numbers))))  # type: ignore[arg-type]


if __name__ == "__main__":
    main()
