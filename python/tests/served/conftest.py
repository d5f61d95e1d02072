"""Tests against a real server with real engines."""

from collections.abc import Iterator

import pytest

pytest.importorskip("mirab._native", reason="the native module is not built: run `maturin develop`")

from served_home import Served, come_to_rest


@pytest.fixture
def served(server: Served) -> Iterator[Served]:
    """The server of the module, which a test leaves as it found it: with nothing held and nobody waiting."""
    yield server
    come_to_rest(server)
