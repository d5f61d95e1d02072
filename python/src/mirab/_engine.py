"""``python -m mirab._engine``: the process that runs the flows of one project, one run at a time.

Only a loop: leases, heartbeats and reports are the native engine's.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import os
import sys
import traceback
from pathlib import Path
from typing import Any

from mirab._context import process
from mirab._execute import run_body, run_body_async
from mirab._failure import failure
from mirab._interrupt import Interrupt
from mirab._load import Freshness, load_flow, use_project
from mirab._native import Engine
from mirab._pool import TaskPool
from mirab._served import ServedRun, ServedTicket
from mirab.errors import MirabError


class EngineLoop:
    """Takes leases until it is told to end."""

    def __init__(self, engine: Engine, interrupt: Interrupt, directory: Path) -> None:
        self._engine = engine
        self._interrupt = interrupt
        self._directory = directory
        self._files = Freshness(directory)
        self._pid = os.getpid()

    def run(self) -> None:
        """One run after the other."""
        while True:
            # Before the lease is taken: a request to stop may come with its first heartbeat.
            self._interrupt.reset()
            lease = self._engine.next()
            if lease is None:
                return
            self._run_one(json.loads(lease))

    def _run_one(self, lease: dict[str, Any]) -> None:
        error: BaseException | None = None
        value = None
        try:
            value = self._execute(lease)
        except BaseException as raised:  # also SystemExit: the engine outlives the body
            error = raised
        _flush()
        if os.getpid() != self._pid:
            # The body has forked and its child came back here: the run, its lease and its report are the parent's.
            os._exit(0 if error is None else 1)
        if self._interrupt.why == "stale":
            self._engine.abandon()
        elif error is not None:
            self._engine.fail(json.dumps({"error": failure(error), "cancelled": self._interrupt.why == "cancel"}))
        else:
            self._complete(value)

    def _execute(self, lease: dict[str, Any]) -> object:
        run = ServedRun(self._engine, self._interrupt)
        ticket, outside = ServedTicket(), TaskPool()

        def call() -> Any:
            self._files.forget_changed()
            flow = load_flow(self._directory, lease["file"], lease["function"])
            return flow, flow.call("", (), lease["params"])

        try:
            flow, made = self._interrupt.guard(call)
            if flow.is_async:
                return self._interrupt.guard_async(lambda: run_body_async(made, run, ticket, outside))
            return self._interrupt.guard(lambda: run_body(made, run, ticket, outside))
        finally:
            self._files.note()

    def _complete(self, value: object) -> None:
        try:
            try:
                self._engine.complete(_report(value))
            except (ValueError, RecursionError):
                # JSON for Python, but with numbers or a depth that others do not read.
                self._engine.complete(_NO_RESULT)
        except MirabError as refused:
            # The flow has ended and its units are to be freed, though its result is not wanted.
            self._engine.fail(json.dumps({"error": failure(refused), "cancelled": False}))


_NO_RESULT = '{"result": null}'


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        # Whoever read it may be gone, and the flow may have put anything in its place; the run goes on all the same.
        with contextlib.suppress(OSError, ValueError, AttributeError):
            stream.flush()


def _report(value: object) -> str:
    """The result where it is JSON, else null: it stays a Python object of this process."""
    try:
        report = json.dumps({"result": value}, allow_nan=False, ensure_ascii=False)
        report.encode("utf-8")
    except (TypeError, ValueError, RecursionError):
        return _NO_RESULT
    return report


def _options(argv: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="mirab._engine", description="Runs flows for a server; started by it.")
    parser.add_argument("--home", required=True)
    parser.add_argument("--worker", required=True)
    parser.add_argument("--project", required=True)
    parser.add_argument("--path", required=True, help="the project's directory")
    parser.add_argument("--pool", default="default")
    return parser.parse_args(argv)


def main(argv: list[str] | None = None) -> int:
    """Runs until the server retires this engine or stays away."""
    options = _options(argv)
    # Before the directory changes: the home may be given relative to this one.
    home, directory = Path(options.home).resolve(), Path(options.path).resolve()
    os.chdir(directory)
    if isinstance(sys.stdout, io.TextIOWrapper):
        # The log is read while the run goes on, and the process may be killed.
        sys.stdout.reconfigure(line_buffering=True)
    use_project(directory)
    process.is_engine = True
    os.register_at_fork(after_in_child=lambda: setattr(process, "is_forked", True))
    interrupt = Interrupt()
    interrupt.install()
    engine = Engine(str(home), options.worker, options.project, options.pool, interrupt.ask)
    try:
        EngineLoop(engine, interrupt, directory).run()
    except MirabError:
        traceback.print_exc()
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
