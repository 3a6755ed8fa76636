"""Loops over all kinds of iterators, with a break in them: they go on where they stood, and the
function with them."""

from __future__ import annotations

import collections
import itertools
import operator
from collections.abc import Callable
from typing import Any

import pytest
import stator
import torch
from torch import Tensor

from integration_tests.support.counting import Counting
from integration_tests.support.oracle import assert_same

Made = Callable[[list[Any]], Any]
ITERATORS: dict[str, Made] = {
    "chain": lambda xs: itertools.chain(xs, (4,), range(2)),
    "chain.from_iterable": lambda xs: itertools.chain.from_iterable([xs, xs]),
    "islice": lambda xs: itertools.islice(xs, 1, 3),
    "count": lambda xs: zip(itertools.count(2), xs, strict=False),
    "cycle": lambda xs: zip(itertools.cycle(xs), range(5), strict=False),
    "repeat": lambda xs: itertools.repeat(3, 3),
    "product": lambda xs: itertools.product(xs, "ab"),
    "product with itself": lambda xs: itertools.product(xs[:2], repeat=2),
    "product of nothing": lambda xs: itertools.product(repeat=2),
    "combinations": lambda xs: itertools.combinations(xs, 2),
    "permutations": lambda xs: itertools.permutations(xs[:3], 2),
    "with replacement": lambda xs: itertools.combinations_with_replacement(xs[:2], 2),
    "accumulate": lambda xs: itertools.accumulate(xs, operator.mul, initial=2),
    "takewhile": lambda xs: itertools.takewhile(lambda v: v < 3, xs),
    "dropwhile": lambda xs: itertools.dropwhile(lambda v: v < 1, xs),
    "filterfalse": lambda xs: itertools.filterfalse(lambda v: v == 1, xs),
    "pairwise": itertools.pairwise,
    "groupby": lambda xs: ((k, list(group)) for k, group in itertools.groupby(xs, lambda v: v > 1)),
    "starmap": lambda xs: itertools.starmap(operator.add, [(1, 2), (3, 4), (5, 6)]),
    "zip_longest": lambda xs: itertools.zip_longest(xs, xs[:2]),
    "tee": lambda xs: itertools.tee(xs)[0],
    "both of tee": lambda xs: zip(*itertools.tee(xs), strict=True),
    "compress": lambda xs: itertools.compress(xs, [1, 0, 1, 1]),
    "map": lambda xs: map(str, xs),
    "filter": lambda xs: filter(lambda v: v != 1, xs),
    "a list": iter,
    "reversed": reversed,
    "items": lambda xs: {v: v for v in xs}.items(),
    "a text": lambda xs: iter("abc"),
    "a range": lambda xs: range(9, 0, -3),
    "zip of a chain": lambda xs: zip(itertools.chain(xs, xs), itertools.count(), strict=False),
    "zip of a map": lambda xs: zip(map(str, xs), xs, strict=True),
    "map of a zip": lambda xs: map(operator.itemgetter(0), zip(xs, xs, strict=True)),
    "enumerate of a product": lambda xs: enumerate(itertools.product(xs, xs)),
    "enumerate of a tee": lambda xs: enumerate(itertools.tee(xs, 3)[1]),
    "zips in zips": lambda xs: zip(xs, zip(xs, enumerate(xs), strict=True), strict=True),
    "children of a module": lambda xs: torch.nn.Sequential(
        torch.nn.ReLU(), torch.nn.Tanh()
    ).named_children(),
}


def broken_each_time(make: Made) -> Callable[..., Any]:
    def f(x: Tensor, items: list[Any]) -> Any:
        found = []
        for item in make(items):
            stator.graph_break()
            x = x + 1
            found.append(str(item))
        return x, found

    return f


def broken_at_the_first(make: Made) -> Callable[..., Any]:
    def f(x: Tensor, items: list[Any]) -> Any:
        found: list[str] = []
        iterator = iter(make(items))
        for item in iterator:
            if not found:
                stator.graph_break()
            x = x + 1
            found.append(str(item))
            if len(found) == 2:
                break
        return x, found, list(map(str, iterator))

    return f


@pytest.mark.parametrize("name", ITERATORS)
@pytest.mark.parametrize("loop", [broken_each_time, broken_at_the_first])
def test_a_break_in_a_loop_is_a_break(loop: Callable[[Made], Any], name: str) -> None:
    function = loop(ITERATORS[name])
    compiled = stator.compile(function, backend="eager", recompile_limit=16)
    assert_same(function, compiled, lambda: (torch.ones(3), [0, 1, 2, 3]))
    assert {reason.reason for reason in compiled.report.breaks} <= {"graph-break"}


def test_what_was_moved_on_is_given_back_so() -> None:
    def f(x: Tensor, items: list[int]) -> Any:
        rows, pairs = itertools.product(items, "ab"), itertools.combinations(items, 2)
        next(rows)
        items.append(7)
        return x + 1, next(rows), next(pairs), rows, pairs

    for compiled in (f, stator.compile(f, backend="eager", fullgraph=True)):
        _, *found, rows, pairs = compiled(torch.ones(2), [1, 2, 3])
        assert found == [(1, "b"), (1, 2)]
        assert (type(rows), type(pairs)) == (itertools.product, itertools.combinations)
        assert list(rows) == [(2, "a"), (2, "b"), (3, "a"), (3, "b")]
        assert list(pairs) == [(1, 3), (2, 3)]


class Ordered(collections.OrderedDict[int, int]): ...


def gone_through(x: Tensor, of: Any, part: str) -> Any:
    view = getattr(of, part)()
    stator.graph_break()
    for _ in view:
        x = x + 1
    steps = iter(view)
    first = next(steps)
    stator.graph_break()
    return x, len(view), [*reversed(view)], first, next(steps), list(steps)


def asked(x: Tensor, of: Any, part: str) -> Any:
    view = getattr(of, part)()
    stator.graph_break()
    other = getattr(of, part)()
    return x + 1, 1 in view, (1, 2) in view, str(view), view == other, type(view).__name__, view


@pytest.mark.parametrize("part", ["keys", "values", "items"])
@pytest.mark.parametrize("cls", [dict, collections.OrderedDict, Ordered])
@pytest.mark.parametrize("function", [gone_through, asked])
def test_a_view_from_before_a_break(
    function: Callable[..., Any], cls: Callable[..., Any], part: str
) -> None:
    compiled = stator.compile(function, backend="eager")
    assert_same(function, compiled, lambda: (torch.ones(3), cls([(1, 2), (5, 6), (3, 4)]), part))
    assert {reason.reason for reason in compiled.report.breaks} <= {"graph-break"}


def stepped(x: Tensor) -> Tensor:
    y = x + 1
    stator.graph_break()
    return y * 2


CONSUMED: dict[str, Callable[[Tensor], Any]] = {
    "sum": lambda x: sum(stepped(item) for item in (x, x * 2)),
    "max": lambda x: max((stepped(item) for item in (x, x * 2)), key=lambda item: 1),
    "any": lambda x: any(stepped(item) is None for item in (x, x * 2)),
}


@pytest.mark.parametrize("name", CONSUMED)
def test_a_break_in_what_is_gone_through_is_a_break(name: str) -> None:
    """What comes before and after it is captured."""
    compiled = stator.compile(CONSUMED[name], backend="eager")
    assert_same(CONSUMED[name], compiled, lambda: (torch.ones(3),))
    assert {reason.reason for reason in compiled.report.breaks} <= {"graph-break"}


class Loader:
    """Computes what it gives, with a break in the middle."""

    def __init__(self, x: Tensor, n: int) -> None:
        self.x, self.left = x, n

    def __iter__(self) -> Loader:
        return self

    def __next__(self) -> Tensor:
        if self.left == 0:
            raise StopIteration
        self.left -= 1
        y = self.x.sin().cos()
        if self.left == 1:
            stator.graph_break()
        return y.tan() + self.left


def test_a_break_inside_next_costs_one_break_and_no_operation() -> None:
    def run(x: Tensor, n: int) -> Any:
        return [batch * 2 for batch in Loader(x, n)]

    counting = Counting()
    compiled = stator.compile(run, backend=counting)
    sizes = iter((3, 3, 4))
    assert_same(
        run, stator.compile(run, backend="eager"), lambda: (torch.ones(2), next(sizes)), calls=3
    )
    compiled(torch.ones(2), 3)
    assert counting.count == 2
    assert (
        sum(node.op.startswith("call_") for graph in counting.graphs for node in graph.graph.nodes)
        == 3 * 5
    )


def begun(kind: Any, part: str, grows: bool) -> Any:
    held = kind({1: 2})
    iterator = iter(getattr(held, part)())
    next(iterator)
    if grows:
        held.update({3: 4})
    return iterator


def rest_of(x: Tensor, kind: Any, part: str, grows: bool) -> Any:
    iterator = begun(kind, part, grows)
    stator.graph_break()
    try:
        found = [item + 0 if kind is set else item for item in iterator]
    except RuntimeError as error:
        return x - 1, str(error)
    return x + 1, found


def next_of(x: Tensor, kind: Any, part: str, grows: bool) -> Any:
    iterator = begun(kind, part, grows)
    stator.graph_break()
    try:
        found = next(iterator, None)
    except RuntimeError as error:
        return x - 1, str(error)
    return x + 1, found


CHANGED = [
    (kind, part) for kind in (dict, collections.OrderedDict) for part in ("keys", "items")
] + [(set, "__iter__")]


@pytest.mark.parametrize("grows", [(0, 1, 0), (1, 0, 1), (0, 0, 1, 1)], ids=str)
@pytest.mark.parametrize(("kind", "part"), CHANGED)
@pytest.mark.parametrize("function", [rest_of, next_of])
@pytest.mark.parametrize("mode", [False, "calls"])
def test_container_changed_under_an_iterator_before_a_break(
    function: Any, kind: Any, part: str, grows: Any, mode: Any
) -> None:
    """In some calls: guards on what an iterator has still to give bear that it cannot say."""
    each = iter(grows)
    compiled = stator.compile(function, backend="eager", options={"break_everywhere": mode})
    assert_same(
        function, compiled, lambda: (torch.ones(2), kind, part, next(each)), calls=len(grows)
    )
