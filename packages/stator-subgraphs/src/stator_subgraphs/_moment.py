"""The state of a trace at the start or the end of a call, by which equal calls are recognised."""

from __future__ import annotations

from typing import Any

import torch
from attrs import Factory, define, frozen
from stator_variables import Space, held_by_changed

from stator_subgraphs._state import GraphState


@define(eq=False)
class ReadableChanges:
    """The changes of objects that any call may read: of existing ones, and of new ones that they
    lead to by now. No guard is about what is read of these."""

    t: Space
    count: int = 0
    seen: int = 0
    """The number of changes that were looked at."""
    reached: set[int] = Factory(set)

    def number(self) -> int:
        writes = self.t.heap.writes
        new = writes[self.seen :]
        self.seen = len(writes)
        if any(vt.source is not None or id(vt) in self.reached for vt in new):
            self.count += 1
            self.reached = held_by_changed(self.t.heap.changed)
        return self.count


@frozen
class Moment:
    """The state of the trace at the start or the end of a call, besides its arguments."""

    state: tuple[Any, ...]
    """The state that equal calls have in common."""
    effects: tuple[Any, ...]
    """The state that no call changes which can be repeated."""


def moment_of(t: Space, state: GraphState, changes: ReadableChanges) -> Moment | None:
    """Return None where no call is repeated."""
    if t.touched or t.heap.made:
        return None
    if state.current is not state.root:
        return None
    captures = t.states.moments()
    if captures is None:
        return None

    around, inside = captures
    heap, lifetimes = t.heap, t.lifetimes
    identities = heap.assumed_distinct, heap.named
    ends = lifetimes.observable, lifetimes.ended_locals, lifetimes.assumed_unobserved
    graph = state.root.facts.written, state.held, state.differentiated
    counted = (*identities, *ends, *graph)

    modes = torch.is_grad_enabled(), torch.is_inference_mode_enabled(), state.keeps_history
    now = (changes.number(), *modes, len(state.mode_undo), *around)
    return Moment(now, (*map(len, counted), *inside))
