"""Calls that wait for the end of the graph: the entry makes them after it, in order.

    handle = y.register_hook(hook)       # recorded as a DeferredCall
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
from typing import Any, ClassVar, Protocol

import attrs

from stator_variables._emitter import Emitter, StaysInGraph
from stator_variables._space import Space
from stator_variables._tensors._history import history_of
from stator_variables._trace._capture_state import CaptureState, Phase
from stator_variables._tracker import Args, Kwargs


class InGraph(Protocol):
    """A node that a graph may have in the place of a call behind it."""

    def fits(self, e: Emitter, call: DeferredCall) -> bool:
        """Return True if the graph may have it, now that the entry is written."""

    def place(self, e: Emitter, call: DeferredCall) -> None:
        """Put it into the graph."""

    def write(self, e: Emitter) -> None:
        """Write what is left of the call to the entry."""


@attrs.define(eq=False)
class DeferredCalls(CaptureState):
    """The calls of one trace, in program order."""

    phase: ClassVar[Phase] = Phase.DEFERRED_CALLS

    calls: tuple[DeferredCall, ...] = ()

    def emit(self, e: Emitter) -> None:
        write_calls(e, self.calls)

    def bound_to_process(self) -> str:
        return ""

    def rewrites(self, e: Emitter) -> bool:
        for call in calls_in_graph(e):
            if call.in_graph is not None and not call.in_graph.fits(e, call):
                run_natively(e.t, call)
        return any(call.in_graph is None for call in calls_in_graph(e))

    def complete_graph(self, e: Emitter) -> None:
        """Put calls into the graph, in the order in which the program made them."""
        for call in reversed(calls_in_graph(e)):  # the first one next to the tensor
            if call.in_graph is not None:
                call.in_graph.place(e, call)


@attrs.define(eq=False)
class DeferredCall:
    """One call that waits for the end of the graph: `function(*args, **kwargs)`, which gives
    `result`.

    `tensor` had `history` when it was made; `begun` is what the Machine saved ahead of it. The
    graph of a compiler has `in_graph` in its place.
    """

    function: Any
    args: Args
    kwargs: Kwargs
    result: Any
    tensor: Any
    history: Any
    begun: Any
    in_graph: InGraph | None = None

    @property
    def is_as_it_was(self) -> bool:
        return self.tensor is None or history_of(self.tensor.before.example) is self.history


def recorded_call(
    t: Space,
    function: object,
    args: Args,
    result: object,
    tensor: Any,
    in_graph: InGraph | None = None,
    **kwargs: Any,
) -> Any:
    begun, history = t.machine.save(), None
    if tensor is not None:
        history = history_of(tensor.before.example)
        if tensor.source is None and in_graph is None:
            t.graph.keep_apart(tensor.before)
    call = DeferredCall(function, args, kwargs, result, tensor, history, begun, in_graph)
    deferred = t.state(DeferredCalls)
    t.journal.assign(deferred, calls=(*deferred.calls, call))
    return result


def calls_in_graph(e: Emitter) -> list[DeferredCall]:
    """Return the calls that the entry leaves to the graph. If one of them has no `in_graph` any
    more, the entry is to be written again."""
    calls: list[DeferredCall] = e.once("calls in the graph", list)
    return calls


def run_natively(t: Space, call: DeferredCall) -> None:
    """Make a call behind the graph, and not in it."""
    if call.in_graph is not None:
        call.in_graph = None
        t.graph.keep_apart(call.tensor.before)


def call_after_graph(t: Space, function: Callable[..., object], args: Args, kwargs: Kwargs) -> None:
    """Let the entry call a function once its graph has run; nothing uses the result."""
    recorded_call(t, function, args, None, None, **kwargs)


def write_calls(e: Emitter, calls: Sequence[DeferredCall]) -> None:
    """Write these calls in program order, but those that are written already."""
    written: dict[int, bool] = e.once("deferred calls", dict)
    for call in calls:
        if id(call) not in written:
            written[id(call)] = False
            _write(e, call)
            written[id(call)] = True


def _write(e: Emitter, call: DeferredCall) -> None:
    """Write one call. What the hook holds may refer to the handle: such lines wait until it is
    there."""
    if not call.is_as_it_was:
        detail = "a tensor with a hook that gets another history behind"
        raise StaysInGraph(call.begun, e.t.unsupported("tensor-hook", detail))
    if call.in_graph is not None:
        calls_in_graph(e).append(call)
        call.in_graph.write(e)
        return
    start = len(e.lines)
    if call.result is not None:
        e.reserve(call.result)
    text = e.call(call.function, call.args, call.kwargs)
    if call.result is None:
        e.lines.append(text)
    else:
        e.bind_ahead(call.result, text, start)
