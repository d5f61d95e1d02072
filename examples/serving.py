"""A server of one folder with a home of its own, for programs that show or measure something."""

import collections
import contextlib
import json
import signal
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

TERMINAL = {"Completed", "Failed", "Cancelled", "Crashed", "Skipped"}


class Server:
    """A `mirab serve` on a free port, and its API."""

    def __init__(self, flows: Path, home: Path) -> None:
        command = [sys.executable, "-m", "mirab", "serve", str(flows), "--home", str(home), "--port", "0"]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        self.said = self.process.stdout.readline().rstrip()
        if not self.said:
            sys.exit(f"the server did not start (exit code {self.process.wait()})")
        # Whatever it says later must not fill the pipe and stop it.
        threading.Thread(target=lambda: collections.deque(self.process.stdout or [], maxlen=0), daemon=True).start()
        self.url = json.loads((home / "server.json").read_text())["url"]

    def call(self, method: str, path: str, body: Any = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        headers = {"Content-Type": "application/json"}
        request = urllib.request.Request(f"{self.url}/api{path}", data, headers, method=method)
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.load(answer)

    def stop(self) -> None:
        self.process.send_signal(signal.SIGINT)
        self.process.wait(timeout=30)


@contextlib.contextmanager
def served(flows: Path, home: Path) -> Iterator[Server]:
    server = Server(flows, home)
    try:
        yield server
    finally:
        server.stop()
