"""``mirab run FILE:FLOW``: one offline run in a process of its own.

Standard output holds the result alone, as JSON; what the flow prints goes to standard error.
"""

from __future__ import annotations

import argparse
import asyncio
import inspect
import io
import json
import os
import sys
from pathlib import Path
from typing import Any, TextIO

from mirab._failure import failure
from mirab._flow import Flow
from mirab._load import load_module, use_project
from mirab._options import near
from mirab.errors import InvalidParams, UnknownFlow

_OK, _FAILED, _USAGE, _INTERRUPTED = 0, 1, 2, 130


def main(argv: list[str] | None = None) -> int:
    """Runs the flow; gives the exit code of the ``mirab`` command."""
    options = _options(argv)
    result = _take_output()
    try:
        flow = _find(options.file, options.flow)
        value: Any = flow(**json.loads(options.params))
        if inspect.isawaitable(value):
            value = asyncio.run(_awaited(value))
    except (InvalidParams, UnknownFlow) as error:
        if not _is_of_the_body(error):
            print(f"error[{error.code}]: {error.detail}", file=sys.stderr)
            return _USAGE
        return _tell(error)
    except KeyboardInterrupt:
        return _INTERRUPTED
    except BaseException as error:  # also SystemExit: a flow that exits has not returned
        return _tell(error)
    return _print(value, result)


def _options(argv: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="mirab._run", description="Runs a flow of a file, offline.")
    parser.add_argument("file", type=Path)
    parser.add_argument("flow")
    parser.add_argument("--params", default="{}", help="parameters by name, as JSON")
    return parser.parse_args(argv)


def _take_output() -> TextIO:
    """Standard output for the result; whatever else is written there, also by children, goes to standard error."""
    sys.stdout.flush()
    result = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    if isinstance(sys.stdout, io.TextIOWrapper):
        # In step with what goes to standard error by itself.
        sys.stdout.reconfigure(line_buffering=True)
    return result


def _find(file: Path, name: str) -> Flow[..., Any]:
    """A flow by its own name, or by the name that the file has for it."""
    file = file.resolve()
    use_project(file.parent)
    module = load_module(file.parent, file.name)
    flows = {attribute: value for attribute, value in vars(module).items() if isinstance(value, Flow)}
    by_name = {flow.options["name"]: flow for flow in flows.values()}
    found = by_name.get(name) or flows.get(name)
    if found is None:
        known = ", ".join(sorted(by_name)) or "none"
        raise UnknownFlow(f"{file.name} has no flow '{name}'{near(name, by_name)}: its flows are {known}")
    return found


async def _awaited(value: Any) -> Any:
    return await value


def _is_of_the_body(error: BaseException) -> bool:
    """True when code of the user raised it, such as a flow that calls another one wrongly."""
    package = Path(__file__).parent
    trace, users = error.__traceback__, False
    while trace is not None:
        users = users or Path(trace.tb_frame.f_code.co_filename).parent != package
        trace = trace.tb_next
    return users


def _tell(error: BaseException) -> int:
    print(failure(error)["traceback"], end="", file=sys.stderr)
    return _FAILED


def _print(value: object, result: TextIO) -> int:
    try:
        text = json.dumps(value, allow_nan=False, ensure_ascii=False)
        text.encode("utf-8")
    except (TypeError, ValueError, RecursionError):
        print(
            f"note: the result is of type {type(value).__name__}, which is not JSON: null stands for it",
            file=sys.stderr,
        )
        text = "null"
    try:
        print(text, file=result, flush=True)
    except BrokenPipeError:  # the reader has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), result.fileno())
    return _OK
