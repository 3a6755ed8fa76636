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
from stator_variables._protocols._calls import frame_for
from stator_variables._space import Space


def before_other_answers(e: Emitter) -> UserHashReplay | None:
    """The first answer that is another one at the end of the region."""
    now: dict[tuple[int, ...], Any] = {}
    given: UserHashReplay
    for given in e.t.questions.given:
        if all(thing.source is not None or e.has_made(thing) for thing in given.question):
            asked = tuple(map(id, given.question))
            if asked not in now:
                now[asked] = _answer_now(e.t, given.question)
            if given.answer != now[asked]:
                return given
    return None


def _answer_now(t: Space, question: tuple[Any, ...]) -> object:
    """Interpreted, and undone. What raises, or breaks, is no answer."""
    outer, function = t.machine, hashed if len(question) == 1 else equal
    mark, at = outer.domain.mark(), (t.frame, t.instruction)
    t.machine = outer.nested()
    try:
        tracker = t.wrap(function, CapturedSource(function.__name__, function))
        outcome = t.machine.run([frame_for(t, tracker, question, {})])
        return outcome.value.constant() if isinstance(outcome, Returned) else None
    finally:
        t.machine, (t.frame, t.instruction) = outer, at
        outer.domain.rollback(mark)
