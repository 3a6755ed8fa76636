"""One segment of a captured backward, compiled by a backend for the sizes that it meets.

A size that changes becomes symbolic, so that the second compilation serves all that follow.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import attrs
from stator_backends import Backend, boxed, compile_session, lower
from stator_guards import (
    Equals,
    Guard,
    GuardSet,
    IsNone,
    ParameterSource,
    SameObject,
    Source,
    TensorMatch,
    compile_guards,
)
from stator_variables import Dim, TraceLocation
from torch import Tensor
from torch.fx import Graph, Node
from torch.fx.node import map_arg

from stator._backward_engine import BackwardSettings
from stator.errors import Unsupported, backend_boundary

if TYPE_CHECKING:
    from stator_subgraphs import OutputGraph

MOST = 8
"""Compilations of one segment; further sizes run as they are."""


@attrs.frozen(eq=False)
class _Specialization:
    """The segment compiled for some sizes, the guards over its arguments, and what it takes of
    them."""

    guards: GuardSet
    parameters: tuple[str, ...]
    inputs: tuple[Source, ...]
    function: Callable[[list[object]], Sequence[object]]

    def run(self, arguments: list[object]) -> Sequence[object]:
        state = dict(zip(self.parameters, arguments, strict=True))
        arguments.clear()
        taken = [source.evaluate(state) for source in self.inputs]
        state.clear()
        return self.function(taken)


class BackwardSegment:
    """A function of a list that it empties; the graph calls it by its name."""

    def __init__(self, graph: Graph, name: str, settings: BackwardSettings) -> None:
        self.__name__ = self.__qualname__ = name
        self.__module__ = "compiled"
        self.graph = graph
        self.settings = settings
        self.specializations: list[_Specialization] = []
        self._seen: list[object] = []  # of each argument, the number or the sizes; None has changed
        self._apart: set[Node] = set()
        self._plain = self._divided()

    def __call__(self, arguments: list[object]) -> Sequence[object]:
        for specialization in self.specializations:
            if specialization.guards.check(*arguments):
                return specialization.run(arguments)

        if not self._apart and len(self.specializations) < MOST:
            made = self._specialize(arguments)
            if made is not None:
                self.specializations.insert(0, made)
                return made.run(arguments)
        return self._plain(arguments)

    def _specialize(self, arguments: Sequence[object]) -> _Specialization | None:
        """Return what a backend makes of the segment, or None if it has to be divided."""
        from stator_subgraphs import OutputGraph

        seen = self._seen or [_Unseen] * len(arguments)
        pairs = zip(seen, arguments, strict=True)
        observed = _Observed(self.settings.dynamic, self._changing(arguments))
        self._seen = [observed.merged(old, _numbers_of(value)) for old, value in pairs]
        recorder = OutputGraph(_Nowhere())
        trace = _SegmentTrace(recorder, self.graph)
        try:
            with compile_session():
                return trace.lowered(arguments, self._seen, self.settings.backend)
        except Unsupported:
            if self.settings.fullgraph:
                raise
            is_inside = trace.current.op == "call_function"
            self._apart = {trace.current} if is_inside else set(self.graph.nodes)
            self._plain = self._divided()
            return None
        finally:
            recorder.release()

    def _changing(self, arguments: Sequence[object]) -> set[int]:
        """Return the sizes that are symbolic in the forward already."""
        pairs = zip(self.graph.find_nodes(op="placeholder"), arguments, strict=True)
        given = [value for node, value in pairs if "changes" in node.meta]
        return {value for value in given if isinstance(value, int) and value > 1}

    def _divided(self) -> Callable[[list[object]], Sequence[object]]:
        """Return the segment as its own function, or with segments around a node that cannot be
        captured."""
        from stator_subgraphs import CapturedBackward, partitioned

        captured = CapturedBackward.of(self.graph, {})
        if not self._apart:
            return captured.function
        return partitioned(captured, self._part, self._apart).function

    def _part(self, graph: Graph, name: str) -> BackwardSegment:
        return BackwardSegment(graph, f"{self.__name__}_{name}", self.settings)


class _Unseen:
    """Stands for a size that no call had before."""


def _numbers_of(value: object) -> object:
    return tuple(value.shape) if isinstance(value, Tensor) else value


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


@attrs.define(eq=False)
class _SegmentTrace:
    """The segment recorded on fake tensors, with the guards on its arguments."""

    recorder: OutputGraph
    graph: Graph
    current: Node = attrs.field(init=False)
    guards: list[Guard] = attrs.field(factory=list)
    _values: dict[Node, Any] = attrs.field(factory=dict)
    _first: dict[int, Node] = attrs.field(factory=dict)  # by identity, the tensors so far

    def lowered(
        self, arguments: Sequence[object], seen: Sequence[object], backend: Backend
    ) -> _Specialization:
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

        with backend_boundary():
            lowered = lower(
                *(captured.module, captured.example_inputs(), backend),
                fake_mode=self.recorder.fake_mode,
                contexts=captured.contexts,
            )
        facts = [Guard(None, fact.expression, fact.where) for fact in captured.shape_guards()]
        names = tuple(node.name for node in parameters)
        guards = compile_guards([*self.guards, *facts], names)
        inputs = tuple(each.source for each in captured.inputs)
        return _Specialization(guards, names, inputs, boxed(lowered.callable))

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
