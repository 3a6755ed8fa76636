"""`functools.lru_cache` over sizes that change: what a cache holds is read like any other object,
never assumed.

Each program runs with the sizes of CALLS in turn, plainly and compiled, each on a cache of its own;
the cache's counts, its contents, the identity of results and what the body noticed are compared
after each call.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import warnings
from collections.abc import Callable
from typing import Any

import pytest
import stator
import torch
from stator_guards import RecompileLimitWarning
from torch import Tensor

from integration_tests.support.oracle import assert_same

SIZES = (2, 2, 3, 4, 3, 5, 2, 6, 7)
STATE: dict[str, Any] = {}
Body = Callable[..., Any]


def parts(shape: Any, *more: Any) -> Any:
    """What a library computes from a shape: nested, with and without the sizes in it."""
    STATE["log"].append((tuple(shape), *more))
    first, *others = shape
    return [first, *others], (1, 0), {1: first * 2}, STATE["base"], None


def row(x: Tensor, cached: Any) -> Any:
    found, order, grown, _, _ = cached(x.shape)
    return x.reshape(found).permute(order), x.new_ones(grown[1])


def row_and_column(x: Tensor, cached: Any) -> Any:
    first = cached(x.shape)[0]
    second = cached((first[0], 3), "b")[2]
    return x.reshape(first), x.new_zeros(second[1]), cached(x.shape) is cached(x.shape)


def result_that_leaves(x: Tensor, cached: Any) -> Any:
    found = cached(x.shape)
    found[0].append(1)
    return x + 1, found[0], found


def after_random_numbers(x: Tensor, cached: Any) -> Any:
    y = torch.rand_like(x) + x
    return y.reshape(cached(y.shape)[0])


def after_a_write(x: Tensor, cached: Any) -> Any:
    STATE["base"] += 1
    return x + cached(x.shape)[3]


def of_a_computed_size(x: Tensor, cached: Any) -> Any:
    return x.new_ones(cached((x.shape[0] * 2 + 1, 3))[0])


def number(n: int) -> int:
    STATE["log"].append(n)
    return n * int(STATE["base"])


def refuses_some(n: int) -> int:
    STATE["log"].append(n)
    if n % 2:
        raise ValueError(n)
    return n


def of_a_number(x: Tensor, cached: Any) -> Any:
    return x.new_ones(cached(x.size(0))) * 2


def that_raises(x: Tensor, cached: Any) -> Any:
    try:
        return x * cached(x.size(0))
    except ValueError as error:
        return x, str(error)


PROGRAMS: dict[str, tuple[Body, Body]] = {
    fn.__name__: (fn, parts)
    for fn in (
        row,
        row_and_column,
        result_that_leaves,
        after_random_numbers,
        after_a_write,
        of_a_computed_size,
    )
}
PROGRAMS |= {"of_a_number": (of_a_number, number), "that_raises": (that_raises, refuses_some)}
CACHES = {"unbounded": None, "roomy": 128, "small": 2, "of one": 1, "typed": 64}


def between(at: int, cached: Any, base: int) -> None:
    """What else happens to a cache: it is emptied, asked by others, its function's surroundings
    change."""
    if at == 3:
        cached.cache_clear()
    if at in (4, 6):
        STATE["base"] = base + at
    if at == 7:
        cached.cache_clear()
        with contextlib.suppress(ValueError):
            cached((7, 3)) if cached.__wrapped__ is parts else cached(7)


def history(fn: Body, cached: Any) -> list[Any]:
    STATE.update(base=1, log=[])
    seen = []
    for at, size in enumerate(SIZES):
        torch.manual_seed(at)
        between(at, cached, 1)
        seen.append((fn(torch.ones(size, 3), cached), list(STATE["log"]), cached.cache_info()))
    return seen


@pytest.mark.filterwarnings("ignore::stator_guards.RecompileLimitWarning")
@pytest.mark.parametrize("kind", CACHES)
@pytest.mark.parametrize("name", PROGRAMS)
def test_counts_results_and_effects_are_those_of_plain_python(name: str, kind: str) -> None:
    fn, body = PROGRAMS[name]
    caches = [functools.lru_cache(CACHES[kind], typed=kind == "typed")(body) for _ in range(2)]
    expected = history(fn, caches[0])
    found = history(stator.compile(fn, backend="eager"), caches[1])
    for at, (one, other) in enumerate(zip(expected, found, strict=True)):
        assert_equal(one, other, f"call {at + 1}")


def assert_equal(one: Any, other: Any, where: str) -> None:
    assert type(one) is type(other), where
    if isinstance(one, Tensor):
        assert torch.equal(one, other), where
    elif isinstance(one, tuple | list):
        assert len(one) == len(other), where
        for i, (left, right) in enumerate(zip(one, other, strict=True)):
            assert_equal(left, right, f"{where}[{i}]")
    else:
        assert one == other, where


def quiet(shape: Any) -> Any:
    first, *others = shape
    return [first, *others], (1, 0), {1: first * 2}


def refusing(shape: Any) -> Any:
    if len(shape) > 1:
        raise ValueError(shape)
    return 1


def refused(x: Tensor, cached: Any) -> Any:
    try:
        return x * cached(x.shape)
    except ValueError as error:
        return x, str(error)


def shaped(x: Tensor, cached: Any) -> Any:
    found, order, grown = cached(x.shape)
    again, _, _ = cached((found[0], 2))
    return x.reshape(found).permute(order), x.new_ones(grown[1]), x.new_zeros(again)


def shaped_by_what_is_computed(x: Tensor, cached: Any) -> Any:
    found, _, grown = cached((x.shape[0] * 2 + 1, x.shape[0] // 2))
    return x.new_ones(found), x.new_ones(grown[1]), cached((x.shape[0] * 3, 2))[0]


@pytest.mark.parametrize("fn", [shaped, shaped_by_what_is_computed])
@pytest.mark.parametrize("fullgraph", [False, True])
@pytest.mark.parametrize("size", [None, 64])
def test_a_cold_cache_and_new_sizes_cost_no_graph(
    size: int | None, fullgraph: bool, fn: Body
) -> None:
    caches = [functools.lru_cache(size)(quiet) for _ in range(2)]
    compiled: Any = stator.compile(fn, backend="eager", fullgraph=fullgraph)
    for rows in range(4, 14):
        x = torch.ones(rows, 3)
        assert_equal(fn(x, caches[0]), compiled(x, caches[1]), f"{rows} rows")
        assert caches[0].cache_info() == caches[1].cache_info()
    assert len(compiled.report.entries) == 2
    assert not compiled.report.breaks


def test_a_function_that_raises_is_called_once() -> None:
    caches = [functools.lru_cache(refusing) for _ in range(2)]
    compiled = stator.compile(refused, backend="eager")
    for rows in (2, 2, 3, 4):
        x = torch.ones(rows, 3)
        assert_equal(refused(x, caches[0]), compiled(x, caches[1]), f"{rows} rows")
        assert caches[0].cache_info() == caches[1].cache_info()


def test_a_function_that_raises_for_a_guard_is_not_called_again() -> None:
    log: list[int] = []
    STATE["log"] = log
    cached = functools.lru_cache(refuses_some)
    compiled = stator.compile(
        lambda x: x.new_ones(cached(x.size(0))), backend="eager", fullgraph=True, dynamic=True
    )
    for rows in (2, 4, 6):
        compiled(torch.ones(rows))
    for rows in (3, 3):
        with pytest.raises(stator.Unsupported, match="raised ValueError"):
            compiled(torch.ones(rows))
    compiled(torch.ones(4))
    assert log == [2, 4, 6, 3, 3]
    assert len(compiled.report.entries) == 1


def test_one_cache_for_two_compiled_functions() -> None:
    """A call made ahead for one is not left out by the other."""
    caches = [functools.lru_cache(quiet) for _ in range(2)]
    first = stator.compile(shaped, backend="eager")
    second = stator.compile(row_of_quiet, backend="eager")
    for rows in (2, 3, 4, 5, 4, 6):
        x = torch.ones(rows, 3)
        for fn, compiled in ((shaped, first), (row_of_quiet, second)):
            assert_equal(fn(x, caches[0]), compiled(x, caches[1]), f"{rows} rows")
            assert caches[0].cache_info() == caches[1].cache_info()


def row_of_quiet(x: Tensor, cached: Any) -> Any:
    return x.new_ones(cached((x.size(0), 2))[0]), cached(x.shape)[0] is cached(x.shape)[0]


def after_dropout(x: Tensor, cached: Any) -> Any:
    for _ in range(3):
        x = torch.nn.functional.dropout(x, 0.5).add_(1)
        x = x.reshape(cached(x.shape)[0]) + cached((x.shape[1], x.shape[0]))[0][0]
    return x


FACTORS = {"one": 1, "two": 2, "three": 3}


def between_breaks(x: Tensor, cached: Any) -> Any:
    for factor in FACTORS.values():
        x = x * cached((factor, x.shape[0]))[0][0]
        stator.graph_break()
        x = x + cached((x.shape[1], factor))[0][0]
    return x


def moving(shape: Any) -> Any:
    return next(STATE["iterator"]) + shape[0]


def moved_here_and_there(x: Tensor, cached: Any) -> Any:
    return x + next(STATE["iterator"]) + cached(x.shape) + next(STATE["iterator"])


@pytest.mark.parametrize("fullgraph", [False, True])
def test_a_cold_cache_behind_an_iterator_that_moved(fullgraph: bool) -> None:
    found = []
    for compiled in (
        moved_here_and_there,
        stator.compile(moved_here_and_there, backend="eager", fullgraph=fullgraph),
    ):
        STATE["iterator"] = iter(range(100))
        cached = functools.lru_cache(moving)
        with contextlib.suppress(stator.Unsupported):
            found.append([compiled(torch.ones(rows, 3), cached) for rows in (2, 2, 3, 4)])
    assert fullgraph or len(found) == 2
    assert_equal(found[0], found[-1], "all calls")


def drawing(shape: Any) -> Any:
    return torch.rand(3) if shape[0] % 2 else torch.zeros(3)


def drawn_after_dropout(x: Tensor, cached: Any) -> Any:
    return torch.nn.functional.dropout(x, 0.5) + cached(x.shape)


def seen_after_a_write(x: Tensor, cached: Any) -> Any:
    x.add_(1)
    return cached(x, 2) + 1


def times(x: Tensor, n: int) -> Any:
    return x * n


@pytest.mark.parametrize(
    ("fn", "inside", "entries"),
    [
        (after_dropout, quiet, 2),
        (between_breaks, quiet, 7),
        (drawn_after_dropout, drawing, None),
        (seen_after_a_write, times, None),
    ],
)
def test_a_cold_cache_behind_random_numbers_and_writes(
    fn: Body, inside: Body, entries: int | None
) -> None:
    """What computes from sizes alone is called ahead; what draws, or sees a tensor, has its
    turn."""
    caches = [functools.lru_cache(inside) for _ in range(2)]
    compiled: Any = stator.compile(fn, backend="eager")
    for rows in (4, 4, 5, 6, 7, 8, 7, 9):
        found = []
        for call, cached in ((fn, caches[0]), (compiled, caches[1])):
            torch.manual_seed(rows)
            found.append((call(torch.ones(rows, 3), cached), torch.rand(1)))
        assert_equal(found[0], found[1], f"{rows} rows")
        assert caches[0].cache_info() == caches[1].cache_info()
    assert entries in (None, len(compiled.report.entries))


@pytest.mark.parametrize(
    "values", [(1, 2, 3, 4), (1.5, 2.5, 3.5, 4.5), (*map(torch.tensor, (1, 2, 3, 4)),)], ids=repr
)
def test_what_a_body_called_ahead_has_read_is_read_outside_as_well(values: Any) -> None:
    def f(x: Tensor, holder: dict[str, Any]) -> Any:
        largest = max([1, 2], key=functools.lru_cache(lambda a: a * holder["value"]))
        holder["value"] += x.size(0)
        return x * holder["value"], largest

    given = iter(values)
    assert_same(
        f,
        stator.compile(f, backend="eager"),
        lambda: (torch.ones(3), {"value": next(given)}),
        calls=4,
    )


def with_calls_of_others() -> tuple[Callable[..., Any], Callable[[], list[Any]]]:
    @functools.cache
    def inner(n: int, more: int = 1) -> int:
        return n * 3 + more

    @functools.cache
    def outer(n: int) -> int:
        return inner(abs(n)) + inner(abs(n) + 1, more=2) + inner(abs(n))

    @functools.cache
    def fibonacci(n: int) -> int:
        return n if n < 2 else fibonacci(n - 1) + fibonacci(n - 2)

    def f(x: Tensor, n: int) -> Any:
        return x + outer(n) + fibonacci(abs(n) * 5), outer(n)

    return f, lambda: [tuple(each.cache_info()) for each in (inner, outer, fibonacci)]


def test_calls_within_a_cached_function_count_as_they_do_plainly() -> None:
    (plain, counted), (fn, ours) = with_calls_of_others(), with_calls_of_others()
    compiled = stator.compile(fn, backend="eager")
    for n in (3, -4, 5, 3, -4, 7, 5, 12, 3):
        expected, found = plain(torch.ones(2), n), compiled(torch.ones(2), n)
        assert torch.equal(expected[0], found[0])
        assert expected[1] == found[1]
        assert ours() == counted()


def test_a_call_within_that_raises_does_so_in_its_place() -> None:
    @functools.lru_cache
    def inner(n: int) -> int:
        if n > 3:
            raise ValueError(n)
        return n

    @functools.lru_cache
    def outer(n: int) -> int:
        return inner(n + 1) + inner(n)

    def f(x: Tensor, n: int) -> Any:
        try:
            return x * outer(n)
        except ValueError as error:
            return x + error.args[0]

    compiled = stator.compile(f, backend="eager")
    for n in (1, 3, 2, 3, 0):
        assert torch.equal(compiled(torch.ones(2), n), f(torch.ones(2), n))


def past_the_limit(inner: Any, outer: Any) -> tuple[Body, list[int], int]:
    """The guard makes the call; what it gives is another number, and no further version may be
    made."""
    return lambda x, n: x * outer(n), [1, 2, 3, 4, 2, 5], 2


def over_a_full_cache(inner: Any, outer: Any) -> tuple[Body, list[int], int]:
    """What the call of before keeps may be thrown out by the calls within."""
    return lambda x, n: x * inner(n) * outer(x.size(0)), [1, 5, 2, 4, 4, 3], 8


def a_call_by_a_guard_and_one_that_finds_nothing(
    inner: Any, outer: Any
) -> tuple[Body, list[int], int]:
    return lambda x, n: x * outer(n) * outer(n + 1) * inner(x.size(0)), [1, 6, 2, 6, 9, 4], 8


@pytest.mark.parametrize("sizes", [*itertools.product([None, 2, 3], repeat=2)], ids=str)
@pytest.mark.parametrize(
    "program", [past_the_limit, over_a_full_cache, a_call_by_a_guard_and_one_that_finds_nothing]
)
def test_one_cached_function_within_another(
    program: Callable[..., Any], sizes: tuple[int | None, int | None]
) -> None:
    @functools.lru_cache(maxsize=sizes[0])
    def inner(n: int) -> int:
        return n + 1

    @functools.lru_cache(maxsize=sizes[1])
    def outer(n: int) -> int:
        return int(inner(n // 2) * 2 + inner(n % 3))

    fn, numbers, limit = program(inner, outer)

    def outcomes(fn: Body) -> list[Any]:
        inner.cache_clear()
        outer.cache_clear()
        found = [
            (fn(torch.ones(n % 4 + 1), n).tolist(), inner.cache_info(), outer.cache_info())
            for n in numbers
        ]
        return found

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RecompileLimitWarning)
        assert outcomes(stator.compile(fn, backend="eager", recompile_limit=limit)) == outcomes(fn)


def after_a_constant(inner: Any, outer: Any) -> tuple[Body, list[int], int]:
    return lambda x, n: x * inner(1) * outer(n), [2, 3, 4, 5, 6, 3, 2], 8


def after_the_same_number(inner: Any, outer: Any) -> tuple[Body, list[int], int]:
    return lambda x, n: x * inner(n) * outer(n), [2, 3, 4, 5, 6, 3, 2], 8


def after_two_calls(inner: Any, outer: Any) -> tuple[Body, list[int], int]:
    return lambda x, n: x * inner(1) * inner(1) * inner(0) * outer(n), [2, 3, 4, 5, 6, 3, 2], 8


@pytest.mark.parametrize("sizes", [*itertools.product([None, 1, 2, 40], [None, 3])], ids=str)
@pytest.mark.parametrize(
    "program", [over_a_full_cache, after_a_constant, after_the_same_number, after_two_calls]
)
def test_what_a_guard_calls_comes_after_the_calls_of_before(
    program: Any, sizes: tuple[int | None, int | None]
) -> None:
    """Of one graph nothing is a reason to break, so a guard may call what has other results thrown
    out."""
    log: list[int] = []

    @functools.lru_cache(maxsize=sizes[0])
    def inner(n: int) -> int:
        log.append(n)
        return n + 1

    @functools.lru_cache(maxsize=sizes[1])
    def outer(n: int) -> int:
        return int(inner(n // 2) * 2 + inner(n % 3))

    fn, numbers, _ = program(inner, outer)

    def outcomes(fn: Body) -> list[Any]:
        found: list[Any] = []
        for cached in (inner, outer):
            cached.cache_clear()
        for n in (0, 1):
            inner(n)
        log.clear()
        for n in numbers:
            found.append(
                (fn(torch.ones(2), n).tolist(), inner.cache_info(), outer.cache_info(), [*log])
            )
        for n in range(100, 140 - inner.cache_info().currsize):
            inner(n)
        return [found, [inner(1), inner(0), *log]]

    compiled = stator.compile(fn, backend="eager", fullgraph=True, recompile_limit=20)
    assert outcomes(compiled) == outcomes(fn)


@pytest.mark.parametrize("bound", [None, 1, 2, 16])
@pytest.mark.parametrize("constant", [True, False])
def test_results_that_were_thrown_out_and_made_again(bound: int | None, constant: bool) -> None:
    """An equal result is another object: the cache may have been emptied, or its record used
    again."""

    @functools.lru_cache(maxsize=bound)
    def cached(n: Any) -> list[Any]:
        return [n]

    key = object()

    def use(x: Tensor, n: Any) -> Any:
        found = cached(7 if constant else n)
        return x + 1, found, len(found)

    def emptied() -> None:
        cached.cache_clear()
        for n in (7, key):
            cached(n)

    def pushed_out() -> None:
        for n in (1, 2, 7, key):
            cached(n)

    compiled = stator.compile(use, backend="eager", recompile_limit=20)
    for change in (
        emptied,
        list,
        list,
        emptied,
        list,
        pushed_out,
        pushed_out,
        list,
        emptied,
        emptied,
        list,
    ):
        change()
        kept = cached(7 if constant else key)
        before = cached.cache_info()
        result = compiled(torch.ones(2), key)
        after = cached.cache_info()
        assert (after.hits + after.misses) - (before.hits + before.misses) == 1
        assert result[1] is kept


@pytest.mark.parametrize("bound", [None, 2])
def test_calls_with_constants_leave_hits_and_order_as_they_do_plainly(bound: int | None) -> None:
    """Two caches are called in turns; the call used least lately is the first to be thrown out."""

    @functools.lru_cache(maxsize=bound)
    def split(text: str, *, at: str = ",") -> tuple[str, ...]:
        return tuple(text.split(at))

    @functools.lru_cache(maxsize=bound)
    def scale(power: int) -> float:
        return 2.0**power

    def fn(x: Tensor) -> Tensor:
        for _ in range(2):
            x = x * len(split("a,b")) * scale(1)
            x = x * len(split("a-b-c", at="-")) * scale(2)
        return x * len(split("a,b")) * scale(1)

    def outcomes(called: Callable[..., Any]) -> list[Any]:
        for cached in (split, scale):
            cached.cache_clear()
        found: list[Any] = []
        for _ in range(3):
            result = called(torch.ones(2)).tolist()
            found.append((result, split.cache_info(), scale.cache_info()))
        split("new")
        scale(9)
        split("a,b")
        scale(1)
        return [*found, split.cache_info(), scale.cache_info()]

    compiled = stator.compile(fn, backend="eager", fullgraph=True)
    assert outcomes(compiled) == outcomes(fn)
    assert outcomes(compiled) == outcomes(fn)


class Width:
    def __init__(self, rows: int) -> None:
        self.rows = rows


WIDTHS = {"narrow": Width(2), "wide": Width(5)}


def rows_of(*parts: Any) -> int:
    STATE["log"].append(parts)
    width = next(part for part in _flattened(parts) if isinstance(part, Width))
    return width.rows


def _flattened(parts: Any) -> Any:
    for part in parts:
        yield from _flattened(part) if isinstance(part, tuple) else (part,)


GIVEN: dict[str, Callable[[Tensor, Width], tuple[Any, ...]]] = {
    "an object": lambda x, width: (width,),
    "a tuple of objects": lambda x, width: ((width, "b"),),
    "a tuple in a tuple": lambda x, width: (((1, width), None),),
    "an object beside a size": lambda x, width: ((x.shape[0], width),),
    "an object of a global": lambda x, width: ((WIDTHS["wide"], 3),),
    "a class and a function": lambda x, width: ((Width, rows_of, width),),
}


@pytest.mark.parametrize("make", GIVEN.values(), ids=GIVEN)
def test_a_cached_function_that_is_given_tuples_of_objects(make: Callable[..., Any]) -> None:
    caches = [functools.lru_cache(rows_of) for _ in range(2)]

    def program(x: Tensor, width: Width, cached: Any) -> Any:
        return x.new_ones(cached(*make(x, width))), cached(*make(x, width))

    compiled = stator.compile(program, backend="eager")
    for rows, name in ((2, "narrow"), (2, "narrow"), (3, "wide"), (2, "narrow"), (4, "wide")):
        found = []
        for call, cached in ((program, caches[0]), (compiled, caches[1])):
            STATE["log"] = []
            found.append((call(torch.ones(rows, 3), WIDTHS[name], cached), STATE["log"]))
        assert_equal(found[0], found[1], f"{rows} rows, {name}")
        assert caches[0].cache_info() == caches[1].cache_info()


def test_a_tuple_of_objects_is_no_break() -> None:
    cached = functools.lru_cache(lambda parts: len(parts) + 1)

    def program(x: Tensor, width: Width) -> Any:
        return x * cached((width, Width, 3))

    compiled = stator.compile(program, backend="eager", fullgraph=True)
    assert_same(program, compiled, lambda: (torch.ones(2), WIDTHS["wide"]))
