"""`sorted` and `list.sort`: natively where the keys are constants, else by the comparisons that CPython makes.

For fewer than 64 items CPython's sort is one binary insertion sort after the first run (Objects/listobject.c): the same
comparisons are made here, in the same order, so that a `__lt__` that is inconsistent or has effects gives the same.
"""

from collections.abc import Generator
from typing import Any

from stator_bytecode import operation, settle

from stator_variables import _kinds as k
from stator_variables._library._pure import answers_in_python
from stator_variables._model import _calls, _operators
from stator_variables._model._raising import as_program_error
from stator_variables._tracing import Tracing
from stator_variables._tracker import MISSING

LONGEST_RUN = 63
Steps = Generator[Any, Any, Any]


def sort(t: Tracing, items: list[Any], key: Any, reverse: Any, order: list[int]) -> Steps:
    """Put `order`, the places of the items, in order. Where a comparison raises it is left half done, as CPython's."""
    backwards = reverse is not None and (yield from settle(_operators.truth(t, reverse)))
    keys = items
    if key is not None and not k.is_none(key):
        keys = []
        for item in items:
            keys.append((yield from settle(_calls.call(t, key, [item], {}))))
    values = [vt.constant() for vt in keys]
    if any(value is MISSING or answers_in_python(value) for value in values) or any(
        isinstance(vt, k.ClassTracker) for vt in keys
    ):
        yield from _by_comparisons(t, keys, backwards, order)
        return
    try:
        order.sort(key=values.__getitem__, reverse=backwards)
    except Exception as error:  # what the comparison of constants raises is the program's
        raise as_program_error(t, error) from None


def _by_comparisons(t: Tracing, keys: list[Any], backwards: bool, order: list[int]) -> Steps:
    if len(keys) > LONGEST_RUN:
        raise t.unsupported("long-sort", f"a sort of {len(keys)} values that are not constants")
    if not backwards:
        yield from _sort(t, keys, order)
        return
    order.reverse()  # sorted in reverse twice, which keeps equal items in order
    try:
        yield from _sort(t, keys, order)
    finally:
        order.reverse()


def _less(t: Tracing, keys: list[Any], a: int, b: int) -> Steps:
    result = yield from settle(_operators.compare(t, "<", keys[a], keys[b]))
    return (yield from settle(_operators.truth(t, result)))


def _sort(t: Tracing, keys: list[Any], order: list[int]) -> Steps:
    if len(order) < 2:
        return
    start = yield from _first_run(t, keys, order)
    for at in range(start, len(order)):
        pivot = order[at]
        left, right = 0, at
        while left < right:
            middle = (left + right) >> 1
            if (yield from _less(t, keys, pivot, order[middle])):
                right = middle
            else:
                left = middle + 1
        del order[at]
        order.insert(left, pivot)


def _first_run(t: Tracing, keys: list[Any], order: list[int]) -> Steps:
    """The length of the run at the start, turned round if it descends."""
    descends = yield from _less(t, keys, order[1], order[0])
    length = 2
    while length < len(order):
        if (yield from _less(t, keys, order[length], order[length - 1])) is not descends:
            break
        length += 1
    if descends:
        order[:length] = order[:length][::-1]
    return length


@operation
def sorted_list(t: Tracing, items: list[Any], key: Any, reverse: Any) -> Any:
    order = [*range(len(items))]
    yield from sort(t, items, key, reverse, order)
    return k.ListTracker([items[i] for i in order], list)
