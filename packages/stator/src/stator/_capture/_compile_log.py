"""Records of compilations, for the loggers of `_logs.py` and for `tlparse`, which reads the folder
in `TORCH_TRACE`.

Texts are made where they are logged. An artifact carries the id of the compilation around it.
"""

from __future__ import annotations

import functools
import sys
import time
import traceback
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from textwrap import indent
from types import FrameType
from typing import TYPE_CHECKING, Any

import attrs
import torch
from stator_bytecode import FlatState, is_own_module
from stator_guards import Cache, Entry, Guard
from torch._logging import structured
from torch._logging._internal import trace_structured

from stator._capture._uncompiled_operator import lines_of_uncompiled
from stator._program._target import Target, start_of
from stator._program._traceback import WRAPPERS
from stator._settings._logs import emit
from stator.errors import Unsupported

if TYPE_CHECKING:
    from stator_subgraphs import CapturedGraph


@attrs.define(eq=False)
class Compilation:
    """A compilation that is under way: the entry that it made, or the refusals that it met."""

    target: Target
    begun: float
    refusals: Sequence[Unsupported]
    entry: Entry | None = None

    @property
    def refused(self) -> Unsupported | None:
        """The reason why the target runs eagerly from now on."""
        return self.refusals[-1] if self.refusals and self.entry is None else None

    def note_times(self) -> None:
        """Record in the entry when its compilation began, and how long it took."""
        if self.entry is not None:
            times = self.entry.data.times
            times.begun, times.total = self.begun, time.time() - self.begun


def log_start(target: Target, cache: Cache, key: Hashable, state: FlatState) -> None:
    """Record that a call is compiled, and why the entries that exist do not serve it."""
    trace_structured("dynamo_start", lambda: {"stack": _stack(target)})
    if not cache.entries(key):
        return

    @functools.cache
    def reasons() -> list[str]:
        return [str(reason) for reason in cache.reasons(state, key)]

    user = getattr(sys.modules.get("torch._dynamo.utils"), "_recompile_user_contexts", None) or ()
    context = "".join(f", {hook()}" for hook in user)
    head = f"{target.name} is compiled again ({start_of(target)}{context})"
    emit("recompiles", lambda: _text(head, reasons()[:1]), lambda: _text("", reasons()[1:]))
    _artifact("recompile_reasons", reasons, "json")


def log_graph(target: Target, captured: CapturedGraph, code: Callable[[], str]) -> None:
    """Record a graph before the backend gets it, which may take it apart; `code` is its text."""

    def symbols() -> str:
        return _text(f"symbols in the graph of {target.name}", _symbolic(captured))

    emit("graph_code", lambda: _text(f"the graph of {target.name}", [code()]))
    emit("graph", lambda: _text(f"the graph of {target.name}", [captured.graph]))
    if any(_symbolic(captured)):
        emit("dynamic", symbols)
    trace_structured("dynamo_output_graph", lambda: {"sizes": _sizes(captured)}, payload_fn=code)


def log_end(made: Compilation) -> None:
    """Record the entry that a compilation made, or why there is none."""
    name = made.target.name
    if made.refused is not None:
        refused = _text(f"{name} runs eagerly", [made.refused])
        emit("perf_hints", lambda: refused)
        _log_break(refused, [])
    if made.entry is not None:
        _log_entry(name, made.entry)
    trace_structured("compilation_metrics", lambda: _metrics(made))


def _count_for_torch(data: Any) -> None:
    """Count an entry where programs read the counts of torch.compile."""
    if (utils := sys.modules.get("torch._dynamo.utils")) is not None:
        utils.counters["frames"].update(total=1, ok=1)
        graphs = int(data.op_count > 0)
        utils.counters["stats"].update(calls_captured=data.op_count, unique_graphs=graphs)
        if data.reason is not None:
            utils.counters["graph_break"][str(data.reason)] += 1


def _log_entry(name: str, entry: Entry) -> None:
    data: Any = entry.data
    _count_for_torch(data)

    def source() -> str:
        return str(getattr(entry.guards, "source", ""))  # made when it is read

    emit("guards", lambda: _text(f"guards of {name}", _guards(entry)), source)
    emit("bytecode", lambda: _text(f"the entry of {name}", [entry.source]))
    trace_structured("dynamo_cpp_guards_str", payload_fn=lambda: _text("guards", _guards(entry)))
    _artifact("stator_entry", lambda: entry.source)
    _artifact("stator_guards", source)
    if data.reason is not None:
        frames = () if data.point is None else data.point.frames[:-1]
        callers = [str(layout.code.span(layout.pc)) for layout in reversed(frames)]
        _log_break(_text(f"graph break in {name}", [data.reason]), callers)

    if data.uncompiled:
        count = f"{len(data.uncompiled)} of {data.op_count}"
        head = f"operators of {name} run uncompiled ({count})"
        emit("perf_hints", lambda: _text(head, lines_of_uncompiled(data.uncompiled)))


def _log_break(text: str, callers: Sequence[str]) -> None:
    more = _text("called by", callers) if callers else ""
    emit("graph_breaks", lambda: text, lambda: more)
    _artifact("dynamo_graph_break_reason", lambda: text)


def _artifact(name: str, payload: Callable[[], object], encoding: str = "string") -> None:
    facts = {"name": name, "encoding": encoding}
    trace_structured("artifact", lambda: facts, payload_fn=payload)


# -- texts -----------------------------------------------------------------------------------------
def _text(head: str, parts: Iterable[object]) -> str:
    """Return a line, and below it each part, indented."""
    return "\n".join([head, *(indent(str(part), "  ") for part in parts)])


def _all_guards(entry: Entry) -> Sequence[Guard]:
    """Return the guards; a foreign guard compiler may not expose them."""
    guards: Sequence[Guard] = getattr(entry.guards, "guards", ())
    return guards


def _guards(entry: Entry) -> list[str]:
    """Return a line for each guard."""
    return [str(guard) for guard in _all_guards(entry)]


def _sizes(captured: CapturedGraph) -> dict[str, list[str]]:
    """Return the sizes of all tensors in a graph by the names of their nodes."""
    examples = [(node.name, node.meta.get("example_value")) for node in captured.graph.nodes]
    tensors = [(name, value) for name, value in examples if isinstance(value, torch.Tensor)]
    return {name: [*map(str, value.shape)] for name, value in tensors}


def _symbolic(captured: CapturedGraph) -> Iterator[str]:
    """Yield a line for each input that is a symbol, or a tensor with symbolic sizes."""
    nodes = captured.graph.find_nodes(op="placeholder")
    for node, item in zip(nodes, captured.inputs, strict=True):
        value = node.meta.get("example_value")
        if isinstance(value, torch.SymInt | torch.SymFloat | torch.SymBool):
            yield f"{item.source.name} is {value}"
        elif isinstance(value, torch.Tensor) and not all(type(n) is int for n in value.shape):
            yield f"{item.source.name} has sizes ({', '.join(map(str, value.shape))})"


def _stack(target: Target) -> list[dict[str, Any]]:
    """Return the calls of the program that led here, then the first line of what is compiled."""
    frames = [pair for pair in traceback.walk_stack(None) if not _is_own(pair[0])]
    span = start_of(target)
    first = traceback.FrameSummary(span.filename, span.line, span.function, lookup_line=False)
    return structured.from_traceback([*traceback.StackSummary.extract(reversed(frames)), first])


_OWN = ("torch._logging", "contextlib")


def _is_own(frame: FrameType) -> bool:
    module = str(frame.f_globals.get("__name__"))
    is_own = is_own_module(module) or module.startswith(_OWN)
    return is_own or frame.f_code.co_filename.startswith(WRAPPERS)


def _metrics(made: Compilation) -> dict[str, Any]:
    """Return the facts that `tlparse` lists for a compilation."""
    span = start_of(made.target)
    data: Any = None if made.entry is None else made.entry.data
    graph = getattr(data, "graph", None)

    facts = {
        "co_name": made.target.name,
        "co_filename": span.filename,
        "co_firstlineno": span.line,
        "start_time": made.begun,
        "entire_frame_compile_time_s": time.time() - made.begun,
        "graph_op_count": getattr(data, "op_count", 0),
        "graph_node_count": 0 if graph is None else len(graph.graph.nodes),
        "guard_count": 0 if made.entry is None else len(_all_guards(made.entry)),
        "has_guarded_code": made.entry is not None,
        "fail_reason": None if made.refused is None else str(made.refused),
    }

    lists = ("non_compliant_ops", "compliant_custom_ops", "restart_reasons")
    return facts | {name: [] for name in lists}
