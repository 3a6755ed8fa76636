"""The example of the README runs."""

from __future__ import annotations

import re
from pathlib import Path


def test_the_example_runs() -> None:
    text = (Path(__file__).parent.parent / "README.md").read_text()
    assert len(text.splitlines()) <= 70
    for block in re.findall(r"```python\n(.*?)```", text, re.DOTALL):
        exec(compile(block, "README.md", "exec"), {})
