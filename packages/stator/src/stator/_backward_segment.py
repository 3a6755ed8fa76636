"""One segment of a captured backward, compiled by a backend for the sizes that it meets.

A size that changes becomes symbolic, so that the second compilation serves all that follow.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import attrs
import torch
from stator_backends import AmbientState, Backend, boxed, compile_session, lower
from stator_guards import (
    Equals,
    Guard,
    GuardSet,
    IsNone,
    ParameterSource,
    SameObject,
    ShapeExpression,
    TensorMatch,
    compile_guards,
)
from torch import Tensor
from torch._guards import GuardSource, Source, dataclass_with_cached_hash
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx import Graph, GraphModule, Interpreter, Node

from stator.errors import backend_boundary

if TYPE_CHECKING:  # importing it brings sympy, which only a compilation needs
    from torch.fx.experimental.symbolic_shapes import ShapeEnv, StatefulSymbolicContext

MOST = 8
"""Compilations of one segment; further sizes run as they are."""


@attrs.frozen(eq=False)
class _Specialization:
    """The segment compiled for some sizes, and the guards over its arguments."""

    guards: GuardSet
    taken: tuple[tuple[int, int | None], ...]
    """Position of each argument that the compiled function takes, or of a tensor and a dimension."""

    function: Callable[[list[Any]], Sequence[Any]]

    def run(self, arguments: list[Any]) -> Sequence[Any]:
        taken = [
            arguments[position] if dim is None else arguments[position].shape[dim]
            for position, dim in self.taken
        ]
        arguments.clear()
        return self.function(taken)


class BackwardSegment:
    """A function of a list that it empties; the graph calls it by its name."""

    def __init__(self, graph: Graph, name: str, backend: Backend, dynamic: bool | None) -> None:
        self.__name__ = self.__qualname__ = name
        self.__module__ = "compiled"
        self.graph = graph
        self.backend = backend
        self.dynamic = dynamic
        self.specializations: list[_Specialization] = []
        self._seen: list[Any] = []  # of each argument, the number or the sizes; None has changed
        self._plain = GraphModule(torch.nn.Module(), graph, name).forward

    def __call__(self, arguments: list[Any]) -> Sequence[Any]:
        for specialization in self.specializations:
            if specialization.guards.check(*arguments):
                return specialization.run(arguments)

        # with `create_graph` what the backward does is recorded, which a compiler would not keep
        if torch.is_grad_enabled() or len(self.specializations) >= MOST:
            given = tuple(arguments)
            arguments.clear()
            result: Sequence[Any] = self._plain(*given)
            return result

        made = self._specialize(arguments)
        self.specializations.insert(0, made)
        return made.run(arguments)

    def _specialize(self, arguments: Sequence[Any]) -> _Specialization:
        seen = self._seen or [_Unseen] * len(arguments)
        pairs = zip(seen, arguments, strict=True)
        self._seen = [_merged(old, _numbers_of(value), self.dynamic) for old, value in pairs]
        with compile_session():
            return _Lowering.of(self.graph, arguments, self._seen).finish(self.backend)


class _Unseen:
    """Stands for a size that no call had before."""


def _numbers_of(value: Any) -> Any:
    return tuple(value.shape) if isinstance(value, Tensor) else value


def _merged(old: Any, new: Any, dynamic: bool | None) -> Any:
    """Return a number, or a tuple of them, with None for one that changes."""
    if isinstance(new, tuple):
        parts = old if isinstance(old, tuple) and len(old) == len(new) else [_Unseen] * len(new)
        return tuple(_merged(*pair, dynamic) for pair in zip(parts, new, strict=True))
    if type(new) is not int or dynamic is False:
        return new
    if old is _Unseen:
        return None if dynamic else new
    return old if old == new else None


@dataclass_with_cached_hash(frozen=True)
class _Argument(Source):
    """An argument of the segment, as a source of torch's."""

    parameter: str

    @property
    def _name_template(self) -> str:
        return self.parameter

    @cached_property
    def guard_source(self) -> GuardSource:
        return GuardSource.LOCAL


@attrs.frozen(eq=False)
class _Input:
    """An input of the compiled function: an argument, or the size of one in a dimension."""

    position: int
    dim: int | None
    source: _Argument
    value: Any
    fake: Any
    context: StatefulSymbolicContext | None = None


@attrs.define(eq=False)
class _Lowering:
    """The arguments of a specialization while they are sorted: each becomes an input, or constant."""

    env: ShapeEnv
    mode: FakeTensorMode
    graph: Graph = attrs.field(factory=Graph)
    parameters: list[str] = attrs.field(factory=list)
    guards: list[Guard] = attrs.field(factory=list)
    inputs: list[_Input] = attrs.field(factory=list)
    _copies: dict[Node, Any] = attrs.field(factory=dict)
    _first: dict[int, Node] = attrs.field(factory=dict)  # by identity, the tensors so far
    _bound: set[Any] = attrs.field(factory=set)  # symbols that an input binds

    @classmethod
    def of(cls, graph: Graph, arguments: Sequence[Any], seen: Sequence[Any]) -> _Lowering:
        from torch.fx.experimental.symbolic_shapes import ShapeEnv

        env = ShapeEnv()
        made = cls(env, FakeTensorMode(shape_env=env))
        nodes = list(graph.nodes)
        for position, value in enumerate(arguments):
            made._copies[nodes[position]] = made._sort(nodes[position], position, value, seen)
        for node in nodes[len(arguments) :]:
            made._copies[node] = made.graph.node_copy(node, made._copies.__getitem__)
        return made

    def _sort(self, node: Node, position: int, value: Any, seen: Sequence[Any]) -> Any:
        """Return the placeholder of an argument, or what stands for it: a constant, an equal one."""
        source = ParameterSource(node.name)
        self.parameters.append(node.name)
        if isinstance(value, Tensor):
            if (first := self._first.setdefault(id(value), node)) is not node:
                self.guards.append(Guard(source, SameObject(ParameterSource(first.name))))
                return self._copies[first]
            return self._tensor(node.name, position, value, seen[position])
        if type(value) is int and seen[position] is None:
            return self._number(node.name, position, None, value)
        self.guards.append(Guard(source, IsNone() if value is None else Equals(value)))
        return value

    def _number(self, name: str, position: int, dim: int | None, value: Any) -> Node:
        from torch.fx.experimental.symbolic_shapes import DimDynamic

        source = _Argument(name)
        fake = value
        if dim is None:
            fake = self.env.create_unspecified_symint_and_symbol(value, source, DimDynamic.DYNAMIC)
        return self._input(_Input(position, dim, source, value, fake))

    def _tensor(self, name: str, position: int, value: Tensor, sizes: Sequence[Any]) -> Node:
        changing = {i for i, size in enumerate(value.shape) if sizes[i] is None and size > 1}
        kind = TensorMatch(value, frozenset(changing))
        self.guards.append(Guard(ParameterSource(name), kind))
        source = _Argument(name)
        context = _context_of(value, changing, source)
        detached = value.detach()
        with torch._C.DisableTorchFunctionSubclass():
            fake = self.mode.from_tensor(detached, source=source, symbolic_context=context)
        for dim in sorted(changing):  # a symbol has to be an input before a tensor has it
            size: Any = fake.shape[dim]
            if size.node.expr not in self._bound:
                self._bound.add(size.node.expr)
                self._number(f"{name}.size()[{dim}]", position, dim, size)
        return self._input(_Input(position, None, source, detached, fake, context))

    def _input(self, given: _Input) -> Node:
        node = self.graph.placeholder(re.sub(r"\W+", "_", given.source.parameter))
        setattr(node, "_dynamo_source", given.source)  # where a compiler looks for it
        self.inputs.append(given)
        return node

    def finish(self, backend: Backend) -> _Specialization:
        module = GraphModule(torch.nn.Module(), self.graph, "segment")
        with self.mode, AmbientState.capture().restored():
            _Examples(module).run(*[each.fake for each in self.inputs])
        values = [each.value for each in self.inputs]
        contexts: Any = {each.value: each.context for each in self.inputs if each.context}
        with backend_boundary():
            lowered = lower(module, values, backend, fake_mode=self.mode, contexts=contexts)
        guards = compile_guards([*self.guards, *self._shape_guards()], self.parameters)
        taken = [(each.position, each.dim) for each in self.inputs]
        return _Specialization(guards, tuple(taken), boxed(lowered.callable))

    def _shape_guards(self) -> list[Guard]:
        """Return what the compiled segment relies on about sizes, after the backend has run."""
        from torch.fx.experimental.symbolic_shapes import SYMPY_INTERP

        if not self.env.backed_var_to_val:
            return []
        contexts: Any = [each.context for each in self.inputs]
        texts: Any = self.env.produce_guards_verbose(
            [each.fake for each in self.inputs],
            [each.source for each in self.inputs],
            lambda source: source.name,
            input_contexts=contexts,
            ignore_static=True,
            langs=("python",),
        )[0].exprs
        return [Guard(None, self._fact(text, SYMPY_INTERP)) for text in texts]

    def _fact(self, text: str, functions: dict[str, Any]) -> ShapeExpression:
        names = set(re.findall(r"\b[A-Za-z_]\w*\b", text))
        sources = {name: ParameterSource(name) for name in self.parameters if name in names}
        scope = {name: functions[name] for name in functions if name in names}
        return ShapeExpression(text, sources, scope)


def _context_of(value: Tensor, changing: set[int], source: Source) -> StatefulSymbolicContext:
    from torch.fx.experimental.symbolic_shapes import DimDynamic, StatefulSymbolicContext

    dims = range(value.dim())
    return StatefulSymbolicContext(
        dynamic_sizes=[DimDynamic.DYNAMIC if i in changing else DimDynamic.STATIC for i in dims],
        dynamic_strides=[DimDynamic.INFER_STRIDE for _ in dims],
        constraint_sizes=[None for _ in dims],
        constraint_strides=[None for _ in dims],
        tensor_source=source,
    )


class _Examples(Interpreter):
    """Runs a graph on fake tensors, and leaves each result with its node."""

    def run_node(self, n: Node) -> Any:
        result = n.meta["example_value"] = super().run_node(n)
        return result
