"""One segment of a captured backward, compiled by a backend for the sizes that it meets.

A size that changes becomes symbolic, so that the second compilation serves all that follow.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import attrs
from stator_backends import compile_session
from stator_guards import Equals, Guard, IsNone, ParameterSource, SameObject, TensorMatch
from stator_variables import Dim, TraceLocation
from torch import Tensor
from torch.fx import Graph, Node
from torch.fx.node import map_arg

from stator._autograd._backward_engine import BackwardSettings
from stator._autograd._backward_function import (
    CompiledSegment,
    TracedSegment,
    compiled_segment,
    text_of,
)
from stator._autograd._backward_user_code import refusal_of, user_code_in
from stator._capture._dynamic import Shapes
from stator._entries._graph_lowering import WRITES_WITH_GRADIENTS
from stator.errors import Unsupported

if TYPE_CHECKING:
    from stator_subgraphs import OutputGraph

MOST = 8
"""Compilations of one segment; further sizes run as they are."""

MOST_FOLLOWED = 4
"""Compilations of one segment with code of the program: with and without gradients to add to, of
one size and of all."""


class BackwardSegment:
    """A function of a list that it empties; the graph calls it by its name."""

    def __init__(self, graph: Graph, name: str, settings: BackwardSettings) -> None:
        from stator_subgraphs import CapturedBackward, without_accumulation

        self.__name__ = self.__qualname__ = name
        self.__module__ = "compiled"
        self.whole = graph
        self.graph, self.accumulations = without_accumulation(graph)
        self._variables = [position for position, _ in self.accumulations]
        self.settings = settings
        self.specializations: list[CompiledSegment] = []
        self._seen: list[object] = []  # of each argument, the number or the sizes; None has changed
        self._shapes = Shapes(settings.dynamic)  # of what code of the program has besides
        self._followed = user_code_in(self.graph)
        self._detached: list[int] = []
        self._is_divided = False
        self._plain = CapturedBackward.of(self.whole, {}).function

    def __call__(self, arguments: list[object]) -> Sequence[object]:
        if self._detached:
            self._detach(arguments)
        for each in self.specializations:
            if each.guards.check(*each.unguarded, *arguments):
                return self._run(each, arguments)

        if not self._is_divided and len(self.specializations) < MOST:
            made = self._specialize(arguments)
            if made is not None:
                self.specializations.insert(0, made)
                return self._run(made, arguments)
        return self._plain(arguments)

    def _run(self, made: CompiledSegment, arguments: list[object]) -> Sequence[object]:
        if made.repeats:
            kept = [*arguments]
            try:
                results = [*made.function(arguments)]
            except Exception:  # an operator that raises does so behind the effects ahead of it
                return self._plain(kept)
            return self._accumulated([kept[i] for i in self._variables], results)

        if not self._variables:
            return made.function(arguments)
        variables = [arguments[i] for i in self._variables]
        return self._accumulated(variables, [*made.function(arguments)])

    def _accumulated(self, variables: list[Any], results: list[Any]) -> Sequence[object]:
        """Accumulate the gradients that follow the results: nothing else refers to them."""
        from stator_subgraphs import accumulate_grad

        gradients = [results.pop() for _ in variables]  # the last first
        for variable, (_, is_hooked) in zip(variables, self.accumulations, strict=True):
            gradient = gradients.pop()  # which counts as the one reference of a function
            accumulate_grad(variable, gradient, is_hooked)
        return results

    def _specialize(self, arguments: list[object]) -> CompiledSegment | None:
        """Return what a backend makes of the segment, or None if it has to be divided."""
        seen = self._seen or [_Unseen] * len(arguments)
        pairs = zip(seen, arguments, strict=True)
        observed = _Observed(self.settings.dynamic, self._changing(arguments))
        self._seen = [observed.merged(old, _numbers_of(value)) for old, value in pairs]

        with compile_session():
            made = self._compiled(arguments)
            if made is not None and made.refused == WRITES_WITH_GRADIENTS and not self._detached:
                self._detached = _with_history(self.graph, arguments)
                self._detach(arguments)
                made = self._compiled(arguments)
            return made

    def _compiled(self, arguments: Sequence[object]) -> CompiledSegment | None:
        traced = self._traced(arguments)
        if not isinstance(traced, TracedSegment):
            self._divide({node.name for node in traced})
            return None
        try:
            return compiled_segment(traced, len(arguments), self.settings.backend)
        finally:
            traced.captured.release()

    def _detach(self, arguments: list[Any]) -> None:
        """Cut the history of saved tensors, which nothing reads: a compiler takes no write to a
        parameter beside a view of it that has one."""
        for position in self._detached:
            arguments[position] = arguments[position].detach()

    def _traced(self, arguments: Sequence[object]) -> TracedSegment | set[Node]:
        """Return the graph of the segment, or what has to be apart from graphs."""
        from stator_subgraphs import OutputGraph

        from stator._autograd._backward_trace import trace_user_code

        if self._followed:
            # new functions in each call have guards that hold for one call
            traced: TracedSegment | set[Node] = {*self._followed}
            if len(self.specializations) < MOST_FOLLOWED:
                backend = self.settings.backend
                traced = trace_user_code(self.graph, arguments, self._seen, backend, self._shapes)
            if self.settings.fullgraph and isinstance(traced, set):
                raise refusal_of(next(iter(traced)))
            return traced

        recorder = OutputGraph(_Nowhere())
        trace = _SegmentTrace(recorder, self.graph)
        try:
            return trace.traced(arguments, self._seen)
        except Unsupported:
            recorder.release()
            if self.settings.fullgraph:
                raise
            is_inside = trace.current.op == "call_function"
            return {trace.current} if is_inside else set(self.graph.nodes)

    def _changing(self, arguments: Sequence[object]) -> set[int]:
        """Return the sizes that are symbolic in the forward already."""
        pairs = zip(self.graph.find_nodes(op="placeholder"), arguments, strict=True)
        given = [value for node, value in pairs if "changes" in node.meta]
        return {value for value in given if isinstance(value, int) and value > 1}

    def _divide(self, apart: set[str]) -> None:
        """Go on with segments around the nodes of these names, which cannot be captured."""
        from stator_subgraphs import CapturedBackward, partitioned

        captured = CapturedBackward.of(self.whole, {})
        nodes = {node for node in self.whole.nodes if node.name in apart}
        self._plain = partitioned(captured, self._part, nodes).function
        self._is_divided = True

    def _part(self, graph: Graph, name: str) -> BackwardSegment:
        return BackwardSegment(graph, f"{self.__name__}_{name}", self.settings)


def _with_history(graph: Graph, arguments: Sequence[object]) -> list[int]:
    """Return the positions of tensors with a history that only operators get."""
    pairs = zip(graph.find_nodes(op="placeholder"), arguments, strict=True)
    return [
        i
        for i, (node, value) in enumerate(pairs)
        if isinstance(value, Tensor) and not value.is_leaf and not any(map(_sees_it, node.users))
    ]


def _sees_it(node: Node) -> bool:
    """Return True for what may hand its arguments on to code of the program."""
    from stator_subgraphs import runs_user_code

    return not hasattr(node.target, "runs_user_code") or runs_user_code(node)


class _Unseen:
    """Placeholder of a size that no call had before."""


def _numbers_of(value: object) -> object:
    if isinstance(value, Tensor):
        return tuple(value.shape)
    return value if isinstance(value, int | float) else _Unseen


@attrs.frozen
class _Observed:
    """Sizes and numbers of one call, beside those of calls before.

    Those that are equal to sizes that are known to change, or numbers that are multiples, do so.
    """

    dynamic: bool | None
    changing: set[int]

    def merged(self, old: object, new: object) -> object:
        """Return a number, or a tuple of them, with None for one that changes."""
        if isinstance(new, tuple):
            parts = old if isinstance(old, tuple) and len(old) == len(new) else [_Unseen] * len(new)
            pairs = zip(parts, new, strict=True)
            return tuple(self._number(*pair, pair[1] in self.changing) for pair in pairs)
        if type(new) is not int:
            return new
        return self._number(old, new, any(new % each == 0 for each in self.changing))

    def _number(self, old: object, new: int, changes: bool) -> int | None:
        if self.dynamic is False:
            return new
        if old is _Unseen:
            return None if self.dynamic or changes else new
        return new if old == new else None


class _Nowhere:
    """The location of a segment: no line of the program."""

    def current(self) -> TraceLocation:
        return TraceLocation((), ())

    def module(self, tracker: object) -> None:
        """Return the entry of a module: there is none."""


@attrs.define(eq=False)
class _SegmentTrace:
    """The segment recorded on fake tensors, with the guards on its arguments."""

    recorder: OutputGraph
    graph: Graph
    current: Node = attrs.field(init=False)
    guards: list[Guard] = attrs.field(factory=list)
    _values: dict[Node, Any] = attrs.field(factory=dict)
    _first: dict[int, Node] = attrs.field(factory=dict)  # by identity, the tensors so far

    def traced(self, arguments: Sequence[object], seen: Sequence[object]) -> TracedSegment:
        parameters = self.graph.find_nodes(op="placeholder")
        with self.recorder.tracing():
            for node, value, numbers in zip(parameters, arguments, seen, strict=True):
                self.current = node
                self._values[node] = self._argument(node, value, numbers)
            for node in self.graph.nodes:
                self.current = node
                if node.op == "call_function":
                    self._values[node] = self._call(node)
            outputs: Any = self.graph.output_node().args[0]
            captured = self.recorder.finish([self._values[node] for node in outputs])
        names = tuple(node.name for node in parameters)
        inputs = [text_of(item.source) for item in captured.inputs]
        return TracedSegment(captured, self.recorder.fake_mode, self.guards, names, inputs)

    def _argument(self, node: Node, value: object, numbers: Any) -> object:
        """Return an input, or the replacement of the argument: a constant, or an equal one."""
        source = ParameterSource(node.name)
        if isinstance(value, Tensor):
            if (first := self._first.setdefault(id(value), node)) is not node:
                self.guards.append(Guard(source, SameObject(ParameterSource(first.name))))
                return self._values[first]
            sizes = enumerate(zip(value.shape, numbers, strict=True))
            changing = {i for i, (size, seen) in sizes if seen is None and size > 1}
            self.guards.append(Guard(source, TensorMatch(value, frozenset(changing))))
            dims = [Dim("dynamic" if i in changing else "static") for i in range(value.dim())]
            return self.recorder.tensor_input(source, value.detach(), dims, node.name)
        if type(value) is int and numbers is None:
            return self.recorder.number_input(source, value, node.name)
        self.guards.append(Guard(source, IsNone() if value is None else Equals(value)))
        return value

    def _call(self, node: Node) -> Any:
        args: Any
        kwargs: Any
        args, kwargs = map_arg((node.args, node.kwargs), self._values.__getitem__)
        if node.target is operator.getitem:
            return self.recorder.project(*args)
        return self.recorder.call(node.target, args, kwargs)
