"""Taking a finished trace apart, so that what it saw dies with its owner, not when the collector
comes by.

Trackers, the graph and the interpreter refer to one another while they work. Inputs hang off
trackers, and are large.
"""

from typing import Any

from stator_bytecode import Machine, Unsupported
from stator_variables import Space, forget_class

from stator._program._trace_location import MachineLocations


def release(tracing: Space, machine: Machine, places: MachineLocations) -> None:
    """Release what was traced. Its guards, graph and emitted lines are finished and need none
    of it."""
    made: Any
    for made in tracing.heap.made.values():
        forget_class(made.value)
    tracing.heap.release()
    tracing.lifetimes.release()
    tracing.states.release()
    tracing.shared.clear()
    tracing.journal.undo.clear()
    tracing.machine = tracing.frame = tracing.instruction = None
    places.forget()
    machine.frames = []
    machine.before = machine.handing = machine.outcome = None


def without_frames(reason: Unsupported) -> Unsupported:
    """A reason is kept for the report; the frames it was raised through, with all their locals, are
    not."""
    reason.__traceback__ = reason.__context__ = reason.__cause__ = None
    return reason
