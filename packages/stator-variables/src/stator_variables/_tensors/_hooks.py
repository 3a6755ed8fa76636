"""Hooks for gradients that are registered while tracing: the entry registers them after the graph,
in order.

    handle = y.register_hook(hook)       # recorded as a HookCall
    z = y * 2
    handle.remove()                      # another one

    g = graph(x)                         # the entry
    r0 = register_hook_0(g[0], hook)
    remove_1(r0)

Autograd reads the hooks of a tensor when gradients arrive, so the moment of registration does not
matter as long as the tensor keeps the history that it had then: where that changes behind, the call
runs natively. What is between the operators of a compiled graph gets no gradients of its own, so a
compiler gets the operators before and behind a tensor with hooks apart
(`GraphRecorder.keep_apart`).
"""

from collections.abc import Callable
from typing import Any

import attrs
import torch
from stator_bytecode import Result
from torch import Tensor
from torch.nn.modules._functions import BackwardHookFunction
from torch.utils.hooks import RemovableHandle

from stator_variables._emitter import Emitter, StaysInGraph
from stator_variables._objects._dict import DictTracker
from stator_variables._objects._identity_number import IdTracker
from stator_variables._objects._list import ListTracker
from stator_variables._objects._tuple import TupleTracker
from stator_variables._objects._weakrefs import WeakrefTracker
from stator_variables._objects._wrap import new_namespace
from stator_variables._space import Space
from stator_variables._tensors import _torch_calls
from stator_variables._tensors._differentiation import keep_history_for
from stator_variables._tensors._history import history_of
from stator_variables._tensors._pure_hooks import (
    GradientHook,
    guard_functions,
    pure_hook,
    skip_number,
)
from stator_variables._trace._graph import RUNS_NATIVELY
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
_PLAIN = (Tensor, torch.nn.Parameter)


@attrs.define(eq=False)
class HookCall:
    """One call that waits for the end of the graph: `function(*args, **kwargs)`, which gives
    `result`.

    `tensor` had `history` when it was made; `begun` is what the Machine saved ahead of it. The
    graph of a compiler has the hook itself where that is `pure`.
    """

    function: Any
    args: Args
    kwargs: Kwargs
    result: Any
    tensor: Any
    history: Any
    begun: Any
    pure: GradientHook | None = None

    @property
    def is_as_it_was(self) -> bool:
        return self.tensor is None or history_of(self.tensor.before.example) is self.history


class HandleTracker(ObjectTracker):
    """The handle of a hook, made after the graph by a call of `Space.hooks`. Its `id` is an
    `IdTracker`: a number that no other handle has. `is_of_tensor`: the dictionary that it is for is
    not known."""

    has_own_number = True

    def __init__(self, is_of_tensor: bool) -> None:
        super().__init__(RemovableHandle)
        self.is_of_tensor = is_of_tensor

    def rebuild(self, e: Emitter) -> str:
        """The calls before the one that gives it come first: hooks run in the order of
        registration."""
        count = next(i for i, call in enumerate(e.t.hooks, 1) if call.result is self)
        written = e.once("hook calls", dict)
        if e.t.hooks[count - 1].pure is not None:
            run_natively(e.t, e.t.hooks[count - 1])
            written.pop(id(e.t.hooks[count - 1]), None)
        if False in written.values():  # inside of another one
            raise e.refuse(self)
        _write_calls(e, e.t.hooks[:count])
        return e.bind(self, "")


class HandleFieldTracker(VariableTracker, references=("handle",)):
    """A field of such a handle."""

    def __init__(self, handle: Any, name: str, cls: type) -> None:
        self.handle = handle
        self.name = name
        self.cls = cls

    def rebuild(self, e: Emitter) -> str:
        return f"{e.expr(self.handle)}.{self.name}"


class NodeTracker(VariableTracker, references=("tensor",)):
    """The autograd node of a tensor that has passed `BackwardHookFunction`."""

    def __init__(self, tensor: Any) -> None:
        self.tensor = tensor
        self.cls = type(tensor.before.example.grad_fn)

    def rebuild(self, e: Emitter) -> str:
        return f"{e.expr(self.tensor)}.grad_fn"


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
        return _recorded(t, function, given, handle, args[0], pure=_pure(t, *args))
    return _recorded(t, function, given, handle, args[0])


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
    _recorded(t, _RETAIN, args, None, args[0])
    return NONE


def _may_wait(t: Space, vt: VariableTracker) -> bool:
    """Return True if it makes no difference for the tensor that the call is made after the
    graph."""
    if not is_a(vt, TensorTracker) or vt.cls not in _PLAIN or not _is_recordable(t):
        return False
    example = vt.before.example
    if example.is_inference() or not example.requires_grad:
        return False
    if vt.source is not None:
        return vt.data is MISSING and history_of(example) is vt.history
    return True


def _is_recordable(t: Space) -> bool:
    """Bodies of operators, transforms and modes have their own ways with tensors."""
    return not (t.touched or t.levels or t.overrides.modes)


def _recorded(
    t: Space,
    function: object,
    args: Args,
    result: object,
    tensor: Any,
    pure: GradientHook | None = None,
    **kwargs: Any,
) -> Any:
    begun, history = t.machine.save(), None
    if tensor is not None:
        history = history_of(tensor.before.example)
        if tensor.source is None and pure is None:
            t.graph.keep_apart(tensor.before)
    call = HookCall(function, args, kwargs, result, tensor, history, begun, pure)
    t.journal.assign(t, hooks=(*t.hooks, call))
    return result


def hooks_in_graph(e: Emitter) -> list[HookCall]:
    """Return the calls that the entry leaves to the graph. If one of them has no `pure` any more,
    the entry is to be written again."""
    calls: list[HookCall] = e.once("hooks in the graph", list)
    return calls


def run_natively(t: Space, call: HookCall) -> None:
    """Register a hook behind the graph, and not in it."""
    if call.pure is not None:
        call.pure = None
        t.graph.keep_apart(call.tensor.before)


def call_after_graph(t: Space, function: Callable[..., object], args: Args, kwargs: Kwargs) -> None:
    """Let the entry call a function once its graph has run; nothing uses the result."""
    _recorded(t, function, args, None, None, **kwargs)


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
    return _recorded(t, RemovableHandle, args, handle, None, **kwargs)


@handlers.handles(RemovableHandle.remove)
def remove(t: Space, args: Args, kwargs: Kwargs) -> Result:
    """Remove a hook of a tensor; other handles are interpreted, on their dictionaries."""
    is_of_tensor = is_a(args[0], HandleTracker) and args[0].is_of_tensor
    if not is_of_tensor or t.touched:
        return MISSING
    _recorded(t, RemovableHandle.remove, args, None, None)
    return NONE


# -- modules ------------------------------------------------------------------------------------
def passes_hooks(cls: object) -> bool:
    """Return True for the function that modules with backward hooks apply to what they take and
    give."""
    return cls is BackwardHookFunction


def pass_hooks(t: Space, args: Args) -> Any:
    """`BackwardHookFunction.apply(*args)`: the same tensors, behind an autograd node that is
    theirs."""
    operands_fit = all(is_a(vt, TensorTracker) and vt.cls in _PLAIN for vt in args)
    with t.caller_modes():
        is_used_later = torch.is_grad_enabled()
    if not (operands_fit and is_used_later and _is_recordable(t)):
        raise t.unsupported(
            "tensor-hook", "backward hooks of a module with tensors of its own kind"
        )
    made: Any = _torch_calls.record(t, pass_backward_hooks, args)
    for vt in made.items:
        if vt.before.example.requires_grad:
            vt.node = NodeTracker(vt)
    return made


def pass_backward_hooks(*tensors: Tensor) -> tuple[Tensor, ...]:
    """Apply the function, natively in each graph: no compiler keeps its autograd node."""
    apply: Any = BackwardHookFunction.apply
    results: tuple[Tensor, ...] = apply(*tensors)
    return results


setattr(pass_backward_hooks, RUNS_NATIVELY, "")


@handlers.handles(_NODE["name"])
def name_of_node(t: Space, args: Args, kwargs: Kwargs) -> Result:
    if not is_a(args[0], NodeTracker):
        return MISSING
    return ConstantTracker(f"{BackwardHookFunction.__name__}Backward")


@handlers.handles_each(_NODE[name] for name in ("register_hook", "register_prehook"))
def register_on_node(t: Space, args: Args, kwargs: Kwargs, of: object) -> Any:
    if len(args) != 2 or kwargs or not is_a(args[0], NodeTracker) or not _is_recordable(t):
        return MISSING
    return _recorded(t, of, args, _new_handle(), args[0].tensor)


def emit_hooks(e: Emitter) -> None:
    """Write all these calls, in the order in which the program made them."""
    _write_calls(e, e.t.hooks)


def _write_calls(e: Emitter, calls: Any) -> None:
    written: dict[int, bool] = e.once("hook calls", dict)
    for call in calls:
        if id(call) not in written:
            written[id(call)] = False
            _write(e, call)
            written[id(call)] = True


def _write(e: Emitter, call: Any) -> None:
    """Write one call. What the hook holds may refer to the handle: such lines wait until it is
    there."""
    if not call.is_as_it_was:
        detail = "a tensor with a hook that gets another history behind"
        raise StaysInGraph(call.begun, e.t.unsupported("tensor-hook", detail))
    if call.pure is not None:
        hooks_in_graph(e).append(call)
        e.lines.append(f"{e.capture(skip_number)}()")
        return
    start = len(e.lines)
    if call.result is not None:
        e.reserve(call.result)
    text = e.call(call.function, call.args, call.kwargs)
    if call.result is None:
        e.lines.append(text)
    else:
        e.bind_ahead(call.result, text, start)
