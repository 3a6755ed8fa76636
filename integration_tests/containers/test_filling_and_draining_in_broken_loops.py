"""Containers that a loop with a break in it fills or works off: the same answer, and no entry for
each round."""

from __future__ import annotations

import collections
import functools
from collections.abc import Callable
from typing import Any

import pytest
import stator
import torch
from torch import Tensor

from integration_tests.support.oracle import assert_same


def results_by_number(x: Tensor, n: int) -> Any:
    found: dict[int, Tensor] = {}
    for i in range(n):
        x = x + 1
        stator.graph_break()
        found[i] = x.sum()
    return x, found


def results_by_name(x: Tensor, n: int) -> Any:
    names, found = [f"layer{i}" for i in range(n)], collections.OrderedDict[str, Tensor]()
    for name in names:
        x = x + 1
        stator.graph_break()
        found[name] = x
    return found


def what_was_seen(x: Tensor, n: int) -> Any:
    seen, steps = set(), collections.defaultdict[str, int](int)
    for i in range(n):
        stator.graph_break()
        x = x + 1
        seen.add(i % 5)
        steps[f"step {i}"] = 1
    return x, seen, steps, steps["step 1"]


def a_list_worked_off(x: Tensor, n: int) -> Any:
    todo = [*range(n)]
    while todo:
        k = todo.pop()
        stator.graph_break()
        x = x + k
    return x, todo


def a_tree_by_its_breadth(x: Tensor, n: int) -> Any:
    queue, out = collections.deque([n]), []
    while queue:
        k = queue.popleft()
        stator.graph_break()
        x = x + 1
        if k > 0:
            queue.append(k // 2)
            queue.append(k // 3)
        out.append((k, queue[0] if queue else None, queue[-1] if queue else None))
    return x, out


def the_last_token(x: Tensor, n: int) -> Any:
    tokens = [1]
    for i in range(n):
        x = x + tokens[-1]
        stator.graph_break()
        tokens.append(i)
    return x, tokens


LOOPS = [
    results_by_number,
    results_by_name,
    what_was_seen,
    a_list_worked_off,
    a_tree_by_its_breadth,
    the_last_token,
]


@pytest.mark.parametrize("function", LOOPS, ids=lambda function: function.__name__)
def test_a_loop_is_as_in_python(function: Callable[..., Any]) -> None:
    compiled = stator.compile(function, backend="eager", recompile_limit=32)
    for n in (12, 5, 15):
        assert_same(function, compiled, lambda n=n: (torch.ones(2), n), calls=1)  # type: ignore[misc]


@pytest.mark.parametrize("function", LOOPS, ids=lambda function: function.__name__)
def test_a_longer_loop_has_no_more_entries(function: Callable[..., Any]) -> None:
    def entries(n: int) -> int:
        settings: Any = {"recompile_limit": 32, "isolate_recompiles": True}
        compiled = stator.compile(function, backend="eager", **settings)
        compiled(torch.ones(2), n)
        return int(compiled.report.entry_count)

    assert entries(30) == entries(15)


def written_then_read(x: Tensor, d: dict[Any, Any], k: int) -> Any:
    d[k] = x
    before = len(d)
    d[k + 1] = x * 2
    return d.get(1), before, list(d), d.pop(k)


def written_twice(x: Tensor, d: dict[Any, Any], k: int) -> Any:
    d[k], d[True], d[k] = x, x + 1, x + 2
    d[f"{k}"] = k
    d[k, "pair"] = k
    return d[1], [*d.items()]


def unhashable(x: Tensor, d: dict[Any, Any], k: int) -> Any:
    d[k] = x + 1
    try:
        d[[k]] = x
    except TypeError as error:
        return str(error), x + 1
    return None


def deleted_and_written(x: Tensor, d: dict[Any, Any], k: int) -> Any:
    d.pop(1, None)
    d[k] = 1
    d[1] = x
    del d[k]
    d[k + 2] = 3
    return x + 1


def a_key_of_data(x: Tensor, d: dict[Any, Any], k: int) -> Any:
    d[int(x.sum().item()) * k] = x * 2
    return x + 1, 4 in d


def in_a_set(x: Tensor, d: dict[Any, Any], k: int) -> Any:
    seen = d[0]
    seen.add(k)
    twice = k in seen
    seen.add(k + 1)
    seen.add("a")
    seen.discard(k + 1)
    return x + 1, twice, len(seen), sorted(seen, key=str)


@pytest.mark.parametrize("dynamic", [None, True])
@pytest.mark.parametrize(
    "function",
    [written_then_read, written_twice, unhashable, deleted_and_written, a_key_of_data, in_a_set],
)
def test_keys_nobody_looked_at(function: Callable[..., Any], dynamic: bool | None) -> None:
    compiled = stator.compile(function, backend="eager", dynamic=dynamic)
    for k in (4, 1, 7, 0, 4, 1):
        assert_same(function, compiled, functools.partial(_a_dict_and, k), calls=1)


def _a_dict_and(k: int) -> Any:
    return torch.ones(2), {0: {5}, 1: "one", 7: "seven"}, k


def test_an_existing_key_stays_the_object_it_is() -> None:
    def f(x: Tensor, d: dict[Any, Any], key: float) -> Tensor:
        d[key] = x
        return x + 1

    compiled = stator.compile(f, backend="eager")
    for key in (1.0, 2.0, 3.0):
        d: dict[Any, Any] = {1: 0, 2: 0}
        compiled(torch.ones(2), d, key)
        assert [*map(type, d)] == ([int, int] if key < 3 else [int, int, float])


def ends_of_all_kinds(x: Tensor, items: Any) -> Any:
    a, b = items.pop(), items[-1]
    items.append(a)
    c = items.pop()
    d = items[-2]
    e = items.popleft() if isinstance(items, collections.deque) else items.pop(0)
    items.append(b)
    return x + a, (a, b, c, d, e), items[-1], items[-2], bool(items)


def read_after_it(x: Tensor, items: Any) -> Any:
    last = items.pop()
    first = items.popleft() if isinstance(items, collections.deque) else items.pop(0)
    items.append(first)
    return x + len(items), last, list(items), first in items


def too_many_taken(x: Tensor, items: Any) -> Any:
    taken = []
    try:
        while True:
            taken.append(items.pop())
    except IndexError as error:
        return x + 1, taken, str(error)


def emptied(x: Tensor, items: Any) -> Any:
    taken = []
    items.append(x)
    while items:
        taken.append(items.popleft() if isinstance(items, collections.deque) else items.pop(0))
    return taken, not items


def broken_within(x: Tensor, items: Any) -> Any:
    def popped() -> Any:
        found = items.pop()
        stator.graph_break()
        return found

    return (
        x + sum(popped() for _ in range(2)),
        max([3, 1], key=lambda k: items.pop() * k),
        items[-1],
    )


def iterated_meanwhile(x: Tensor, items: Any) -> Any:
    found = []
    try:
        for item in items:
            found.append(item)
            items.pop()
    except RuntimeError as error:
        found.append(str(error))
    return x + 1, found


ENDS = [
    ends_of_all_kinds,
    read_after_it,
    too_many_taken,
    emptied,
    broken_within,
    iterated_meanwhile,
]


@pytest.mark.parametrize("kind", [list, collections.deque])
@pytest.mark.parametrize("function", ENDS, ids=lambda function: function.__name__)
def test_ends_of_a_list(function: Callable[..., Any], kind: Callable[..., Any]) -> None:
    compiled = stator.compile(function, backend="eager")
    for n in (6, 5, 9, 6):
        assert_same(function, compiled, lambda n=n: (torch.ones(2), kind(range(n))), calls=1)  # type: ignore[misc]


def test_what_is_taken_is_the_object_itself() -> None:
    def f(x: Tensor, items: list[Any]) -> Any:
        last = items.pop()
        items.append([x])
        last.append(1)
        return last, items[-1], items[-2]

    compiled = stator.compile(f, backend="eager")
    for n in (2, 3, 5):
        items: list[Any] = [[i] for i in range(n)]
        kept = list(items)
        last, new, second = compiled(torch.ones(2), items)
        assert last is kept[-1]
        assert last == [n - 1, 1]
        assert new is items[-1]
        assert second is items[-2] is kept[-2]
    assert compiled.report.entry_count <= 2


def test_a_list_too_short_is_another_entry() -> None:
    def f(x: Tensor, items: list[int]) -> Any:
        return x * items.pop() * items.pop()

    compiled = stator.compile(f, backend="eager")
    for n in (3, 2, 9):
        compiled(torch.ones(2), [2] * n)
    assert compiled.report.entry_count == 1
    with pytest.raises(IndexError, match="pop from empty list"):
        compiled(torch.ones(2), [2])


def test_one_list_under_two_names() -> None:
    def f(x: Tensor, a: list[Any], b: list[Any]) -> Any:
        taken = a.pop()
        b.append(x)
        return taken, b.pop(0), a[-1] is b[-1], len(a)

    compiled = stator.compile(f, backend="eager")
    for b in (SAME, [1, 2, 3], SAME):
        assert_same(f, compiled, lambda b=b: (torch.ones(2), SAME, b), calls=1)  # type: ignore[misc]


SAME = [1, 2, 3]
