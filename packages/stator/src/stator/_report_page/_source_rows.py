"""The source of a program as rows: which graphs each line went into, and where graphs end."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import attrs

WHOLE = 40
"""The length up to which a function is shown as a whole."""
AROUND = 3
"""The lines shown before and after each marked one of a longer function."""
_LIBRARIES = ("site-packages", "dist-packages")


@attrs.define
class Marks:
    """The contents of a report about one line."""

    entries: set[int] = attrs.field(factory=set)
    operators: int = 0  # the most that one graph has
    uncompiled: list[str] = attrs.field(factory=list)
    breaks: list[Mapping[str, Any]] = attrs.field(factory=list)
    causes: list[Mapping[str, Any]] = attrs.field(factory=list)

    @property
    def kind(self) -> str:
        """The class of the row: of several marks the one that costs most."""
        if self.breaks:
            return "break"
        if self.uncompiled:
            return "uncompiled"
        if self.causes:
            return "again"
        return "graph" if self.entries else ""


@attrs.frozen
class Row:
    """One line of source; without a number, a mark where lines are left out."""

    number: int | None
    text: str
    marks: Marks


@attrs.frozen
class Section:
    """A function with its rows."""

    file: str
    function: str
    rows: list[Row]
    of_library: bool


def source_sections(data: Mapping[str, Any]) -> list[Section]:
    """Return the functions of a report, those of libraries last."""
    marks = _marks(data)
    sections = [_section(text, marks) for text in data["functions"]]
    return sorted(sections, key=lambda section: section.of_library)


_ByLine = Mapping[tuple[str, int], Marks]


def _marks(data: Mapping[str, Any]) -> _ByLine:
    found: defaultdict[tuple[str, int], Marks] = defaultdict(Marks)
    for entry in data["entries"]:
        for line in entry["lines"]:
            marks = found[line["file"], line["line"]]
            marks.entries.add(entry["number"])
            marks.operators = max(marks.operators, sum(line["operators"].values()))
        for each in entry["uncompiled"]:
            found[each["file"], each["line"]].uncompiled.append(each["reason"])
    for each in data["breaks"]:
        place = each["program_line"]
        found[place["file"], place["line"]].breaks.append(each)
    for each in data["recompilations"]:
        place = each["where"]
        found[place["file"], place["line"]].causes.append(each)
    return found


def _section(text: Mapping[str, Any], marks: _ByLine) -> Section:
    file, first = text["file"], text["first"]
    rows = [
        Row(first + i, line, marks.get((file, first + i), Marks()))
        for i, line in enumerate(text["lines"])
    ]
    if len(rows) > WHOLE:
        rows = [*_shortened(rows)]
    of_library = any(part in file for part in _LIBRARIES)
    return Section(file, text["function"], rows, of_library)


def _shortened(rows: Sequence[Row]) -> Iterator[Row]:
    """Yield the first row, marked rows and those around them, with a row for each gap."""
    marked = [i for i, row in enumerate(rows) if row.marks.kind]
    shown = {0, *(i + by for i in marked for by in range(-AROUND, AROUND + 1))}
    left_out = 0
    for i, row in enumerate(rows):
        if i not in shown:
            left_out += 1
            continue
        if left_out:
            yield _gap(left_out)
        left_out = 0
        yield row
    if left_out:
        yield _gap(left_out)


def _gap(count: int) -> Row:
    return Row(None, f"… {count} lines" if count > 1 else "… 1 line", Marks())
