"""Streams of random numbers of the process: what a region does with them happens natively, once per
call.

A step is one native call that draws from a stream, seeds it, or reads or sets its state. The entry
makes it where the program did, ahead of the graph, and hands what it gives to the graph as an
input:

    drawn0 = uniform(v0, 0.0, 1.0)       # v0: a random.Random
    g = graph(x, drawn0)

So no number is a constant of the graph, no guard can use one (a branch on it is a break), and a
stream is left in the state that plain Python leaves. Nodes of the graph draw from torch's own
generators alone, so steps on any other stream keep their order among themselves ahead of the graph.
Steps on torch's own generators are made ahead of the graph while it draws nothing, and after it
from then on (`is_late`). Numbers that are drawn after a late step are a break.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from stator_bytecode import Unsupported
from stator_guards import InstanceDictSource, ItemSource, Source

from stator_variables._objects._list import ListTracker
from stator_variables._objects._tuple import TupleTracker
from stator_variables._objects._wrap import new_namespace
from stator_variables._runtime._message_filter import filtered
from stator_variables._space import Space
from stator_variables._trace._drawn import DrawnSource, Early, Literal, Step, Streams, is_drawn
from stator_variables._trace._graph import GraphValue
from stator_variables._trace._progress import Progress
from stator_variables._trace._repeated_bodies import is_repeated
from stator_variables._tracker import MISSING, Args, Kwargs, VariableTracker, is_a
from stator_variables._trackers import (
    NONE,
    BuiltinTracker,
    ClassTracker,
    NumberTracker,
    ObjectTracker,
    TensorTracker,
)

TORCH: Any = "torch's own generators"
NEW = "a stream that the step makes"


def owner(t: Space, vt: VariableTracker) -> Source:
    """Return the source of the object that owns a stream, for `step`."""
    if vt.source is None:
        raise t.unsupported("random-stream", f"a {vt.cls.__name__} that was made in the region")
    source: Source = vt.source
    return source


def step(
    t: Space,
    stream: object,
    function: object,
    args: Args,
    kwargs: Mapping[str, Any],
    *,
    changes: bool = True,
) -> Step:
    """Record `function(*args, **kwargs)`, of trackers, on `stream`: an `owner`, TORCH, or NEW.

    Raises Unsupported where the entry cannot make it.
    """
    _refuse(t, stream)
    is_late = stream is TORCH and t.graph.may_have_drawn()
    positional = tuple(early(t, vt) for vt in args)
    named = {name: early(t, vt) for name, vt in kwargs.items()}
    streams = t.state(Streams)
    late = {each.drawn for each in streams.steps if each.is_late}
    if not is_late and any(_reads(part, late) for part in (*positional, *named.values())):
        raise t.unsupported("random-stream", _LATE)

    made = Step(
        function,
        positional,
        named,
        stream=stream if isinstance(stream, Source) else None,
        drawn=DrawnSource(streams.count),
        is_late=is_late,
        is_of_torch=stream is TORCH,
        changes=changes,
        begun=t.state(Progress).begun,
    )

    streams.count += 1
    streams.steps.append(made)
    t.journal.record(streams.steps.pop)
    return made


def _refuse(t: Space, stream: object) -> None:
    if is_repeated(t):
        raise t.unsupported(
            "random-stream", "a stream of random numbers in a body that may run again, or later"
        )
    if stream is not TORCH and t.graph.may_have_drawn(foreign=True):
        raise t.unsupported(
            "random-stream", "a stream of random numbers after an operator of another library"
        )


def _reads(part: Early, drawn: set[Any]) -> bool:
    if isinstance(part, tuple | list):
        return any(_reads(item, drawn) for item in part)
    return isinstance(part, Source) and (
        part in drawn or any(_reads(child, drawn) for child in part.children)
    )


def early(t: Space, vt: VariableTracker) -> Early:
    """An argument of a step.

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
    if is_drawn(vt.source):
        return bool(vt.example._version == 0)
    return t.graph.is_pure and vt.data is MISSING and not vt.example.requires_grad


def example_of(vt: VariableTracker) -> Any:
    """Return a value like that of an argument, to try a step with."""
    if is_a(vt, NumberTracker):
        hint = vt.example.node.hint
        return vt.cls(1) if hint is None else vt.cls(hint)
    if is_a(vt, TupleTracker | ListTracker):
        return vt.cls([example_of(item) for item in vt.items])
    if is_a(vt, ClassTracker | BuiltinTracker):
        return vt.value
    return vt.constant()


def tried(t: Space, function: Any, values: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """Return what a step gives on a copy of its stream. Raises Unsupported if it raises: it then
    runs natively."""
    named = {name: example_of(vt) for name, vt in kwargs.items()}
    if any(value is MISSING for value in (*values, *named.values())):
        raise t.unsupported("random-stream", "a step with an argument that is no constant")
    try:
        with filtered("error", ""):
            return function(*values, **named)
    except Exception as error:  # natively it raises in its own words
        raise t.unsupported("random-stream", f"{type(error).__name__}: {error}") from None


def _refused(t: Space, vt: VariableTracker) -> Early:
    raise t.unsupported(
        "random-stream", f"a {vt.cls.__name__} that is not there before the graph runs"
    )


# -- what a step gives -----------------------------------------------------------------------------
def result(t: Space, made: Step, example: object) -> Any:
    """The tracker of what a step gives, which is like `example`. Raises Unsupported for a kind that
    is not followed."""
    return _given(t, made.drawn, example, made.is_late)


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
    if not t.policy.draws_numbers:
        raise t.unsupported("random-value", "a number that the compiler takes for no symbol")
    vt = LateNumber(kind) if is_late else NumberTracker(t.graph.drawn_number(source, kind), kind)
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
    """The tracker of a tensor that a step gives, which is like that of
    `target(*args, **kwargs)`."""
    traced = t.graph.drawn_tensor(source, target, args, kwargs)
    vt = LateTensor(traced, torch.Tensor) if is_late else TensorTracker(traced, torch.Tensor)
    vt.source = source
    return vt


def made(step: Step, cls: type) -> ObjectTracker:
    """The tracker of an object of this class that a step makes."""
    vt = ObjectTracker(cls)
    vt.source = step.drawn
    if cls.__dictoffset__:
        new_namespace(vt)
        vt.namespace.source = InstanceDictSource(step.drawn)
    return vt


_LATE = "a value that is read after the graph, needed in it"


class LateNumber(NumberTracker):
    """A number that a step gives after the graph: it can only be passed on."""

    is_late = True

    def __init__(self, cls: type) -> None:
        self.cls = cls
        self.steps = 0

    @property
    def traced(self) -> GraphValue:  # type: ignore[override]
        raise Unsupported("random-stream", _LATE)


class LateTensor(TensorTracker):
    """A tensor that a step gives after the graph, such as the state of a generator."""

    is_late = True

    @property
    def traced(self) -> GraphValue:
        raise Unsupported("random-stream", _LATE)
