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

import random
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import attrs
import torch
from stator_guards import Source

from stator_variables._runtime._message_filter import filtered
from stator_variables._space import Space
from stator_variables._tensors import _entry_values
from stator_variables._tensors._entry_values import example_of
from stator_variables._trace._capture_state import Notes
from stator_variables._trace._entry_calls import EntryCall, EntryCalls
from stator_variables._trace._graph import GraphValue
from stator_variables._trace._repeated_bodies import is_repeated
from stator_variables._tracker import MISSING, Args, VariableTracker

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
) -> EntryCall:
    """Record `function(*args, **kwargs)`, of trackers, on `stream`: an `owner`, TORCH, or NEW.

    Raises Unsupported where the entry cannot make it.
    """
    _refuse(t, stream)
    t.state(StreamOrder)

    return _entry_values.record_call(
        t,
        function,
        args,
        kwargs,
        state=stream if isinstance(stream, Source) else None,
        save=saved,
        changes=changes,
        is_late=stream is TORCH and t.graph.may_have_drawn(),
        is_of_torch=stream is TORCH,
    )


def _refuse(t: Space, stream: object) -> None:
    if is_repeated(t):
        raise t.unsupported(
            "random-stream", "a stream of random numbers in a body that may run again, or later"
        )
    if stream is not TORCH and t.graph.may_have_drawn(foreign=True):
        raise t.unsupported(
            "random-stream", "a stream of random numbers after an operator of another library"
        )


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


@attrs.define(eq=False)
class StreamOrder(Notes):
    """The order of steps on torch's own generators and of the draws of the graph."""

    def check_operator(self, t: Space, traced: GraphValue) -> None:
        if t.state(EntryCalls).late and t.graph.may_draw(traced):
            detail = "random numbers that are drawn after a step on torch's own generators"
            raise t.unsupported("random-stream", detail)


# -- states that are saved -------------------------------------------------------------------------
Restore = Callable[[], object]


def _of_python(stream: random.Random) -> Restore:
    return partial(random.Random.setstate, stream, random.Random.getstate(stream))


def _of_torch(stream: torch.Generator) -> Restore:
    return partial(stream.set_state, stream.get_state())


def _of_numpy(stream: Any) -> Restore:
    bits = stream.bit_generator
    return partial(setattr, bits, "state", bits.state)


def _of_numpy_legacy(stream: Any) -> Restore:
    return partial(stream.set_state, stream.get_state(legacy=False))


def saved(stream: object) -> Restore:
    """Return a function that puts the state of a stream back as it is now."""
    if isinstance(stream, random.Random):
        return _of_python(stream)
    if isinstance(stream, torch.Generator):
        return _of_torch(stream)
    numpy: Any = sys.modules["numpy.random"]
    is_legacy = isinstance(stream, numpy.RandomState)
    return _of_numpy_legacy(stream) if is_legacy else _of_numpy(stream)
