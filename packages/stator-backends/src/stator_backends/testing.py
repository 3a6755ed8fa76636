"""Graphs written node by node, as a front end would trace them, for conformance kits.

build = GraphBuilder()
x = build.input(torch.randn(4), dynamic=(0,))
built = build.finish(build.call(torch.sin, x))
lowered = lower(built.gm, built.inputs, backend, fake_mode=built.fake_mode, contexts=built.contexts)
lowered.callable(*built.arguments(torch.randn(7)))
"""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from attrs import Factory, define, field, frozen
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx import Graph, GraphModule, Node
from torch.fx.experimental import symbolic_shapes as shapes
from torch.fx.node import map_arg
from torch.fx.passes.runtime_assert import insert_deferred_runtime_asserts

from ._context import PlaceholderSource, static_context
from ._graph_facts import has_version, memory_of

__all__ = ["GraphBuilder", "HandBuilt", "Lifted", "metadata"]


@frozen
class Lifted:
    """Place of a lifted symbol at run time: one of the numbers in the layout of a tensor."""

    tensor: int
    number: int

    def read(self, tensors: Sequence[Tensor]) -> Any:
        return metadata(tensors[self.tensor])[self.number]


def metadata(tensor: Tensor) -> list[Any]:
    """Return sizes, strides and offset: every number that may be a symbol."""
    return [*tensor.shape, *tensor.stride(), tensor.storage_offset()]


@frozen(eq=False)
class HandBuilt:
    """A graph with the facts about its inputs that `lower` needs."""

    gm: GraphModule
    inputs: list[Any]
    fake_mode: FakeTensorMode
    contexts: dict[Tensor, shapes.StatefulSymbolicContext]
    layout: tuple[int | Lifted, ...]

    def arguments(self, *tensors: Tensor) -> list[Any]:
        """Return the flat inputs for these tensors, lifted numbers included."""
        return [
            item.read(tensors) if isinstance(item, Lifted) else tensors[item]
            for item in self.layout
        ]


@define(eq=False)
class GraphBuilder:
    """Builds one graph; each call runs on fake tensors as it is added."""

    shape_env: shapes.ShapeEnv = Factory(shapes.ShapeEnv)
    graph: Graph = Factory(Graph)
    fake_mode: FakeTensorMode = field()
    _inputs: list[Any] = Factory(list)
    _contexts: dict[Tensor, shapes.StatefulSymbolicContext] = Factory(dict)
    _layout: list[int | Lifted] = Factory(list)
    _attributes: dict[str, Any] = Factory(dict)
    _bound: set[Any] = Factory(set)

    @fake_mode.default
    def _fresh_mode(self) -> FakeTensorMode:
        return FakeTensorMode(shape_env=self.shape_env)

    def input(self, tensor: Tensor, dynamic: tuple[int, ...] = ()) -> Node:
        """A tensor placeholder, after one for each symbol that it brings in."""
        number = sum(isinstance(item, int) for item in self._layout)
        # where the tensor comes from; not the position of its placeholder
        source = PlaceholderSource(1000 + number)
        context = static_context(tensor, source)
        for dim in dynamic:
            context.dynamic_sizes[dim] = shapes.DimDynamic.DYNAMIC
        self._contexts[tensor] = context
        fake = self.fake_mode.from_tensor(tensor, source=source, symbolic_context=context)
        for index, value in enumerate(metadata(fake)):
            if isinstance(value, torch.SymInt) and not shapes.free_symbols(value) <= self._bound:
                self._bound |= shapes.free_symbols(value)
                self._placeholder(f"s{number}_{index}", value, value, Lifted(number, index))
        return self._placeholder(f"t{number}", tensor, fake, number)

    def _placeholder(self, name: str, value: object, example: object, item: int | Lifted) -> Node:
        node = self.graph.placeholder(name)
        node.meta["example_value"] = example
        self._inputs.append(value)
        self._layout.append(item)
        return node

    def attribute(self, name: str, value: Tensor | torch.nn.Module) -> Node:
        """A tensor or an inner graph that the graph module itself holds."""
        self._attributes[name] = value
        node = self.graph.create_node("get_attr", name)
        node.meta["example_value"] = (
            self.fake_mode.from_tensor(value) if isinstance(value, Tensor) else value
        )
        return node

    def call(self, target: Callable[..., Any] | str, *args: Any, **kwargs: Any) -> Node:
        """A function, or with a string a method of the first argument."""
        function = getattr(torch.Tensor, target) if isinstance(target, str) else target
        given: Any = map_arg(args, _example)
        versions = [_version(value) for value in given]
        with self.fake_mode:
            example = function(*given, **map_arg(kwargs, _example))
        operation = "call_method" if isinstance(target, str) else "call_function"
        node = self.graph.create_node(operation, target, args, kwargs)
        node.meta["example_value"] = example
        written = [v for v, before in zip(given, versions, strict=True) if _version(v) != before]
        if written:
            node.meta["writes"] = frozenset(map(memory_of, written))
        if bindings := shapes.compute_unbacked_bindings(self.shape_env, example):
            node.meta["unbacked_bindings"] = bindings
        return node

    def finish(self, *outputs: Any) -> HandBuilt:
        self.graph.output(outputs)
        gm = GraphModule(self._attributes, self.graph)
        insert_deferred_runtime_asserts(gm, self.shape_env, "hand_built")
        gm.recompile()
        return HandBuilt(gm, self._inputs, self.fake_mode, self._contexts, tuple(self._layout))


def _version(value: Any) -> int:
    return value._version if has_version(value) else 0


def _example(node: Node) -> Any:
    return node.meta["example_value"]
