"""``@flow``: what a run executes."""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Generic, ParamSpec, TypeVar, cast, overload

from mirab import _options
from mirab._execute import Call, enclosing, execute, execute_async
from mirab._options import FlowOptions
from mirab._params import Params

P = ParamSpec("P")
R = TypeVar("R")


class Flow(Generic[P, R]):
    """A function that is run as a whole, here or by a server. Made by ``@flow``."""

    __wrapped__: Callable[P, R]

    def __init__(self, function: Callable[P, R], options: FlowOptions, module: str) -> None:
        functools.update_wrapper(self, function)
        self._function = function
        self._options = options
        self._params = Params(function, options.name)
        self._home_module = module

    @property
    def options(self) -> Mapping[str, Any]:
        """The options, read-only."""
        return _options.as_mapping(self._options)

    @property
    def is_async(self) -> bool:
        """True when calls must be awaited."""
        return inspect.iscoroutinefunction(self._function)

    def with_options(self, **changes: Any) -> Flow[P, R]:
        """A copy with some options replaced; with a ``name`` of its own it is served as a further flow."""
        module = sys._getframe(1).f_globals.get("__name__", self._home_module)
        return Flow(self._function, _options.changed(self._options, changes), module)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Runs the flow in this process and returns its value or raises its error.

        Inside the body of another flow it is a task of that flow's run.
        """
        parent, _ = enclosing()
        call = self.call(parent.run.new_key(self._options.name), args, kwargs)
        if self.is_async:
            return cast(R, execute_async(call, parent))
        return cast(R, execute(call, parent))

    def call(self, key: str, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Call:
        """A call with checked parameters, for whoever runs it."""
        values = self._params.bind(args, kwargs)
        body = functools.partial(self._function, **values)
        return Call(self._options, body, key, is_flow=True, arguments=lambda: values)

    def is_of(self, module: str) -> bool:
        """True when it was made there, not imported from elsewhere."""
        return self._home_module == module

    @property
    def line(self) -> int:
        """Where its function begins in its file."""
        code = getattr(inspect.unwrap(self._function), "__code__", None)
        return code.co_firstlineno if code else 0

    def describe(self, file: str, attribute: str) -> dict[str, Any]:
        """What discovery reports about it."""
        options = dict(self.options)
        options["retry_delay_s"] = options.pop("retry_delay")
        options["resources"], options["tags"] = dict(options["resources"]), list(options["tags"])
        return {
            "name": options.pop("name"),
            "file": file,
            "function": attribute,
            "options": options,
            "params": self._params.describe(),
            "any_params": self._params.any_names,
        }

    def __repr__(self) -> str:
        return f"<flow {self._options.name}>"


@overload
def flow(function: Callable[P, R], /) -> Flow[P, R]: ...
@overload
def flow(
    *,
    name: str = ...,
    max_concurrent: int | None = ...,
    on_overlap: str = ...,
    priority: int = ...,
    resources: Mapping[str, int] = ...,
    tags: Iterable[str] = ...,
    retries: int = ...,
    retry_delay: float = ...,
    crash_retries: int = ...,
) -> Callable[[Callable[P, R]], Flow[P, R]]: ...
def flow(function: Callable[..., Any] | None = None, /, **options: Any) -> Any:
    """Makes a flow of a plain or async function, with or without options.

    ``name``: the function's name where it is not given. ``max_concurrent``: so many runs at once at most, and
    ``on_overlap`` says what becomes of one more: ``enqueue`` (waits), ``skip`` or ``cancel_new``. ``priority``: higher
    goes first. ``resources``: units by name that each run holds. ``tags``. ``retries``, ``retry_delay``: how often a
    failed run is tried again, and after how many seconds; ``crash_retries``: the same when its process died.
    """

    def decorate(function: Callable[..., Any]) -> Flow[..., Any]:
        options_ = _options.make(FlowOptions, {"name": function.__name__, **options})
        return Flow(function, options_, function.__module__)

    return decorate if function is None else decorate(function)
