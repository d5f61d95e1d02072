"""A real server with real engines: the folder that it serves, its home, its API, and its command line."""

import json
import os
import queue
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote

from gates import Gates

T = TypeVar("T")

LIMIT_S = 30.0
TERMINAL = {"Completed", "Failed", "Cancelled", "Crashed", "Skipped"}
# Tests are of what runs at the same time, and most engines only wait at a gate: they may be more than the CPUs.
SERVER = "[server]\nmax_engines = {engines}\nengines_per_cpu = 16\n"

# Flows that fit most tests: what they want is said when they are submitted.
FLOWS = '''
from mirab import flow, task
from gate import hold as wait_at


@task
def work(name: str) -> str:
    return wait_at(name)


@task
def nothing(name: str) -> str:
    return name


@flow
def hold(name: str) -> str:
    """Waits at a gate, holding what its run was given."""
    return wait_at(name)


@flow
def quick(name: str = "") -> str:
    return name


@flow
def call(name: str, wants: dict[str, int]) -> str:
    """Calls a task that wants resources and waits at a gate."""
    return work.with_options(resources=wants)(name)


@flow
def fan(name: str, count: int, wants: dict[str, int]) -> list[str]:
    """Calls as many such tasks side by side, which end at once."""
    fast = nothing.with_options(resources=wants)
    return [future.result() for future in fast.map(f"{name}{number}" for number in range(count))]


@flow
def spread(name: str, count: int, wants: dict[str, int]) -> int:
    """Calls as many tasks side by side, which all wait at one gate."""
    return len([future.result() for future in work.with_options(resources=wants).map([name] * count)])
'''


class Refused(Exception):
    """The server answered with a problem."""

    def __init__(self, status: int, problem: dict[str, Any]) -> None:
        super().__init__(f"{status} {problem['code']}: {problem['detail']}")
        self.status, self.code, self.detail = status, problem["code"], problem["detail"]


def eventually(check: Callable[[], T], what: str, limit_s: float = LIMIT_S) -> T:
    """Asks again and again until the answer is true, and gives it: for what can only be seen by asking."""
    until = time.monotonic() + limit_s
    while True:
        answer = check()
        if answer:
            return answer
        if time.monotonic() > until:
            raise TimeoutError(f"waited {limit_s:.0f} s for {what}; last answer: {answer!r}")
        time.sleep(0.02)


class Api:
    """The server's HTTP interface."""

    def __init__(self, url: str, token: str) -> None:
        self.url = url
        self._headers = {"Content-Type": "application/json", "Authorization": f"Bearer {token}"}

    def call(self, method: str, path: str, body: Any = None) -> Any:
        """One request; a problem is raised as Refused."""
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"{self.url}/api{path}", data, self._headers, method=method)
        try:
            with urllib.request.urlopen(request, timeout=LIMIT_S) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as error:
            with error:
                assert error.headers["content-type"] == "application/problem+json"
                raise Refused(error.code, json.load(error)) from None

    def get(self, path: str) -> Any:
        return self.call("GET", path)

    def submit(self, flow: str, params: dict[str, Any] | None = None, **rest: Any) -> dict[str, Any]:
        """The new run; `rest` is resources, priority, tags and so on."""
        return self.call("POST", "/runs", {"flow": flow, "params": params or {}, **rest})

    def hold(self, name: str, **rest: Any) -> int:
        """Submits a run that waits at the gate of this name; gives its id."""
        return self.submit("hold", {"name": name}, **rest)["id"]

    def calls(self, name: str, wants: dict[str, int], **rest: Any) -> int:
        """Submits a run whose one task wants resources and waits at the gate of this name; gives its id."""
        return self.submit("call", {"name": name, "wants": wants}, **rest)["id"]

    def run(self, run: int) -> dict[str, Any]:
        return self.get(f"/runs/{run}")

    def why(self, run: int) -> dict[str, Any]:
        return self.get(f"/runs/{run}/why")

    def tasks(self, run: int) -> list[dict[str, Any]]:
        return self.get(f"/runs/{run}/tasks")["tasks"]

    def events(self, run: int) -> list[dict[str, Any]]:
        return self.get(f"/runs/{run}/events")["events"]

    def states(self, run: int) -> list[str]:
        """The states that the run itself went through, as they were stored."""
        return [each["state"] for each in self.events(run) if each["kind"] == "run.state"]

    def cancel(self, run: int) -> dict[str, Any]:
        return self.call("POST", f"/runs/{run}/cancel", {})

    def queue(self) -> dict[str, Any]:
        return self.get("/queue?limit=10000")

    def resource(self, name: str) -> dict[str, Any]:
        return self.get(f"/resources/{quote(name, safe='')}")

    def resources(self) -> dict[str, dict[str, Any]]:
        return {each["name"]: each for each in self.get("/resources")["resources"]}

    def in_state(self, run: int, *states: str) -> dict[str, Any]:
        """The run once it is in one of these states."""
        seen: dict[str, Any] = {}

        def check() -> dict[str, Any] | None:
            seen.update(self.run(run))
            assert seen["state"] in states or seen["state"] not in TERMINAL, f"ended otherwise: {seen}"
            return seen if seen["state"] in states else None

        return eventually(check, f"run {run} to be {' or '.join(states)}")

    def completed(self, *runs: int) -> list[Any]:
        """The results of runs once all of them are Completed."""
        return [self.in_state(run, "Completed")["result"] for run in runs]

    def waiting_task(self, run: int) -> dict[str, Any]:
        """The row of the line in which a task of this run waits, once there is one."""

        def check() -> dict[str, Any] | None:
            rows = self.queue()["waiting"]
            return next((row for row in rows if row["run_id"] == run and row["kind"] == "task"), None)

        return eventually(check, f"a task of run {run} to wait")

    def engine_of(self, run: int) -> dict[str, Any]:
        """The engine that executes the run."""
        engines = self.queue()["engines"]
        return next(each for each in engines if each["run_id"] == run)


class Served:
    """A folder with flows, its home, its gates and the server."""

    def __init__(self, base: Path, flows: dict[str, str], config: str, engines: int) -> None:
        self.home, self.folder, self.gates = base / "home", base / "shop", Gates()
        self.config = SERVER.format(engines=engines) + config
        self.process: subprocess.Popen[str] | None = None
        self.said: list[str] = []
        self._errors = base / "server.err"
        self.write(self.folder, {**flows, "mirab.toml": self.config})

    def write(self, folder: Path, files: dict[str, str]) -> None:
        """Makes a folder that can be served, with the gates at hand."""
        folder.mkdir(exist_ok=True)
        for name, text in {"gate.py": self.gates.client, **files}.items():
            (folder / name).write_text(text, encoding="utf-8")

    def start(self, *args: str) -> Api:
        """Starts the server and returns once it is ready."""
        self.process = self.spawn("serve", str(self.folder), "--port", "0", *args)
        lines: queue.Queue[str] = queue.Queue()
        threading.Thread(target=self._read, args=(self.process, lines), daemon=True).start()
        line = lines.get(timeout=LIMIT_S)
        if not line.startswith("serving "):
            raise RuntimeError(f"the server did not start: {line}{self.errors()}")
        return self.api

    @property
    def api(self) -> Api:
        """The API where the server answers now."""
        url = json.loads((self.home / "server.json").read_text())["url"]
        return Api(url, (self.home / "token").read_text().strip())

    def kill(self) -> None:
        """kill -9 of the server; its engines live on."""
        assert self.process is not None
        self.process.kill()
        self.process.wait(LIMIT_S)

    def end(self, how: signal.Signals) -> int:
        """Ends the server in order; gives its exit code."""
        assert self.process is not None
        self.process.send_signal(how)
        return self.process.wait(LIMIT_S)

    def restart(self) -> Api:
        """Kills the server and starts it again."""
        self.kill()
        return self.start()

    def errors(self) -> str:
        """What the server wrote to standard error."""
        return self._errors.read_text(encoding="utf-8")

    def spawn(self, *args: str) -> subprocess.Popen[str]:
        """Starts a command on this home, without waiting for it."""
        with open(self._errors, "a", encoding="utf-8") as errors:
            return subprocess.Popen(self._command(*args), stdout=subprocess.PIPE, stderr=errors, text=True, env=_env())

    def cli(self, *args: str) -> subprocess.CompletedProcess[str]:
        """Runs a command on this home to its end."""
        command = self._command(*args)
        return subprocess.run(command, capture_output=True, text=True, env=_env(), timeout=LIMIT_S, cwd=self.folder)

    def json(self, *args: str) -> Any:
        """The one JSON document that a command prints, which has to succeed."""
        ended = self.cli("--json", *args)
        assert ended.returncode == 0, ended.stderr
        return json.loads(ended.stdout)

    def close(self) -> None:
        """Ends the server and every engine of this home, whatever happened before."""
        self.gates.close()
        if self.process is not None:
            self.process.kill()
            self.process.wait(LIMIT_S)
        for pid in self.engines():
            with suppress(ProcessLookupError):
                os.killpg(pid, signal.SIGKILL)
        eventually(lambda: not self.engines(), "the killed engines to end")

    def engines(self) -> list[int]:
        """All engine processes of this home, known to the server or not; each leads its group."""
        found = []
        for folder in Path("/proc").iterdir():
            with suppress(OSError, ValueError):
                words = (folder / "cmdline").read_bytes().split(b"\0")
                if b"mirab._engine" in words and os.fsencode(self.home) in words:
                    found.append(int(folder.name))
        return found

    def _command(self, *args: str) -> list[str]:
        return [sys.executable, "-m", "mirab", "--home", str(self.home), *args]

    def _read(self, process: subprocess.Popen[str], lines: "queue.Queue[str]") -> None:
        assert process.stdout is not None
        for line in process.stdout:
            self.said.append(line)
            lines.put(line)
        lines.put("")


def _env() -> dict[str, str]:
    """The environment without what would change a server's settings."""
    return {name: value for name, value in os.environ.items() if not name.startswith("MIRAB_")}


@contextmanager
def serving(config: str, flows: dict[str, str] | None = None, engines: int = 4, start: bool = True) -> Iterator[Served]:
    """A server that is ready; all that belongs to it has ended afterwards."""
    # Not pytest's own folder: those are kept, and the home is real.
    base = Path(tempfile.mkdtemp(prefix="mirab-test-")).resolve()
    served = Served(base, flows or {"flows.py": FLOWS}, config, engines)
    try:
        if start:
            served.start()
        yield served
    finally:
        served.close()
        shutil.rmtree(base, ignore_errors=True)


def most_at_once(spans: list[tuple[float, float]]) -> int:
    """The most spans that overlap; one that ends as another begins does not."""
    edges = sorted([(end, 0) for _, end in spans] + [(start, 1) for start, _ in spans])
    now = most = 0
    for _, begins in edges:
        now += 1 if begins else -1
        most = max(most, now)
    return most


def come_to_rest(served: Served) -> None:
    """Ends what a test left, and checks that nothing waits, nothing is held and nothing was given back twice."""
    api = served.api
    live = ",".join(["Scheduled", "Queued", "AwaitingResource", "Pending", "Running", "AwaitingRetry", "Cancelling"])
    for run in api.get(f"/runs?limit=1000&state={live}")["runs"]:
        api.cancel(run["id"])
    eventually(lambda: not api.get(f"/runs?state={live}")["runs"], "all runs to end")
    assert api.queue()["total"] == 0
    for name, resource in api.resources().items():
        if resource["kind"] != "pattern":
            detail = api.resource(name)
            assert (detail["used"], detail["holders"], detail["waiters"]) == (0, [], 0), name
    health = api.get("/health")
    assert (health["priority_inversions"], health["double_releases"]) == (0, 0)
