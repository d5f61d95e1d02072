"""Flows and tasks that share limits.

A plain call of a flow runs in this process and returns its value; ``mirab serve DIR`` runs the same flows in engines,
where their resources are shared by every run on the machine.
"""

from importlib.metadata import PackageNotFoundError, version

from mirab import errors
from mirab._flow import Flow, flow
from mirab._task import Task, task
from mirab._tokens import cooldown, settle
from mirab.errors import Cancelled, MirabError

try:
    __version__ = version("mirab")
except PackageNotFoundError:  # used from a source tree
    __version__ = "0.0.0"

__all__ = [
    "Cancelled",
    "Flow",
    "MirabError",
    "Task",
    "__version__",
    "cooldown",
    "errors",
    "flow",
    "settle",
    "task",
]
