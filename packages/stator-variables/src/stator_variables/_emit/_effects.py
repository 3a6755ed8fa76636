"""The journal as statements: what the traced code did to existing objects, replayed after the graph
ran."""

from collections.abc import Sequence
from typing import Any, ClassVar

import attrs

from stator_variables._emitter import Emitter
from stator_variables._lifetime._generator_close import has_clean_up
from stator_variables._trace._capture_state import CaptureState, Phase


@attrs.define(eq=False)
class ObjectChanges(CaptureState):
    """The changes of existing objects, in the order of the first change to each."""

    phase: ClassVar[Phase] = Phase.CHANGES
    may_repeat: ClassVar[bool] = True

    def emit(self, e: Emitter) -> None:
        changed = list(e.t.heap.changed.values())
        below: set[int] = set()
        for vt in reversed(changed):
            vt.advance(e, below)
        for vt in changed:
            vt.replay(e)


def emit_effects(e: Emitter) -> None:
    """Write all effects of the traced code, phase by phase."""
    e.t.state(ObjectChanges)
    for phase in Phase:
        e.t.states.emit(e, phase)
        e.release(phase)


def finalize_generators(e: Emitter, carried: Sequence[Any]) -> None:
    """Suspended generators that nothing can reach any more die with the entry, so that their
    `finally` blocks run."""
    known = [*carried, *e.generators]
    for vt in list(e.t.lifetimes.cleaning_up):
        if vt.state not in known and has_clean_up(vt.state):
            e.expr(vt)
