"""The text of the entry that an outcome of a trace becomes: of its end, or of a break.

Emitting shows what a value needs to become an object. Where that is a real traceback, a frame of
its own or a native call, the trace goes back to the instruction concerned, and breaks there.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import attrs
import stator_variables as variables
from stator_bytecode import Broke, Escaped, Machine, Outcome, Point, Returned, layout_of
from stator_bytecode.errors import NOWHERE, Unsupported

from stator._capture._remaining_history import keep_remaining_history
from stator._program._frame_state import Carried, reads_frames


@attrs.frozen(eq=False)
class Emission:
    """An outcome, with the text of its entry.

    At a break, `values` are the expressions of the state at `point`; at the end, `result` is that
    of the value.
    """

    outcome: Outcome
    emitter: variables.Emitter
    point: Point | None
    values: list[str]
    result: str


def emission_of(outcome: Outcome, machine: Machine, space: variables.Space, graph: Any) -> Emission:
    """Emit an outcome, or the earlier break that it turns out to need."""
    try:
        emission = _emitted(outcome, space)
        other = _other_outcome(emission, machine, graph)
    except variables.RaisedBefore as needed:
        other = _broken_at_raise(needed, outcome, machine)
    except variables.StillRunning as running:
        other = _broken_at_resumption(running, outcome, machine)
    except variables.StaysInGraph as function:
        other = Broke(machine.go_back(function.begun), function.refusal)
        machine.frames = []
    return emission if other is None else emission_of(other, machine, space, graph)


def _other_outcome(emission: Emission, machine: Machine, graph: Any) -> Outcome | None:
    """Return the outcome to be emitted in place of this one; None if this one stands."""
    emitter = emission.emitter
    states = emitter.t.states
    if states.rewrite(emitter):
        return emission.outcome
    keep_remaining_history(emitter, graph)
    earlier = states.outdated(emitter)
    if earlier is None:
        return None
    machine.frames = []
    return Broke(machine.go_back(earlier.begun), earlier.reason)


def _emitted(outcome: Outcome, space: variables.Space, objects: Sequence[Any] = ()) -> Emission:
    """Emit a text in which these generators are objects.

    Any other that only the frames see is carried as state. One that something else can reach has
    to be an object, which shows when that something is written: then all is written again.
    """
    emitter = variables.Emitter(space, makes_tracebacks=isinstance(outcome, Returned))
    point, values, result = None, [], ""
    carried = Carried([*objects])
    if isinstance(outcome, Returned):
        result = emitter.expr(outcome.value)
    else:
        assert isinstance(outcome, Broke | Escaped)
        carried.nothing = reads_frames(outcome.snapshot)
        carried.add_frames(outcome.snapshot.frames)
        point, trackers = layout_of(outcome.snapshot, carried, lambda frame: frame.globals.real)
        values = [emitter.expr(vt) for vt in trackers]

    emitter.effects_start = len(emitter.lines)
    variables.emit_effects(emitter)
    variables.finalize_generators(emitter, carried.states)
    if reached := carried.reached(emitter):
        return _emitted(outcome, space, [*objects, *reached])
    return Emission(outcome, emitter, point, values, result)


def _broken_at_raise(needed: variables.RaisedBefore, outcome: Outcome, machine: Machine) -> Broke:
    """Go back to where an exception was first raised, and break there: raised natively, it has its
    traceback."""
    _, saved = machine.origins.pop(id(needed.tracker))
    snapshot = machine.go_back(saved)
    machine.frames = []  # they are of a later moment
    where = outcome.reason.where if isinstance(outcome, Broke) else NOWHERE
    reason = Unsupported("exception-object", "an exception that outlives the graph", "", where)
    return Broke(snapshot, reason)


def _broken_at_resumption(
    running: variables.StillRunning, outcome: Outcome, machine: Machine
) -> Broke:
    """Go back to where a running generator was resumed, and break there: its frame is then its own
    again."""
    snapshot = machine.before_resumption(running.state)
    if snapshot is None or not isinstance(outcome, Broke):
        raise running.refusal
    return Broke(snapshot, outcome.reason)
