"""Breaks and recompilations merged: each place and each cause once, with a count."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import Any

import attrs
from stator_guards import Failure

from stator._report_data._place import place_data, program_line
from stator.errors import Unsupported


@attrs.define(eq=False)
class BreakPlace:
    """A place where graphs end, and the numbers of the entries that end there."""

    reason: Unsupported
    kind: str
    """`graph break`; `runs plainly`, where nothing was captured; `broken for nothing`, where an
    exception that was expected did not come."""
    count: int = 0
    entries: list[int] = attrs.field(factory=list)
    crossings: int | None = None

    def data(self) -> dict[str, Any]:
        reason = self.reason
        return {
            "kind": self.kind,
            "reason": reason.reason,
            "detail": reason.detail,
            "where": place_data(reason.where),
            "program_line": place_data(program_line([*reason.stack, reason.where])),
            "stack": [place_data(span) for span in reason.stack],
            "try": reason.hint,
            "count": self.count,
            "entries": self.entries,
            "crossings": self.crossings,
        }

    def lines(self) -> list[str]:
        """Return the text of the place: the first line has no indentation."""
        detail = self.reason.detail or self.reason.reason
        times = f"{self.count} times" if self.count > 1 else ""
        ends = f"ends entr{'y' if len(self.entries) == 1 else 'ies'} {_listed(self.entries)}"
        crossed = "" if self.crossings is None else f"crossed {self.crossings} times"
        facts = "; ".join(filter(None, [times, ends if self.entries else "", crossed]))
        lines = [f"{self.kind}: {detail}" + (f" ({facts})" if facts else "")]
        lines.append(f"  {self.reason.where}")
        lines += [f"    {line}" for line in self.reason.where.excerpt()]
        lines.append(f"  reason: {self.reason.reason}")
        if self.reason.hint:
            lines.append(f"  try: {self.reason.hint}")
        return lines


def _listed(numbers: list[int]) -> str:
    return ", ".join(map(str, numbers))


def merged_breaks(
    ends: Iterable[tuple[Unsupported, str, int | None, int | None]],
) -> list[BreakPlace]:
    """Merge breaks by their place and text. Each has a kind, and the number and the calls of the
    entry that ends there, if there is one."""
    places: dict[Hashable, BreakPlace] = {}
    for reason, kind, number, calls in ends:
        key = kind, reason.where, reason.reason, reason.detail
        place = places.setdefault(key, BreakPlace(reason, kind))
        place.count += 1
        if number is not None:
            place.entries.append(number)
        if calls is not None:
            place.crossings = (place.crossings or 0) + calls
    return [*places.values()]


@attrs.define(eq=False)
class Recompilation:
    """One cause for which calls were compiled again: an expression of the program that had other
    values."""

    failure: Failure
    changes: list[tuple[str, str]] = attrs.field(factory=list)
    count: int = 0

    def data(self) -> dict[str, Any]:
        failure = self.failure
        return {
            "expression": failure.source,
            "changes": [{"was": was, "now": now} for was, now in self.changes],
            "where": place_data(failure.where),
            "try": failure.fix,
            "count": self.count,
        }

    def lines(self) -> list[str]:
        times = f" ({self.count} times)" if self.count > 1 else ""
        changes = [f"was {was}, is now {now}" for was, now in self.changes]
        found = [f"compiled again{times}: {self.failure.source} {changes[0]}"]
        found += [f"  then it {change}" for change in changes[1:]]
        if self.failure.where.line is not None:
            found.append(f"  needed at {self.failure.where}")
            found += [f"    {line}" for line in self.failure.where.excerpt()]
        return [*found, f"  try: {self.failure.fix}"]


def merged_recompilations(compilations: Iterable[Sequence[Failure]]) -> list[Recompilation]:
    """Merge failures of guards by the expression and the line that needed it; each compilation
    counts once for a cause."""
    causes: dict[Hashable, Recompilation] = {}
    for failures in compilations:
        counted: set[Hashable] = set()
        for failure in failures:
            key = failure.source, failure.where, type(failure.guard.kind)
            cause = causes.setdefault(key, Recompilation(failure))
            cause.count += key not in counted
            counted.add(key)
            if (change := (failure.needed, failure.found)) not in cause.changes:
                cause.changes.append(change)
    return [*causes.values()]
