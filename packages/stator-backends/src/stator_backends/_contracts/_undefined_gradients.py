"""Results without a gradient: what only they depend on has none either.

    y, distance = x * 2, x.norm()     with y.sum().backward(), autograd never differentiates `norm`

AOTAutograd has one backward pass for all results of a graph, and takes zeros for the gradients that
are undefined. Where a derivative is infinite (of a square root at 0), zero times infinity is NaN.
So a graph whose derivatives may be, and that has other results, gets a backward pass of its own for
those results that have gradients. It is compiled when it is first needed.
"""

from __future__ import annotations

import copy
from collections.abc import Collection, Iterator, Sequence
from operator import attrgetter
from typing import Any

import torch
from torch import Tensor
from torch.fx import GraphModule, Node
from torch.fx.node import map_arg

from .._graph_facts import example_of, results_of

_SINGULAR = frozenset(
    """
    acos acosh angle arccos arccosh arcsin arctan2 arctanh asin atan2 atanh cdist cosine_similarity
    digamma dist erfinv float_power frobenius_norm hypot lgamma log log10 log1p log2 logdet logit
    matrix_norm mvlgamma norm normalize pairwise_distance reciprocal rpow rsqrt rtruediv slogdet
    special_entr special_xlog1py sqrt std std_mean vector_norm xlogy
    """.split()
)
"""Operators with derivatives that are infinite somewhere, or not numbers."""

_DIVISIONS = ("div", "divide", "true_divide", "truediv")


def may_be_undefined(gm: GraphModule) -> bool:
    """Return True if a derivative in the graph may be infinite, and does not count for all of its
    results that have gradients."""
    results = [node for node in results_of(gm) if isinstance(node, Node) and _is_variable(node)]
    differentiable = {*results}
    if len(differentiable) < 2:
        return False

    reached: dict[Node, frozenset[Node]] = {}
    for node in reversed(gm.graph.nodes):
        users = (reached[user] for user in node.users if user in reached)
        own = {node} if node in differentiable else set()
        reached[node] = frozenset(own.union(*users))
        if 0 < len(reached[node]) < len(differentiable) and _is_singular(node):
            return True
    return False


def _is_variable(node: Node) -> bool:
    example = example_of(node)
    return isinstance(example, Tensor) and example.requires_grad


def _is_singular(node: Node) -> bool:
    """Return True for an operator whose derivative may be infinite, or that has one in its body."""
    if not node.op.startswith("call_"):
        return False
    if any(map(_is_singular, _nodes_of_bodies(node))):
        return True
    name = _name(node)
    if name in _DIVISIONS:
        return len(node.args) > 1 and isinstance(example_of(node.args[1]), Tensor)
    if name == "pow":
        exponent = node.args[1] if len(node.args) > 1 else node.kwargs.get("exponent")
        return not isinstance(exponent, int | float) or exponent < 1
    return name in _SINGULAR


def _name(node: Node) -> str:
    target = node.target
    name = target if isinstance(target, str) else getattr(target, "__name__", "")
    return str(name).partition(".")[0].removeprefix("linalg_").strip("_")


def _nodes_of_bodies(node: Node) -> Iterator[Node]:
    owner = node.graph.owning_module
    for operand in node.all_input_nodes:
        body = attrgetter(str(operand.target))(owner) if operand.op == "get_attr" else None
        if isinstance(body, GraphModule):
            yield from body.graph.nodes


# -- a backward pass without some gradients --------------------------------------------------------
def without_gradients(backward: Any, undefined: Collection[int]) -> GraphModule | None:
    """Return a copy of a backward pass for results of which some have no gradient, given by their
    numbers. What depends on these alone is left out; the inputs stay the same.

    None if that needs zeros of sizes that are not known.
    """
    made: GraphModule = copy.deepcopy(backward)
    gradients = _gradients_of(made)
    absent = {gradients[number] for number in undefined}
    dependent = {*gradients}

    for node in made.graph.nodes:
        if not node.op.startswith("call_"):
            continue
        operands = [each for each in node.all_input_nodes if each in dependent]
        if not operands:
            continue
        dependent.add(node)
        if absent.issuperset(operands):
            absent.add(node)
        elif not _with_zeros(node, absent.intersection(operands)):
            return None

    output = made.graph.output_node()
    output.args = (map_arg(output.args[0], lambda node: None if node in absent else node),)
    made.graph.eliminate_dead_code()
    made.recompile()
    return made


def _gradients_of(backward: GraphModule) -> list[Node]:
    """Return the gradients among the inputs of a backward pass, as AOTAutograd names them."""
    inputs = backward.graph.find_nodes(op="placeholder")
    return [node for node in inputs if str(node.target).startswith("tangents")]


def _with_zeros(node: Node, absent: Collection[Node]) -> bool:
    """Let an operator take zeros for operands that are absent. Return False if it cannot."""
    for operand in absent:
        value = operand.meta.get("val")
        if not isinstance(value, Tensor) or not all(type(size) is int for size in value.shape):
            return False
        with node.graph.inserting_before(node):
            zeros = node.graph.call_function(
                torch.ops.aten.full.default,
                ([*value.shape], 0),
                {"dtype": value.dtype, "device": value.device},
            )
        zeros.meta["val"] = value.new_zeros(value.shape)
        node.replace_input_with(operand, zeros)
    return True


# -- the function that AOTAutograd has compiled ----------------------------------------------------
def positions_of_gradients(function: Any) -> list[int]:
    """Return the positions of the gradients that its backward pass has as inputs, among all that
    the function is given; none where some of these are of other tensors than results."""
    metadata, info = function.metadata, function._lazy_backward_info
    backward = getattr(info, "bw_module", None)
    if backward is None or function.maybe_subclass_metadata is not None:
        return []
    if metadata.num_mutated_inp_runtime_indices or metadata.num_intermediate_bases:
        return []

    found = [i for i, each in enumerate(metadata.output_info) if each.requires_grad_for_backward]
    return found if len(found) == len(_gradients_of(backward)) else []


def note_undefined(function: Any, positions: Sequence[int]) -> None:
    """Let the function get None for gradients that are undefined. The context has the numbers of
    these, counted among those at `positions`; zeros take their places."""
    forward, backward = function.forward, function.backward

    def call(context: Any, *inputs: Any) -> Any:
        context.set_materialize_grads(False)
        return forward(context, *inputs)

    def call_backward(context: Any, gradients: list[Any]) -> Any:
        undefined = [i for i, position in enumerate(positions) if gradients[position] is None]
        for position in (positions[i] for i in undefined):
            like = context._input_metadata[position]
            gradients[position] = torch.zeros(like.shape, dtype=like.dtype, device=like.device)
        context.undefined = tuple(undefined)
        return backward(context, gradients)

    setattr(function, "forward", staticmethod(call))
    setattr(function, "backward", staticmethod(call_backward))
