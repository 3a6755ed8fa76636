"""Places in the program as values that JSON has, with the text of their lines."""

from __future__ import annotations

import linecache
import os
import re
from collections.abc import Iterable
from typing import Any

import torch

from stator.errors import SourceSpan

PlaceData = dict[str, Any]
"""`file`, `line`, `end_line`, `column`, `end_column`, `function`, and the `text` of the line."""

TORCH = os.path.join(os.path.dirname(torch.__file__), "")
_WRITTEN = re.compile(r'File "(?P<file>.*)", line (?P<line>\d+), in (?P<function>.*)')


def place_data(span: SourceSpan) -> PlaceData:
    """Return a place with the text of its first line."""
    text = linecache.getline(span.filename, span.line or 0).rstrip()
    return {
        "file": span.filename,
        "line": span.line,
        "end_line": span.end_line,
        "column": span.column,
        "end_column": span.end_column,
        "function": span.function,
        "text": text,
    }


def written_place(text: str) -> SourceSpan:
    """Return the place that is written as in a traceback."""
    found = _WRITTEN.search(text)
    if found is None:
        return SourceSpan("<unknown>", "<unknown>", None)
    return SourceSpan(found["file"], found["function"], int(found["line"]))


def program_line(spans: Iterable[SourceSpan]) -> SourceSpan:
    """Return the innermost place outside of torch; the innermost of all if there is none."""
    places = [*spans]
    of_program = [span for span in places if not span.filename.startswith(TORCH)]
    return [*places, *of_program][-1] if places else written_place("")
