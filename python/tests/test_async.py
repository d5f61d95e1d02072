"""Async flows and tasks: the loop is never blocked by a wait for a limit."""

import asyncio

import pytest

from mirab import flow, task
from mirab._offline import GATE


@task(resources={"db": 1})
async def limited(i: int) -> int:
    await asyncio.sleep(0)
    return i


@flow
async def fan(n: int) -> list[int]:
    return await asyncio.gather(*(limited(i) for i in range(n)))


def test_many_tasks_of_one_limit_finish_on_one_loop() -> None:
    assert asyncio.run(fan(20)) == list(range(20))


def test_at_most_one_is_inside() -> None:
    inside = most = 0

    @task(resources={"db": 1})
    async def body() -> None:
        nonlocal inside, most
        inside += 1
        most = max(most, inside)
        for _ in range(5):
            await asyncio.sleep(0)
        inside -= 1

    @flow(resources={"other": 1})
    async def run() -> None:
        await asyncio.gather(*(body() for _ in range(20)))

    asyncio.run(run())
    assert most == 1


def test_nested_names_and_plain_tasks() -> None:
    @task(resources={"db": 1})
    def plain() -> int:
        return 1

    @task(resources={"db": 1})
    async def outer() -> int:
        return plain() + await limited(2)

    @flow(resources={"db": 1})
    async def run() -> int:
        return await outer() + await asyncio.wrap_future(limited.submit(3))

    assert asyncio.run(run()) == 6


def test_retries_and_errors() -> None:
    calls = 0

    @task(retries=1)
    async def flaky() -> str:
        nonlocal calls
        calls += 1
        if calls == 1:
            raise ValueError("once")
        return "ok"

    @flow
    async def run() -> str:
        return await flaky()

    assert asyncio.run(run()) == "ok"

    @flow
    async def broken() -> None:
        raise LookupError("no")

    with pytest.raises(LookupError):
        asyncio.run(broken())


def test_a_cancelled_wait_takes_nothing_with_it() -> None:
    async def run() -> None:
        entered, leave = asyncio.Event(), asyncio.Event()

        @task(resources={"cancelled": 1})
        async def hold() -> None:
            entered.set()
            await leave.wait()

        holder = asyncio.create_task(hold())  # type: ignore[arg-type, var-annotated]
        await entered.wait()
        waiter = asyncio.create_task(hold())  # type: ignore[arg-type, var-annotated]
        while not GATE.waiting():
            await asyncio.sleep(0)
        waiter.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiter
        leave.set()
        await holder
        # The cancelled one gives back what its thread gets.
        await asyncio.wait_for(hold(), 30)

    asyncio.run(run())
