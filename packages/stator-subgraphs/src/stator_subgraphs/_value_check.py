"""Operators that may raise depending on the values, which no trace can determine: from a table, by
their names."""

from collections.abc import Iterator

import torch
from torch.fx import GraphModule, Node

VALUE_CHECKED_OPS = frozenset(
    "index index_select index_add index_copy index_fill index_put index_reduce gather scatter "
    "scatter_add scatter_reduce take take_along_dim put masked_scatter embedding embedding_bag "
    "one_hot nll_loss nll_loss2d nll_loss_nd cross_entropy multi_margin_loss "
    "multilabel_margin_loss ctc_loss binary_cross_entropy cholesky cholesky_inverse "
    "cholesky_solve inverse pinverse svd pca_lowrank svd_lowrank lobpcg qr lu lu_solve lu_unpack "
    "triangular_solve geqrf ormqr multinomial bernoulli normal poisson binomial bincount histc "
    "histogram searchsorted repeat_interleave tensor_split as_strided max_unpool1d max_unpool2d "
    "max_unpool3d fractional_max_pool2d fractional_max_pool3d pack_padded_sequence "
    "pad_packed_sequence sparse_coo_tensor".split()
)
"""Operators that may refuse the values they are given; the like-named ones in place do, too."""
# by zero, of ints
DIVISIONS = frozenset("floor_divide floordiv ifloordiv remainder mod imod fmod div divide".split())


CHECKS = ("_check", "_assert", "sym_constrain_range")
"""Raise on purpose, when something that the trace relied on does not hold."""


def may_raise(node: Node) -> bool:
    if any(may_raise(inner) for body in bodies_of(node) for inner in calls_in(body)):
        return True
    if getattr(node.target, "namespace", "aten") not in ("aten", "prims", "higher_order"):
        return True  # an operator of somebody else's
    name = name_of(node).partition(".")[0]
    if name.startswith(CHECKS):
        return True
    if name in ("getitem", "setitem", "__getitem__", "__setitem__"):
        return any(map(_is_tensor, node.all_input_nodes[1:]))
    stem = name.rstrip("_").removeprefix("__i").removeprefix("_")
    if stem in DIVISIONS:
        example = node.meta.get("example_value")
        return isinstance(example, torch.Tensor) and not (
            example.is_floating_point() or example.is_complex()
        )
    return stem in VALUE_CHECKED_OPS or stem.startswith("linalg_")


def _is_tensor(node: Node) -> bool:
    return isinstance(node.meta.get("example_value"), torch.Tensor)


def calls_in(module: GraphModule) -> list[Node]:
    return [node for node in module.graph.nodes if node.op in ("call_function", "call_method")]


def bodies_of(node: Node) -> Iterator[GraphModule]:
    """Yield the bodies of a higher-order operator."""
    for argument in node.all_input_nodes:
        held = (
            getattr(node.graph.owning_module, str(argument.target))
            if argument.op == "get_attr"
            else None
        )
        if isinstance(held, GraphModule):
            yield held


def name_of(node: Node) -> str:
    return (
        node.target if isinstance(node.target, str) else str(getattr(node.target, "__name__", ""))
    )
