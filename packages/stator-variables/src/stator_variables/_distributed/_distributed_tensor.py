"""Methods and functions of DTensors: conversions, redistribution, and where they are placed.

    d = DTensor.from_local(x, mesh, [Shard(0)])      d = from_local(x, mesh, [Shard(dim=0)])
    y = d.redistribute(placements=[Replicate()])     y = d.redistribute(placements=[Replicate()])
    y.to_local()                                     y.to_local()

Each is one node, with placements as constants and the mesh as an input: compilers trace through
it. A DTensor itself is an input like other wrapper tensors:
see `_tensors/_wrappers.py`.

A local tensor and its DTensor are two views of one memory, which the fakes do not show. So a write
to one of them is a break once both are known.
"""

from typing import Any, ClassVar

import attrs
import torch
from stator_bytecode import Result
from stator_guards import AttrSource
from torch import Tensor
from torch._library.fake_class_registry import FakeScriptObject

from stator_variables._distributed._device_mesh import MeshTracker, derived
from stator_variables._distributed._placement import placement_of
from stator_variables._objects._late_name import LateName, late_names
from stator_variables._objects._tuple import TupleTracker
from stator_variables._objects._wrap import new_namespace
from stator_variables._space import Space
from stator_variables._tensors import _tensor_attributes, _torch_calls
from stator_variables._trace._capture_state import CaptureState
from stator_variables._trace._memory import InputMemory
from stator_variables._tracker import MISSING, Args, FunctionTable, Kwargs, is_a
from stator_variables._trackers import ConstantTracker, TensorTracker

handlers = FunctionTable("distributed tensor")

_MODULE = "torch.distributed.tensor._api"
_METHODS = late_names(_MODULE, "DTensor.redistribute", "DTensor.full_tensor")
_PACKAGE = "torch.distributed.tensor"
_FACTORIES = late_names(_PACKAGE, "zeros", "ones", "empty", "full")
_WITH_COMMUNICATION = late_names(
    _PACKAGE, "distribute_tensor", "distribute_module", "rand", "randn"
)


@handlers.handles_each(_METHODS)
def method(t: Space, args: Args, kwargs: Kwargs, of: LateName) -> Result:
    """Record a method that gives another tensor."""
    if not _is_distributed(args[0]):
        return MISSING
    return _converted(t, of.qualname.rpartition(".")[2], args, kwargs)


@attrs.define(eq=False)
class LocalTensors(CaptureState):
    """The trackers of local tensors that are parts of their DTensors, by the identity of the
    fake."""

    may_repeat: ClassVar[bool] = True

    known: dict[int, Any] = attrs.Factory(dict)

    def moment(self) -> tuple[Any, ...]:
        return (len(self.known),)


@handlers.handles(*late_names(_MODULE, "DTensor.to_local"))
def to_local(t: Space, args: Args, kwargs: Kwargs) -> Result:
    """Record the local tensor. That of a parameter is marked as one, as the method does it."""
    vt: Any = args[0]
    if not _is_distributed(vt):
        return MISSING
    is_parameter, part = _is_marked(t, vt), vt.example._local_tensor
    known = t.state(LocalTensors).known
    if not is_parameter and not torch.is_grad_enabled() and id(part) in known:
        return known[id(part)]
    local: Any = _converted(t, "to_local", args, kwargs)
    if local.example is part:  # without gradients it is the part itself, each time
        t.journal.put(known, id(part), local)
    if is_parameter:
        local.cls = Tensor
        new_namespace(local)
        local.namespace.entries["_is_param"] = ConstantTracker("_is_param"), ConstantTracker(True)
    return local


@handlers.handles(*late_names(_MODULE, "DTensor.from_local"))
def from_local(t: Space, args: Args, kwargs: Kwargs) -> Result:
    """Record a DTensor around a local tensor, without a comparison between the processes."""
    from torch.distributed.tensor import DTensor

    checks = kwargs.get("run_check", ConstantTracker(False)).constant()
    mesh = args[1] if len(args) > 1 else kwargs.get("device_mesh")
    is_plain = is_a(args[0], TensorTracker) if args else False
    if checks is not False or not is_a(mesh, MeshTracker) or not is_plain:
        raise t.unsupported(
            "tensor-subclass", "DTensor.from_local with a check, or without a mesh or a tensor"
        )
    return _converted(t, DTensor.from_local, args, kwargs)


@handlers.handles_each(_FACTORIES)
def factory(t: Space, args: Args, kwargs: Kwargs, of: LateName) -> Result:
    """Record a new DTensor that needs no communication."""
    from torch.distributed import tensor

    if not is_a(kwargs.get("device_mesh"), MeshTracker):
        raise t.unsupported("tensor-subclass", f"{of.qualname} of a DTensor without a mesh")
    return _torch_calls.record_without_modes(t, getattr(tensor, of.qualname), args, kwargs)


@handlers.handles_each(_WITH_COMMUNICATION)
def communication(t: Space, args: Args, kwargs: Kwargs, of: LateName) -> Result:
    """Reject what communicates, or draws, in ways that graphs do not have: one break, not one for
    each step."""
    raise t.unsupported("tensor-subclass", f"{of.qualname} of a DTensor")


@handlers.handles(*late_names(_MODULE, "DTensor.placements"))
def placements(t: Space, args: Args, kwargs: Kwargs) -> Result:
    """Return the placements, which an input is guarded on."""
    vt: Any = args[0]
    if not _is_distributed(vt):
        return MISSING
    if vt.source is not None:
        return t.wrap(vt.real.placements, AttrSource(vt.source, "placements"))
    if (known := t.shared.get(("placements", id(vt)))) is None:
        # with the tensor, whose identity is the key
        known = vt, TupleTracker([*map(placement_of, vt.example.placements)])
        t.shared["placements", id(vt)] = known
    return known[1]


@handlers.handles(*late_names(_MODULE, "DTensor.device_mesh"))
def device_mesh(t: Space, args: Args, kwargs: Kwargs) -> Result:
    """Return the mesh: that of an input, or the one that a node gave the DTensor."""
    vt: Any = args[0]
    if not _is_distributed(vt):
        return MISSING
    if vt.source is not None:
        return t.wrap(vt.real.device_mesh, AttrSource(vt.source, "device_mesh"))
    mesh = vt.example.device_mesh
    return derived(t, mesh.real_obj if isinstance(mesh, FakeScriptObject) else mesh)


def _is_distributed(vt: Any) -> bool:
    from torch.distributed.tensor import DTensor

    return is_a(vt, TensorTracker) and issubclass(vt.cls, DTensor)


def _is_marked(t: Space, vt: Any) -> bool:
    mark = _tensor_attributes.own(t, vt, "_is_param")
    return mark is not MISSING and bool(mark.constant())


def _converted(t: Space, target: Any, args: Args, kwargs: Kwargs) -> Any:
    """Record a conversion, whose result may share memory with the tensor."""
    made = _torch_calls.record_without_modes(t, target, args, kwargs)
    for vt in (args[0], made):
        t.state(InputMemory).shown_twice.add(vt.example.untyped_storage()._cdata)
    return made
