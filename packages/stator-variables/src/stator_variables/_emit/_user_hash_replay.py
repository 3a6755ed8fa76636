"""Repetition of hashes and comparisons: an entry that fills a set or a dict hashes and compares the
keys, as the region has done.

These are methods of the program, whose results may differ by then: they read state that the region
has changed since.
"""

from __future__ import annotations

from typing import Any

from stator_bytecode import Returned
from stator_guards import CapturedSource

from stator_variables._applevel._methods import equal, hashed
from stator_variables._emitter import Emitter
from stator_variables._objects._hashing import UserHashReplay
from stator_variables._objects._keys import UserHashResults
from stator_variables._protocols._calls import frame_for
from stator_variables._space import Space


def first_changed_user_hash(e: Emitter) -> UserHashReplay | None:
    """Return the first result that is another one at the end of the region, or None."""
    now: dict[tuple[int, ...], Any] = {}
    given: UserHashReplay
    for given in e.t.state(UserHashResults).given:
        if all(thing.source is not None or e.has_made(thing) for thing in given.operands):
            key = tuple(map(id, given.operands))
            if key not in now:
                now[key] = _evaluate_now(e.t, given.operands)
            if given.user_hash != now[key]:
                return given
    return None


def _evaluate_now(t: Space, operands: tuple[Any, ...]) -> object:
    """Interpret the method once more and undo it; None where it raises or breaks."""
    outer, function = t.machine, hashed if len(operands) == 1 else equal
    mark, at = outer.domain.mark(), (t.frame, t.instruction)
    t.machine = outer.nested()
    try:
        tracker = t.wrap(function, CapturedSource(function.__name__, function))
        outcome = t.machine.run([frame_for(t, tracker, operands, {})])
        return outcome.value.constant() if isinstance(outcome, Returned) else None
    finally:
        t.machine, (t.frame, t.instruction) = outer, at
        outer.domain.rollback(mark)
