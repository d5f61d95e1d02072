"""A server of a few lines that speaks the worker protocol: one lease, answers to claims, and the reports it got."""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from queue import Queue
from typing import Any


class FakeServer:
    """Hands one lease out, then retires the engine."""

    def __init__(self, home: Path, lease: dict[str, Any]) -> None:
        self.lease = {"id": 7, "fence": 1, "ttl_s": 15.0, "heartbeat_s": 5.0, "params": {}, "attempt": 1, **lease}
        self.cancel = threading.Event()
        self.over = threading.Event()
        self.stale = False
        self.listen_s = 5.0
        self.beats = 0
        self.beats_at: dict[str, int] = {}
        self.refused: dict[str, str] = {}
        self.retry_once: set[str] = set()
        self.claims: list[dict[str, Any]] = []
        self.ends: list[dict[str, Any]] = []
        self.reports: Queue[tuple[str, dict[str, Any]]] = Queue()
        self._lock = threading.Lock()
        self._given = False
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._http.daemon_threads = True
        threading.Thread(target=self._http.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{self._http.server_address[1]}"
        (home / "server.json").write_text(json.dumps({"url": url, "pid": 1}))

    def answer(self, method: str, path: str, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        """One request."""
        kind = path.rsplit("/", 1)[1]
        if kind == "lease":
            return self._hand_out()
        if kind == "heartbeat":
            return self._heartbeat(body)
        if kind == "claims":
            return self._claim(body)
        if method == "DELETE":
            self.beats_at[method] = self.beats
            return self._end(int(kind), body)
        self.beats_at[kind] = self.beats
        self.over.set()
        self.reports.put((kind, body))
        return 200, {}

    def _hand_out(self) -> tuple[int, dict[str, Any]]:
        with self._lock:
            first, self._given = not self._given, True
        return 200, {"lease": self.lease if first else None, "retire": not first}

    def _heartbeat(self, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        self.beats += 1
        if body["wait_s"]:
            self.cancel.wait(min(body["wait_s"], self.listen_s))
        if self.cancel.is_set() and self.stale:
            return 409, problem(409, "StaleLease")
        return 200, {"cancel": self.cancel.is_set()}

    def _claim(self, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        with self._lock:
            self.claims.append(body)
            number = len(self.claims)
        if body["name"] in self.refused:
            return 422, problem(422, self.refused[body["name"]])
        if body["name"] == "stuck":
            self.cancel.set()
            self.over.wait(body["wait_s"])
            return 200, {"id": 100 + number, "fence": 0, "state": "AwaitingResource", "attempt": 0}
        return 200, {"id": 100 + number, "fence": 1, "state": "Running", "attempt": 1}

    def _end(self, claim: int, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        with self._lock:
            self.ends.append({"claim": claim, **body})
            name = self.claims[claim - 101]["name"]
            again = body["outcome"] == "failed" and name in self.retry_once
            self.retry_once.discard(name)
        return 200, {"retry_in_s": 0.01 if again else None}

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        fake = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def _any(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers.get("content-length", 0))) or b"{}")
                status, answer = fake.answer(self.command, self.path, body)
                text = json.dumps(answer).encode()
                self.send_response(status)
                self.send_header("content-length", str(len(text)))
                self.end_headers()
                self.wfile.write(text)

            do_POST = do_DELETE = _any

            def log_message(self, *_: object) -> None:
                pass

        return Handler


def problem(status: int, code: str) -> dict[str, Any]:
    """An error answer."""
    return {"type": "about:blank", "title": "t", "status": status, "code": code, "detail": f"refused: {code}"}
