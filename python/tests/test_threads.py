"""``submit`` and ``map``: futures, context, and their end."""

import threading
from contextvars import ContextVar

import pytest

from mirab import flow, task
from mirab._context import current

mark: ContextVar[str] = ContextVar("mark", default="none")


@task
def square(x: int) -> int:
    return x * x


def test_submit_and_map_give_futures() -> None:
    @flow
    def fan(n: int) -> list[int]:
        return [future.result() for future in square.map(range(n))]

    assert fan(50) == [x * x for x in range(50)]
    assert square.submit(3).result() == 9  # outside any run
    assert [f.result() for f in task(lambda a, b: a + b).map([1, 2], [10, 20])] == [11, 22]
    with pytest.raises(ValueError):
        task(lambda a, b: a + b).map([1], [2, 3])


def test_errors_come_out_of_the_future() -> None:
    @task
    def broken() -> None:
        raise LookupError("no")

    @flow
    def run() -> None:
        broken.submit().result()

    with pytest.raises(LookupError):
        run()


def test_the_context_goes_along() -> None:
    @task(resources={"db": 1})
    def look() -> tuple[str, bool]:
        return mark.get(), current() is not None

    @flow(resources={"db": 1})
    def run() -> tuple[str, bool]:
        mark.set("set")
        # Would wait for ever if the thread did not know that the flow holds the name.
        return look.submit().result(timeout=30)

    assert run() == ("set", True)
    assert current() is None


def test_submitted_tasks_end_before_their_flow() -> None:
    done: list[int] = []
    go = threading.Event()

    @task
    def late(i: int) -> None:
        go.wait(30)
        done.append(i)

    @flow
    def run() -> None:
        late.map(range(3))
        go.set()

    run()
    assert sorted(done) == [0, 1, 2]


def test_a_failed_flow_begins_no_further_task() -> None:
    began: list[int] = []
    full, go = threading.Semaphore(0), threading.Event()

    @task
    def body(i: int) -> None:
        began.append(i)
        full.release()
        go.wait(30)

    @flow
    def run() -> None:
        futures = body.map(range(64))
        for _ in range(32):
            assert full.acquire(timeout=30)
        # The others are cancelled by the error before the first ones are let go.
        futures[-1].add_done_callback(lambda _: go.set())
        raise ValueError("stop")

    with pytest.raises(ValueError, match="stop"):
        run()
    assert sorted(began) == list(range(32))


def test_tasks_that_submit_tasks_do_not_run_out_of_threads() -> None:
    @task
    def outer(i: int) -> int:
        return square.submit(i).result(timeout=30)

    @flow
    def run() -> int:
        return sum(future.result() for future in outer.map(range(40)))

    assert run() == sum(i * i for i in range(40))
