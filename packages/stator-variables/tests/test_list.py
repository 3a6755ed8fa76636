"""Lists and tuples: every method, on new ones and on arguments."""

# ruff: noqa
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

LIST_METHODS: list[Callable[[list[Any]], Any]] = [
    lambda x: x.append(7),
    lambda x: x.extend((7, 8)),
    lambda x: x.extend(x),
    lambda x: x.insert(1, 9),
    lambda x: x.insert(-100, 9),
    lambda x: x.insert(100, 9),
    lambda x: x.insert(True, 9),
    lambda x: x.pop(),
    lambda x: x.pop(0),
    lambda x: x.pop(99),
    lambda x: x.remove(2),
    lambda x: x.remove("absent"),
    lambda x: x.index(2),
    lambda x: x.index(2, 2),
    lambda x: x.index(2, -3, 100),
    lambda x: x.index("absent"),
    lambda x: x.count(2),
    lambda x: x.reverse(),
    lambda x: x.clear(),
    lambda x: x.copy(),
    lambda x: x.sort(),
    lambda x: x.sort(reverse=True),
    lambda x: x.sort(key=lambda v: -v),
    lambda x: sorted(x, key=lambda v: -v, reverse=True),
    lambda x: x[1:3],
    lambda x: x[::-1],
    lambda x: x.__setitem__(slice(1, 3), [5]),
    lambda x: x.__setitem__(slice(None, None, 2), "ab"),
    lambda x: x.__setitem__(slice(None, None, 2), "abc"),
    lambda x: x.__delitem__(slice(None, None, 2)),
    lambda x: x.__delitem__(-1),
    lambda x: x.__delitem__(50),
    lambda x: x.__iadd__([1]),
    lambda x: x.__imul__(2),
    lambda x: x.__imul__(-1),
    lambda x: x * 2,
    lambda x: 2 * x,
    lambda x: x + [1],
    lambda x: x + (1,),
    lambda x: x * "a",
    lambda x: x["a"],
    lambda x: x < [3, 1, 2, 4],
    lambda x: x <= x,
    lambda x: x > [3, 1],
    lambda x: x >= [3, 1, 2, 5],
    lambda x: x == [3, 1, 2, 2],
    lambda x: x != [3, 1, 2, 2],
    lambda x: x < (1,),
    lambda x: 2 in x,
    lambda x: 20 not in x,
    lambda x: list(reversed(x)),
    lambda x: x.__len__(),
    lambda x: repr(x),
    lambda x: str(x),
    lambda x: f"{x!r} {x}",
    lambda x: bool(x),
    lambda x: [*x, *x],
    lambda x: hash(x),
    lambda x: x.__contains__(1),
    lambda x: x.__reversed__().__next__(),
    lambda x: x.sort(5),
    lambda x: x.append(),
    lambda x: x.append(1, 2),
    lambda x: x.pop("a"),
    lambda x: x.extend(3),
]


@pytest.mark.parametrize("method", range(len(LIST_METHODS)))
def test_list_method(check: Any, method: int) -> None:
    check(LIST_METHODS[method], ([3, 1, 2, 2],), ([],))


@pytest.mark.parametrize("method", range(len(LIST_METHODS)))
def test_caught_in_the_region(check: Any, method: int) -> None:
    run = LIST_METHODS[method]

    def caught() -> Any:
        made = [3, 1]
        made.append(2)
        made += [2]
        try:
            return run(made), made
        except Exception as error:
            return type(error), error.args, made

    check(caught)
