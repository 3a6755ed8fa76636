"""The example of the README runs and prints what it says."""

from __future__ import annotations

import contextlib
import io
import pathlib
import re

README = pathlib.Path(__file__).parent.parent / "README.md"


def test_the_example_prints_what_it_says() -> None:
    text = README.read_text()
    (example,) = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    (expected,) = re.findall(r"```text\n(.*?)```", text, re.DOTALL)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(example, str(README), "exec"), {"__name__": "readme"})
    assert printed.getvalue() == expected


def test_the_readme_is_short() -> None:
    assert len(README.read_text().splitlines()) <= 70
