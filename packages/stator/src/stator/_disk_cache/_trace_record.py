"""The result of a trace as data: what an entry is made of, but for what the backend makes.

    record = TraceRecord.of(traced, target)       # before the backend gets the graph
    traced = record.result(...)                   # in another process, without interpreting

A record is made of traces that end at the end of the function, whose entries any later call may
take, and of which all that they relied on is guarded or in the table of objects.
"""

from __future__ import annotations

import dis
import itertools
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from operator import methodcaller
from pathlib import Path
from types import CodeType
from typing import TYPE_CHECKING, Any

import attrs
import stator_variables as variables
import torch
from stator_backends import one_at_a_time
from stator_bytecode import Code
from stator_guards import CANNOT_READ, Guard, Loads, Source, expanded

from stator._capture._trace import TraceResult, new_space, quiet
from stator._disk_cache._archive import Differs, Live
from stator._disk_cache._fingerprint import CONSTANTS, NotCached
from stator._disk_cache._graph_calls import GraphCalls, NoLocation
from stator._program._target import Root
from stator._settings._options import Options
from stator.errors import Unsupported

if TYPE_CHECKING:
    from stator_variables import Policy

_OF_TORCH = (torch.dtype, torch.device, torch.layout, torch.memory_format, torch.Size)
_COPIED = (*CONSTANTS, complex, slice, range, type(...), Loads, *_OF_TORCH)


@attrs.frozen(eq=False)
class TraceRecord:
    """The parts of a `TraceResult`, and of its emitter, that an entry is made of."""

    graph: GraphCalls
    guards: tuple[Guard, ...]
    result: str
    loads: tuple[str, ...]
    lines: tuple[str, ...]
    loaded: tuple[tuple[Source, str], ...]
    captured: tuple[tuple[str, Any], ...]
    ended: tuple[int, ...]
    """The locals of the function whose ends the trace took for unobservable."""

    @classmethod
    def of(cls, traced: TraceResult) -> TraceRecord:
        """Raises NotCached with the reason where a trace is not to be kept."""
        if (reason := next(_reasons(traced), None)) is not None:
            raise NotCached(reason)
        emitter = traced.emitter
        return cls(
            GraphCalls.of(traced.captured, emitter.outputs),
            tuple(expanded(traced.guards)),
            traced.result,
            tuple(emitter.loads),
            tuple(emitter.lines),
            tuple(emitter.loaded.items()),
            tuple((name, _kept(value)) for name, value in emitter.captured.items()),
            tuple(sorted(emitter.t.lifetimes.ended_locals)),
        )

    def result_for(
        self, state: Mapping[str, object], options: Options, policy: Policy
    ) -> TraceResult:
        """Return what a trace would give: the graph is recorded anew, with the tensors of `state`.

        Raises Differs.
        """
        started = time.perf_counter()
        evaluate = methodcaller("evaluate", state)
        graph = options.stack.graph(NoLocation(), capture_data=options.captures_data)
        tracing = new_space(options, graph, policy)

        try:
            with one_at_a_time, graph.tracing(), quiet():
                outputs = self.graph.record(graph, evaluate, policy.dims)
                emitter = self._emitter(tracing, outputs)
                captured = graph.finish(outputs)
        except (Unsupported, *CANNOT_READ) as error:
            graph.release()
            raise Differs(f"the graph cannot be recorded: {error}") from error
        except BaseException:
            graph.release()
            raise

        if tuple(item.source for item in captured.inputs) != self.graph.inputs:
            captured.release()
            raise Differs("the graph has other inputs")

        return TraceResult(
            captured=captured,
            emitter=emitter,
            guards=[*self.guards],
            result=self.result,
            point=None,
            values=[],
            raises="",
            leaves=False,
            reason=None,
            seconds=time.perf_counter() - started,
        )

    def _emitter(self, tracing: Any, outputs: Sequence[Any]) -> variables.Emitter:
        captured = {name: _value(kept) for name, kept in self.captured}
        tracing.lifetimes.ended_locals.update(self.ended)
        return variables.Emitter.written_before(
            tracing,
            loads=[*self.loads],
            lines=[*self.lines],
            loaded=dict(self.loaded),
            captured=captured,
            outputs=[*outputs],
        )


def _kept(value: Any) -> Any:
    """Return a constant of an entry as it is written: an object of the program is never copied."""
    if type(value) in _COPIED:
        return value
    if type(value) in (tuple, frozenset):
        is_copied = all(type(item) in _COPIED for item in value)
        return value if is_copied else Live(value)
    return Live(value)


def _value(kept: Any) -> Any:
    return kept.value if type(kept) is Live else kept


def _reasons(traced: TraceResult) -> Iterator[str]:
    """Yield what keeps a trace from being written."""
    emitter = traced.emitter
    if traced.serves_one_call or traced.outdated:
        yield "its own effects make its guards fail"
    if traced.point is not None or traced.reason is not None or traced.raises:
        yield "it breaks"
    if emitter.draws or emitter.late_draws or emitter.early or emitter.t.streams.early:
        yield "it draws random numbers outside of the graph"
    if emitter.generators or emitter.gradients or emitter.fleeting:
        yield "it makes generators, sets gradients, or reads what may die"
    if emitter.t.modes or emitter.t.inference.ever or variables.is_under_level():
        yield "it changes modes"
    if emitter.t.assumes:
        yield "it calls a function whose result is assumed to be constant"
    if emitter.t.states.have_begun() or emitter.t.states.effects():
        yield "a capture has effects, such as warnings and calls of cached functions"


def check_hashes(codes: Iterable[CodeType], known: Iterable[object]) -> None:
    """Raise NotCached where a result may follow from hashes of texts or of None: another process
    has others. The order of a new set is guarded, that of a constant of code is not."""
    if any(each is hash for each in known):
        raise NotCached("it computes hashes, which differ between processes")
    for code in codes:
        if {"hash", "__hash__"} & {*code.co_names} or _reads_constant_set(code):
            raise NotCached(f"{code.co_qualname} may read hashes, which differ between processes")


def _reads_constant_set(code: CodeType) -> bool:
    """Return True for code that does more with a constant set than to look for members."""
    if not any(type(item) is frozenset for item in code.co_consts):
        return False
    for one, following in itertools.pairwise(dis.get_instructions(code)):
        is_set = type(one.argval) is frozenset
        if is_set and following.opname not in ("CONTAINS_OP", "SET_UPDATE"):
            return True
    return False


def check_codes(codes: Iterable[Code], known: Iterable[object], root: Root) -> None:
    """Raise NotCached for code that was interpreted and that no object of the table has: a change
    of it would not be noticed."""
    known = [*known]
    check_hashes([root.code, *(code.raw for code in codes)], known)
    covered: set[CodeType] = set()
    pending = [root.code, *(getattr(each, "__code__", each) for each in known)]
    while pending:
        code = pending.pop()
        if isinstance(code, CodeType) and code not in covered:
            covered.add(code)
            pending += code.co_consts
    for code in (each.raw for each in codes):
        if code not in covered and not code.co_filename.startswith(_VERSIONED):
            raise NotCached(f"the code of {code.co_qualname} is not guarded")


_VERSIONED = tuple(
    str(Path(str(module.__file__)).parent) + "/" for module in (torch, attrs, variables)
)
"""Folders of which the version is noted as a whole."""
