"""The compiled part; values cross as JSON text in the words of the HTTP protocol."""

from collections.abc import Callable, Sequence
from typing import Literal, final

__all__ = ["Engine", "__version__", "cli"]

__version__: str

def cli(argv: Sequence[str], python: str) -> int: ...

@final
class Engine:
    def __new__(
        cls,
        home: str,
        worker: str,
        project: str,
        pool: str,
        on_stop: Callable[[Literal["cancel", "stale"]], object],
    ) -> Engine: ...
    def next(self) -> str | None: ...
    def complete(self, json: str) -> bool: ...
    def fail(self, json: str) -> bool: ...
    def abandon(self) -> None: ...
    def claim(self, json: str) -> str: ...
    def end_claim(self, json: str) -> str: ...
