"""``@task``: a step of a flow, with limits and retries of its own."""

from __future__ import annotations

import asyncio
import functools
import inspect
from collections.abc import Callable, Coroutine, Iterable, Mapping
from concurrent.futures import Future
from typing import Any, Generic, ParamSpec, TypeVar, cast, overload

from mirab import _options
from mirab._execute import Call, enclosing, execute, execute_async
from mirab._options import TaskOptions
from mirab._pool import own_thread

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")

_Kind = inspect.Parameter


class Task(Generic[P, R]):
    """A function whose calls are limited, counted and retried. Made by ``@task``."""

    __wrapped__: Callable[P, R]

    def __init__(self, function: Callable[P, R], options: TaskOptions) -> None:
        functools.update_wrapper(self, function)
        self._function = function
        self._options = options

    @property
    def options(self) -> Mapping[str, Any]:
        """The options, read-only."""
        return _options.as_mapping(self._options)

    @property
    def is_async(self) -> bool:
        """True when calls must be awaited."""
        return inspect.iscoroutinefunction(self._function)

    def with_options(self, **changes: Any) -> Task[P, R]:
        """A copy with some options replaced."""
        return Task(self._function, _options.changed(self._options, changes))

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Waits for the task's limits, runs it, and returns its value or raises its error."""
        parent, _ = enclosing()
        call = self._call(parent.run.new_key(self._options.name), args, kwargs)
        if self.is_async:
            return cast(R, execute_async(call, parent))
        return cast(R, execute(call, parent))

    @overload
    def submit(self: Task[P, Coroutine[Any, Any, T]], *args: P.args, **kwargs: P.kwargs) -> Future[T]: ...
    @overload
    def submit(self, *args: P.args, **kwargs: P.kwargs) -> Future[R]: ...
    def submit(self, *args: Any, **kwargs: Any) -> Future[Any]:
        """Calls the task in a thread and returns its future. It has ended when the flow around it has."""
        parent, inside = enclosing()
        call = self._call(parent.run.new_key(self._options.name), args, kwargs)

        def work() -> Any:
            return asyncio.run(execute_async(call, parent)) if self.is_async else execute(call, parent)

        return parent.pool.submit(work, nested=parent.in_task) if inside else own_thread(work)

    def map(self, *iterables: Iterable[Any]) -> list[Future[Any]]:
        """Submits a call for each item, or for each tuple of items as ``map`` does; the iterables have one length."""
        # The type checker cannot know that the items are the parameters.
        submit = cast(Callable[..., Future[Any]], self.submit)
        return [submit(*items) for items in zip(*iterables, strict=True)]

    def _call(self, key: str, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Call:
        def arguments() -> Mapping[str, Any]:
            bound = inspect.signature(self._function).bind(*args, **kwargs)
            bound.apply_defaults()
            return _by_name(bound)

        body = functools.partial(self._function, *args, **kwargs)
        return Call(self._options, body, key, is_flow=False, arguments=arguments)

    def is_of(self, module: str) -> bool:
        """True when its function was written there."""
        return getattr(self._function, "__module__", None) == module

    def describe(self, file: str) -> dict[str, Any]:
        """What discovery reports about it."""
        params = inspect.signature(self._function).parameters.values()
        any_params = any(each.kind is _Kind.VAR_KEYWORD for each in params)
        names = [each.name for each in params if each.kind not in (_Kind.VAR_POSITIONAL, _Kind.VAR_KEYWORD)]
        return {
            "name": self._options.name,
            "file": file,
            "resources": dict(self._options.resources),
            "tags": list(self._options.tags),
            "params": names,
            "any_params": any_params,
        }

    def __repr__(self) -> str:
        return f"<task {self._options.name}>"


def _by_name(bound: inspect.BoundArguments) -> dict[str, Any]:
    """What a name of a resource can refer to: each argument that has a name, those taken by ``**`` like the others."""
    named: dict[str, Any] = {}
    for name, value in bound.arguments.items():
        kind = bound.signature.parameters[name].kind
        if kind is _Kind.VAR_KEYWORD:
            named = {**value, **named}
        elif kind is not _Kind.VAR_POSITIONAL:
            named[name] = value
    return named


@overload
def task(function: Callable[P, R], /) -> Task[P, R]: ...
@overload
def task(
    *,
    name: str = ...,
    resources: Mapping[str, int] = ...,
    retries: int = ...,
    retry_delay: float = ...,
    tags: Iterable[str] = ...,
) -> Callable[[Callable[P, R]], Task[P, R]]: ...
def task(function: Callable[..., Any] | None = None, /, **options: Any) -> Any:
    """Makes a task of a plain or async function, with or without options.

    ``name``: the function's name where it is not given. ``resources``: units by name that each call holds while it
    runs. ``retries``, ``retry_delay``: how often a failed call is tried again, and after how many seconds. ``tags``.
    """

    def decorate(function: Callable[..., Any]) -> Task[..., Any]:
        return Task(function, _options.make(TaskOptions, {"name": function.__name__, **options}))

    return decorate if function is None else decorate(function)
