"""The examples of the guide run as they stand."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

GUIDE = Path(__file__).parents[2] / "docs" / "guide" / "python.md"
BLOCKS = re.findall(r"^## ([^\n]+)\n(?:(?!^## ).)*?^```python\n(.*?)^```", GUIDE.read_text(), re.MULTILINE | re.DOTALL)


def test_every_kind_of_limit_has_an_example() -> None:
    assert [title for title, _ in BLOCKS] == [
        "Limit concurrency",
        "Respect a rate limit",
        "Choosing between them",
        "Both at once",
        "Many tenants",
        "Big jobs among small ones",
        "Work that survives the process",
    ]


@pytest.mark.parametrize("code", [code for _, code in BLOCKS], ids=[title for title, _ in BLOCKS])
def test_the_example_runs(code: str) -> None:
    exec(compile(code, str(GUIDE), "exec"), {"__name__": "guide"})
