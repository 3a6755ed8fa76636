"""The journal as statements: what the traced code did to existing objects, replayed after the graph ran."""

import collections
from collections.abc import Callable
from typing import Any

import torch
from stator_bytecode import NULL, HandlerTable

from stator_variables import _kinds as k
from stator_variables._builtin import _iterators
from stator_variables._emit._containers import list_base, write_steps, written_item
from stator_variables._emit._emitter import Emitter, by_kind
from stator_variables._emit._hooks import emit_hooks
from stator_variables._library import _caching, _inference, _modes
from stator_variables._objects._hashing import asks, is_asking
from stator_variables._runtime._support import unset
from stator_variables._tensors import _streams
from stator_variables._tracker import DELETED, MISSING

Replay = Callable[[Emitter, Any], None]
_replays: HandlerTable[type, Replay] = HandlerTable("change")


def emit_effects(e: Emitter) -> None:
    """Replay on existing objects what the traced code did to them, in the order of the first change to each."""
    e.draws += _streams.lines_of(e, e.t.streams.early)
    e.late_draws += _streams.lines_of(e, [each for each in e.t.streams.steps if each.is_late])
    _emit_warnings(e)
    emit_hooks(e)
    changed = list(e.t.changed.values())
    _iterators.effects(e, [vt for vt in changed if isinstance(vt, k.IteratorTracker)])
    for vt in changed:
        if not isinstance(vt, k.IteratorTracker):
            if (replay := by_kind(_replays, vt)) is None:
                raise e.refuse(vt)
            replay(e, vt)
    e.release(e.asking)
    _caching.effects(e)
    e.release(e.last)
    are_set = _inference.effects(e)
    entered = [e.expr(mode) for mode in e.t.overrides.modes]
    e.lines += _modes.effects(e.t, e.capture, are_set)
    push = e.capture(torch._C._push_on_torch_function_stack, "push_mode") if entered else ""
    e.lines += [f"{push}({mode})" for mode in entered]  # the last of all: from here on they hear


def _emit_warnings(e: Emitter) -> None:
    for give, text, category, place in e.t.warnings:
        rest = ", ".join(map(e.expr, place))
        e.lines.append(f"{e.capture(give)}({text!r}, {e.capture(category)}, {rest})")


@_replays.handles(k.TensorTracker)
def _tensor_effect(e: Emitter, vt: Any) -> None:
    if vt.data is not MISSING:
        if (
            vt.data.example.requires_grad
        ):  # written to since, with gradients: an assignment does not bring them
            raise e.refuse(vt)
        e.lines.append(f"{e.expr(vt)}.data = {e.output(vt.data)}")
    if vt.grad is not MISSING:
        if not k.is_none(vt.grad) and vt.grad.example.shape != vt.example.shape:
            raise e.t.unsupported(
                "tensor-attribute-write", "a gradient that no longer fits its tensor"
            )
        e.lines.append(f"{e.expr(vt)}.grad = {e.expr(vt.grad)}")


@_replays.handles(k.WrittenClass)
def _class_effect(e: Emitter, vt: Any) -> None:
    owner = e.capture(vt.real, vt.cls.__name__)
    for name, written in vt.names.items():
        if written is None:
            e.lines.append(f"type.__delattr__({owner}, {name!r})")
        else:
            e.lines.append(f"type.__setattr__({owner}, {name!r}, {e.expr(written[0])})")


@_replays.handles(k.ListTracker)
def _list_effect(e: Emitter, vt: Any) -> None:
    name = e.expr(vt)
    if vt.unread is not None:
        e.lines += _at_ends(e, vt, name)
        return
    if issubclass(vt.cls, collections.deque) and not vt.structure:  # iterators over it go on
        put = e.capture(collections.deque.__setitem__, "deque_setitem")
        e.lines += [f"{put}({name}, {i}, {e.expr(item)})" for i, item in enumerate(vt.items)]
        return
    items = ", ".join(e.expr(item) for item in vt.items)
    if issubclass(vt.cls, collections.deque):
        base = list_base(e, vt)
        e.lines += [f"{base}.clear({name})", f"{base}.extend({name}, [{items}])"]
    elif vt.cls is list:
        e.lines.append(f"{name}[:] = [{items}]")
    else:
        e.lines.append(f"list.__setitem__({name}, slice(None), [{items}])")


def _at_ends(e: Emitter, vt: Any, name: str) -> list[str]:
    """What was taken off, and put at, the ends of a list that nobody has read."""
    base, (front, back) = list_base(e, vt), vt.taken
    if base == "list":
        lines = [f"del {name}[:{front}]"] * bool(front) + [f"del {name}[-{back}:]"] * bool(back)
    else:
        lines = [f"{base}.popleft({name})"] * front + [f"{base}.pop({name})"] * back
    added = ", ".join(e.expr(item) for item in vt.added)
    return [*lines, f"{base}.extend({name}, [{added}])"] if added else lines


@_replays.handles(k.DictTracker)
def _dict_effect(e: Emitter, vt: Any) -> None:
    name = e.expr(vt)
    lines = e.asking.lines if any(asks(hashed) for _, hashed, _, _ in vt.log) else e.lines
    for key, value in (*_final_writes(vt.log), *vt.undecided):
        text = written_item(e, vt.cls, name, key, value)
        lines.append(text)


def _final_writes(log: list[tuple[str, Any, Any, Any]]) -> list[tuple[Any, Any]]:
    """The log without overwritten values; deletions make the order of writes matter, so it is kept whole then."""
    if any(verb == "delete" for verb, *_ in log):
        return [(key, value) for _, _, key, value in log]
    final: dict[Any, tuple[Any, Any]] = {}
    for _, hashed, key, value in log:
        final[hashed] = (final[hashed][0] if hashed in final else key, value)
    return list(final.values())


@_replays.handles(k.SetTracker)
def _set_effect(e: Emitter, vt: Any) -> None:
    steps = vt.steps_taken
    if steps is None:
        steps = [
            ("discard", item) for hashed, item in vt.before.items() if hashed not in vt.entries
        ]
        steps += [("add", item) for hashed, item in vt.entries.items() if hashed not in vt.before]
    undecided = [("add", item) for (item,) in vt.undecided]
    write_steps(e, is_asking(e.t, vt), e.expr(vt), steps + undecided)


@_replays.handles(k.CellTracker)
def _cell_effect(e: Emitter, vt: Any) -> None:
    name = e.expr(vt)
    empty = vt.content is NULL
    e.lines.append(
        f"del {name}.cell_contents" if empty else f"{name}.cell_contents = {e.expr(vt.content)}"
    )


@_replays.handles(k.ObjectTracker)
def _member_effect(e: Emitter, vt: Any) -> None:
    name = e.expr(vt)
    for member, value in vt.members.items():
        target = e.capture(member)
        if value is DELETED:
            e.lines.append(f"{e.capture(unset)}({target}, {name})")
        else:
            e.lines.append(f"{target}.__set__({name}, {e.expr(value)})")
