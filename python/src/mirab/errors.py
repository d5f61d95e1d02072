"""Every exception that Mirab raises.

Each has a stable ``code``, which is the name of its class, and a ``detail`` for people.
"""

__all__ = [
    "Cancelled",
    "InvalidOption",
    "InvalidParams",
    "InvalidResource",
    "MirabError",
    "ResourceDeadlock",
    "ResourceExceedsCapacity",
    "StaleLease",
    "StoreUnavailable",
    "TemplateError",
    "UnknownFlow",
    "UnknownResource",
    "Unreachable",
    "from_code",
]


class MirabError(RuntimeError):
    """Something that Mirab refuses or cannot do. Errors whose code has no class of its own are of this one."""

    def __init__(self, detail: str, code: str | None = None) -> None:
        super().__init__(detail)
        self.detail = detail
        self.code = code or type(self).__name__


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


class StoreUnavailable(MirabError):
    """The server cannot write now; nothing was accepted."""


class Unreachable(MirabError):
    """No server answers on this home."""


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
        InvalidResource,
        UnknownResource,
        ResourceExceedsCapacity,
        TemplateError,
        ResourceDeadlock,
        UnknownFlow,
        StoreUnavailable,
        Unreachable,
        Cancelled,
        StaleLease,
    )
}


def from_code(code: str, detail: str) -> MirabError | Cancelled:
    """The exception for an error code of the server."""
    return _BY_CODE.get(code, MirabError)(detail, code)
