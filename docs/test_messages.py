"""Messages show the program and what to try, and docs/reference/messages.md has all of them."""

from __future__ import annotations

import re
from typing import Any

import pytest
import stator
from message_cases import CASES
from messages import PAGE, message_of

OF_THE_PROGRAM = {
    "shapes that do not fit",
    "an attribute that does not exist",
    "a missing argument",
    "an argument of the wrong type",
    "an error of the program",
}
"""What the program does wrong under plain Python as well: the error is Python's own."""


SLOW = ["a missing compiler"]  # it imports Inductor
TITLES: list[Any] = [title for title in CASES if title not in SLOW]
TITLES += [pytest.param(title, marks=pytest.mark.slow) for title in SLOW]


@pytest.mark.parametrize("title", TITLES)
def test_a_message_shows_the_program_only(title: str) -> None:
    message = message_of(CASES[title], stator.compile)
    assert message.frames_between == 0
    assert message.has_caret
    assert message.has_remedy == (title not in OF_THE_PROGRAM)


def test_the_page_has_all_messages() -> None:
    text = PAGE.read_text()
    assert all(f"## {title.capitalize()}\n\nstator:\n" in text for title in CASES)
    rows = [line for line in text.splitlines() if line.startswith("| [")]
    assert len(rows) == len(CASES) >= 20


def test_no_message_is_longer_than_that_of_torch_compile() -> None:
    counts = re.findall(r"^\| \[.*\) \| (\d+), (\d+) \|", PAGE.read_text(), re.MULTILINE)
    assert len(counts) == len(CASES)
    assert all(int(ours) <= int(theirs) for ours, theirs in counts)
