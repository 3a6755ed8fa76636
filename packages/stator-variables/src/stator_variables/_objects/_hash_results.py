"""Hashes and comparisons of keys that the program computes, and the errors of keys without a hash.

Both are interpreted by `hashing`: a step that needs a result stops, is rolled back, and is repeated
with the result available. An entry that fills a set or a dict hashes and compares the keys again;
where that gives another result by then, the program breaks at the first one.

The words of the errors name the use of the key since CPython 3.14.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, ClassVar, NoReturn

from attrs import Factory, define, frozen
from stator_bytecode import (
    Invoke,
    OperationSteps,
    Raised,
    Result,
    Returned,
    Snapshot,
    operation,
    settle,
)
from stator_bytecode.errors import SourceSpan, Unsupported
from stator_guards import CapturedSource

from stator_variables._applevel._methods import equal, hashed
from stator_variables._emitter import Emitter
from stator_variables._lifetime._reachability import reachable
from stator_variables._objects._program_error import complain, full_name
from stator_variables._space import Space
from stator_variables._trace._capture_state import CaptureState, EarlierBreak
from stator_variables._tracker import VariableTracker
from stator_variables._trackers import BuiltinTracker

AS_KEY, AS_ELEMENT, ALONE = "dict key", "set element", ""
"""The use of a value that is hashed, as errors name it since 3.14; C hashes some of them alone."""


def complain_of_no_hash(t: Space, cls: type, of_key: type, use: str) -> NoReturn:
    """Raise the error of an object of `cls`, which is a key of class `of_key` or a part of it."""
    start, end = "unhashable type: '", "'"
    if use and sys.version_info >= (3, 14):
        start, end = f"cannot use '{full_name(t, of_key)}' as a {use} ({start}", f"{end})"
    complain(t, TypeError, start, cls, end)


def _refuse_rewording(t: Space, raised: Raised) -> None:
    """A dict or set raises another TypeError in the place of the one of a key (3.14)."""
    if sys.version_info >= (3, 14) and raised.value.cls is TypeError:
        raise t.unsupported("user-hash", "a key whose __hash__ raises a TypeError")


def call_user_hash(t: Space, first: VariableTracker, *second: Any) -> OperationSteps:
    """Return `hash(first)`, or `first == second`."""
    if not second:
        try:
            return (yield from settle(t.call(BuiltinTracker(hash), [first]))).constant()
        except Raised as raised:
            _refuse_rewording(t, raised)
            raise
    is_equal = yield from settle(t.compare("==", first, *second))
    return (yield from settle(t.truth(is_equal)))


class MissingUserHash(Unsupported):
    """A missing result of the program for a key: `hash(a)`, or `a == b`. Without a caller that
    provides it, a break."""

    operands: tuple[Any, ...]


def user_hash(t: Space, *operands: VariableTracker) -> Any:
    """`hash(a)` or `a == b`, as it was computed in this step."""
    key = tuple(map(id, operands))
    hashes = t.state(UserHashResults)
    if hashes.results is not None and key in hashes.results:
        return hashes.results[key]
    # during a rollback, for example
    if hashes.results is None and key in hashes.known:
        return hashes.known[key].user_hash
    detail = f"a key of class {operands[0].cls.__name__}, which is hashed here"
    error = MissingUserHash("user-hash", detail, "", t.where())
    error.operands = operands
    raise error


@frozen(eq=False)
class UserHashReplay:
    """The result for `operands`, and the state of the Machine before it was evaluated."""

    operands: tuple[Any, ...]
    user_hash: object
    begun: tuple[Snapshot, int]
    where: SourceSpan


@define(eq=False)
class UserHashResults(CaptureState):
    """The results of `__eq__` and `__hash__` of the program on keys."""

    may_repeat: ClassVar[bool] = True

    results: Any = None  # in the step that is being done
    # all that ever were, with their operands
    known: dict[Any, Any] = Factory(dict)
    given: list[Any] = Factory(list)  # the results that hold, in their order

    def moment(self) -> tuple[Any, ...]:
        return (len(self.given),)

    def outdated(self, e: Emitter) -> EarlierBreak | None:
        """Break where a key was hashed or compared that gives another result by now: the entry
        fills a set or a dict by hashing and comparing the keys again, at its end.

        The container that the key was put into is real after the break.
        """
        given = _first_changed(e, self.given)
        if given is None:
            return None
        name = given.operands[0].cls.__name__
        detail = f"a key of class {name}, which is hashed or compared otherwise later"
        return EarlierBreak(given.begun, Unsupported("user-hash", detail, "", given.where))


def _first_changed(e: Emitter, results: list[UserHashReplay]) -> UserHashReplay | None:
    """Return the first result that is another one at the end of the region: methods of the
    program read state that the region has changed since."""
    now: dict[tuple[int, ...], Any] = {}
    for given in results:
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
        call = t.call_function(tracker, operands, {})
        assert isinstance(call, Invoke)
        outcome = t.machine.run([call.frame])
        return outcome.value.constant() if isinstance(outcome, Returned) else None
    finally:
        t.machine, (t.frame, t.instruction) = outer, at
        outer.domain.rollback(mark)


def has_results(t: Space) -> bool:
    """Return True if the program has hashed or compared a key."""
    return bool(t.state(UserHashResults).given)


def hashing(t: Space, step: Callable[[], Any]) -> Result:
    """Return `step()`, a Result, with its calls of the program's `__hash__` and `__eq__`
    interpreted."""
    found = _tried(t, step, {})
    return _with_user_hashes(t, step, found) if type(found) is MissingUserHash else found


def _tried(t: Space, step: Callable[[], Any], results: dict[tuple[int, ...], Any]) -> Result:
    """Return `step()`, or the result it is missing, after a rollback."""
    before = t.journal.mark()
    hashes = t.state(UserHashResults)
    outer = hashes.results
    hashes.results = results
    try:
        return step()
    except MissingUserHash as needed:
        t.journal.rollback(before)
        return needed
    finally:
        hashes.results = outer


@operation
def _with_user_hashes(t: Space, step: Callable[[], Any], found: object) -> OperationSteps:
    results: dict[tuple[int, ...], Any] = {}
    while type(found) is MissingUserHash:
        begun, where, key = t.machine.save(), t.where(), tuple(map(id, found.operands))
        results[key] = yield from _without_effects(t, found.operands)
        _record(t, UserHashReplay(found.operands, results[key], begun, where))
        found = _tried(t, step, results)
    return (yield from settle(found))


def _record(t: Space, given: UserHashReplay) -> None:
    """Store a result. A step that is rolled back later repeats the call, and gets the result that
    held then."""
    key = tuple(map(id, given.operands))  # `given` keeps the objects, and so their identity
    hashes = t.state(UserHashResults)
    before = hashes.known.get(key, given)
    hashes.known[key] = given
    hashes.given.append(given)
    t.journal.record(lambda: hashes.known.update({key: before}) or hashes.given.pop())


def _without_effects(t: Space, operands: tuple[Any, ...]) -> OperationSteps:
    """Return the result of a call that must not change anything, as filling the real container
    repeats it.

    A key may store its hash for the next time: it is called again, and must change nothing then.
    """
    found, changed = yield from observed(t, call_user_hash(t, *operands), operands)
    if changed and all(getattr(vt, "owner", None) in operands for vt in changed):
        found, changed = yield from observed(t, call_user_hash(t, *operands), operands)
    if changed:
        detail = f"a key of class {operands[0].cls.__name__}, whose comparison changes things"
        raise t.unsupported("user-hash", detail)
    return found


def observed(t: Space, call: Any, about: tuple[Any, ...]) -> OperationSteps:
    """Return the result, and what the call changed that still exists."""
    touched: dict[int, Any] = {}
    t.touched.append(touched)
    try:
        found = yield from call
    finally:
        # equal ones belong to calls around it
        t.touched[:] = [other for other in t.touched if other is not touched]
    if not touched:
        return found, []
    known = {id(vt) for vt in reachable([*about, *t.machine.frames])}
    return found, [vt for vt, _ in touched.values() if vt.source is not None or id(vt) in known]
