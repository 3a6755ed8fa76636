"""Hashes and comparisons of keys that the program computes, and the errors of keys without a hash.

The words of the latter name the use of the key since CPython 3.14.
"""

import sys
from typing import Any, NoReturn

from stator_bytecode import OperationSteps, Raised, settle

from stator_variables._objects._program_error import complain, full_name
from stator_variables._space import Space
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
    equal = yield from settle(t.compare("==", first, *second))
    return (yield from settle(t.truth(equal)))
