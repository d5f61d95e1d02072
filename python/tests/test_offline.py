"""Plain calls in this process: values, errors, retries, and the local semaphores."""

import itertools
import runpy
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from mirab import flow, task
from mirab._offline import GATE, LocalGate


def test_the_example_of_the_documents_runs() -> None:
    runpy.run_path(str(Path(__file__).with_name("nightly_example.py")))


def test_a_call_returns_the_value_and_raises_the_error() -> None:
    @flow
    def double(x: int) -> int:
        return 2 * x

    @flow()
    def broken() -> None:
        raise KeyError("gone")

    assert double(4) == 8
    assert double.__name__ == "double"
    with pytest.raises(KeyError, match="gone"):
        broken()


def test_retries_wait_and_end() -> None:
    calls: list[float] = []

    @task(retries=2, retry_delay=0.01)
    def flaky() -> str:
        calls.append(time.monotonic())
        if len(calls) < 3:
            raise ValueError("not yet")
        return "done"

    @flow(retries=1)
    def hopeless() -> None:
        calls.append(0.0)
        raise ValueError("never")

    assert flaky() == "done"
    assert all(later - earlier >= 0.01 for earlier, later in itertools.pairwise(calls))
    calls.clear()
    with pytest.raises(ValueError, match="never"):
        hopeless()
    assert len(calls) == 2


def test_a_name_held_by_an_enclosing_body_is_shared() -> None:
    @task(resources={"db": 1, "disk": 2})
    def inner() -> int:
        return 1

    @task(resources={"db": 7})
    def outer() -> int:
        return inner() + inner()

    @flow(resources={"db": 1})
    def child() -> int:
        return outer()

    @flow(resources={"db": 1})
    def parent() -> int:
        return child() + outer()

    assert parent() == 4


def overlap_of(run: Callable[[Callable[[], None]], None]) -> int:
    """How many bodies were inside at most, while ``run`` starts them; each stays until no further one can come in."""
    lock, inside, most = threading.Lock(), 0, 0
    met = threading.Event()

    def body() -> None:
        nonlocal inside, most
        with lock:
            inside += 1
            most = max(most, inside)
            if inside > 1:
                met.set()
        # Long enough for another thread to come in, if anything lets it.
        met.wait(0.02)
        with lock:
            inside -= 1

    run(body)
    return most


def test_tasks_of_one_name_run_one_after_the_other_whatever_the_amount() -> None:
    def run(body: Callable[[], None]) -> None:
        one = task(resources={"db": 1}, name="one")(body)
        many = task(resources={"db": 5}, name="many")(body)

        @flow
        def both() -> None:
            for _ in range(3):
                one.submit()
                many.submit()

        both()

    assert overlap_of(run) == 1


def test_a_flows_own_unit_is_shared_by_its_tasks_one_at_a_time() -> None:
    def run(body: Callable[[], None]) -> None:
        one = task(resources={"db": 1}, name="one")(body)

        @flow(resources={"db": 1})
        def both() -> None:
            for _ in range(4):
                one.submit()

        both()

    assert overlap_of(run) == 1


def test_other_names_do_not_wait() -> None:
    meet = threading.Barrier(2, timeout=10)

    @flow
    def both() -> list[int]:
        a = task(resources={"a": 1}, name="a")(meet.wait).submit()
        b = task(resources={"b": 1}, name="b")(meet.wait).submit()
        return [a.result(), b.result()]

    assert sorted(both()) == [0, 1]


def test_units_come_back_on_every_exit() -> None:
    @task(resources={"db": 1})
    def leave(error: BaseException) -> None:
        raise error

    for error in (ValueError("x"), KeyboardInterrupt(), SystemExit(3)):
        with pytest.raises(type(error)):
            leave(error)
    assert task(resources={"db": 1})(lambda: 5)() == 5


def held(gate: LocalGate, *names: str) -> frozenset[tuple[str, int]]:
    keys = frozenset((name, 0) for name in names)
    gate.acquire(0, keys)
    return keys


def start(gate: LocalGate, run: int, *names: str) -> threading.Event:
    """Acquires in a thread; the event tells that it got them."""
    got, before = threading.Event(), gate.waiting()

    def acquire() -> None:
        gate.acquire(run, frozenset((name, 0) for name in names))
        got.set()

    threading.Thread(target=acquire, daemon=True).start()
    while gate.waiting() == before and not got.is_set():
        got.wait(0.001)
    return got


def test_all_or_nothing_in_order_of_call() -> None:
    gate = LocalGate()
    a = held(gate, "a")
    both = start(gate, 1, "a", "b")
    behind, other = start(gate, 2, "b"), start(gate, 3, "c")
    assert other.wait(10)
    assert not both.is_set() and not behind.is_set()
    gate.release(0, a)
    assert both.wait(10)
    assert not behind.is_set()
    gate.release(1, frozenset({("a", 0), ("b", 0)}))
    assert behind.wait(10)


def test_a_run_that_holds_something_is_not_held_back() -> None:
    gate = LocalGate()
    held(gate, "a")
    start(gate, 1, "a", "b")
    # Run 0 holds what run 1 waits for: holding run 0 back would stop both.
    assert start(gate, 0, "b").wait(10)


def test_an_interrupted_wait_leaves_the_line(monkeypatch: pytest.MonkeyPatch) -> None:
    gate = LocalGate()
    a = held(gate, "a")

    def interrupt() -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(gate._changed, "wait", interrupt)
    with pytest.raises(KeyboardInterrupt):
        gate.acquire(1, frozenset({("a", 0)}))
    assert gate.waiting() == 0
    gate.release(0, a)
    gate.acquire(2, a)


def test_nothing_is_left_in_the_process_gate() -> None:
    assert GATE.waiting() == 0
    assert not GATE._busy and not GATE._held_by_run
