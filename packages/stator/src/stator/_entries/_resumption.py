"""Deoptimization: from a node of a graph that raised to the frames of the program at that operator.

A graph that runs in program order has, when a node raises, done what plain Python would have done
up to that operator. The target is traced once more, up to the instruction that recorded the node
(`RetraceLimit`). Of that trace the graph is not run: its outputs are the values that the graph
which raised has computed already. Its effects and its frame state are what the program needs to go
on at the operator.

    entry_0(x, log)    g = graph(x)          raises at `getitem`, with `sin` computed
    resume_1(x, log, g)                      g = (sin,)
        log.append(g[0])                     # the effects before the operator
        return Goto(site, [x, log, g[0]])    # the exception is raised there, or the instruction
                                             # runs natively

Traces for this are made when a node raises for the first time, and kept with the entry.
"""

from __future__ import annotations

import itertools
import operator
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import FrameType
from typing import Any

import attrs
import torch
from stator_backends import nodes_called
from stator_bytecode import FlatState, Goto, Site, exception_field
from stator_guards import Source, function_text, load_source
from stator_subgraphs import CapturedGraph, bodies_of, calls_in
from stator_variables import EntryCall, EntryCalls, enters_level
from torch import fx

from stator._capture._entry_source import ending
from stator._capture._retrace import Retrace
from stator._capture._trace import TraceResult
from stator._entries._calls_ahead import CallsAhead, given_again
from stator._entries._graph_effects import has_effect, is_foreign_and_caught
from stator._entries._liveness import Repeatable
from stator._entries._program_order import is_foreign, raising_node
from stator._program._target import Target
from stator.errors import Unsupported

_numbers = itertools.count()


class _Dropped:
    def __repr__(self) -> str:
        return "<a value that the graph no longer had>"


DROPPED = _Dropped()


class Unavailable(Exception):
    """A value of the frames was computed by the graph, dropped, and cannot be computed again."""


@attrs.frozen(eq=False)
class NodeFailure:
    """The node of a graph that raised, and the values that the graph had then.

    Where a compiled piece raised, the node is the one of `nodes` that is due to it, or the first.
    `values` are the locals of the graph's function, which sets what it needs no longer to None.
    """

    node: fx.Node
    frame: FrameType | None
    rest: Any  # the traceback inside of the operator
    values: Mapping[str, Any]
    nodes: tuple[fx.Node, ...] = ()

    @classmethod
    def of(
        cls, error: BaseException, module: fx.GraphModule, ran: fx.GraphModule
    ) -> NodeFailure | None:
        """Find the node by the line in the generated function of `ran`: an equal graph, or the
        driver of its pieces. None if that did not run."""
        code = type(ran).forward.__code__
        entry: Any = exception_field(error, "__traceback__")
        while entry is not None and entry.tb_frame.f_code is not code:
            entry = entry.tb_next
        if entry is None:
            return None

        line = entry.tb_lineno - code.co_firstlineno
        index = (ran._lineno_map or {}).get(line)
        called = [*ran.graph.nodes]
        if index is None or index >= len(called):
            return None
        named = {node.name: node for node in module.graph.nodes}
        nodes = tuple(named[name] for name in nodes_called(called[index]) if name in named)
        if not nodes:
            return None
        frame = entry.tb_frame
        return cls(raising_node(nodes), frame, entry.tb_next, frame.f_locals, nodes)

    @classmethod
    def of_compiled(cls, error: BaseException, module: fx.GraphModule) -> NodeFailure | None:
        """Return the failure of the one operator of another library in a graph that was compiled as
        a whole; None if it has none in a `try`."""
        nodes = tuple(calls_in(module))
        found = [node for node in nodes if is_foreign_and_caught(node)]
        if len(found) != 1:
            return None
        return cls(found[0], None, exception_field(error, "__traceback__"), {}, nodes)

    @property
    def is_foreign(self) -> bool:
        """True for an operator of another library, of which nothing is known."""
        return any(map(is_foreign, self.nodes))

    @property
    def has_effect(self) -> bool:
        """True if what raised has an effect, perhaps before it raised."""
        return any(map(has_effect, self.nodes))

    @property
    def is_half_done(self) -> bool:
        """True if it is not known which effects of a compiled piece precede the exception."""
        return len(self.nodes) > 1 and self.has_effect and not is_foreign_and_caught(self.node)

    @property
    def is_simple(self) -> bool:
        """True for an operator without a body, and for a compiled piece."""
        return len(self.nodes) > 1 or next(bodies_of(self.node), None) is None

    def before(self) -> Iterator[fx.Node]:
        """Yield the nodes that ran before."""
        for node in self.node.graph.nodes:
            if node is self.node:
                return
            yield node

    def forget_frame(self) -> None:
        """Clear the frame, which holds modes that the graph entered."""
        if self.frame is not None:
            self.frame.clear()


@attrs.define(eq=False)
class Resumption:
    """The way from one node of a graph to the frames of the program.

    `run(*state, g, results)` applies the side effects that precede the operator, and gives the site
    and the frame state. `needed` are the positions in `g` of what the side effects need; the frame
    state has the rest. `is_exact` is False where an effect of the graph came after the instruction
    began: it must not run again.
    """

    run: Callable[..., Any]
    captured: CapturedGraph
    needed: frozenset[int]
    is_exact: bool
    rewound: set[Source | None]  # objects that have calls after the operator
    calls: Sequence[EntryCall]  # of the entry, before it

    @classmethod
    def of(
        cls, retrace: Retrace, state: FlatState, failure: NodeFailure, calls: CallsAhead
    ) -> Resumption:
        """Raises Unsupported when the trace takes another way than the first, or cannot be
        continued there."""
        traced = retrace.to(state, failure.node.meta["began"])

        try:
            is_exact = _compare(traced.captured.graph, failure)
            assert traced.point is not None
            if enters_level(traced.captured.graph, and_stays=True):
                # it was left when the graph raised, and all tangents ended
                raise Unsupported("operator-error", "an operator on dual tensors")
            again = traced.emitter.t.state(EntryCalls).early
            if not calls.starts_with(again):
                raise Unsupported("operator-error", "other calls ahead of the graph")
            rewound = calls.rewound(again)
            made_again = {i for i, call in enumerate(calls.calls) if call.key in rewound}
            lines_again = given_again(traced.emitter, again, made_again)
            run = _function(traced, retrace.target, Site(traced.point), lines_again)
            lines = "\n".join(traced.emitter.lines)
            needed = frozenset(int(found) for found in re.findall(r"\bg\[(\d+)\]", lines))
            return cls(run, traced.captured, needed, is_exact, rewound, again)
        finally:
            traced.captured.release()

    def resume(
        self, target: Target, state: FlatState, failure: NodeFailure, results: Sequence[Any]
    ) -> Goto:
        """Raises Unavailable when a value is missing; then nothing has changed.

        Where no handler of the program will run, the frames need no values: they are only seen in a
        traceback.
        """
        named = dict(zip(target.parameters, state, strict=True))
        named |= {call.value.name: one for call, one in zip(self.calls, results, strict=False)}
        values = _NodeValues(self.captured, failure.values, named)
        outputs: Any = self.captured.graph.output_node().args[0]
        is_handled = bool(failure.node.meta.get("handled"))

        given: list[Any] = []
        for position, node in enumerate(outputs):
            try:
                given.append(values.of(node))
            except Unavailable:
                if is_handled or position in self.needed:
                    raise
                given.append(DROPPED)
        result: Goto = self.run(*state, given, results)
        return result


def _compare(graph: fx.Graph, failure: NodeFailure) -> bool:
    """Compare a new trace with the nodes that ran; return True if no effect among them is missing
    in it."""
    ran = {node.name: node for node in failure.before()}
    again = {node.name: node for node in graph.nodes if node.op.startswith("call")}
    for name, node in again.items():
        known = ran.get(name)
        if (known is None and has_effect(node)) or (
            known is not None and not _calls_same(node, known)
        ):
            raise Unsupported(
                "operator-error", "the program took another way when it was traced again"
            )
    calls = (node for name, node in ran.items() if name not in again and node.op.startswith("call"))
    return not any(map(has_effect, calls))


def _calls_same(node: fx.Node, ran: fx.Node) -> bool:
    """Return True if a node of a new trace calls what a node of the graph has called; an object
    that is made for each trace continues the call of the other one."""
    if node.target == ran.target:
        return True
    continue_call = getattr(node.target, "continue_call", None)
    return continue_call is not None and bool(continue_call(ran.target))


def _function(
    traced: TraceResult, target: Target, site: Site, steps: Sequence[str]
) -> Callable[..., Any]:
    emitter = traced.emitter
    name = f"resume_{next(_numbers)}"
    body = [*emitter.loads, *steps, *emitter.behind, *emitter.marks(), *emitter.lines]
    body.append(ending(traced, site))
    text = function_text(name, (*target.parameters, "g", "results"), body)
    captured = emitter.captured
    made: Callable[..., Any] = load_source(text, f"<stator {name}: {target.name}>", captured, site)[
        name
    ]
    return made


def has_saved_tensor_hooks() -> bool:
    """Return True if hooks for saved tensors are active: an operator that runs again would call
    them again."""
    return torch._C._autograd._top_saved_tensors_default_hooks(False) is not None


@attrs.define(eq=False)
class _NodeValues:
    """Values of a new trace's nodes: what the graph that raised has kept, or what can be computed
    from that.

    Only operators without effects, of values that nothing writes to, are run again; nobody can
    observe that.
    """

    captured: CapturedGraph
    kept: Mapping[str, Any]
    state: Mapping[str, Any]
    found: dict[fx.Node, Any] = attrs.field(factory=dict)
    _inputs: dict[fx.Node, Any] = attrs.field(factory=dict)
    _is_repeatable: Repeatable = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        placeholders = self.captured.graph.find_nodes(op="placeholder")
        self._inputs = dict(zip(placeholders, self.captured.inputs, strict=True))
        self._is_repeatable = Repeatable.of(self.captured.graph)

    def of(self, node: object) -> Any:
        if not isinstance(node, fx.Node):
            return node
        if node not in self.found:
            self.found[node] = self._value(node)
        return self.found[node]

    def _value(self, node: fx.Node) -> Any:
        if node.op == "placeholder":
            return self._input(node)
        if node.op == "get_attr":
            return operator.attrgetter(str(node.target))(self.captured.module)
        kept = self.kept.get(node.name)
        return self._computed(node) if kept is None else kept

    def _input(self, node: fx.Node) -> Any:
        item = self._inputs[node]
        value = item.source.evaluate(self.state)
        return torch.tensor(value, dtype=torch.float64) if item.kind == "float" else value

    def _computed(self, node: fx.Node) -> Any:
        if has_saved_tensor_hooks() or not self._is_repeatable(node):
            raise Unavailable(node.name)
        args = fx.map_arg(node.args, self.of)
        kwargs = fx.map_arg(node.kwargs, self.of)
        if node.op == "call_method":
            return getattr(args[0], str(node.target))(*args[1:], **kwargs)
        target: Any = node.target
        return target(*args, **kwargs)
