"""Flows and tasks that share limits.

A plain call of a flow runs in this process and returns its value; ``mirab serve DIR`` runs the same flows in engines,
where their resources are shared by every run on the machine. :class:`Scheduler` runs a program's own tasks in pools.
"""

from importlib.metadata import PackageNotFoundError, version

from mirab import errors
from mirab._flow import Flow, flow
from mirab._scheduler import Scheduler
from mirab._scheduler_events import Event, EventStream, Lagged
from mirab._scheduler_options import TaskOptions
from mirab._scheduler_pool import Pool, Resource
from mirab._scheduler_store import Codec, Json, Store, sqlite
from mirab._scheduler_task import Context, Handle
from mirab._task import Task, task
from mirab._tokens import cooldown, settle
from mirab.errors import Cancelled, MirabError, Permanent, Retryable

try:
    __version__ = version("mirab")
except PackageNotFoundError:  # used from a source tree
    __version__ = "0.0.0"

__all__ = [
    "Cancelled",
    "Codec",
    "Context",
    "Event",
    "EventStream",
    "Flow",
    "Handle",
    "Json",
    "Lagged",
    "MirabError",
    "Permanent",
    "Pool",
    "Resource",
    "Retryable",
    "Scheduler",
    "Store",
    "Task",
    "TaskOptions",
    "__version__",
    "cooldown",
    "errors",
    "flow",
    "settle",
    "sqlite",
    "task",
]
