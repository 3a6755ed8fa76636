"""Parameters that a region makes: leaves of autograd, which no operator of a graph can make.

Each call makes the object before its graph runs, and without contents. The graph computes these,
connects them with the history of the object where gradients are recorded, and the entry sets them
as the data of the object:

    p = nn.Parameter(x * 2)     v0 = new_parameter()
    y = p.sin()                 g = graph(x, v0)     mul = x * 2;  sin = with_history(mul, v0).sin()
    return p, y                 v0.data = g[0]
"""

from typing import Any

import torch
from stator_guards import CallSource
from torch import Tensor

from stator_variables._objects._wrap import with_namespace
from stator_variables._runtime._support import NewLeaf
from stator_variables._space import Space
from stator_variables._trace._graph import Dim, GraphValue
from stator_variables._trackers import TensorTracker


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
    example = data.example
    if t.touched or torch.is_inference_mode_enabled() or example.layout is not torch.strided:
        raise t.unsupported("graph-result", f"a {cls.__name__} that is made inside an operator")
    if _is_of_input(t, example):  # setting `data` does not share the counter of its writes
        raise t.unsupported("graph-result", f"a {cls.__name__} over the memory of an input")
    if requires_grad and not (example.is_floating_point() or example.is_complex()):
        detail = f"a {cls.__name__} of {example.dtype}, which cannot require gradients"
        raise t.unsupported("operator-error", detail)
    made = NewLeaf(cls, shape, example.dtype, example.device, requires_grad)
    real, source = made(), CallSource(made)
    t.makes_leaves = True
    traced = t.graph.tensor_input(source, real, [Dim()] * example.dim(), "parameter")
    vt = TensorTracker(traced, cls)
    vt.real, vt.source, vt.is_new = real, source, True
    t.heap.trackers[id(real)] = vt
    t.heap.alive.append(real)
    with_namespace(t, vt, real, source)
    t.write(vt, data=data)
    return vt


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
