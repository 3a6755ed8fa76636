"""Arguments and results of native calls that an entry makes beside its graph (`EntryCall`).

An argument has to be there before the graph runs. A result is an input of the graph if its call is
made ahead of it, and can only be passed on if its call is made after it (`LateNumber`,
`LateTensor`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from stator_bytecode import Unsupported
from stator_guards import InstanceDictSource, ItemSource, Source

from stator_variables._objects._list import ListTracker
from stator_variables._objects._tuple import TupleTracker
from stator_variables._objects._wrap import new_namespace
from stator_variables._space import Space
from stator_variables._trace._entry_calls import (
    Early,
    EntryCall,
    EntryCalls,
    EntryValue,
    Literal,
    is_entry_value,
)
from stator_variables._trace._graph import GraphValue
from stator_variables._trace._progress import Progress
from stator_variables._tracker import MISSING, Args, Kwargs, VariableTracker, is_a
from stator_variables._trackers import (
    NONE,
    BuiltinTracker,
    ClassTracker,
    NumberTracker,
    ObjectTracker,
    TensorTracker,
)


def record_call(
    t: Space,
    function: object,
    args: Args,
    kwargs: Mapping[str, Any],
    *,
    state: Source | None,
    save: Callable[[Any], Callable[[], object]],
    changes: bool,
    is_late: bool,
    is_of_torch: bool,
) -> EntryCall:
    """Record `function(*args, **kwargs)`, of trackers, as a call of the entry.

    Raises Unsupported where the entry cannot make it.
    """
    positional = tuple(early(t, vt) for vt in args)
    named = {name: early(t, vt) for name, vt in kwargs.items()}
    calls = t.state(EntryCalls)
    late = {each.value for each in calls.late}
    if not is_late and any(_reads(part, late) for part in (*positional, *named.values())):
        raise t.unsupported("random-stream", _LATE)

    made = EntryCall(
        function,
        positional,
        named,
        state=state,
        value=EntryValue(calls.count),
        is_late=is_late,
        is_of_torch=is_of_torch,
        changes=changes,
        begun=t.state(Progress).begun,
        save=save,
    )

    calls.count += 1
    calls.calls.append(made)
    t.journal.record(calls.calls.pop)
    return made


def _reads(part: Early, late: set[Any]) -> bool:
    if isinstance(part, tuple | list):
        return any(_reads(item, late) for item in part)
    return isinstance(part, Source) and (
        part in late or any(_reads(child, late) for child in part.children)
    )


def early(t: Space, vt: VariableTracker) -> Early:
    """An argument of a call.

    Raises Unsupported for what the graph computes, and for what is made in the region.
    """
    if not is_a(vt, TupleTracker | ListTracker | NumberTracker):
        return _early_value(t, vt)
    if is_a(vt, NumberTracker):
        source = vt.source or t.graph.source_of(vt.traced, computed=True)
        return _refused(t, vt) if source is None else source
    if vt.cls not in (tuple, list, torch.Size):
        return _refused(t, vt)
    items = [early(t, item) for item in vt.items]
    return items if vt.cls is list else tuple(items)


def _early_value(t: Space, vt: VariableTracker) -> Early:
    if (value := vt.constant()) is not MISSING:
        return Literal(value)
    if is_a(vt, ClassTracker | BuiltinTracker):
        return Literal(vt.value)
    if vt.source is None or id(vt) in t.heap.changed:
        return _refused(t, vt)
    if is_a(vt, TensorTracker) and not _is_as_it_was(t, vt):
        return _refused(t, vt)
    return vt.source


def _is_as_it_was(t: Space, vt: TensorTracker) -> bool:
    """Return True for a tensor that nothing was written to, and that brings no gradients."""
    if is_entry_value(vt.source):
        return bool(vt.example._version == 0)
    return t.graph.is_pure and vt.data is MISSING and not vt.example.requires_grad


def example_of(vt: VariableTracker) -> Any:
    """Return a value like that of an argument, to try a call with."""
    if is_a(vt, NumberTracker):
        hint = vt.example.node.hint
        return vt.cls(1) if hint is None else vt.cls(hint)
    if is_a(vt, TupleTracker | ListTracker):
        return vt.cls([example_of(item) for item in vt.items])
    if is_a(vt, ClassTracker | BuiltinTracker):
        return vt.value
    return vt.constant()


def _refused(t: Space, vt: VariableTracker) -> Early:
    raise t.unsupported(
        "random-stream", f"a {vt.cls.__name__} that is not there before the graph runs"
    )


# -- what a call gives -----------------------------------------------------------------------------
def result(t: Space, made: EntryCall, example: object) -> Any:
    """The tracker of what a call gives, which is like `example`. Raises Unsupported for a kind that
    is not followed."""
    return _given(t, made.value, example, made.is_late)


def _given(t: Space, source: Source, example: Any, is_late: bool) -> Any:
    if example is None:
        return NONE
    kind = type(example)
    if kind is list and example and all(type(item) in (int, float) for item in example):
        items = [_given(t, ItemSource(source, i), item, is_late) for i, item in enumerate(example)]
        return ListTracker(items)
    if kind in (int, float):
        return _number(t, source, kind, is_late)
    if kind is torch.Tensor:
        layout = [tuple(example.size()), tuple(example.stride())]
        named = {"dtype": example.dtype, "device": example.device}
        return tensor(t, source, torch.empty_strided, layout, named, is_late=is_late)
    raise t.unsupported("random-value", f"a {kind.__name__} that is drawn at random")


def _number(t: Space, source: Source, kind: type, is_late: bool) -> NumberTracker:
    if not t.policy.unbacked_numbers:
        raise t.unsupported("random-value", "a number that the compiler takes for no symbol")
    vt = LateNumber(kind) if is_late else NumberTracker(t.graph.entry_number(source, kind), kind)
    vt.source = source
    return vt


def tensor(
    t: Space,
    source: Source,
    target: object,
    args: Args,
    kwargs: Kwargs,
    *,
    is_late: bool = False,
) -> Any:
    """The tracker of a tensor that a call gives, which is like that of
    `target(*args, **kwargs)`."""
    traced = t.graph.entry_tensor(source, target, args, kwargs)
    vt = LateTensor(traced, torch.Tensor) if is_late else TensorTracker(traced, torch.Tensor)
    vt.source = source
    return vt


def made(call: EntryCall, cls: type) -> ObjectTracker:
    """The tracker of an object of this class that a call makes."""
    vt = ObjectTracker(cls)
    vt.source = call.value
    if cls.__dictoffset__:
        new_namespace(vt)
        vt.namespace.source = InstanceDictSource(call.value)
    return vt


_LATE = "a value that is read after the graph, needed in it"


class LateNumber(NumberTracker):
    """A number that a call gives after the graph: it can only be passed on."""

    is_late = True

    def __init__(self, cls: type) -> None:
        self.cls = cls
        self.steps = 0

    @property
    def traced(self) -> GraphValue:  # type: ignore[override]
        raise Unsupported("random-stream", _LATE)


class LateTensor(TensorTracker):
    """A tensor that a call gives after the graph, such as the state of a generator."""

    is_late = True

    @property
    def traced(self) -> GraphValue:
        raise Unsupported("random-stream", _LATE)
