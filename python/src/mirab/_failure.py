"""How an exception is told to the server."""

import traceback
from pathlib import Path
from typing import Any

_PACKAGE = Path(__file__).parent


def failure(error: BaseException) -> dict[str, Any]:
    """Type, message and traceback of an exception, without the frames of this package above the user's own."""
    told = traceback.TracebackException.from_exception(error)
    _drop_own_frames(told)
    return {
        "type": type(error).__name__,
        "message": _encodable(_said(error)),
        "traceback": _encodable("".join(told.format())),
    }


def _said(error: BaseException) -> str:
    try:
        return str(error)
    except Exception as broken:  # of the user's own __str__
        return f"its text cannot be read: {type(broken).__name__}"


def _drop_own_frames(told: traceback.TracebackException | None) -> None:
    while told is not None:
        users = [frame for frame in told.stack if Path(frame.filename).parent != _PACKAGE]
        # An error of this package alone is shown as it is.
        if users:
            told.stack[:] = users
        _drop_own_frames(told.__context__)
        told = told.__cause__


def _encodable(text: str) -> str:
    # A lone surrogate, as from the name of a file, is no valid text outside Python.
    return text.encode("utf-8", "backslashreplace").decode("utf-8")
