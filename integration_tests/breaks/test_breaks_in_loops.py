"""A break in a loop costs one entry for all of its rounds, whatever the loop goes through and
remembers.

What is read of iterators in the middle and of sets of objects is guarded."""

from __future__ import annotations

import collections
import itertools
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import stator
import torch
from torch import Tensor, nn

from integration_tests.support.oracle import assert_same

PARTS = [torch.full((3,), float(i)) for i in range(5)]
NAMED = {f"part {i}": part for i, part in enumerate(PARTS)}
LAYERS = nn.ModuleList(nn.Linear(3, 3) for _ in range(5))
X = torch.arange(3.0)


def parts() -> Iterator[Tensor]:
    for part in PARTS:
        yield part + 1


def remembered(items: Any) -> Iterator[Any]:
    seen = set()
    for item in items:
        if item not in seen:
            seen.add(item)
            yield item


LOOPS: dict[str, Callable[[], Any]] = {
    "a list": lambda: PARTS,
    "a tuple": lambda: tuple(PARTS),
    "values": NAMED.values,
    "items": lambda: (value for _, value in NAMED.items()),
    "reversed": lambda: reversed(PARTS),
    "zip": lambda: map(torch.add, PARTS, PARTS),
    "a generator": parts,
    "a generator with a memory": lambda: remembered(PARTS),
    "filter": lambda: filter(lambda part: part.dim() == 1, PARTS),
    "an ordered dict": lambda: collections.OrderedDict(NAMED).values(),
    "children": lambda: (layer.bias for layer in LAYERS.children()),
    "chain": lambda: itertools.chain(PARTS, PARTS),
}


@pytest.mark.parametrize("name", LOOPS)
def test_break_in_a_loop_costs_one_entry_for_its_rounds(name: str) -> None:
    def fn(x: Tensor) -> Tensor:
        for part in LOOPS[name]():
            x = x + part
            stator.graph_break()
            x = x * 2
        return x

    compiled = stator.compile(fn, backend="eager")
    assert_same(fn, compiled, lambda: (X.clone(),))
    # before, a round, the end; numbers are constants at first
    assert compiled.report.entry_count <= 4, compiled.report
    assert {reason.reason for reason in compiled.report.breaks} == {"graph-break"}


@pytest.mark.parametrize(
    "items", [range(3, 30, 4), "abcdefg", b"abcdefg", range(1 << 70, (1 << 70) + 7)]
)
def test_break_in_a_loop_over_constants(items: Any) -> None:
    def fn(x: Tensor) -> Any:
        seen = []
        for item in items:
            seen.append(item)
            stator.graph_break()
            x = x + len(seen)
        return x, seen

    assert_same(fn, stator.compile(fn, backend="eager", recompile_limit=64), lambda: (X.clone(),))


def test_parameters_of_a_module_cost_an_entry_each_and_serve_another_module() -> None:
    def fn(module: nn.Module, x: Tensor) -> Tensor:
        for parameter in module.parameters():
            x = x + parameter.sum()
            stator.graph_break()
            x = x * 2
        return x

    compiled: Any = stator.compile(fn, backend="eager")
    modules = iter([nn.Sequential(nn.Linear(3, 3), nn.ReLU(), nn.Linear(3, 3)) for _ in range(3)])
    assert_same(fn, compiled, lambda: (next(modules), X.clone()), calls=1)
    count = compiled.report.entry_count
    assert count == 5  # four parameters, each with a name of its own, and the end
    assert_same(fn, compiled, lambda: (next(modules), X.clone()), calls=2)
    assert compiled.report.entry_count == count


# -- sets of objects -------------------------------------------------------------------------------
class Thing:
    def __init__(self, n: int) -> None:
        self.n = n


A, B, C = Thing(1), Thing(2), Thing(3)
SETS: list[tuple[set[Any], Thing]] = [
    ({A, B}, A),
    ({A, B}, C),
    ({B, C}, A),
    ({C}, C),
    ({C, 1}, C),
    ({1, "a"}, C),
    (set(), C),
    ({A, B, C}, B),
]


def changing(given: set[Any], thing: Thing, x: Tensor) -> Any:
    first = thing in given
    given.add(thing)
    given.add(thing)
    then = thing in given
    given.discard(thing)
    return first, then, thing in given, len(given), x + 1


def changing_around_a_break(given: set[Any], thing: Thing, x: Tensor) -> Any:
    given.add(thing)
    stator.graph_break()
    if thing in given:
        x = x + 1
    given.remove(thing)
    stator.graph_break()
    given.update([thing, 7])
    given |= {thing, 8}
    given -= {7}
    return thing in given, x


def combining(given: set[Any], thing: Thing, x: Tensor) -> Any:
    union, common, less, either = given | {thing}, given & {thing}, given - {thing}, given ^ {thing}
    return (
        len(union),
        len(common),
        len(less),
        len(either),
        given == {thing},
        given <= union,
        given.isdisjoint(less),
        x,
    )


def copying(given: set[Any], thing: Thing, x: Tensor) -> Any:
    copied, frozen = given.copy(), frozenset(given)
    copied.discard(thing)
    return (
        thing in copied,
        thing in frozen,
        {frozen: 1}.get(frozen),
        copied < given,
        x + len(frozen),
    )


def removing(given: set[Any], thing: Thing, x: Tensor) -> Any:
    try:
        given.remove(thing)
    except KeyError as error:
        return error.args[0] is thing, x
    return len(given) and x


def emptying(given: set[Any], thing: Thing, x: Tensor) -> Any:
    given.clear()
    given.add(thing)
    return bool(given), x


def popping(given: set[Any], thing: Thing, x: Tensor) -> Any:
    taken = given.pop() if len(given) == 1 else None
    return taken is thing, x + 1


def going_through(given: set[Any], thing: Thing, x: Tensor) -> Any:
    total = sum(getattr(item, "n", 0) for item in given)
    for item in given:
        x = x + getattr(item, "n", 5)
        stator.graph_break()
    return total, x, max((getattr(item, "n", 0) for item in given), default=None)


def two_names_of_one(given: set[Any], thing: Thing, x: Tensor) -> Any:
    other = next((item for item in given if item is thing), A)
    made = {other}
    return thing in made, len(made | {thing}), len({thing, other, A}), x + 1


@pytest.mark.parametrize(
    "fn",
    [
        changing,
        changing_around_a_break,
        combining,
        copying,
        removing,
        emptying,
        popping,
        going_through,
        two_names_of_one,
    ],
)
def test_set_of_objects(fn: Callable[..., Any]) -> None:
    """The order of a set of objects is that of their addresses, so both sides have the same
    ones."""
    compiled = stator.compile(fn, backend="eager", recompile_limit=64)
    for members, thing in (*SETS, *SETS):
        ours, theirs = members.copy(), members.copy()
        assert repr(compiled(ours, thing, X)) == repr(fn(theirs, thing, X))
        assert ours == theirs


def test_membership_alone_is_guarded() -> None:
    """Whatever else is in the set, and whichever objects they are."""

    def fn(given: set[Any], thing: Thing, x: Tensor) -> Any:
        return (thing in given), x + thing.n

    compiled = stator.compile(fn, backend="eager")
    for members, thing, entries in (
        ({A, B}, A, 1),
        ({A, C}, A, 1),
        ({A}, A, 1),
        ({A}, B, 3),
        ({A, C}, B, 3),
    ):
        assert fn(members, thing, X)[0] is compiled(members, thing, X)[0]
        assert compiled.report.entry_count <= entries


def test_objects_in_a_new_set_are_told_apart() -> None:
    def fn(one: Thing, other: Thing, x: Tensor) -> Any:
        made = {one}
        found = other in made
        made.discard(other)
        return found, len(made), x + 1

    pairs = iter([(A, B), (A, A), (B, C), (C, C)])
    assert_same(fn, stator.compile(fn, backend="eager"), lambda: (*next(pairs), X.clone()), calls=4)


# -- iterators in the middle -----------------------------------------------------------------------
ITERATORS: dict[str, Callable[[], Iterator[Any]]] = {
    "a list": lambda: iter([1, 2.5, "c", None, PARTS[1]]),
    "a tuple": lambda: iter((1, 2.5, "c", None, PARTS[1])),
    "one that is left": lambda: iter([1, 2]),
    "a str": lambda: iter("añb€"),
    "bytes": lambda: iter(b"abcd"),
    "a range": lambda: iter(range(9, 1, -2)),
    "keys": lambda: iter({"a": 1, "b": 2, "c": 3}),
    "values": lambda: iter({"a": 1, "b": PARTS[0], "c": 3}.values()),
    "items": lambda: iter({"a": 1, "b": PARTS[0], "c": 3}.items()),
    "reversed items": lambda: reversed({"a": 1, "b": PARTS[0], "c": 3}.items()),
    "ordered": lambda: iter(collections.OrderedDict(a=1, b=2, c=3).items()),
    "reversed": lambda: reversed([1, 2, 3, 4]),
    "a reversed tuple": lambda: reversed((1, 2, 3, 4)),
    "a reversed list that is left": lambda: reversed([1, 2]),
    "a set": lambda: iter({3, 1, 2}),
    "a set of objects": lambda: iter({PARTS[0]: 0}.keys() | {PARTS[0]}),
    "zip": lambda: zip([1, 2, 3], "abc", strict=False),
    "map": lambda: map(str, [1, 2, 3, 4]),
    "enumerate": lambda: enumerate("abcd", 7),
    "filter": lambda: filter(None, [1, 0, 2, 3]),
    "a long list": lambda: iter(list(range(400))),
}
for _iterator in ITERATORS.values():
    assert list(_iterator())


def one(it: Iterator[Any], x: Tensor) -> Any:
    return next(it, "none"), x + 1


def all_that_are_left(it: Iterator[Any], x: Tensor) -> Any:
    return [*it], next(it, "none"), x + 1


def some_of_each_side(it: Iterator[Any], x: Tensor) -> Any:
    first = next(it, "none")
    stator.graph_break()
    second = next(it, "none")
    return first, second, [item for item, _ in zip(it, range(1), strict=False)], it, x + 1


def a_loop(it: Iterator[Any], x: Tensor) -> Any:
    seen = []
    for item in it:
        seen.append(item)
        if len(seen) == 3:
            break
        stator.graph_break()
    return seen, x + len(seen), [*itertools.islice(it, 3)]


@pytest.mark.parametrize("fn", [one, all_that_are_left, some_of_each_side, a_loop])
@pytest.mark.parametrize("name", ITERATORS)
def test_iterator_in_the_middle(name: str, fn: Callable[..., Any]) -> None:
    def made(steps: int) -> Iterator[Any]:
        iterator = ITERATORS[name]()
        for _ in range(steps):
            next(iterator, None)
        return iterator

    steps = iter([1, 2, 1, 0, 3, 9])
    compiled = stator.compile(fn, backend="eager", recompile_limit=64)
    assert_same(fn, compiled, lambda: (made(next(steps)), X.clone()), calls=6)


def appended(items: list[Any], it: Iterator[Any], x: Tensor) -> Any:
    first = next(it)
    items.append(first)
    return first, [*it], x + 1


def cut_short(items: list[Any], it: Iterator[Any], x: Tensor) -> Any:
    first = next(it)
    del items[1:]
    return first, next(it, "none"), [*it], x + 1


def replaced(items: list[Any], it: Iterator[Any], x: Tensor) -> Any:
    items[1], items[2] = items[2], items[1]
    return [*it], x + 1


def grown_later(items: list[Any], it: Iterator[Any], x: Tensor) -> Any:
    found = [next(it)]
    stator.graph_break()
    items.insert(0, "new")
    stator.graph_break()
    return [*found, *it], x + 1


@pytest.mark.parametrize("fn", [appended, cut_short, replaced, grown_later])
def test_list_that_changes_under_an_iterator(fn: Callable[..., Any]) -> None:
    def arguments() -> tuple[Any, ...]:
        items = [1, "b", PARTS[2], 4.5]
        return items, iter(items), X.clone()

    assert_same(fn, stator.compile(fn, backend="eager"), arguments)


def written(items: dict[str, Any], it: Iterator[Any], x: Tensor) -> Any:
    key, _ = next(it)
    items["b"] = key
    return [*it], x + 1


def added(items: dict[str, Any], it: Iterator[Any], x: Tensor) -> Any:
    next(it)
    items["new"] = 1
    return next(it), x + 1


def added_after(items: dict[str, Any], it: Iterator[Any], x: Tensor) -> Any:
    found = [*it]
    items["new"] = found
    return found, x + 1


@pytest.mark.parametrize("fn", [written, added, added_after])
def test_dict_that_changes_under_an_iterator(fn: Callable[..., Any]) -> None:
    def arguments() -> tuple[Any, ...]:
        items = {"a": 1, "b": PARTS[0], "c": 3}
        return items, iter(items.items()), X.clone()

    assert_same(fn, stator.compile(fn, backend="eager"), arguments)


def test_iterator_over_a_dict_that_changed_before() -> None:
    def made(*more: str) -> Iterator[Any]:
        items = {"a": 1, "b": 2}
        it = iter(items)
        items.update(dict.fromkeys(more, 3))
        return it

    compiled = stator.compile(one, backend="eager")
    for more in ((), ("c",), ()):
        if more:
            with pytest.raises(RuntimeError, match="changed size during iteration"):
                compiled(made(*more), X)
        else:
            assert compiled(made(), X)[0] == "a"


class Listed(list[Any]):
    def __getitem__(self, index: Any) -> Any:
        return "wrong"

    def __iter__(self) -> Iterator[Any]:
        raise AssertionError


class Text(str):
    __slots__ = ()

    def __getitem__(self, index: Any) -> Any:
        return "wrong"


def test_iterator_over_a_container_of_a_class() -> None:
    compiled = stator.compile(all_that_are_left, backend="eager")
    cases: list[tuple[Any, list[Any]]] = [
        (Listed([1, 2, 3]), [2, 3]),
        (Listed([4, 5]), [5]),
        (Text("abc"), ["b", "c"]),
    ]
    for items, expected in cases:
        made = (list if isinstance(items, list) else str).__iter__(items)
        next(made)
        assert compiled(made, X)[0] == expected


def test_one_iterator_under_two_names() -> None:
    def fn(one: Iterator[Any], other: Iterator[Any], x: Tensor) -> Any:
        return next(one), next(other), next(one), next(other, "none"), x + 1

    def arguments() -> tuple[Any, ...]:
        it = iter(range(5))
        return (it, it, X.clone()) if next(shared) else (it, iter([7, 8, 9]), X.clone())

    shared = iter([True, False, True])
    assert_same(fn, stator.compile(fn, backend="eager"), arguments)


CHANGES: dict[str, tuple[Callable[[], Any], Callable[[Any], Any]]] = {
    "set, added": (lambda: {1, 2, 3}, lambda over: over.add(99)),
    "set, removed": (lambda: {1, 2, 3}, lambda over: over.discard(1)),
    "set, the same size": (lambda: {1, 2, 3}, lambda over: (over.add(99), over.discard(99))),
    "dict, added": (lambda: {1: 1, 2: 2, 3: 3}, lambda over: over.update({99: 1})),
    "dict, removed": (lambda: {1: 1, 2: 2, 3: 3}, lambda over: over.pop(1)),
    "list, added": (lambda: [1, 2, 3], lambda over: over.append(9)),
    "list, before": (lambda: [1, 2, 3], lambda over: over.insert(0, 9)),
    "list, removed": (lambda: [1, 2, 3], lambda over: over.clear()),
    "deque, added": (lambda: collections.deque([1, 2, 3]), lambda over: over.append(9)),
}


def all_and_change(it: Iterator[Any], over: Any, change: Callable[[Any], Any], x: Tensor) -> Any:
    left = list(it)
    change(over)
    return left, list(it), over, x + 1


def one_and_change(it: Iterator[Any], over: Any, change: Callable[[Any], Any], x: Tensor) -> Any:
    first = next(it)
    change(over)
    return first, over, x + 1


def one_change_and_one(
    it: Iterator[Any], over: Any, change: Callable[[Any], Any], x: Tensor
) -> Any:
    first = next(it)
    change(over)
    return first, next(it), over, x + 1


def counted_and_change(
    it: Iterator[Any], over: Any, change: Callable[[Any], Any], x: Tensor
) -> Any:
    pairs = list(zip(it, range(2)))  # noqa: B905
    change(over)
    return pairs, over, x + 1


def change_in_a_broken_loop(
    it: Iterator[Any], over: Any, change: Callable[[Any], Any], x: Tensor
) -> Any:
    seen = []
    for item in it:
        seen.append(item)
        stator.graph_break()
        if len(seen) == 2:
            change(over)
    return seen, over, x + 1


MOVES = [
    all_and_change,
    one_and_change,
    one_change_and_one,
    counted_and_change,
    change_in_a_broken_loop,
]


@pytest.mark.parametrize("fn", MOVES, ids=lambda fn: fn.__name__)
@pytest.mark.parametrize("case", CHANGES)
def test_existing_iterator_moves_before_its_container_changes(
    case: str, fn: Callable[..., Any]
) -> None:
    make, change = CHANGES[case]
    compiled = stator.compile(fn, backend="eager")
    for _ in range(3):
        outcomes = []
        for run in (fn, compiled):
            over = make()
            it = iter(over)
            outcomes.append((_outcome(run, it, over, change, X), _outcome(list, it)))
        assert repr(outcomes[0]) == repr(outcomes[1])


def _outcome(run: Callable[..., Any], *args: Any) -> Any:
    try:
        return run(*args)
    except (RuntimeError, StopIteration) as error:
        return error


def test_list_that_grew_in_a_long_loop_keeps_all_its_items() -> None:
    """It is too long to be looked through at the end: that is a break, with what was appended
    before it."""

    def fn(it: Iterator[int], expected: list[int], x: Tensor) -> Any:
        seen = []
        for item in it:
            seen.append(item)
        return seen == expected, len(seen), x + 1

    expected = list(range(6000))
    compiled = stator.compile(fn, backend="eager")
    for _ in range(2):
        same, length, _ = compiled(iter(expected), expected, X)
        assert (same, length) == (True, 6000)
