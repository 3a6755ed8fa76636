"""Parameters that a region makes: leaves of autograd, which no operator of a graph can make.

Each call makes the object before its graph runs, and without contents. The graph computes these,
connects them with the history of the object where gradients are recorded, and the entry sets them
as the data of the object:

    p = nn.Parameter(x * 2)     v0 = new_parameter()
    y = p.sin()                 g = graph(x, v0)     mul = x * 2;  sin = with_history(mul, v0).sin()
    return p, y                 v0.data = g[0]
"""

from typing import Any, ClassVar

import attrs
import torch
from stator_guards import CallSource, Source
from torch import Tensor
from torch.utils._pytree import tree_leaves

from stator_variables._objects._wrap import with_namespace
from stator_variables._runtime._support import NewLeaf, is_new_in_each_call
from stator_variables._space import Space
from stator_variables._trace._capture_state import CaptureState
from stator_variables._trace._graph import Dim, GraphValue
from stator_variables._tracker import MISSING
from stator_variables._trackers import TensorTracker


@attrs.define(eq=False)
class NewLeaves(CaptureState):
    """The parameters that each call makes."""

    may_repeat: ClassVar[bool] = True

    are_made: bool = False

    def needs_guard(self, t: Space, source: Source) -> bool:
        return not is_new_in_each_call(source)


class _History(torch.autograd.Function):
    @staticmethod
    def forward(ctx: object, data: Tensor, leaf: Tensor) -> Tensor:
        return data.view_as(data)

    @staticmethod
    def backward(ctx: object, *gradients: object) -> object:
        return None, gradients[0]


def with_history(data: Tensor, leaf: Tensor) -> Any:
    """`data`, whose gradient `leaf` gets."""
    return _History.apply(data, leaf)  # type: ignore[no-untyped-call]


def make(
    t: Space, cls: type, data: GraphValue, shape: tuple[int, ...], requires_grad: bool
) -> TensorTracker:
    """The tracker of a new tensor of class `cls` over the memory of `data`, which has no
    history."""
    return _made(t, TensorTracker(data, cls), data, shape, requires_grad)


def become_leaf(t: Space, vt: TensorTracker) -> TensorTracker | None:
    """Make a leaf with gradients of a tensor that the graph computes and that has no history. None
    where that takes the tensor itself."""
    shape = tuple(vt.example.shape)
    is_plain = vt.source is None and vt.cls is Tensor and vt.data is MISSING and not vt.is_late
    if not is_plain or vt.namespace is not None or any(type(size) is not int for size in shape):
        return None
    if _has_views(vt.before):  # they would require gradients from then on
        return None
    return _made(t, vt, vt.before, shape, requires_grad=True)


def _made(
    t: Space, vt: TensorTracker, data: GraphValue, shape: tuple[int, ...], requires_grad: bool
) -> TensorTracker:
    example, cls = data.example, vt.cls
    if t.touched or torch.is_inference_mode_enabled() or example.layout is not torch.strided:
        raise t.unsupported("graph-result", f"a {cls.__name__} that is made inside an operator")
    if _is_of_input(t, example):  # setting `data` does not share the counter of its writes
        raise t.unsupported("graph-result", f"a {cls.__name__} over the memory of an input")
    if requires_grad and not (example.is_floating_point() or example.is_complex()):
        detail = f"a {cls.__name__} of {example.dtype}, which cannot require gradients"
        raise t.unsupported("operator-error", detail)

    made = NewLeaf(cls, shape, example.dtype, example.device, requires_grad)
    real, source = made(), CallSource(made)
    t.state(NewLeaves).are_made = True
    traced = t.graph.tensor_input(source, real, [Dim()] * example.dim(), "parameter")
    t.journal.assign(vt, before=traced, real=real, source=source, connect=connected)
    t.heap.trackers[id(real)] = vt
    t.heap.alive.append(real)
    with_namespace(t, vt, real, source)
    t.write(vt, data=data)
    return vt


def _has_views(traced: GraphValue) -> bool:
    example = traced.example
    storage = example.untyped_storage()._cdata
    found = [user.meta.get("example_value") for user in traced.node.users]
    tensors = (leaf for leaf in tree_leaves(found) if isinstance(leaf, Tensor))
    return any(x is not example and x.untyped_storage()._cdata == storage for x in tensors)


def _is_of_input(t: Space, example: Tensor) -> bool:
    storage = example.untyped_storage()._cdata
    return any(
        type(vt) is TensorTracker
        and vt.source is not None
        and not vt.is_new
        and vt.example.layout is torch.strided
        and vt.example.untyped_storage()._cdata == storage
        for vt in t.heap.trackers.values()
    )


def connected(t: Space, vt: Any) -> GraphValue:
    """Return what an operator takes for a new leaf: its data, with its history where gradients are
    recorded."""
    if not (vt.before.example.requires_grad and torch.is_grad_enabled()):
        return vt.data  # type: ignore[no-any-return]
    version = vt.data.example._version
    if vt.connected is None or vt.connected[0] is not vt.data or vt.connected[2] != version:
        made = t.graph.call(with_history, [vt.data, vt.before], {})
        t.journal.assign(vt, connected=(vt.data, made, version))
    return vt.connected[1]  # type: ignore[no-any-return]
