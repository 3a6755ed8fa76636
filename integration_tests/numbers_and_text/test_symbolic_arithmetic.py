"""What random programs have found in arithmetic: large numbers, numbers of other classes, the
numbers of sizes."""

from __future__ import annotations

import enum
import operator
from typing import Any

import numpy as np
import pytest
import stator
import torch
from torch import Tensor

from integration_tests.support.oracle import assert_same

LARGE = """
n<<70 | (n<<70)%1000003 | (n<<63)//3 | n<<0 | 2<<n | n<<n | True<<n | (n*1.5)<<1 | n<<-1 | x.shape[0]<<64
1<<(n-6) | n<<200 | 2**n | (-3)**n | n**n
True**n | 2.0**n | 2**(n-8) | n**-n | n**70 | ((0,)*200)[n]+2**n | n.__lshift__(70)
"""


@pytest.mark.parametrize("first", [3, 70])
@pytest.mark.parametrize(
    "text", [text for line in LARGE.strip().split("\n") for text in line.split(" | ")]
)
def test_shifts_and_powers_of_symbolic_numbers_go_beyond_a_machine_word(
    text: str, first: int
) -> None:
    fn = eval(f"lambda x, n: (x + ({text}) % 5, {text})")
    numbers = iter((first, 71, 5, 72, 4))

    def call() -> tuple[Tensor, int]:
        number = next(numbers)
        return torch.ones(number, 2), number

    assert_same(fn, stator.compile(fn, backend="eager"), call, calls=5)


@pytest.mark.parametrize("by", [1, 62, 63, 100, 127, 128, 369])
def test_large_products_are_shifted_right_exactly(by: int) -> None:
    """After `bit_length` the product is a number that is known; by how far it is shifted may be one
    that is not."""
    numbers = iter((17611, 8271, 15455, 3))

    def fn(x: Tensor, n: int) -> Any:
        large = n * 10**107
        bits = large.bit_length()
        return (
            x + 1,
            bits,
            large >> by,
            -large >> by,
            large >> n % 400,
            large >> by >= 1,
            n.__rshift__(by),
        )

    assert_same(
        fn, stator.compile(fn, backend="eager"), lambda: (torch.ones(2), next(numbers)), calls=4
    )


@pytest.mark.parametrize("by", [2, 7, 87])
@pytest.mark.parametrize("late", [False, True])
def test_powers_of_a_number_that_a_comparison_made_known(by: int, late: bool) -> None:
    """mpmath's powers of 547."""
    numbers = iter((547, 3, 547, 8))

    def fn(x: Tensor, n: int) -> Any:
        before = n**by if late else None
        return (x, n**by, (-n) ** by, n**-by, n**0.5, before) if n == 547 else (x + n, before)

    assert_same(
        fn,
        stator.compile(fn, backend="eager", dynamic=True),
        lambda: (torch.ones(2), next(numbers)),
        calls=4,
    )


@pytest.mark.parametrize(
    "wanted",
    [
        "1 if u < 10**90 else 2",
        "1 if t * t > 10**200 else 3",
        "u % 3",
        "t * t % 3",
        "u",
        "-(n % 5 - 10**25) * (u - t)",
    ],
)
@pytest.mark.parametrize("as_size", [False, True])
def test_powers_beyond_a_word_are_decided_exactly(wanted: str, as_size: bool) -> None:
    """ShapeEnv takes them for infinity, and says NaN of a remainder; the exponential function of
    mpmath has many."""
    names: dict[str, Any] = {}
    used = "[7, 8, 9][v % 3]" if as_size else "v"
    text = f"""def fn(x, n):
        if n < 0 or n > 8:
            return x
        t = (10**25 * 2**(2*n + 13)) // 2**(n + 2)
        u = t * t // 10**20
        v = {wanted}
        return x + 1, {used}"""
    exec(text, names)
    numbers = iter((5, 6, 7, 15, 0))
    compiled = stator.compile(names["fn"], backend="eager", dynamic=True)
    assert_same(names["fn"], compiled, lambda: (torch.ones(2), next(numbers)), calls=5)


@pytest.mark.parametrize(
    "text", ["2**n > 100", "n * n > 10", "n**3 * x.shape[0] == 8", "2**n % 3", "n**n < 9"]
)
def test_powers_of_numbers_that_data_decides_are_refused_as_others_are(text: str) -> None:
    names: dict[str, Any] = {}
    exec(f"def fn(x):\n    n = x.sum().item()\n    return x + (1 if {text} else 2), 2**n", names)
    fn = names["fn"]
    values = iter((1, 4, 2))
    compiled = stator.compile(fn, backend="eager", options={"capture_data": True})
    assert_same(fn, compiled, lambda: (torch.full((2,), next(values)),), calls=3)


@pytest.mark.parametrize("mode", [False, "operations"])
@pytest.mark.parametrize(
    "text",
    [
        *(
            "next(itertools.count(n))",
            "list(itertools.islice(itertools.count(n, n), 2))",
            "list(zip(itertools.count(n), 'ab'))",
        ),
        *(
            "next(itertools.count(n, 2))",
            "next(itertools.count(n, 1.0))",
            "next(itertools.count(Rank.ONE))",
        ),
    ],
)
def test_a_count_from_a_bool_gives_ints(text: str, mode: Any) -> None:
    fn = eval(f"lambda x, n: (x + 1, {text})")
    numbers = iter((3, True, False, Rank.TWO))
    compiled = stator.compile(fn, backend="eager", options={"break_everywhere": mode})
    assert_same(fn, compiled, lambda: (torch.ones(2), next(numbers)), calls=4)


class Rank(enum.IntEnum):
    ONE = 1
    TWO = 2


@pytest.mark.parametrize("text", ["~f", "~(f > 2)", "~n", "-f"])
def test_a_symbolic_float_cannot_be_inverted(text: str) -> None:
    fn = eval(f"lambda x, f, n: (x + 1, {text})")
    numbers = iter(((2.5, 3), (3.5, 4), (4.5, 5)))
    assert_same(fn, stator.compile(fn, backend="eager"), lambda: (torch.ones(2), *next(numbers)))


@pytest.mark.parametrize(
    "text",
    [
        *(
            "np.int64(1) == range(3)",
            "(range(3), 1) < (np.int64(1), 2)",
            "np.int64(1) in [range(3)]",
        ),
        *(
            "[range(3)].index(np.int64(1))",
            "not (np.int64(1) == range(3))",
            "range(2) + np.int64(1)",
            "bool(np.int64(0) == range(1))",
        ),
    ],
)
def test_a_number_of_numpy_beside_a_range_gives_a_new_array_on_each_call(text: str) -> None:
    fn = eval(f"lambda x: (x + 1, {text})")
    compiled = stator.compile(fn, backend="eager")
    assert_same(fn, compiled, lambda: (torch.ones(2),))


def test_an_array_made_of_constants_is_not_shared_between_calls() -> None:
    compiled = stator.compile(lambda x: (x + 1, np.int64(1) + range(2))[1], backend="eager")  # type: ignore[operator]
    compiled(torch.ones(2))[:] = 7
    assert compiled(torch.ones(2)).tolist() == [1, 2]


class Third:
    def __index__(self) -> int:
        return 3


@pytest.mark.parametrize("mode", [False, 3])
@pytest.mark.parametrize(
    "item", [2.5, True, None, "a", -3, 1 << 70, Rank.TWO, Third(), np.int64(3), np.bool_(True)]
)
@pytest.mark.parametrize(
    "text",
    [
        *(
            "torch.Size([v, 2])",
            "torch.Size([v]) * 2",
            "torch.Size([x.shape[0], v])",
            "torch.Size([x.sum() > 0])",
        ),
        *(
            "(v,) + x.shape",
            "x.shape + (v,)",
            "x.shape.__radd__((v,))",
            "x.max(0) + x.shape",
            "x.shape + (x.sum(),)",
        ),
    ],
)
def test_the_items_of_a_size_are_ints(text: str, item: Any, mode: Any) -> None:
    def f(x: Tensor, v: Any) -> Any:
        try:
            size = make(x, v)
            return x + 1, [(each, type(each)) for each in size]
        except TypeError as error:
            return error.args

    make = eval(f"lambda x, v: {text}")
    sizes = iter((2, 3, 4))
    compiled = stator.compile(f, backend="eager", options={"break_everywhere": mode})
    assert_same(f, compiled, lambda: (torch.ones(next(sizes)), item))


@pytest.mark.parametrize(
    "text", ["str(size)", "f'{[size]}'", "(size, 2).__repr__()", "size.numel()"]
)
def test_a_size_counts_in_64_bits_where_it_is_written_or_multiplied(text: str) -> None:
    asked = eval(f"lambda size: {text}")

    def f(x: Tensor, n: int) -> Any:
        try:
            return x + 1, asked(torch.Size([n, 2, x.shape[0]]))
        except ValueError as error:
            return error.args

    numbers = iter((1 << 70, -(1 << 63), (1 << 62) + 1, (1 << 63) - 1, 4, 5))
    compiled = stator.compile(f, backend="eager", dynamic=False)
    assert_same(f, compiled, lambda: (torch.ones(2), next(numbers)), calls=6)


BEYOND: dict[str, Any] = {
    "x + n": lambda x, n: x + n,
    "n * x": lambda x, n: n * x,
    "x == n": lambda x, n: x == n,
    "torch.add": torch.add,
    "x.clamp(max=n)": lambda x, n: x.clamp(max=n),
    "x[0] = n": lambda x, n: x.__setitem__(0, n),
}


@pytest.mark.parametrize(
    "number", [np.uint64(2**63), np.uint64(2**64 - 1), np.uint64(2**63 - 1), np.int64(-(2**63))]
)
@pytest.mark.parametrize("dtype", [torch.float32, torch.int64])
@pytest.mark.parametrize("name", BEYOND)
def test_numbers_of_numpy_beyond_64_bits_are_no_numbers_to_torch(
    name: str, dtype: torch.dtype, number: Any
) -> None:
    def f(x: Tensor) -> Any:
        try:
            found = BEYOND[name](x, number)
        except (TypeError, RuntimeError, OverflowError) as error:
            return x, type(error)
        return x, found, type(found)

    assert_same(f, stator.compile(f, backend="eager"), lambda: (torch.ones(3, dtype=dtype),), 2)


MASKS = (0, 1, 3, 7, 255, -1, -2, -8, -64, 5, 6, -3, 2**40 - 1, -(2**40))


@pytest.mark.parametrize("symbol", "&|^")
@pytest.mark.parametrize("mask", MASKS)
def test_bits_of_symbolic_numbers_are_compared(symbol: str, mask: int) -> None:
    """torch does not know that they are integers, nor when they are negative."""
    operate: Any = {"&": operator.and_, "|": operator.or_, "^": operator.xor}[symbol]
    numbers = iter((5, -5, 7, -8, 0, 100, -129, 2**41 + 5))

    def fn(x: Tensor, n: int) -> Any:
        bits, found = operate(n, mask), []
        if bits + 2 > bits + 3:
            found.append("larger")
        if bits < 0:
            found.append("negative")
        if operate(mask, n) != bits or bits == n:
            found.append("equal")
        if operate(n, x.shape[0] - 2) < 0:
            found.append("beside a size")
        return x * 2, bits, found, max(3 + bits, 2 + bits)

    compiled = stator.compile(fn, backend="eager", dynamic=True)
    assert_same(fn, compiled, lambda: (torch.ones(1), next(numbers)), calls=8)


def test_sizes_rounded_by_a_mask_stay_symbolic() -> None:
    sizes = iter((3, 9, 16, 17, 31, 8))

    def fn(x: Tensor) -> Any:
        rounded = (x.shape[0] + 7) & ~7
        return torch.nn.functional.pad(x, (0, rounded - x.shape[0])), rounded, x.shape[0] & 3

    compiled = stator.compile(fn, backend="eager", dynamic=True)
    assert_same(fn, compiled, lambda: (torch.ones(next(sizes)),), calls=6)
    assert len(compiled.report.entries) == 1


def test_results_that_are_operands_stay_the_same_object_over_breaks() -> None:
    def fn(x: Tensor, f: float, s: str) -> Any:
        level, numbers, nothing = 1.5, (1.5, 2.5), tuple(x.shape[:0])
        stator.graph_break()
        most, stripped, longer, last = max(level, 1), s.strip(), numbers + nothing, +f
        stator.graph_break()
        return (
            x + 1,
            most is level,
            stripped is s,
            longer is numbers,
            nothing + numbers is numbers,
            last is f,
        )

    compiled = stator.compile(fn, backend="eager")
    assert_same(fn, compiled, lambda: (torch.ones(1), 3.5, "word"), calls=3)


REMAINDERS = """
max(0, f%1) | max(0.0, f%1.0) | f%1 > 0 | f%1 == 0 | min(1, f%1), f//1 | max(0, divmod(f, 1)[1]) | max(0, f.__mod__(1))
max(0, operator.mod(f, 1)) | 2.5%(f or 1) > 1 | f%f == 0 | f%True > 0 | (f+1)%1 > 0.3 | f%x.shape[0] > 0 | -f%1 > 0
"""


@pytest.mark.parametrize(
    "text", [text for line in REMAINDERS.strip().split("\n") for text in line.split(" | ")]
)
def test_remainders_of_floats_are_those_of_python(text: str) -> None:
    """Torch's symbolic remainder is one of ints: of 1 it is 0."""
    fn = eval(f"lambda x, f: (x + 1, {text})", {"operator": operator})
    numbers = iter((2.5, 2.25, 3.0, 0.7, -0.3, 4))

    compiled = stator.compile(fn, backend="eager")
    assert_same(fn, compiled, lambda: (torch.ones(1), next(numbers)), calls=6)


INDEXED = """
[*np.arange(n)] | list(np.zeros(n)) | [q for q in np.arange(n%7%5)] | tuple(np.ones((n, 2))) | 3 in list(np.arange(n))
element(np.arange(n), 5) | element(np.arange(n), -5) | element(np.zeros((n, 2)), 5) | element(np.zeros((2, n)), 2)
"""


def element(array: Any, index: int) -> Any:
    try:
        return array[index]
    except IndexError as error:
        return str(error)


@pytest.mark.parametrize("sizes", [(5, 10, 15, 3, 8, 4, 6), (0, 3, 5, 9, 12, 1, 2)])
@pytest.mark.parametrize(
    "text", [text for line in INDEXED.strip().split("\n") for text in line.split(" | ")]
)
def test_arrays_of_symbolic_sizes_end_where_they_end(text: str, sizes: tuple[int, ...]) -> None:
    """That an index is past the end is a fact about the size."""
    fn = eval(f"lambda x, n: (x + 1, {text})", {"np": np, "element": element})
    numbers = iter(sizes)
    assert_same(
        fn,
        stator.compile(fn, backend="eager"),
        lambda: (torch.ones(1), next(numbers)),
        calls=len(sizes),
    )


class Filled:
    def __rmod__(self, other: Any) -> Any:
        return "filled", other


@pytest.mark.parametrize(
    "text", ["'%s and %d' % (n, n)", "'%.2f' % f", "f % Filled()", "n % Filled()", "b'%d' % n"]
)
def test_a_remainder_is_one_of_numbers_alone(text: str) -> None:
    """What `%` means else is as it was: an object is asked, with the number as it is."""
    fn = eval(f"lambda x, n, f: (x + n + f, {text})", {"Filled": Filled})
    numbers = iter(range(3, 9))
    compiled = stator.compile(fn, backend="eager")
    assert_same(fn, compiled, lambda: (torch.ones(1), (n := next(numbers)), n + 0.25), calls=4)
    if "Filled" in text:
        assert len(compiled.report.entries) == 2
