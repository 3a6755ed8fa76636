"""The calls that register hooks, or take them back, as statements behind the graph: see `_torch._hooks`."""

from typing import Any

from stator_variables import _kinds as k
from stator_variables._emit._emitter import Emitter, StaysInGraph, filled, rebuilders, refers_to
from stator_variables._tensors import _hooks


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
    """Write one call. What the hook holds may refer to the handle: such lines wait until it is there."""
    if not call.is_as_it_was:
        detail = "a tensor with a hook that gets another history behind"
        raise StaysInGraph(call.begun, e.t.unsupported("tensor-hook", detail))
    start = len(e.lines)
    name = "" if call.result is None else e.reserve(call.result)
    args = ", ".join([*(e.expr(arg) for arg in call.args), *e.keywords(call.kwargs)])
    text = f"{e.capture(call.function)}({args})"
    if not name:
        e.lines.append(text)
        return

    waiting = e.take_lines(start, name)
    targets = [line.partition(" = ")[0] for line in waiting]
    if any(target.isidentifier() and refers_to(text, target) for target in targets):
        raise e.refuse(call.result)
    e.lines += [f"{name} = {text}", *waiting]


@rebuilders.handles(k.HandleTracker)
def handle(e: Emitter, vt: Any) -> str:
    """The calls before the one that gives it come first: hooks run in the order of registration."""
    count = next(i for i, call in enumerate(e.t.hooks, 1) if call.result is vt)
    if False in e.once("hook calls", dict).values():  # inside of another one
        raise e.refuse(vt)
    _write_calls(e, e.t.hooks[:count])
    return e.bind(vt, "")


@rebuilders.handles(_hooks.HandleFieldTracker)
def handle_field(e: Emitter, vt: Any) -> str:
    return f"{e.expr(vt.handle)}.{vt.name}"


@rebuilders.handles(_hooks.NodeTracker)
def node(e: Emitter, vt: Any) -> str:
    return f"{e.expr(vt.tensor)}.grad_fn"


@rebuilders.handles(_hooks.PassingTracker)
def passing(e: Emitter, vt: Any) -> str:
    operands = ", ".join([e.expr(operand) for operand in vt.operands])
    return e.bind(vt, f"{e.capture(_hooks.pass_backward_hooks)}({operands})")


@rebuilders.handles(_hooks.PassedTracker)
def passed(e: Emitter, vt: Any) -> str:
    return filled(e, vt, e.bind(vt, f"{e.expr(vt.passing)}[{vt.index}]"))
