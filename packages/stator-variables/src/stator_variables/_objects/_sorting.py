"""`sorted` and `list.sort`: natively where the keys are constants, else by the comparisons that
CPython makes.

Those differ from version to version, which a `__lt__` that is inconsistent or has effects can
observe. So CPython itself sorts, with the results of the program so far, and begins anew each time
that it needs one more.
"""

import functools
from typing import Any

from stator_bytecode import OperationSteps, settle

from stator_variables import _trackers as k
from stator_variables._objects._program_error import as_program_error
from stator_variables._pure import has_own_methods
from stator_variables._space import Space
from stator_variables._tracker import MISSING, VariableTracker, is_a

LONGEST = 63


def sort(
    t: Space,
    items: list[Any],
    key: VariableTracker | None,
    reverse: VariableTracker | None,
    order: list[int],
) -> OperationSteps:
    """Put `order`, the places of the items, in order.

    Where a comparison raises it is left half done, as CPython's.
    """
    backwards = reverse is not None and (yield from settle(t.truth(reverse)))
    keys = items
    if key is not None and not k.is_none(key):
        keys = []
        for item in items:
            keys.append((yield from settle(t.call(key, [item]))))
    values = [vt.constant() for vt in keys]
    if any(value is MISSING or has_own_methods(value) for value in values) or any(
        is_a(vt, k.ClassTracker) for vt in keys
    ):
        yield from _by_comparisons(t, keys, backwards, order)
        return

    try:
        order.sort(key=values.__getitem__, reverse=backwards)
    except Exception as error:  # what the comparison of constants raises is the program's
        raise as_program_error(t, error) from None


def _by_comparisons(t: Space, keys: list[Any], backwards: bool, order: list[int]) -> OperationSteps:
    if len(keys) > LONGEST:
        raise t.unsupported("long-sort", f"a sort of {len(keys)} values that are not constants")
    first, results = order.copy(), list[int]()
    while (missing := _sort(order, results, backwards)) is not None:
        left, right = missing
        result = yield from settle(t.compare("<", keys[left], keys[right]))
        results.append(-(yield from settle(t.truth(result))))
        order[:] = first


class _MissingComparison(Exception):
    """The need of CPython for a comparison that the program has not made yet."""


def _sort(order: list[int], results: list[int], backwards: bool) -> tuple[int, int] | None:
    """Sort as far as the results reach: the places of what is compared next, or None at the end."""
    known = iter(results)

    def compare(left: int, right: int) -> int:
        if (result := next(known, None)) is None:
            raise _MissingComparison(left, right)
        return result

    try:
        order.sort(key=functools.cmp_to_key(compare), reverse=backwards)
    except _MissingComparison as missing:
        left, right = missing.args
        return left, right
    return None
