"""Each statement gives or raises what it does plainly: alone, after a break, and where what it
raises is caught."""

from __future__ import annotations

import linecache
from collections.abc import Callable
from typing import Any

import pytest
import stator
import torch

from integration_tests.language.statements import EXPRESSIONS, PRELUDE, STATEMENTS
from integration_tests.support.oracle import assert_same

ALL = [
    *(f"return {text}" for text in EXPRESSIONS),
    *(text.replace("\\n", "\n") for text in STATEMENTS),
]
SETTINGS = {
    "alone": "{}",
    "after a break": "print(end='')\n{}",
    "caught": "try:\n    {}\nexcept Exception as error:\n    return type(error), error.args, error.__context__, x + 1",
}


def _made(text: str, name: str) -> tuple[Callable[..., Any], list[Any]]:
    """A function with this body, and the log of the globals that are its own."""
    indented = text.replace("\n", "\n    ")
    source = f"def f(x):\n    {indented}\n"
    names: dict[str, Any] = {"__name__": __name__}
    linecache.cache[name] = (len(source), None, source.splitlines(True), name)
    exec(PRELUDE, names)
    exec(compile(source, name, "exec"), names)
    return names["f"], names["LOG"]


@pytest.mark.parametrize("statement", ALL)
@pytest.mark.filterwarnings("ignore")
def test_statement_does_what_it_does_plainly(statement: str) -> None:
    for number, (title, setting) in enumerate(SETTINGS.items()):
        text = setting.format(statement.replace("\n", "\n    ") if title == "caught" else statement)
        (plain, ours), (other, theirs) = [_made(text, f"<statement {number}>") for _ in range(2)]
        compiled = stator.compile(other, backend="eager")
        assert_same(plain, compiled, lambda: (torch.ones(2),), 2, owners=(ours, theirs))
