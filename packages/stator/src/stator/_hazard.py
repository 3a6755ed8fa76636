"""What a graph may have done when it raises: which of its inputs are written to, and before what that may raise.

Which nodes write the trace has seen (`meta["writes"]`: storages of examples). A table names the operators that may
refuse the values they meet, which no trace can know.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import attrs
import torch
from torch.fx import GraphModule, Node

if TYPE_CHECKING:
    from stator_subgraphs import CapturedGraph


@attrs.frozen
class Hazards:
    """Positions are those of the inputs that are tensors."""

    written: tuple[int, ...]  # share memory with what a node writes to, or may write to
    repeated: tuple[int, ...]  # those written to before an operator that may raise because of values
    caught: bool  # the graph checks what the trace relied on, or the program may catch what comes after a write
    silent: bool  # not every write is seen in a version counter

    @classmethod
    def of(cls, captured: CapturedGraph) -> Hazards | None:
        """None when something is done that cannot be taken back."""
        module = captured.module
        if any(map(_is_final, _all_calls(module))):
            return None
        places = module.graph.find_nodes(op="placeholder")
        inputs = [node for node, item in zip(places, captured.inputs, strict=True) if item.kind == "tensor"]
        written, repeated = _memory(module)
        return cls(
            _positions(inputs, written),
            _positions(inputs, repeated),
            has_checks(module) or is_caught_after_write(module),
            any(map(_is_silent, _all_calls(module))),
        )


def _positions(inputs: list[Node], storages: set[int | None]) -> tuple[int, ...]:
    return tuple(position for position, node in enumerate(inputs) if _storage(node) in storages - {None})


def _memory(module: GraphModule) -> tuple[set[int | None], set[int | None]]:
    """What is written to, and what of it before the last operator that may raise because of values."""
    written: set[int | None] = set()
    repeated: set[int | None] = set()
    for node in _calls(module):
        own = _written(node)
        if _may_raise(node):
            repeated = written | (set() if _name(node) in REPEATABLE else own)
        written |= own
    return written, repeated


def _written(node: Node) -> set[int | None]:
    seen: set[int | None] = set(node.meta.get("writes", ()))
    return seen | set(map(_storage, node.all_input_nodes)) if _is_silent(node) else seen


def _storage(node: Node) -> int | None:
    value = node.meta.get("example_value")
    from stator_subgraphs import storage_of  # when first asked: importing stator is to be quick

    return storage_of(value) if isinstance(value, torch.Tensor) else None


def _calls(module: GraphModule) -> list[Node]:
    return [node for node in module.graph.nodes if node.op in ("call_function", "call_method")]


def _all_calls(module: GraphModule) -> Iterator[Node]:
    """Also those in the bodies of higher-order operators."""
    for node in _calls(module):
        yield node
        for body in _bodies(node):
            yield from _all_calls(body)


def _bodies(node: Node) -> Iterator[GraphModule]:
    """Those of a higher-order operator."""
    for argument in node.all_input_nodes:
        held = getattr(node.graph.owning_module, str(argument.target)) if argument.op == "get_attr" else None
        if isinstance(held, GraphModule):
            yield held


def _name(node: Node) -> str:
    return node.target if isinstance(node.target, str) else str(getattr(node.target, "__name__", ""))


# -- writes ------------------------------------------------------------------------------------------------------------
def _is_final(node: Node) -> bool:
    """The other processes of a collective took part in it; a tensor with another storage does not get its own again."""
    qualified = str(getattr(node.target, "_qualified_op_name", node.target))
    return qualified.startswith("_c10d_functional") or _name(node) == "set_"


def _is_silent(node: Node) -> bool:
    """Running statistics are written by kernels that count no version; so is everything through `.data`."""
    if any(map(_is_silent, (inner for body in _bodies(node) for inner in _calls(body)))):
        return True
    name = _name(node)
    return "batch_norm" in name or "instance_norm" in name or "data" in node.args


# -- errors ------------------------------------------------------------------------------------------------------------
CHECKS = ("_check", "_assert", "sym_constrain_range")


def has_checks(module: GraphModule) -> bool:
    """Whether a node raises on purpose, when something that the trace relied on does not hold."""
    return any(_name(node).startswith(CHECKS) for node in _all_calls(module))


def is_caught_after_write(module: GraphModule) -> bool:
    """Whether an operator comes after a write and in a `try` of the program that catches what it raises."""
    written = False
    for node in _calls(module):
        if written and node.meta.get("caught"):
            return True
        written = written or bool(_written(node))
    return False


PICKY = frozenset(
    "index index_select index_add index_copy index_fill index_put index_reduce gather scatter scatter_add "
    "scatter_reduce take take_along_dim put masked_scatter embedding embedding_bag one_hot nll_loss nll_loss2d "
    "nll_loss_nd cross_entropy multi_margin_loss multilabel_margin_loss ctc_loss binary_cross_entropy cholesky "
    "cholesky_inverse cholesky_solve inverse pinverse svd pca_lowrank svd_lowrank lobpcg qr lu lu_solve lu_unpack "
    "triangular_solve geqrf ormqr multinomial bernoulli normal poisson binomial bincount histc histogram "
    "searchsorted repeat_interleave tensor_split as_strided max_unpool1d max_unpool2d max_unpool3d "
    "fractional_max_pool2d fractional_max_pool3d pack_padded_sequence pad_packed_sequence sparse_coo_tensor".split()
)
"""Operators that may refuse the values they are given; the like-named ones in place do, too."""
DIVISIONS = frozenset("floor_divide floordiv ifloordiv remainder mod imod fmod div divide".split())  # by zero, of ints
REPEATABLE = frozenset("index_copy_ index_fill_ index_put_ setitem __setitem__ scatter_ put_ masked_scatter_".split())
"""Those that leave the same when they run again after they have raised half way."""


def _may_raise(node: Node) -> bool:
    if any(_may_raise(inner) for body in _bodies(node) for inner in _calls(body)):
        return True
    if getattr(node.target, "namespace", "aten") not in ("aten", "prims", "higher_order"):
        return True  # an operator of somebody else's
    name = _name(node).partition(".")[0]
    if name in ("getitem", "setitem", "__getitem__", "__setitem__"):
        return any(_storage(index) is not None for index in node.all_input_nodes[1:])
    stem = name.rstrip("_").removeprefix("__i").removeprefix("_")
    if stem in DIVISIONS:
        example = node.meta.get("example_value")
        return isinstance(example, torch.Tensor) and not (example.is_floating_point() or example.is_complex())
    return stem in PICKY or stem.startswith("linalg_")
