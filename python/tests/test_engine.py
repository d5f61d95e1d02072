"""The engine process against a server that speaks the worker protocol."""

import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("mirab._native", reason="the native module is not built: run `maturin develop`")

from fake_server import FakeServer

HEAD = "import asyncio, signal, sys, time\nfrom mirab import flow, task\nimport mirab\n"


class Project:
    """A directory with one file, its home, and the engine that runs it."""

    def __init__(self, directory: Path) -> None:
        self.home = directory / "home"
        self.path = directory / "project"
        self.home.mkdir()
        self.path.mkdir()

    def server(self, text: str, function: str = "main", **lease: Any) -> FakeServer:
        (self.path / "flows.py").write_text(HEAD + textwrap.dedent(text))
        return FakeServer(self.home, {"flow": function, "file": "flows.py", "function": function, **lease})

    def run(self, server: FakeServer) -> tuple[str, dict[str, Any]]:
        """Starts the engine as a supervisor would, SIGINT ignored; gives the report once it has ended by itself."""
        command = [sys.executable, "-m", "mirab._engine", "--home", str(self.home), "--worker", "engine-1"]
        command += ["--project", "shop", "--path", str(self.path)]
        env = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1] / "src")}
        ignored = signal.signal(signal.SIGINT, signal.SIG_IGN)
        try:
            engine = subprocess.Popen(command, env=env)
        finally:
            signal.signal(signal.SIGINT, ignored)
        try:
            assert engine.wait(timeout=60) == 0
        finally:
            engine.kill()
        return server.reports.get(timeout=1)


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


def test_a_run_completes_with_coerced_parameters(project: Project) -> None:
    server = project.server(
        """
        @flow
        def main(rows: int) -> int:
            return rows + 1
        """,
        params={"rows": "4"},
    )
    assert project.run(server) == ("complete", {"fence": 1, "result": 5})


def test_a_result_that_is_no_json_is_null(project: Project) -> None:
    server = project.server("@flow\ndef main():\n    return object()\n")
    assert project.run(server) == ("complete", {"fence": 1, "result": None})


@pytest.mark.parametrize(
    "value", ["10**400", "__import__('functools').reduce(lambda inner, _: [inner], range(300), 1)"], ids=["big", "deep"]
)
def test_a_result_that_only_python_reads_is_null(project: Project, value: str) -> None:
    server = project.server(f"@flow\ndef main():\n    return {value}\n")
    assert project.run(server) == ("complete", {"fence": 1, "result": None})


def test_a_body_may_take_the_streams_away_and_raise_what_cannot_be_read(project: Project) -> None:
    server = project.server(
        """
        class Mute(Exception):
            def __str__(self):
                raise OSError

        @flow
        def main():
            sys.stdout = sys.stderr = None
            raise Mute
        """
    )
    kind, report = project.run(server)
    assert (kind, report["error"]["type"]) == ("fail", "Mute")
    assert report["error"]["message"] == "its text cannot be read: OSError"


def test_a_file_may_call_its_flow_when_it_is_imported(project: Project) -> None:
    server = project.server(
        """
        @task(resources={"db": 1})
        def load():
            return 1

        @flow(resources={"gpu": 1})
        def main():
            return load()

        assert main() == 1
        """
    )
    assert project.run(server) == ("complete", {"fence": 1, "result": 1})
    assert len(server.claims) == 1


def test_tasks_in_threads_of_the_flow_claim_too(project: Project) -> None:
    server = project.server(
        """
        import threading

        @task(resources={"db": 1})
        def load():
            return 1

        @flow
        def main():
            thread = threading.Thread(target=load)
            thread.start()
            thread.join()
            return 2
        """
    )
    assert project.run(server) == ("complete", {"fence": 1, "result": 2})
    assert [claim["resources"] for claim in server.claims] == [{"db": 1}]


def test_a_forked_child_has_no_part_in_the_run(project: Project) -> None:
    server = project.server(
        """
        import os

        @task
        def load():
            return 1

        @flow
        def main():
            child = os.fork()
            if child == 0:
                load()  # Refused; and the child never reports.
            return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        """
    )
    assert project.run(server) == ("complete", {"fence": 1, "result": 1})


def test_tasks_claim_with_keys_parents_and_retries(project: Project) -> None:
    server = project.server(
        """
        tries = []

        @task(resources={"db": 1}, retries=1, retry_delay=0.5, tags=["t"])
        def inner():
            tries.append(1)
            if len(tries) == 1:
                raise ValueError("once")
            return 1

        @task
        def outer():
            return inner()

        @flow(resources={"gpu": 1})
        def child():
            return outer.submit().result()

        @flow
        def main():
            return child()
        """
    )
    server.retry_once.add("inner")
    assert project.run(server) == ("complete", {"fence": 1, "result": 1})
    child, outer, inner, again = server.claims
    assert child["resources"] == {"gpu": 1} and child["parent"] is None
    assert (outer["parent"], inner["parent"]) == (101, 102)
    assert (inner["key"], inner["tags"], inner["retries"], inner["retry_delay_s"]) == ("inner-3", ["t"], 1, 0.5)
    assert again["key"] == inner["key"]
    assert [end["outcome"] for end in server.ends] == ["failed", "completed", "completed", "completed"]
    assert server.ends[0]["error"]["type"] == "ValueError"


def test_async_tasks_claim_beside_each_other(project: Project) -> None:
    server = project.server(
        """
        @task
        async def one(i):
            await asyncio.sleep(0)
            return i

        @flow
        async def main():
            return await asyncio.gather(*(one(i) for i in range(20)))
        """
    )
    assert project.run(server) == ("complete", {"fence": 1, "result": list(range(20))})
    assert len({claim["key"] for claim in server.claims}) == 20


def test_a_refused_task_raises_the_class_of_its_code(project: Project) -> None:
    server = project.server(
        """
        @task(resources={"dbb": 1})
        def typo():
            pass

        @flow
        def main():
            typo()
        """
    )
    server.refused["typo"] = "UnknownResource"
    kind, report = project.run(server)
    assert (kind, report["cancelled"], report["error"]["type"]) == ("fail", False, "UnknownResource")


@pytest.mark.parametrize("leave", ["raise KeyError('gone')", "sys.exit(3)", "raise ValueError('\\udcff')"])
def test_an_error_is_reported_with_the_users_frames(project: Project, leave: str) -> None:
    server = project.server(f"@flow\ndef main():\n    {leave}\n")
    kind, report = project.run(server)
    assert (kind, report["cancelled"]) == ("fail", False)
    assert "in main" in report["error"]["traceback"]
    assert "_execute.py" not in report["error"]["traceback"]


def test_a_file_that_does_not_import_and_a_flow_that_is_gone_are_errors_of_the_run(project: Project) -> None:
    assert project.run(project.server("1 / 0\n"))[1]["error"]["type"] == "ZeroDivisionError"
    assert project.run(project.server("x = 1\n"))[1]["error"]["type"] == "UnknownFlow"


# Each body tells that it has begun by the claim of `begin`, after which the cancel is asked for.
CANCELLED = {
    "sleeping": "time.sleep(600)",
    "looping": "while True: pass",
    "waiting for a thread": "task(lambda: time.sleep(1), name='x').submit().result(); time.sleep(600)",
    "waiting for a limit": "task(lambda: None, name='stuck')()",
    "sure of itself": "\n    while True:\n        try:\n            time.sleep(600)\n        except Exception: pass",
}


@pytest.mark.parametrize("body", CANCELLED.values(), ids=CANCELLED.keys())
def test_a_cancel_gets_the_body_out(project: Project, body: str) -> None:
    server = project.server(f"@flow\ndef main():\n    task(lambda: None, name='begin')()\n    {body}\n")
    cancel_after_begin(server)
    kind, report = project.run(server)
    assert (kind, report["cancelled"], report["error"]["type"]) == ("fail", True, "Cancelled")


def cancel_after_begin(server: FakeServer) -> None:
    end = server._end

    def cancelling(claim: int, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        server.cancel.set()
        return end(claim, body)

    server._end = cancelling  # type: ignore[method-assign]


def test_a_cancelled_async_body_may_clean_up(project: Project) -> None:
    server = project.server(
        """
        @task
        async def tidy():
            pass

        @flow
        async def main():
            await tidy()
            try:
                await asyncio.sleep(600)
            finally:
                print("cleaned")
        """
    )
    cancel_after_begin(server)
    kind, report = project.run(server)
    assert (kind, report["cancelled"], report["error"]["type"]) == ("fail", True, "Cancelled")


def test_a_body_that_cleans_up_is_interrupted_once(project: Project) -> None:
    server = project.server(
        """
        @flow
        def main():
            try:
                # The cancel may come before this call has returned.
                task(lambda: None, name="begin")()
                time.sleep(600)
            except mirab.Cancelled:
                time.sleep(0.3)
                return "cleaned"
        """
    )
    cancel_after_begin(server)
    assert project.run(server) == ("complete", {"fence": 1, "result": "cleaned"})


def test_a_lost_lease_is_not_reported(project: Project) -> None:
    server = project.server("@flow\ndef main():\n    task(lambda: None, name='begin')()\n    time.sleep(600)\n")
    server.stale = True
    cancel_after_begin(server)
    with pytest.raises(Exception, match=r"^$"):
        project.run(server)
    assert server.reports.empty()


def test_the_interpreters_lock_does_not_stop_heartbeats(project: Project) -> None:
    server = project.server(
        """
        @flow
        def main():
            sys.set_int_max_str_digits(0)
            number = 3 ** 1_000_000
            task(lambda: None, name="begin")()
            # One long call that never lets the interpreter's lock go.
            return len(str(number))
        """
    )
    server.listen_s = 0.01
    assert project.run(server)[0] == "complete"
    assert server.beats_at["complete"] - server.beats_at["DELETE"] > 10
