"""set and frozenset: all methods; what depends on the order of hashes breaks."""

# ruff: noqa
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

METHODS: list[Callable[[Any], Any]] = [
    lambda s: s | {9},
    lambda s: s & {1, 2},
    lambda s: s - {1},
    lambda s: s ^ {1, 9},
    lambda s: {9} | s,
    lambda s: s.union([9], (8,)),
    lambda s: s.union(),
    lambda s: s.intersection([1], [1, 2]),
    lambda s: s.difference("ab", [2]),
    lambda s: s.symmetric_difference([1, 9]),
    lambda s: s.issubset([1, 2, 3, 4]),
    lambda s: s.issuperset([1]),
    lambda s: s.isdisjoint([7]),
    lambda s: s <= {1, 2, 3, 4},
    lambda s: s < s,
    lambda s: s >= {1},
    lambda s: s > {1},
    lambda s: s == {3, 2, 1},
    lambda s: s != {3, 2, 1},
    lambda s: s == [1],
    lambda s: s | [1],
    lambda s: len(s),
    lambda s: 1 in s,
    lambda s: [] in s,
    lambda s: {1} in s,
    lambda s: s.copy(),
    lambda s: bool(s),
    lambda s: sorted(s),
    lambda s: sum(s),
    lambda s: max(s),
    lambda s: set(s),
    lambda s: frozenset(s),
    lambda s: s.add(4),
    lambda s: s.add([]),
    lambda s: s.discard(1),
    lambda s: s.discard(50),
    lambda s: s.remove(1),
    lambda s: s.remove(50),
    lambda s: s.clear(),
    lambda s: s.update([4, 5], (6,)),
    lambda s: s.update(),
    lambda s: s.intersection_update([1, 2]),
    lambda s: s.difference_update([1], [2]),
    lambda s: s.symmetric_difference_update([1, 9]),
    lambda s: s.__ior__({7}),
    lambda s: s.__iand__({1}),
    lambda s: s.__isub__({1}),
    lambda s: s.__ixor__({1, 9}),
    lambda s: s.__ior__([7]),
    lambda s: hash(s),
    lambda s: s.union(5),
    lambda s: any(v > 2 for v in sorted(s)),
    lambda s: {1},
    lambda s: {True} & {1},
    lambda s: {1} & {True},
    lambda s: {1}.union([True]),
    lambda s: set().pop(),
    lambda s: {5}.pop(),
    lambda s: list({5}),
    lambda s: repr({5}),
    lambda s: repr(frozenset()),
    lambda s: {x % 3 for x in range(9)} == {0, 1, 2},
]


def caught(method: Callable[[Any], Any], s: Any) -> Any:
    try:
        return method(s), s
    except Exception as error:
        return type(error), error.args, s


@pytest.mark.parametrize("kind", [set, frozenset])
@pytest.mark.parametrize("method", range(len(METHODS)))
def test_set_method(check: Any, method: int, kind: Any) -> None:
    run = METHODS[method]
    check(lambda s: caught(run, s), (kind([1, 2, 3]),), (kind(),))
    check(lambda: caught(run, kind([1, 2, 3])))


@pytest.mark.parametrize(
    "method",
    [
        lambda s: list(s),
        lambda s: s.pop(),
        lambda s: repr(s),
        lambda s: [v for v in s],
        lambda s: next(iter(s)),
    ],
)
def test_order_of_hashes_breaks(check: Any, method: Any) -> None:
    compiled = check(lambda s: method(s), ({"a", "b"},), breaks=None)
    assert {reason.reason for reason in compiled.breaks} <= {"set-order"}


def test_sets_of_objects(check: Any) -> None:
    class Thing:
        pass

    def run(a: Any) -> Any:
        new = Thing()
        seen = {a, new}
        seen.add(a)
        return len(seen), a in seen, Thing() in seen

    check(run, lambda: (Thing(),))


def test_set_subclass(check: Any) -> None:
    class Names(set):
        def note(self, name: str) -> None:
            self.add(name)

    def run(given: Any) -> Any:
        names = Names(["a"])
        names.note("b")
        given.note("c")
        return names, names | {"c"}, len(given), type(names.copy())

    check(run, lambda: (Names(["x"]),))
