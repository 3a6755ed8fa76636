"""A report of the compiled state: graphs, breaks, guards, entries, times; as data, as text with
`str`, and as a page."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import attrs
from stator_backends import BackendSpec, CompiledPiece, Uncompiled, spec_of
from stator_guards import Failure, Guard

from stator._capture._uncompiled_operator import lines_of_uncompiled
from stator._entries._measurement import CompileTimes, MeasuredRun
from stator._regions._region import Region
from stator._report_data._equal_pieces import lines_of_equal
from stator._report_data._graph_facts import memory_of, operator_lines
from stator._report_data._merge import (
    BreakPlace,
    Recompilation,
    merged_breaks,
    merged_recompilations,
)
from stator._report_data._place import place_data, written_place
from stator._report_data._source_text import function_texts
from stator.errors import Unsupported

if TYPE_CHECKING:
    from stator._entries._tier import Tier

REPORT_VERSION = 2
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
    times: CompileTimes = attrs.field(factory=CompileTimes)
    measured: MeasuredRun | None = None
    pieces: tuple[CompiledPiece, ...] = ()  # of a graph that is not compiled as a whole
    tier: Tier | None = None  # under the option `tiered`
    equal_calls: tuple[str, ...] = ()  # lines about calls that were recorded like earlier ones
    cache_notes: tuple[str, ...] = ()  # under the option `cache`

    @property
    def guards(self) -> tuple[Guard, ...]:
        """The guards of the entry; empty if a foreign guard compiler does not expose them."""
        return tuple(getattr(self.compiled_guards, "guards", ()))

    @property
    def compiled_count(self) -> int:
        """The number of operators that are compiled: all but those that run as they are."""
        return self.op_count - len(self.uncompiled) if self._has_compiled_code else 0

    @property
    def _has_compiled_code(self) -> bool:
        is_done = self.tier is None or self.tier.is_compiled
        return self.compiles and is_done and not self.serves_one_call

    @property
    def guard_source(self) -> str:
        return getattr(self.compiled_guards, "source", "")

    @property
    def calls(self) -> int | None:
        """The number of calls; None without `options={"measure": True}`."""
        return None if self.measured is None else self.measured.calls

    @property
    def run_seconds(self) -> float | None:
        """The time of all calls; None if they are not measured."""
        return None if self.measured is None else self.measured.seconds

    @property
    def guard_seconds(self) -> float | None:
        """The time of one check of all guards; None before the second measured call."""
        return None if self.measured is None else self.measured.guard_seconds

    def data(self) -> dict[str, Any]:
        """Return the entry as values that JSON has."""
        uncompiled = [
            {"operator": each.node, "reason": each.reason, **place_data(written_place(each.where))}
            for each in self.uncompiled
        ]

        return {
            "target": self.target,
            "operators": self.op_count,
            "compiled_operators": self.compiled_count,
            "lines": operator_lines(self.graph),
            "uncompiled": uncompiled,
            "pieces": [attrs.asdict(piece) for piece in self.pieces],
            "equal_calls": list(self.equal_calls),
            "serves_one_call": self.serves_one_call,
            "guards": [_guard_data(guard) for guard in self.guards],
            "begun": self.times.begun,
            "trace_seconds": self.trace_seconds,
            "backend_seconds": self.times.backend,
            "compile_seconds": self.times.total,
            **self._measured_data(),
            "memory": attrs.asdict(memory_of(self.graph)),
            "graph": self.graph_text,
            "failures": list(self.failures),
            "tier": None if self.tier is None else self.tier.data(),
            "cache": list(self.cache_notes),
        }

    def _measured_data(self) -> dict[str, Any]:
        first = None if self.measured is None else self.measured.first_seconds
        return {
            "calls": self.calls,
            "first_run_seconds": first,
            "run_seconds": self.run_seconds,
            "guard_seconds": self.guard_seconds,
        }

    def lines(self, number: int, guards: bool) -> list[str]:
        """Return the text of the entry, but for the break that ends it."""
        facts = [counted(self.op_count, "operation"), counted(len(self.guards), "guard")]
        facts.append(f"{self.times.total * 1000:.1f} ms to compile")
        if self.calls is not None:
            facts.append(counted(self.calls, "call"))

        found = [f"entry {number}: {self.target}: {', '.join(facts)}"]
        found += [f"  {note}" for note in self.cache_notes]
        found += [
            f"  its graph raised, so the program itself ran: {text}" for text in self.failures
        ]
        if self.serves_one_call:
            found.append("  no later call takes it, so nothing is compiled for it")
        else:
            found += [f"  {line}" for line in self._lines_of_compiled()]

        found += [f"  {line}" for line in self.equal_calls]
        if guards:
            found += [f"  guard: {guard}" for guard in self.guards]
        return found

    def _lines_of_compiled(self) -> list[str]:
        """Return what the backend compiles, and what runs as it is."""
        found = [] if self.tier is None else [str(self.tier)]
        if not self._has_compiled_code or self.op_count == 0:
            return found
        verb = "is" if self.compiled_count == 1 else "are"
        some = f"{counted(self.compiled_count, 'operator')} {verb}"
        pieces = f", in {len(self.pieces)} pieces" if len(self.pieces) > 1 else ""
        found.append(f"{some if self.uncompiled else 'all operators are'} compiled{pieces}")
        return [*found, *lines_of_equal(self.pieces), *lines_of_uncompiled(self.uncompiled)]


@attrs.frozen(eq=False)
class Report:
    """A snapshot of the state of a compiled function."""

    entries: tuple[EntryReport, ...]
    recompilations: tuple[tuple[Failure, ...], ...]
    """The guards that failed, for each compilation after the first one at a place."""
    refused: tuple[Unsupported, ...]
    missed: tuple[Unsupported, ...] = ()  # exceptions that stator expected, and that did not come
    name: str = ""
    backend: str = ""  # its name

    @classmethod
    def of(cls, region: Region) -> Report:
        entries, recompiled, refused = [], [], []
        places = region.all_places()
        spec = spec_of(region.options.backend)
        for place in places:
            refused += place.shared.refused
            recompiled += [reasons for reasons in place.cache.history if reasons]
            compiled = reversed(place.cache.all_entries())
            entries += [_entry_report(entry, spec) for entry in compiled]
        if not entries:  # until the next call compiles, what served this one is all there is
            entries = [_entry_report(entry, spec) for place in places for entry in place.served]
        name = str(region.root.target.name)
        missed = tuple(region.pool.missed)
        return cls(tuple(entries), tuple(recompiled), tuple(refused), missed, name, spec.name)

    @property
    def recompiles(self) -> tuple[Failure, ...]:
        """The guards that failed where calls were compiled again."""
        return tuple(failure for failures in self.recompilations for failure in failures)

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
        entries = [{"number": i, **entry.data()} for i, entry in enumerate(self.entries)]
        breaks = [place.data() for place in self._break_places()]
        causes = [cause.data() for cause in self._causes()]
        places = [place for entry in entries for place in (*entry["lines"], *entry["uncompiled"])]
        places += [each["program_line"] for each in breaks]
        places += [each["where"] for each in causes]

        return {
            "version": REPORT_VERSION,
            "name": self.name,
            "backend": self.backend,
            "graphs": self.graph_count,
            "operators": self.op_count,
            "compiled_operators": self.compiled_count,
            "entries": entries,
            "breaks": breaks,
            "recompilations": causes,
            "functions": function_texts(places),
        }

    def _break_places(self) -> list[BreakPlace]:
        ends: list[tuple[Unsupported, str, int | None, int | None]] = [
            (entry.reason, "graph break", number, entry.calls)
            for number, entry in enumerate(self.entries)
            if entry.reason is not None
        ]
        ends += [(reason, "runs plainly", None, None) for reason in self.refused]
        ends += [(reason, "broken for nothing", None, None) for reason in self.missed]
        return merged_breaks(ends)

    def _causes(self) -> list[Recompilation]:
        return merged_recompilations(self.recompilations)

    def text(self, guards: bool = False) -> str:
        """Return the report as text, with every guard if `guards` is set."""
        counts = [counted(self.graph_count, "graph"), counted(self.op_count, "operation")]
        counts += [counted(len(self.breaks), "break"), counted(self.entry_count, "entry")]
        counts += [f"backend {self.backend!r}"] if self.backend else []
        lines = [", ".join(counts)]
        for place in self._break_places():
            lines += place.lines()
        for cause in self._causes():
            lines += cause.lines()
        for number, entry in enumerate(self.entries):
            lines += entry.lines(number, guards)
        return "\n".join(lines)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the report as a page of HTML that needs nothing else."""
        from stator._report_page._page import page

        with open(path, "w", encoding="utf-8") as file:
            file.write(page({self.name: self.data()}))

    def _repr_html_(self) -> str:
        from stator._report_page._page import framed, page

        return framed(page({self.name: self.data()}))

    def __str__(self) -> str:
        return self.text()


def counted(count: int, noun: str) -> str:
    """Return a number with a noun: `1 entry`, `2 entries`."""
    if count == 1:
        return f"1 {noun}"
    plural = f"{noun[:-1]}ies" if noun.endswith("y") else f"{noun}s"
    return f"{count} {plural}"


def _guard_data(guard: Guard) -> dict[str, Any]:
    needed = str(guard.kind.needed)
    return {"name": guard.name, "needed": needed, "where": place_data(guard.where)}


def _entry_report(entry: Any, spec: BackendSpec) -> EntryReport:
    data = entry.data

    return EntryReport(
        target=data.target.name,
        graph=data.graph,
        graph_text=data.graph_text,
        op_count=data.op_count,
        reason=data.reason,
        compiled_guards=entry.guards,
        trace_seconds=data.trace_seconds,
        source=entry.source,
        failures=tuple(data.failures),
        uncompiled=data.uncompiled,
        serves_one_call=data.serves_one_call,
        compiles=spec.compiles,
        times=data.times,
        measured=data.measured,
        pieces=data.pieces,
        tier=data.tier,
        equal_calls=data.equal_calls,
        cache_notes=data.cache_notes,
    )


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
