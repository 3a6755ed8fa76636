"""Tables of methods: one handler for a family of functions; and the families of containers."""

from __future__ import annotations

import operator
from collections import OrderedDict, deque
from collections.abc import Callable
from typing import Any

import pytest
from stator_variables import ConstantTracker, MethodTable
from stator_variables._objects._list import ListTracker
from stator_variables._objects._method_table import comparisons

COMPARISONS = (operator.lt, operator.le, operator.eq, operator.ne, operator.gt, operator.ge)
OPERATORS = (operator.and_, operator.or_, operator.sub, operator.xor)
MAKERS: dict[str, Callable[[], Any]] = {
    "set": lambda: {1, 2},
    "frozenset": lambda: frozenset({2, 3}),
    "keys": {2: 0}.keys,
    "items": {1: 2, 3: 4}.items,
}


def test_handler_of_a_family_gets_what_the_family_has() -> None:
    methods = MethodTable("method")

    @methods.handles_each({list.append: "append", list.remove: "remove"})
    def run(t: Any, vt: ListTracker, *args: ConstantTracker, of: str) -> Any:
        return of, [arg.value for arg in args]

    args = [ListTracker([]), ConstantTracker(5)]
    assert methods.handlers[list.append](None, args, {}) == ("append", [5])
    assert methods.handlers[list.remove](None, args, {}) == ("remove", [5])
    assert methods.handlers[list.append].__qualname__ == run.__qualname__


def test_family_without_signatures_states_what_it_takes() -> None:
    methods = MethodTable("method")
    with pytest.raises(ValueError, match="has no signature"):
        methods.handles_each({dict.update: None})(lambda t, vt, of: None)
    methods.handles_each({dict.update: None}, takes=(0, 1))(lambda t, vt, of: None)


def test_comparisons_name_each_method_of_each_class() -> None:
    found = comparisons(list, deque)
    assert len(found) == 12
    assert found[list.__le__] == found[deque.__le__] == "<="


@pytest.mark.parametrize("right", MAKERS)
@pytest.mark.parametrize("left", MAKERS)
def test_operators_of_sets_and_views(check: Callable[..., Any], left: str, right: str) -> None:
    def run(left: Any, right: Any) -> list[Any]:
        compared = [compare(left, right) for compare in COMPARISONS]
        return compared + [operate(left, right) for operate in OPERATORS]

    check(run, lambda: (MAKERS[left](), MAKERS[right]()))


@pytest.mark.parametrize("right", [{1: 2}, OrderedDict([(1, 2)]), [1], (1,), deque([1])])
@pytest.mark.parametrize("left", [{1: 2}, OrderedDict([(1, 2)]), [1], (1,), deque([1])])
def test_comparisons_of_containers(check: Callable[..., Any], left: Any, right: Any) -> None:
    def run(left: Any, right: Any) -> list[Any]:
        found: list[Any] = []
        for compare in COMPARISONS:
            try:
                found.append(compare(left, right))
            except TypeError as error:
                found.append(str(error))
        return found

    check(run, (left, right))
