"""The results of graph construction: a captured graph, its inputs, and the bodies of operators."""

from collections.abc import Callable, Mapping
from functools import cached_property
from operator import attrgetter
from typing import Any, Literal

import torch
from attrs import define, frozen
from stator_bytecode.errors import SourceSpan
from stator_guards import ShapeExpression, Source
from stator_variables import GraphValue
from torch.fx import Graph, GraphModule, Node
from torch.fx.experimental.symbolic_shapes import StatefulSymbolicContext

from stator_subgraphs._outer_value import is_computed
from stator_subgraphs._tracer import SubgraphTracer


@frozen(eq=False)
class GraphInput:
    """One placeholder, and where its value comes from.

    kind "tensor": the value at `source` as it is. "number": the int at `source`, often a size of a
    tensor. "float": the float at `source`, as a tensor of no dimensions and dtype float64.
    "object": an object that operators take as it is, such as a mesh; `example` is the object.
    """

    source: Source
    example: Any
    kind: Literal["tensor", "number", "float", "object"]


@frozen
class ShapeFact:
    """A relation between sizes or numbers that the graph relies on, and the line of the program it
    is due to."""

    expression: ShapeExpression
    where: SourceSpan


@frozen(eq=False, slots=False)  # for the cached property
class CapturedGraph:
    """A finished graph with the data for its compilation: real tensors are kept until `release` is
    called.

    `example_inputs` are the inputs for the backend: real tensors, symbols for numbers.
    `shape_guards` is to be called after the backend ran, since backends add relations of their own;
    with True if the trace ends with an exception of the program, for which sizes of a part that was
    rolled back may also be the reason. `keeps_history`: code after the graph reads the autograd
    history of values inside it, which do not exist where a compiler made one function of the graph.
    """

    graph: Graph
    make_module: Callable[[], GraphModule]
    inputs: tuple[GraphInput, ...]
    op_count: int
    keeps_history: bool
    example_inputs: Callable[[], list[Any]]
    shape_guards: Callable[..., list[ShapeFact]]
    # how each real input was made fake, for doing it again
    contexts: Mapping[torch.Tensor, StatefulSymbolicContext]
    release: Callable[[], None]
    # `shape_guards` of a time after `release`
    later_shape_guards: Callable[[], Callable[..., list[ShapeFact]]]

    @cached_property
    def module(self) -> GraphModule:
        """The module of the graph, made on demand, as an empty one is never run."""
        return self.make_module()


class CapturedModule(GraphModule):
    """A graph, or the body of an operator: no module of the program, so hooks for all modules do
    not run."""

    def __call__(self, *args: object, **kwargs: object) -> Any:
        if (
            self._forward_hooks
            or self._forward_pre_hooks
            or self._backward_hooks
            or self._backward_pre_hooks
        ):
            return super().__call__(*args, **kwargs)  # those are a backend's own
        return self.forward(*args, **kwargs)

    def recompile(self) -> Any:
        """Compile the code, without fx's wrapper that prints an exception which the program may
        handle."""
        code = super().recompile()
        del type(self).__call__  # each graph module has a class of its own, which gets one
        return code


def copied_module(module: GraphModule) -> GraphModule:
    """Return a copy of a captured graph, with copies of the bodies of its operators, to be changed
    by a compiler while the graph runs. Tensors that it holds, and metadata, are shared."""
    graph, copies = Graph(), dict[Node, Node]()
    for node in module.graph.nodes:
        copy = copies[node] = graph.node_copy(node, copies.__getitem__)
        if (source := getattr(node, "_dynamo_source", None)) is not None:
            setattr(copy, "_dynamo_source", source)

    held = {node.target for node in graph.nodes if node.op in ("get_attr", "call_module")}
    made = CapturedModule({str(name): _copied(module, str(name)) for name in held}, graph)
    made.meta.update(module.meta)
    vars(made)["_param_name_to_source"] = {}
    return made


def _copied(module: GraphModule, path: str) -> Any:
    value = attrgetter(path)(module)
    return copied_module(value) if isinstance(value, GraphModule) else value


@define(eq=False)
class Body:
    """The body of a higher-order operator, and how it is called: with `arguments` first, then
    `lifted`.

    Both are values of the graph around. `outputs` are the examples of what it returns. `written`
    are the positions of inputs that it writes to, `aliased` pairs of positions (output, input) that
    share storage, `overlapping` pairs of outputs that do: an operator that permits none of it
    refuses here.
    """

    module: GraphModule
    tracer: SubgraphTracer
    # None where the operator makes the argument up (a slice of a scanned tensor)
    arguments: tuple[GraphValue | None, ...]
    lifted: tuple[GraphValue, ...]
    outputs: tuple[Any, ...]
    written: tuple[int, ...] = ()
    aliased: tuple[tuple[int, int], ...] = ()
    overlapping: tuple[tuple[int, int], ...] = ()

    @property
    def inputs(self) -> list[Any]:
        """The examples of its inputs, in order."""
        return [node.meta["example_value"] for node in self.tracer.placeholders]

    def computes(self, traced: GraphValue) -> bool:
        """Return True if the outer graph can have this value only as an output of the body."""
        return is_computed(self.tracer, traced)
