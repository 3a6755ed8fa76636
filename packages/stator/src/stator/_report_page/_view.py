"""The view of a program as a whole: the totals, the slowest things, the timeline."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import attrs

from stator._report_page._format import time_text

Reports = Mapping[str, Mapping[str, Any]]
MOST_SLOW, MOST_SPANS = 6, 60
"""The number of the slowest things, and of the longest compilations, that are shown."""


@attrs.frozen
class Totals:
    """Sums over all that was compiled."""

    graphs: int
    operators: int
    compiled_operators: int
    breaks: int
    places: int
    recompilations: int
    compile_seconds: float
    run_seconds: float | None

    @classmethod
    def of(cls, reports: Reports) -> Totals:
        entries = [entry for _, entry in _entries(reports)]
        breaks = [each for data in reports.values() for each in data["breaks"]]
        causes = [each for data in reports.values() for each in data["recompilations"]]
        runs = [each["run_seconds"] for each in entries if each["run_seconds"] is not None]
        return cls(
            graphs=sum(data["graphs"] for data in reports.values()),
            operators=sum(data["operators"] for data in reports.values()),
            compiled_operators=sum(data["compiled_operators"] for data in reports.values()),
            breaks=sum(each["count"] for each in breaks),
            places=len(breaks),
            recompilations=sum(each["count"] for each in causes),
            compile_seconds=sum(each["compile_seconds"] for each in entries),
            run_seconds=sum(runs) if runs else None,
        )


@attrs.frozen
class Slow:
    """Something that took time: `percent` of the slowest thing's."""

    what: str
    detail: str
    seconds: float
    link: str
    kind: str
    percent: float = 0.0


def slowest(reports: Reports) -> list[Slow]:
    """Return the things that took most of the time, the slowest one first."""
    found = [each for name, entry in _entries(reports) for each in _slow_parts(name, entry)]
    found.sort(key=lambda each: -each.seconds)
    longest = found[0].seconds if found else 0.0
    shares = [(each, 100 * each.seconds / (longest or 1.0)) for each in found[:MOST_SLOW]]
    return [attrs.evolve(each, percent=share) for each, share in shares]


def _slow_parts(name: str, entry: Mapping[str, Any]) -> Iterator[Slow]:
    link = entry_link(name, entry["number"])
    detail = ", ".join(f"{part} {time_text(seconds)}" for part, seconds in _compile_parts(entry))
    number = f"entry {entry['number']}"
    own = number if entry["target"] == name else f"{number} of {name}"
    target = f"{entry['target']} ({own})"
    yield Slow(f"compiling {target}", detail, entry["compile_seconds"], link, "compile")
    if calls := entry["calls"]:
        times = f"{calls} calls" if calls > 1 else "1 call"
        first = time_text(entry["first_run_seconds"])
        detail = f"{times}, the first one {first}"
        yield Slow(f"running {target}", detail, entry["run_seconds"], link, "run")


def _compile_parts(entry: Mapping[str, Any]) -> list[tuple[str, float]]:
    """Return the parts of a compilation, the longest one first."""
    trace, backend = entry["trace_seconds"], entry["backend_seconds"]
    rest = max(entry["compile_seconds"] - trace - backend, 0.0)
    parts = [("tracing", trace), ("backend", backend), ("guards and code", rest)]
    return sorted(parts, key=lambda part: -part[1])


@attrs.frozen
class Span:
    """A compilation on the timeline; positions and widths are percentages."""

    target: str
    link: str
    start: float
    trace: float
    backend: float
    rest: float
    seconds: float
    after: float
    """The seconds from the start of the first compilation."""


def timeline(reports: Reports) -> list[Span]:
    """Return the compilations in the order in which they began; the longest ones if there are
    many."""
    entries = [pair for pair in _entries(reports) if pair[1]["begun"]]
    entries.sort(key=lambda pair: -pair[1]["compile_seconds"])
    entries = sorted(entries[:MOST_SPANS], key=lambda pair: float(pair[1]["begun"]))
    if not entries:
        return []
    first = entries[0][1]["begun"]
    last = max(entry["begun"] + entry["compile_seconds"] for _, entry in entries)
    scale = 100 / max(last - first, 1e-9)
    return [_span(name, entry, first, scale) for name, entry in entries]


def _span(name: str, entry: Mapping[str, Any], first: float, scale: float) -> Span:
    trace, backend = entry["trace_seconds"], entry["backend_seconds"]
    total, after = entry["compile_seconds"], entry["begun"] - first
    return Span(
        target=entry["target"],
        link=entry_link(name, entry["number"]),
        start=after * scale,
        trace=trace * scale,
        backend=backend * scale,
        rest=max(total - trace - backend, 0.0) * scale,
        seconds=total,
        after=after,
    )


def entry_link(name: str, number: int) -> str:
    """Return the anchor of an entry."""
    return f"{name}-entry-{number}".replace(" ", "-")


def _entries(reports: Reports) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for name, data in reports.items():
        for entry in data["entries"]:
            yield name, entry
