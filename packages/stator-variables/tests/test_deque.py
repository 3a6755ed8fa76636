"""deque: all methods, bounded and not."""

# ruff: noqa
from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

import pytest

METHODS: list[Callable[[Any], Any]] = [
    lambda d: d.append(9),
    lambda d: d.appendleft(9),
    lambda d: d.extend([7, 8]),
    lambda d: d.extendleft([7, 8]),
    lambda d: d.extend(d),
    lambda d: d.extendleft(d),
    lambda d: d.pop(),
    lambda d: d.popleft(),
    lambda d: (d.popleft(), d.popleft(), d.popleft(), d.popleft()),
    lambda d: d.rotate(),
    lambda d: d.rotate(-2),
    lambda d: d.rotate(50),
    lambda d: d.remove(2),
    lambda d: d.remove(50),
    lambda d: d.count(2),
    lambda d: d.index(2),
    lambda d: d.index(2, 2),
    lambda d: d.index("x"),
    lambda d: d.insert(1, 9),
    lambda d: d.reverse(),
    lambda d: d.clear(),
    lambda d: d.copy(),
    lambda d: d.maxlen,
    lambda d: len(d),
    lambda d: d[0],
    lambda d: d[-1],
    lambda d: d[9],
    lambda d: d[0:1],
    lambda d: d.__setitem__(0, 5),
    lambda d: d.__setitem__(9, 5),
    lambda d: d.__delitem__(0),
    lambda d: list(d),
    lambda d: list(reversed(d)),
    lambda d: 2 in d,
    lambda d: d + deque([5]),
    lambda d: d + [5],
    lambda d: d * 2,
    lambda d: d.__iadd__([4]),
    lambda d: d.__imul__(2),
    lambda d: d == deque([1, 2, 2]),
    lambda d: d < deque([1, 3]),
    lambda d: d == [1, 2, 2],
    lambda d: repr(d),
    lambda d: [d.append(1) for _ in d],
    lambda d: [d.__setitem__(0, i) for i in d],
    lambda d: deque(d, 2),
    lambda d: deque("abc", maxlen=2),
    lambda d: deque(maxlen=-1),
    lambda d: bool(d),
    lambda d: d.maxlen.__class__,
]


def caught(method: Callable[[Any], Any], d: Any) -> Any:
    try:
        return method(d), d
    except Exception as error:
        return type(error), error.args, d


@pytest.mark.parametrize("limit", [None, 3])
@pytest.mark.parametrize("method", range(len(METHODS)))
def test_deque_method(check: Any, method: int, limit: int | None) -> None:
    run = METHODS[method]
    allowed = 4 if "__setitem__(0, i)" in str(method) or method == len(METHODS) - 6 else 0
    check(
        lambda d: caught(run, d), (deque([1, 2, 2], limit),), (deque(maxlen=limit),), breaks=allowed
    )
    check(lambda: caught(run, deque([1, 2, 2], limit)), breaks=allowed)
