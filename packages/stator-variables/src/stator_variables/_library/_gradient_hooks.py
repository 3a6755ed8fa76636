"""Functions that register hooks for gradients, and their handles.

The entry makes the calls after its graph: see `_tensors/_deferred_calls.py`.
"""

from typing import Any

import torch
from stator_bytecode import Result
from torch import Tensor
from torch.nn.modules._functions import BackwardHookFunction
from torch.utils.hooks import RemovableHandle

from stator_variables._emitter import Emitter
from stator_variables._library._pure_hooks import GradientHook, guard_functions, pure_hook
from stator_variables._objects._dict import DictTracker
from stator_variables._objects._identity_number import IdTracker
from stator_variables._objects._list import ListTracker
from stator_variables._objects._tuple import TupleTracker
from stator_variables._objects._weakrefs import WeakrefTracker
from stator_variables._objects._wrap import new_namespace
from stator_variables._space import Space
from stator_variables._tensors._deferred_calls import (
    DeferredCalls,
    recorded_call,
    run_natively,
    write_calls,
)
from stator_variables._tensors._differentiation import keep_history_for
from stator_variables._tensors._history import PLAIN, NodeTracker, history_of
from stator_variables._tensors._surroundings import is_surrounded
from stator_variables._tracker import MISSING, Args, FunctionTable, Kwargs, VariableTracker, is_a
from stator_variables._trackers import (
    NONE,
    ConstantTracker,
    ObjectTracker,
    TensorTracker,
    is_none,
)

handlers = FunctionTable("hook")
_REGISTER = Tensor.register_hook
_ACCUMULATED = Tensor.register_post_accumulate_grad_hook
_RETAIN: Any = torch._C.TensorBase.retain_grad
_NODE: Any = vars(torch._C._FunctionBase)


class HandleTracker(ObjectTracker):
    """The handle of a hook, made after the graph by one of the deferred calls. Its `id` is an
    `IdTracker`: a number that no other handle has. `is_of_tensor`: the dictionary that it is for is
    not known."""

    has_own_number = True

    def __init__(self, is_of_tensor: bool) -> None:
        super().__init__(RemovableHandle)
        self.is_of_tensor = is_of_tensor

    def rebuild(self, e: Emitter) -> str:
        """The calls before the one that gives it come first: hooks run in the order of
        registration."""
        calls = e.t.state(DeferredCalls).calls
        count = next(i for i, call in enumerate(calls, 1) if call.result is self)
        written = e.once("deferred calls", dict)
        if calls[count - 1].in_graph is not None:
            run_natively(e.t, calls[count - 1])
            written.pop(id(calls[count - 1]), None)
        if False in written.values():  # inside of another one
            raise e.refuse(self)
        write_calls(e, calls[:count])
        return e.bind(self, "")


class HandleFieldTracker(VariableTracker, references=("handle",)):
    """A field of such a handle."""

    def __init__(self, handle: Any, name: str, cls: type) -> None:
        self.handle = handle
        self.name = name
        self.cls = cls

    def rebuild(self, e: Emitter) -> str:
        return f"{e.expr(self.handle)}.{self.name}"


# -- tensors ---------------------------------------------------------------------------------------
@handlers.handles(_REGISTER)
def register_hook(t: Space, args: Args, kwargs: Kwargs) -> Result:
    return _registered(t, _REGISTER, args, kwargs) if args else MISSING


@handlers.handles(_ACCUMULATED)
def register_post_accumulate_grad_hook(t: Space, args: Args, kwargs: Kwargs) -> Result:
    vt = args[0] if args else None
    if not is_a(vt, TensorTracker) or vt.source is None or not vt.before.example.is_leaf:
        return MISSING
    return _registered(t, _ACCUMULATED, args, kwargs)


def _registered(t: Space, function: object, args: Args, kwargs: Kwargs) -> Any:
    given = [*args, *kwargs.values()]
    if not _may_wait(t, args[0]):
        return _natively(t, args[0])
    handle = _new_handle()
    if function is _REGISTER and not kwargs and len(args) == 2:
        return recorded_call(t, function, given, handle, args[0], in_graph=_pure(t, *args))
    return recorded_call(t, function, given, handle, args[0])


def _pure(t: Space, tensor: Any, hook: VariableTracker) -> GradientHook | None:
    """Return what the graph may have of a hook: on a tensor that the graph computes."""
    is_compiled = tensor.source is None and not t.policy.runs_in_order
    if not is_compiled or torch.is_autocast_enabled(tensor.before.example.device.type):
        return None
    pure = pure_hook(hook)
    if pure is not None:
        guard_functions(t, hook, tensor)
    return pure


def _natively(t: Space, tensor: Any) -> Any:
    """The call breaks the graph, which then keeps the history of what it made and went on from."""
    keep_history_for(t, tensor)
    return MISSING


@handlers.handles(_RETAIN)
def retain_grad(t: Space, args: Args, kwargs: Kwargs) -> Result:
    if not _may_wait(t, args[0]):
        return _natively(t, args[0])
    recorded_call(t, _RETAIN, args, None, args[0])
    return NONE


def _may_wait(t: Space, vt: VariableTracker) -> bool:
    """Return True if it makes no difference for the tensor that the call is made after the
    graph."""
    if not is_a(vt, TensorTracker) or vt.cls not in PLAIN or is_surrounded(t):
        return False
    example = vt.before.example
    if example.is_inference() or not example.requires_grad:
        return False
    if vt.source is not None:
        return vt.data is MISSING and history_of(example) is vt.history
    return True


# -- handles ---------------------------------------------------------------------------------------
def _new_handle(references: object = None, more: object = None) -> HandleTracker:
    """`references`: to the dictionary that it is for, and `more` of these; None where that is a
    tensor's own."""
    handle = HandleTracker(is_of_tensor=references is None)
    new_namespace(handle)
    fields = {
        "id": IdTracker(handle),
        "hooks_dict_ref": references or HandleFieldTracker(handle, "hooks_dict_ref", object),
        "extra_dict_ref": more or HandleFieldTracker(handle, "extra_dict_ref", tuple),
    }
    handle.namespace.entries = {
        name: (ConstantTracker(name), value) for name, value in fields.items()
    }
    return handle


@handlers.handles(RemovableHandle)
def make_handle(t: Space, args: Args, kwargs: Kwargs) -> Result:
    """A handle for the hooks of a module. It is made natively, as its number is another one in each
    call."""
    extra = kwargs.get("extra_dict", NONE)
    dicts = extra.items if is_a(extra, ListTracker) else [extra]
    more = [WeakrefTracker(each) for each in dicts if is_a(each, DictTracker)]
    are_known = len(more) == len(dicts) or is_none(extra)
    if len(args) != 1 or not is_a(args[0], DictTracker) or not are_known or t.touched:
        return MISSING
    handle = _new_handle(WeakrefTracker(args[0]), TupleTracker(more))
    return recorded_call(t, RemovableHandle, args, handle, None, **kwargs)


@handlers.handles(RemovableHandle.remove)
def remove(t: Space, args: Args, kwargs: Kwargs) -> Result:
    """Remove a hook of a tensor; other handles are interpreted, on their dictionaries."""
    is_of_tensor = is_a(args[0], HandleTracker) and args[0].is_of_tensor
    if not is_of_tensor or t.touched:
        return MISSING
    recorded_call(t, RemovableHandle.remove, args, None, None)
    return NONE


@handlers.handles(_NODE["name"])
def name_of_node(t: Space, args: Args, kwargs: Kwargs) -> Result:
    if not is_a(args[0], NodeTracker):
        return MISSING
    return ConstantTracker(f"{BackwardHookFunction.__name__}Backward")


@handlers.handles_each(_NODE[name] for name in ("register_hook", "register_prehook"))
def register_on_node(t: Space, args: Args, kwargs: Kwargs, of: object) -> Any:
    if len(args) != 2 or kwargs or not is_a(args[0], NodeTracker) or is_surrounded(t):
        return MISSING
    return recorded_call(t, of, args, _new_handle(), args[0].tensor)
