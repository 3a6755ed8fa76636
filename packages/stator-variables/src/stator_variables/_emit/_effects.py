"""The journal as statements: what the traced code did to existing objects, replayed after the graph
ran."""

from collections.abc import Sequence
from typing import Any

import torch

from stator_variables._emitter import Emitter
from stator_variables._lifetime._generator_close import has_clean_up
from stator_variables._tensors import _global_mode, _hooks, _inference_mode, _streams
from stator_variables._trace._capture_state import Phase


def emit_effects(e: Emitter) -> None:
    """Replay on existing objects what the traced code did to them, in the order of the first change
    to each."""
    e.draws += _streams.lines_of(e, e.t.streams.early)
    e.late_draws += _streams.lines_of(e, [each for each in e.t.streams.steps if each.is_late])
    e.t.states.emit(e, Phase.BEFORE_CHANGES)
    _hooks.emit_hooks(e)
    changed = list(e.t.heap.changed.values())
    below: set[int] = set()
    for vt in reversed(changed):
        vt.advance(e, below)

    for vt in changed:
        vt.replay(e)
    e.release(e.by_user_code)
    e.t.states.emit(e, Phase.AFTER_CHANGES)
    e.release(e.last)
    are_set = _inference_mode.effects(e)
    entered = [e.expr(mode) for mode in e.t.overrides.modes]
    e.lines += _global_mode.effects(e.t, e.capture, are_set)
    push = e.capture(torch._C._push_on_torch_function_stack, "push_mode") if entered else ""
    # the last of all: from here on they are called
    e.lines += [f"{push}({mode})" for mode in entered]


def finalize_generators(e: Emitter, carried: Sequence[Any]) -> None:
    """Suspended generators that nothing can reach any more die with the entry, so that their
    `finally` blocks run."""
    known = [*carried, *e.generators]
    for vt in list(e.t.lifetimes.cleaning_up):
        if vt.state not in known and has_clean_up(vt.state):
            e.expr(vt)
