"""Every exception that Mirab raises.

Each has a stable ``code``, which is the name of its class, and a ``detail`` for people.
"""

__all__ = [
    "Cancelled",
    "InvalidConfig",
    "InvalidOption",
    "InvalidParams",
    "InvalidResource",
    "KeyConflict",
    "MirabError",
    "Permanent",
    "QueueFull",
    "ResourceDeadlock",
    "ResourceExceedsCapacity",
    "ResourceInUse",
    "ResourceOnOtherShard",
    "Retryable",
    "SchedulerClosed",
    "StaleLease",
    "StoreLocked",
    "StoreUnavailable",
    "TaskCancelled",
    "TaskExpired",
    "TaskFailed",
    "TaskSkipped",
    "TaskTimedOut",
    "TemplateError",
    "UnknownFlow",
    "UnknownPool",
    "UnknownResource",
    "UnknownTask",
    "Unreachable",
    "from_code",
]


class MirabError(RuntimeError):
    """Something that Mirab refuses or cannot do. Errors whose code has no class of its own are of this one."""

    def __init__(self, detail: str, code: str | None = None) -> None:
        super().__init__(detail)
        self.detail = detail
        self.code = code or type(self).__name__


class InvalidConfig(MirabError, ValueError):
    """A ``mirab.toml`` that cannot be used; says where and why."""


class InvalidOption(MirabError, ValueError):
    """An option of a flow or task that does not exist or has a wrong value."""


class InvalidParams(MirabError, TypeError):
    """A parameter of a flow that is missing, unknown, or not what its annotation says."""


class InvalidResource(MirabError, ValueError):
    """A resource with units below one, or with a bad or reserved name."""


class UnknownResource(MirabError):
    """No declaration matches the name."""


class ResourceExceedsCapacity(MirabError):
    """More units than the resource has, or than the run holds."""


class TemplateError(MirabError):
    """A field of a name's template is missing or empty."""


class ResourceDeadlock(MirabError):
    """The task would wait for units whose holders wait for its own run."""


class UnknownFlow(MirabError):
    """No such flow."""


class StoreLocked(MirabError):
    """The file of a durable scheduler that another one has."""


class StoreUnavailable(MirabError):
    """The server cannot write now; nothing was accepted."""


class Unreachable(MirabError):
    """No server answers on this home."""


class UnknownPool(MirabError):
    """No pool has the name."""


class UnknownTask(MirabError):
    """No task has the id, or it ended so long ago that it is not remembered."""


class ResourceOnOtherShard(MirabError):
    """The resource belongs to another shard."""


class ResourceInUse(MirabError):
    """A resource or pool that is held or waited for cannot be taken away."""


class QueueFull(MirabError):
    """As many tasks wait for the pool as may."""


class KeyConflict(MirabError):
    """The key belongs to a task that asked for something else."""


class SchedulerClosed(MirabError):
    """The scheduler was not started, takes no tasks any more, or its event loop is gone."""


class TaskFailed(MirabError):
    """The task's last attempt failed; what its body raised is the ``__cause__``."""


class TaskTimedOut(TaskFailed):
    """The task's last attempt took longer than its timeout."""


class TaskCancelled(MirabError):
    """The task was cancelled."""


class TaskExpired(MirabError):
    """The task did not start in time, and has consumed nothing."""


class TaskSkipped(MirabError):
    """What the task was to come after did not end as it should."""


class Retryable(Exception):
    """Raised by an executor: try again if retries are left, after ``retry_after`` seconds where that is given.

    One that has passed, as a moment in an HTTP header may have, is now.
    """

    def __init__(self, *args: object, retry_after: float | None = None) -> None:
        if retry_after is not None and (
            isinstance(retry_after, bool) or not isinstance(retry_after, (int, float)) or retry_after != retry_after
        ):
            raise InvalidOption(f"retry_after={retry_after!r}: expected a number of seconds")
        super().__init__(*args)
        self.retry_after = retry_after


class Permanent(Exception):
    """Raised by an executor: another attempt would fail as well."""


class Cancelled(BaseException):
    """Raised inside a body that is to stop: clean up and let it pass.

    Not an ``Exception``, so that ``except Exception`` in a flow does not swallow it.
    """

    def __init__(self, detail: str = "the run was cancelled", code: str | None = None) -> None:
        super().__init__(detail)
        self.detail = detail
        self.code = code or type(self).__name__


class StaleLease(Cancelled):
    """The run was given to somebody else after this process lost touch: stop, nothing can be reported."""


_BY_CODE: dict[str, type[MirabError] | type[Cancelled]] = {
    kind.__name__: kind
    for kind in (
        InvalidConfig,
        InvalidResource,
        UnknownResource,
        ResourceExceedsCapacity,
        TemplateError,
        ResourceDeadlock,
        UnknownFlow,
        UnknownPool,
        UnknownTask,
        ResourceOnOtherShard,
        ResourceInUse,
        QueueFull,
        KeyConflict,
        StoreLocked,
        StoreUnavailable,
        Unreachable,
        Cancelled,
        StaleLease,
    )
}


def from_code(code: str, detail: str) -> MirabError | Cancelled:
    """The exception for an error code of the server."""
    return _BY_CODE.get(code, MirabError)(detail, code)
