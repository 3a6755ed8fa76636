"""Operators that may raise depending on the values, which no trace can determine: from a table, by
their names."""

from collections.abc import Iterator

import torch
from torch.fx import GraphModule, Node

_NUMBERS = (float, torch.SymInt, torch.SymFloat, torch.SymBool)

VALUE_CHECKED_OPS = frozenset(
    "index index_select index_add index_copy index_fill index_put index_reduce gather scatter "
    "scatter_add scatter_reduce take take_along_dim put masked_scatter index_put_impl "
    "embedding embedding_bag embedding_bag_forward_only embedding_renorm one_hot "
    "nll_loss nll_loss2d nll_loss_nd nll_loss_forward nll_loss2d_forward cross_entropy "
    "cross_entropy_loss linear_cross_entropy multi_margin_loss multilabel_margin_loss ctc_loss "
    "binary_cross_entropy cholesky cholesky_inverse cholesky_solve inverse pinverse matrix_power "
    "nuclear_norm svd pca_lowrank svd_lowrank lobpcg qr lu lu_with_info "
    "lu_solve lu_unpack triangular_solve geqrf orgqr ormqr multinomial bernoulli normal poisson "
    "binomial bincount histc histogram histogramdd quantile nanquantile cov corrcoef searchsorted "
    "repeat_interleave tensor_split unravel_index segment_reduce istft as_strided max_unpool1d "
    "max_unpool2d max_unpool3d fractional_max_pool2d fractional_max_pool3d pack_padded_sequence "
    "pad_packed_sequence sparse_coo_tensor sparse_csr_tensor sparse_csc_tensor sparse_bsr_tensor "
    "sparse_bsc_tensor sparse_compressed_tensor fake_quantize_per_channel_affine "
    "nested_tensor_from_mask".split()
)
"""Operators that may refuse the values they are given; the like-named ones in place do, too."""
# by zero, of ints
DIVISIONS = frozenset("floor_divide floordiv ifloordiv remainder mod imod fmod div divide".split())


TOTAL = frozenset(
    "add sub mul neg pos abs sum eq ne lt le gt ge not and or ite min max float size numel stride "
    "sym_size sym_numel sym_stride sym_storage_offset sym_sum sym_float sym_min sym_max sym_not "
    "sym_ite storage_offset dim ndimension len item local_scalar_dense getitem "
    "iadd isub imul".split()
)
"""Operators on numbers that take all of them: Python divides by no zero, and rounds no infinity."""


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
        return _takes_indices(node)

    stem = name.rstrip("_").removeprefix("__i").lstrip("_")
    example = node.meta.get("example_value")
    if isinstance(example, _NUMBERS):
        return stem not in TOTAL and not _has_constant_divisor(node, stem)
    if stem in DIVISIONS and isinstance(example, torch.Tensor):
        is_fractional = example.is_floating_point() or example.is_complex()
        return not is_fractional and not _has_constant_divisor(node, stem)
    return stem in VALUE_CHECKED_OPS or stem.startswith("linalg_")


def _has_constant_divisor(node: Node, stem: str) -> bool:
    """Return True for a division by a number that is not zero in any call."""
    divisor = node.args[1] if len(node.args) > 1 else node.kwargs.get("other")
    is_division = stem in DIVISIONS or stem == "truediv"
    return is_division and isinstance(divisor, int | float) and divisor != 0


def _takes_indices(node: Node) -> bool:
    """Return True for an index of tensors: its numbers may be out of range. What a mask selects
    always exists, but what is written there may have another size."""
    indices = [node.meta.get("example_value") for node in node.all_input_nodes[1:]]
    tensors = [index for index in indices if isinstance(index, torch.Tensor)]
    if name_of(node).strip("_") == "setitem":
        return bool(tensors)
    return any(index.dtype is not torch.bool for index in tensors)


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
