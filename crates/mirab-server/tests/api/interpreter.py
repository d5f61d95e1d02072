#!/usr/bin/env python3
"""Stands in for a Python with the package: finds the flows that flows.json lists, and executes runs without user code.

The body of a run does what its parameters say: it waits until the file `until` exists, claims the tasks `claims` one
after the other, and returns `result`; with `exit` the process ends in the middle.
"""
import json
import os
import pathlib
import shutil
import sys
import time
import urllib.error
import urllib.request


def main() -> None:
    module, arguments = sys.argv[3], sys.argv[4:]
    if module == "mirab._discover":
        discover(*arguments)
    else:
        options = dict(zip(arguments[::2], arguments[1::2], strict=True))
        engine(pathlib.Path(options["--home"]), pathlib.Path(options["--path"]), options)


def discover(directory: str, answer: str) -> None:
    if os.path.exists(os.path.join(directory, "discovery-fails")):
        sys.exit("Traceback\n  in flows.py\nSyntaxError: bad")
    if os.path.exists(os.path.join(directory, "no-package")):
        sys.exit("/usr/bin/python3: No module named mirab")
    edited = pathlib.Path(directory, "edit-while-starting")
    if edited.exists():
        edited.replace(pathlib.Path(directory, "mirab.toml"))
    shutil.copy(os.path.join(directory, "flows.json"), answer)


def engine(home: pathlib.Path, directory: pathlib.Path, options: dict[str, str]) -> None:
    if (directory / "engine-fails").exists():
        sys.exit("ImportError: no engine today")
    number = 0
    while home.exists():
        number += 1
        worker = options["--worker"]
        request = {"worker": worker, "project": options["--project"], "request_id": f"{worker}-{number}", "wait_s": 20}
        answer = call(home, "POST", f"/api/pools/{options['--pool']}/lease", request)
        if answer is None:
            time.sleep(0.02)  # the server is away
        elif answer.get("retire"):
            return
        elif answer.get("lease"):
            body(home, answer["lease"])
        elif "lease" not in answer:
            sys.exit("the server refused the request")


def body(home: pathlib.Path, lease: dict) -> None:
    path, fence, params = f"/api/leases/{lease['id']}", {"fence": lease["fence"]}, lease["params"]
    until = params.get("until")
    while True:
        beat = call(home, "POST", f"{path}/heartbeat", {**fence, "wait_s": 0.02})
        if beat and beat["cancel"]:
            error = {"type": "Cancelled", "message": "asked to"}
            call(home, "POST", f"{path}/fail", {**fence, "error": error, "cancelled": True})
            return
        if not home.exists() or not until or os.path.exists(until):
            break
    if "exit" in params:
        os._exit(params["exit"])
    while call(home, "POST", f"{path}/complete", {**fence, "result": params.get("result")}) is None and home.exists():
        time.sleep(0.02)


def call(home: pathlib.Path, method: str, path: str, body: dict) -> dict | None:
    try:
        url = json.loads((home / "server.json").read_text())["url"]
        headers = {"content-type": "application/json"}
        request = urllib.request.Request(url + path, json.dumps(body).encode(), headers, method=method)
        with urllib.request.urlopen(request, timeout=70) as answer:
            return json.loads(answer.read() or "{}")
    except urllib.error.HTTPError as error:
        return None if error.code == 503 else {}
    except (OSError, ValueError):
        return None


main()
