"""A report of the compiled state: graphs, breaks, guards, entries, times; as data, and as text with
`str`."""

from __future__ import annotations

from typing import Any

import attrs
from stator_backends import BackendSpec, Uncompiled, spec_of
from stator_guards import Failure, Guard

from stator._capture._uncompiled_operator import lines_of_uncompiled
from stator._regions._region import Region
from stator.errors import SourceSpan, Unsupported

REPORT_VERSION = 1
"""The version of the JSON form of reports: a field that changes its meaning, or goes, increases
it."""


@attrs.frozen(eq=False)
class EntryReport:
    """One entry: where it starts, its graph, why it ends early (None: it runs to the end), its
    guards."""

    target: str
    graph: Any
    graph_text: str
    op_count: int
    reason: Unsupported | None
    compiled_guards: Any
    trace_seconds: float
    source: str
    # the last error that the graph raised; the program itself ran then
    failures: tuple[str, ...] = ()
    uncompiled: tuple[Uncompiled, ...] = ()  # operators that run as they are
    serves_one_call: bool = False  # so that nothing is compiled for it
    compiles: bool = True  # the backend does

    @property
    def guards(self) -> tuple[Guard, ...]:
        """The guards of the entry; empty if a foreign guard compiler does not expose them."""
        return tuple(getattr(self.compiled_guards, "guards", ()))

    @property
    def compiled_count(self) -> int:
        """The number of operators that are compiled: all but those that run as they are."""
        if self.serves_one_call or not self.compiles:
            return 0
        return self.op_count - len(self.uncompiled)

    @property
    def guard_source(self) -> str:
        return getattr(self.compiled_guards, "source", "")

    def data(self) -> dict[str, Any]:
        """Return the entry as values that JSON has."""
        uncompiled = [
            {"operator": each.node, "reason": each.reason, "where": each.where}
            for each in self.uncompiled
        ]
        return {
            "target": self.target,
            "operators": self.op_count,
            "compiled_operators": self.compiled_count,
            "uncompiled": uncompiled,
            "serves_one_call": self.serves_one_call,
            "break": None if self.reason is None else _break_data(self.reason),
            "guards": [_guard_data(guard) for guard in self.guards],
            "trace_seconds": self.trace_seconds,
            "graph": self.graph_text,
            "failures": list(self.failures),
        }

    def lines(self, number: int, guards: bool) -> list[str]:
        spent = f"{self.trace_seconds * 1000:.1f} ms to trace"
        found = [
            f"entry {number}: {self.target}: {self.op_count} operations, "
            f"{len(self.guards)} guards, {spent}"
        ]
        if self.reason is not None:
            found += [f"  {line}" for line in self.reason.brief().splitlines()]
        found += [
            f"  its graph raised, so the program itself ran: {text}" for text in self.failures
        ]
        if self.serves_one_call:
            found.append("  no later call takes it, so nothing is compiled for it")
        elif self.compiles and self.op_count:
            all_of = "" if self.uncompiled else "all "
            found.append(f"  {all_of}{self.compiled_count} operators are compiled")
            found += [f"  {line}" for line in lines_of_uncompiled(self.uncompiled)]
        if guards:
            found += [
                f"  guard: {guard.name} is {guard.kind.needed}, needed at {guard.where}"
                for guard in self.guards
            ]
        return found


@attrs.frozen(eq=False)
class Report:
    """A snapshot of the state of a compiled function."""

    entries: tuple[EntryReport, ...]
    recompiles: tuple[Failure, ...]
    refused: tuple[Unsupported, ...]
    missed: tuple[Unsupported, ...] = ()  # exceptions that stator expected, and that did not come
    backend: str = ""  # its name

    @classmethod
    def of(cls, region: Region) -> Report:
        entries, recompiles, refused = [], [], []
        places = region.all_places()
        spec = spec_of(region.options.backend)
        for place in places:
            refused += place.shared.refused
            recompiles += [reason for reasons in place.cache.history for reason in reasons]
            compiled = reversed(place.cache.all_entries())
            entries += [_entry_report(entry, spec) for entry in compiled]
        if not entries:  # until the next call compiles, what served this one is all there is
            entries = [_entry_report(entry, spec) for place in places for entry in place.served]
        missed = tuple(region.pool.missed)
        return cls(tuple(entries), tuple(recompiles), tuple(refused), missed, spec.name)

    @property
    def graphs(self) -> list[Any]:
        return [entry.graph for entry in self.entries if entry.graph is not None]

    @property
    def breaks(self) -> list[Unsupported]:
        """The graph breaks: `where`, `reason` and `detail`, and a `hint` for each."""
        return [entry.reason for entry in self.entries if entry.reason is not None] + [
            *self.refused,
            *self.missed,
        ]

    @property
    def failures(self) -> list[str]:
        """The last error of each graph that raised when it ran."""
        return [text for entry in self.entries for text in entry.failures]

    @property
    def graph_count(self) -> int:
        return len(self.graphs)

    @property
    def entry_count(self) -> int:
        return len(self.entries)

    @property
    def compile_count(self) -> int:
        return self.entry_count + len(self.refused)

    @property
    def op_count(self) -> int:
        return sum(entry.op_count for entry in self.entries)

    @property
    def compiled_count(self) -> int:
        """The number of operators that are compiled, of `op_count`."""
        return sum(entry.compiled_count for entry in self.entries)

    @property
    def uncompiled(self) -> list[Uncompiled]:
        """The operators that run as they are although the backend compiles: `node`, `reason` and
        `where` of each."""
        return [each for entry in self.entries for each in entry.uncompiled]

    @property
    def guards(self) -> list[Guard]:
        """The guards of all entries, each with its source, its requirement, and the user's line
        that needs it (`where`)."""
        return [guard for entry in self.entries for guard in entry.guards]

    @property
    def trace_seconds(self) -> float:
        return sum(entry.trace_seconds for entry in self.entries)

    @property
    def ops_per_graph(self) -> list[int]:
        return [entry.op_count for entry in self.entries if entry.graph is not None]

    @property
    def graph_break_count(self) -> int:
        return len(self.breaks)

    # the names that the result of `torch._dynamo.explain` has
    break_reasons, out_guards, compile_times = breaks, guards, trace_seconds

    def data(self) -> dict[str, Any]:
        """Return the report as values that JSON has; `REPORT_VERSION` is in `version`."""
        return {
            "version": REPORT_VERSION,
            "backend": self.backend,
            "graphs": self.graph_count,
            "operators": self.op_count,
            "compiled_operators": self.compiled_count,
            "entries": [entry.data() for entry in self.entries],
            "recompilations": [str(failure) for failure in self.recompiles],
            "runs_plainly": [_break_data(reason) for reason in self.refused],
            "broken_for_nothing": [_break_data(reason) for reason in self.missed],
        }

    def text(self, guards: bool = False) -> str:
        """Return the report as text, with every guard if `guards` is set."""
        counts = f"{self.graph_count} graphs, {self.op_count} operations, {len(self.breaks)} breaks"
        backend = f", backend {self.backend!r}" if self.backend else ""
        lines = [f"{counts}, {self.entry_count} entries{backend}"]
        for number, entry in enumerate(self.entries):
            lines += entry.lines(number, guards)
        for reason in self.refused:
            lines += _indented("runs plainly: ", reason.brief())
        for reason in self.missed:
            lines += _indented("broken for nothing: ", reason.brief())
        for failure in self.recompiles:
            lines += _indented("compiled again: ", str(failure))
        return "\n".join(lines)

    def __str__(self) -> str:
        return self.text()


def _break_data(reason: Unsupported) -> dict[str, Any]:
    return {
        "reason": reason.reason,
        "detail": reason.detail,
        "where": _place_data(reason.where),
        "stack": [_place_data(span) for span in reason.stack],
        "try": reason.hint,
    }


def _guard_data(guard: Guard) -> dict[str, Any]:
    needed = str(guard.kind.needed)
    return {"name": guard.name, "needed": needed, "where": _place_data(guard.where)}


def _place_data(span: SourceSpan) -> dict[str, Any]:
    return {"file": span.filename, "line": span.line, "function": span.function}


def _indented(head: str, text: str) -> list[str]:
    first, *rest = text.splitlines()
    return [head + first, *(f"  {line.strip()}" for line in rest)]


def _entry_report(entry: Any, spec: BackendSpec) -> EntryReport:
    data = entry.data
    shown = (data.target.name, data.graph, data.graph_text, data.op_count, data.reason)
    compiled = entry.guards, data.trace_seconds, entry.source, tuple(data.failures), data.uncompiled
    return EntryReport(*shown, *compiled, data.serves_one_call, spec.compiles)


class LiveReport:
    """The report of a region at the moment an attribute of it is read."""

    def __init__(self, region: Region) -> None:
        self._region = region

    def __getattr__(self, name: str) -> object:
        return getattr(Report.of(self._region), name)

    def __dir__(self) -> list[str]:
        return dir(Report)

    def __str__(self) -> str:
        return str(Report.of(self._region))

    __repr__ = __str__
