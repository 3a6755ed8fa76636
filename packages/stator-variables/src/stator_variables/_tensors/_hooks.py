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

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import attrs
import torch
from torch import Tensor
from torch.nn.modules._functions import BackwardHookFunction

from stator_variables._emitter import Emitter, StaysInGraph
from stator_variables._space import Space
from stator_variables._tensors import _torch_calls
from stator_variables._tensors._history import history_of
from stator_variables._tensors._pure_hooks import (
    GradientHook,
    skip_number,
)
from stator_variables._tensors._surroundings import is_surrounded
from stator_variables._trace._capture_state import CaptureState, Phase
from stator_variables._trace._graph import RUNS_NATIVELY
from stator_variables._tracker import Args, Kwargs, VariableTracker, is_a
from stator_variables._trackers import (
    TensorTracker,
)

PLAIN = (Tensor, torch.nn.Parameter)


@attrs.define(eq=False)
class Hooks(CaptureState):
    """The calls that register hooks for gradients, or take them back, in program order."""

    phase: ClassVar[Phase] = Phase.DEFERRED_CALLS

    calls: tuple[HookCall, ...] = ()

    def emit(self, e: Emitter) -> None:
        write_calls(e, self.calls)

    def bound_to_process(self) -> str:
        return ""


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


class NodeTracker(VariableTracker, references=("tensor",)):
    """The autograd node of a tensor that has passed `BackwardHookFunction`."""

    def __init__(self, tensor: Any) -> None:
        self.tensor = tensor
        self.cls = type(tensor.before.example.grad_fn)

    def rebuild(self, e: Emitter) -> str:
        return f"{e.expr(self.tensor)}.grad_fn"


def recorded_call(
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
    hooks = t.state(Hooks)
    t.journal.assign(hooks, calls=(*hooks.calls, call))
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
    recorded_call(t, function, args, None, None, **kwargs)


# -- modules ------------------------------------------------------------------------------------
def passes_hooks(cls: object) -> bool:
    """Return True for the function that modules with backward hooks apply to what they take and
    give."""
    return cls is BackwardHookFunction


def pass_hooks(t: Space, args: Args) -> Any:
    """`BackwardHookFunction.apply(*args)`: the same tensors, behind an autograd node that is
    theirs."""
    operands_fit = all(is_a(vt, TensorTracker) and vt.cls in PLAIN for vt in args)
    with t.caller_modes():
        is_used_later = torch.is_grad_enabled()
    if not (operands_fit and is_used_later) or is_surrounded(t):
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


def write_calls(e: Emitter, calls: Sequence[HookCall]) -> None:
    """Write these calls in program order, but those that are written already."""
    written: dict[int, bool] = e.once("hook calls", dict)
    for call in calls:
        if id(call) not in written:
            written[id(call)] = False
            _write(e, call)
            written[id(call)] = True


def _write(e: Emitter, call: HookCall) -> None:
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
