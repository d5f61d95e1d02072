"""Tests against a real server with real engines."""

import pytest

pytest.importorskip("mirab._native", reason="the native module is not built: run `maturin develop`")
