"""Ends of objects while tracing: what the program releases dies there and then, if nothing else
holds it.

A generator that has yet to clean up, or an object whose end is observable, cannot end while
tracing: releasing it is a break. `_reachability` finds what holds what;
docs/explanation/object-lifetime.md is the theory.
"""

import functools
import itertools
from collections.abc import Iterable
from typing import Any

from stator_bytecode import NULL, Frame, GeneratorState, Result, frame_values, is_suspended

from stator_variables._lifetime._generator_close import has_clean_up
from stator_variables._lifetime._reachability import (
    is_near,
    is_new_leaf,
    leads,
    may_hold,
    news,
    paths,
    reached,
    reaches,
    walk,
)
from stator_variables._space import Space
from stator_variables._tracker import VariableTracker


def drop(t: Space, value: Any, holders: list[Frame], kept: VariableTracker | None = None) -> None:
    """Release a value of a frame.

    What acts when it dies does so when nothing refers to it any more: a break.
    """
    dying = cleaning_up(t, value) if may_hold(value) and value.source is None else []
    if dying:
        abandon(t, dying, [], [kept, *frame_values(holders)])
    others = (other for frame in holders for other in (*frame.slots, *frame.stack))
    _end_alone(t, value, itertools.chain([kept], others))


def emptied(t: Space, held: list[GeneratorState], result: Result) -> Result:
    """Return `result`, of an operation that made containers release `held` and what the lifetimes
    have as released."""
    lifetimes = t.lifetimes
    if not (held or lifetimes.released) or is_suspended(result):
        return result

    holders = [result, *frame_values(t.machine.frames)]
    lost = [value for value in lifetimes.released if not is_new_leaf(value)]
    abandon(t, held, [], holders)
    lifetimes.released = []
    for value in lost:
        _end_alone(t, value, holders)
    lifetimes.stack_only += lost
    return result


def _end_alone(t: Space, value: Any, holders: Iterable[Any]) -> None:
    """End a value, and what it alone holds, where that is observable."""
    lifetimes = t.lifetimes
    if not (lifetimes.observable or lifetimes.local_places) or value is NULL:
        return

    parts = walk([value], lambda part: news(part, t.heap.changed))
    ends = [part for part in parts if part is None or lifetimes.has_relevant_end(part)]
    alive = [*holders, *lifetimes.changed_holders()] if ends else []
    for part in ends:
        if part is None or not reaches(alive, part, t.heap.changed):
            t.end(part)


def release_temporaries(t: Space) -> None:
    """Release temporaries: a value released by a container may have been kept alive only by the
    operand stack, and lost in the step that was done last. Called before each instruction.

    A value is not lost while it is on the stack itself, or what was found to lead to it.
    """
    lifetimes = t.lifetimes
    slots = [value for frame in t.machine.frames for value in frame.slots]
    in_slots = set(map(id, slots))
    lifetimes.stack_only = [value for value in lifetimes.stack_only if id(value) not in in_slots]

    holders = frame_values(t.machine.frames) if lifetimes.stack_only else []
    on_stack = {id(value): value for value in holders if id(value) not in in_slots}
    known, changed = lifetimes.paths, t.heap.changed
    lost = [
        value
        for value in lifetimes.stack_only
        if not leads(known.get(id(value), [value]), on_stack, changed)
    ]
    if lost:
        _released_from_stack(t, lost, on_stack, slots)


def _released_from_stack(
    t: Space, lost: list[Any], on_stack: dict[int, Any], slots: list[Any]
) -> None:
    """Find what holds `lost`: the stack in another way, something else, or nothing any more."""
    lifetimes = t.lifetimes
    found = paths(on_stack.values(), lost, t.heap.changed)
    ending = {id(value): value for value in lost if id(value) not in found}
    lifetimes.stack_only = [value for value in lifetimes.stack_only if id(value) not in ending]
    known = lifetimes.paths | found
    lifetimes.paths = {number: path for number, path in known.items() if number not in ending}

    others = [*slots, *lifetimes.changed_holders()] if ending else []
    kept = reached(others, ending.values(), t.heap.changed)
    for value in (value for number, value in ending.items() if number not in kept):
        _end_alone(t, value, [*on_stack.values(), *slots])


def cleaning_up(t: Space, holder: Any, stays: bool = False) -> list[GeneratorState]:
    """Return the generators that a value holds, and that have yet to clean up; where the frames
    stay as they are (`stays`) those that they hold in plain view may be left out."""
    if not t.lifetimes.cleaning_up or not may_hold(holder):
        return []
    found = [vt.state for vt in t.lifetimes.cleaning_up if has_clean_up(vt.state)]

    def seen(state: object) -> bool:
        return stays and is_near(frame_values(t.machine.frames), state, holder)

    return [
        s
        for s in found
        if reaches([holder], s, t.heap.changed, otherwise=functools.partial(seen, s))
    ]


def abandon(t: Space, ran: list[GeneratorState], lost: list[Any], holders: list[Any]) -> None:
    """Release generators: one dies with the last that refers to it, which need not be a frame."""
    if t.machine.outer is not None:
        return  # what called this Machine may hold it
    for value in lost:
        _end_alone(t, value, holders)
    waiting = [vt.state for vt in t.lifetimes.cleaning_up if has_clean_up(vt.state)]
    for state in (
        *filter(has_clean_up, ran),
        *(state for state in waiting if reaches(lost, state)),
    ):
        if not (
            reaches(holders, state) or reaches(t.heap.trackers.values(), state, t.heap.changed)
        ):
            raise t.unsupported(
                "generator-dropped", "the release of a generator that has yet to clean up"
            )
