"""Results that a program remembers: `functools.cache` over objects and tensors, tables keyed by
objects or pickles.

Each program runs plainly and compiled, each with a memory of its own; results, what the memory
holds afterwards and the number of graphs over a series of calls are compared.
"""

# mypy: ignore-errors

from __future__ import annotations

import functools
import pathlib
import pickle
import tempfile
from collections.abc import Callable
from typing import Any

import pytest
import stator
import torch
from torch import Tensor

from integration_tests.support.counting import Counting


class Thing:
    def __init__(self, size: int = 3) -> None:
        self.size = size


def run(make: Callable[[], Any], calls: list[Any]) -> int:
    """Compare a compiled program with the plain one, call by call; return the number of graphs."""
    counting = Counting()
    (plain, memory), (program, other_memory) = make(), make()
    compiled = stator.compile(program, backend=counting)
    for number, args in enumerate(calls):
        assert repr(compiled(*args)) == repr(plain(*args)), number
        assert memory() == other_memory(), number
    return counting.count


def cached(function: Callable[..., Any], **options: Any) -> tuple[Any, Callable[[], Any]]:
    made = functools.lru_cache(**{"maxsize": None, **options})(function)
    return made, made.cache_info


def cached_tensor() -> Any:
    double, info = cached(lambda t: t * 2)
    return lambda x: double(x) + double(x), info


def cached_size() -> Any:
    size, info = cached(lambda thing: thing.size)
    return lambda x, thing: x * size(thing), info


def cached_pair() -> Any:
    pair, info = cached(lambda thing, name: [name, thing.size])
    return lambda x, thing: (x + 1, pair(thing, "a"), pair(thing, name="a")), info


def cached_of_two() -> Any:
    pair, info = cached(lambda one, other: (one.size, other.size))
    return lambda x, one, other: (x * pair(one, other)[0], pair(other, one)), info


def bounded() -> Any:
    size, info = cached(lambda thing: thing.size, maxsize=2)
    return lambda x, thing: x * size(thing), info


def bounded_of_equal_hashes() -> Any:
    """-1 and -2 have one hash."""
    listed, info = cached(lambda n: [n], maxsize=4)
    listed(-1), listed(-2)
    return lambda x: (x + 1, listed(-2), listed(-1)), info


def cached_range() -> Any:
    indices, info = cached(torch.arange)
    return lambda x: x * indices(x.shape[0]), info


X = torch.linspace(-1.0, 1.0, 3)
THINGS = [Thing() for _ in range(6)]
SERIES = {
    "tensors": (cached_tensor, [(X + i,) for i in range(6)], 1),
    "objects": (cached_size, [(X, thing) for thing in THINGS], 1),
    "objects again": (cached_size, [(X, THINGS[i % 3]) for i in range(8)], 1),
    "an object with a name": (cached_pair, [(X, thing) for thing in THINGS], 1),
    "two objects": (cached_of_two, [(X, THINGS[i], THINGS[5 - i]) for i in range(6)], 1),
    "few places": (bounded, [(X, THINGS[i % 3]) for i in range(7)], 7),
    "equal hashes": (bounded_of_equal_hashes, [(X,)] * 4, 1),
    "sizes": (cached_range, [(torch.ones(size),) for size in range(3, 9)], 2),
}


@pytest.mark.parametrize("name", SERIES)
def test_cached_functions_of_fresh_arguments_are_compiled_once(name: str) -> None:
    make, calls, graphs = SERIES[name]
    assert run(make, calls) <= graphs


@functools.lru_cache(maxsize=8)
def listed(n: int) -> list[int]:
    return [n, n + 1]


def program_with_lists(x: Tensor) -> Any:
    return x + listed(3)[1] + listed(5)[0], listed(5)


def test_a_loaded_dump_reads_the_cache_as_it_is() -> None:
    listed(3), listed(5)
    compiled = stator.compile(program_with_lists, backend="eager")
    compiled(X)
    with tempfile.TemporaryDirectory() as folder:
        loaded = stator.load(stator.dump(compiled, pathlib.Path(folder) / "dump"))
    for _ in range(2):
        total, last = loaded(X)
        assert torch.equal(total, program_with_lists(X)[0])
        assert last is listed(5)
        listed.cache_clear()


def memo_of(key: Callable[..., Any]) -> Callable[[], Any]:
    def make() -> Any:
        memo: dict[Any, Any] = {}

        def program(x: Tensor, *args: Any) -> Any:
            place = key(x, *args)
            if place not in memo:
                memo[place] = 2 + len(memo)
            return x * memo[place]

        return program, lambda: [*memo.items()]

    return make


MEMOS = {
    "an object": (memo_of(lambda x, thing: thing), [(X, thing) for thing in THINGS]),
    "objects in a tuple": (
        memo_of(lambda x, thing: (thing, (3, thing), x.dtype)),
        [(X, thing) for thing in THINGS],
    ),
    "an object again": (
        memo_of(lambda x, thing: ("a", thing)),
        [(X, THINGS[i % 2]) for i in range(6)],
    ),
    "an item of an argument": (
        memo_of(lambda x, things: (things[0], things[1])),
        [(X, [THINGS[i], THINGS[i - 1]]) for i in range(4)],
    ),
}


@pytest.mark.parametrize("name", MEMOS)
def test_tables_keyed_by_fresh_objects(name: str) -> None:
    make, calls = MEMOS[name]
    assert run(make, calls) <= len(calls)


def test_a_table_that_is_not_filled_is_looked_up_in_one_graph() -> None:
    table = dict.fromkeys(THINGS[:2], 2.0)

    def make() -> Any:
        return (lambda x, thing: x * table.get((thing, 1), 3.0)), (lambda: None)

    assert run(make, [(X, thing) for thing in THINGS]) == 1


def test_all_of_a_table_after_a_look_up_by_object() -> None:
    table = {thing: index for index, thing in enumerate(THINGS)}

    def program(x: Tensor, thing: Any) -> Any:
        found = table[thing]
        return x + 1, found, [*table.values()], [key is thing for key in table]

    run(lambda: (program, lambda: None), [(X, thing) for thing in (*THINGS[:3], THINGS[0])])


def same_list(x: Tensor, k: int) -> bytes:
    same = [k]
    return pickle.dumps([same, same, {"a": same}])


def list_in_itself(x: Tensor, k: int) -> bytes:
    same: list[Any] = [k]
    same.append(same)
    return pickle.dumps(same)


PICKLED = {
    "a name": lambda x, k: pickle.dumps((k, "a")),
    "named arguments": lambda x, k: ("name", (), pickle.dumps({"left": k, "right": None})),
    "nested": lambda x, k: pickle.dumps([k, {"a": (1.5, [True])}, x.shape, x.dtype], 2),
    "the same list": same_list,
    "a list in itself": list_in_itself,
    "equal texts": lambda x, k: pickle.dumps(("ab", "ab", b"ab", b"ab", k)),
}


@pytest.mark.parametrize("name", PICKLED)
def test_tables_keyed_by_pickles(name: str) -> None:
    assert run(memo_of(PICKLED[name]), [(X, 1), (X, 1), (X, 2), (X, 1)]) <= 4
    stator.compile(memo_of(PICKLED[name])()[0], backend="eager", fullgraph=True)(X, 1)


def test_texts_that_may_be_one_object_are_pickled_natively() -> None:
    def program(x: Tensor, one: str, other: str) -> Any:
        return x + 1, pickle.dumps((one, other))

    same = "".join(["a", "b"])
    calls = [(X, same, same), (X, same, "".join(["a", "b"])), (X, same, "cd"), (X, same, same)]
    run(lambda: (program, lambda: None), calls)


def test_pickles_of_objects_run_their_methods() -> None:
    class Counted:
        count = 0

        def __reduce__(self) -> Any:
            Counted.count += 1
            return int, (3,)

    thing = Counted()
    compiled = stator.compile(lambda x: (x + 1, pickle.dumps(thing)), backend="eager")
    for number in range(3):
        compiled(X)
        assert Counted.count == number + 1
