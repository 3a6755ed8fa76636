"""Sizes and numbers that change between calls, and those that data decides: plain Python is the
oracle throughout."""

from __future__ import annotations

import itertools
import math
import operator
import types
from collections.abc import Callable
from typing import Any

import pytest
import stator
import torch
from torch.utils.checkpoint import checkpoint

from integration_tests.guards_and_recompiles import asserting
from integration_tests.support.counting import Counting
from integration_tests.support.oracle import assert_same

Function = Callable[..., Any]


def numbered(*shape: int) -> torch.Tensor:
    return torch.arange(1.0, 1.0 + math.prod(shape)).reshape(shape)


def vectors(*sizes: int) -> list[tuple[Any, ...]]:
    return [(numbered(size),) for size in sizes]


def counts(
    fn: Function, calls: list[tuple[Any, ...]], relies: bool = False, **options: Any
) -> list[int]:
    """Compare every call with plain Python; how many graphs there were after each. A graph that
    ``relies`` on what data was when it was traced checks that, and raises where it is no longer
    so."""
    backend, seen = Counting(), []
    compiled = stator.compile(fn, backend=backend, **options)
    arguments = itertools.chain(calls)
    for _ in calls:
        assert_same(fn, compiled, lambda: next(arguments), calls=1, graphs_may_raise=relies)
        seen.append(backend.count)
    return seen


# -- every operator of a number --------------------------------------------------------------------
# `n` is a size, `f` half of it, `b` whether it is above 4. What stays symbolic compiles twice for
# 4, 5 and 6.
STAYS = """
n+1 | n-1 | n*3 | n/2 | n//2 | n%3 | n**2 | 2**n | (-2)**n | n**-1 | -n | +n | ~n | abs(-n) | 7-n | 7//n | 7%n | -7//n
n<<1 | n>>1 | 1<<n | n&3 | n|1 | n^7 | n^-8 | n<<n | (-n)>>1 | n&-2 | divmod(n,3) | divmod(17,n) | pow(n,2) | n%-3
n//-3 | f+1 | f//2 | f%2 | -f | f**2 | abs(f-10) | divmod(f,2) | round(f) | round(f,1) | f//0.3 | n%2.5 | n**0.5
n**f | n>3 | n!=99 | n<2 | 3<=n<9 | n==99 | n=='a' | n is None | n is n | f is f | not n | bool(n) | n and f | n or f
0 or n | b+1 | b*2 | b&True | b|False | b==1 | int(b) | float(b) | not b | isinstance(b,int) | type(b)
n if n>2 else f | min(n,3) | max(n,10) | min(n,100) | min(9,n,10) | max(n,f) | sum([n,f]) | any([n>3,b])
sum([n,n],n) | int(n) | float(n) | int(f) | int(n/3) | math.floor(f) | math.ceil(f) | math.trunc(f) | math.sqrt(n)
math.log2(n) | math.floor(n) | math.isfinite(n) | math.isnan(n) | math.prod([n,2]) | math.sin(n) | math.tanh(f)
f.is_integer() | n.real | n.imag | n.numerator | n.denominator | n.conjugate() | n.__index__() | operator.index(n)
n.__add__(3) | n.__neg__() | n.__abs__() | n.__float__() | n.__lt__(5) | n.__eq__(99) | int.__add__(n,3)
operator.mul(f,n) | x[n-1] | x[-n] | x[1:n-1] | x[n//2:] | x[:-1] | x[::2] | x[n//2:n] | x.narrow(0,1,n-2)
x.roll(n//2) | x[1:].shape[0] | x.shape | x.shape[0:1] | x.shape.numel() | x.shape[::-1] | x.shape+(1,)
list(x.shape) | x.numel() | x.nbytes | len(x) | x.stride() | x[1:].storage_offset() | x.shape==(99,)
torch.Size((n,2)) | [n]*2 | (n,f,b) | dict(a=n) | {1:n} | x.reshape(-1) | x.view(n,1) | x.view(1,-1) | x.expand(n,n)
x.repeat(2) | x.unflatten(0,(1,n)) | x.unfold(0,2,1) | torch.arange(n) | torch.arange(0,n,2) | torch.zeros(n,2)
torch.full((n,),f) | torch.tensor(n) | torch.tensor([n,f]) | torch.eye(n) | torch.ones(n)[n-1] | torch.split(x,n-2)
x.chunk(2) | torch.cat([x,x]) | torch.where(x>n,n,f) | x.clamp(max=n) | x*n | x*f | x*b | x**n | x+f | n-x | n/x | x>n
x//n | x.sum()/n | x.new_zeros(n+1) | torch.scalar_tensor(n) | torch.sym_max(n,5) | torch.sym_float(n)
torch.sym_not(b) | torch.sym_sqrt(n) | torch.sym_sum([n,n]) | x.topk(n-1)[0] | torch.nn.functional.pad(x,(n,1))
n==True | n!=False | n<True | True<=n | n+True | True-n | n//True | n%True | n**True | n&True | True|n | n<<True
[n].count(True)
torch.nn.functional.layer_norm(x,(n,)) | x.tril() if x.dim()==2 else n
"""

# Needed as a constant: a guard, and one graph for each.
BECOMES_CONSTANT = """
f'{f:.2f}' | repr(f) | '%d %s' % (n,f) | '{} {:>5}'.format(n,f) | hex(n)
{n:1} | {n,3} | {x.shape:1} | hash(n) | hash(x.shape) | [1,2,3,4,5,6,7][n] | (1,2,3,4,5,6,7)[n:] | 'abcdefgh'[:n]
[0]*n | 'ab'*n | list(range(n)) | range(n) | n.bit_length() | math.gcd(n,6) | math.log(n) | math.factorial(n)
math.fsum([n,f]) | math.isclose(f,2.0) | f.hex() | f.as_integer_ratio() | sorted([n,3,f]) | n in (4,5,6)
n in x.shape | n^5 | n|~n | bytes(n) | n*1j | complex(n,f) | pow(n,2,5) | n.__divmod__(3) | [x[i] for i in range(n)]
slice(n) | isinstance(slice(n),slice) and n
"""


def split(table: str) -> list[str]:
    """`|` separates, and is an operator where no blank is around it."""
    return [text.strip() for line in table.strip().splitlines() for text in line.split(" | ")]


def function_of(text: str) -> Function:
    scope: dict[str, Any] = {"math": math, "operator": operator, "torch": torch}
    exec(
        f"def f(x):\n    n = x.shape[0]\n    f = n / 2\n    b = n > 4\n    c = n < 6\n    return x + 1, {text}",
        scope,
    )
    made: Function = scope["f"]
    return made


@pytest.mark.parametrize("text", split(STAYS))
def test_number_stays_symbolic(text: str) -> None:
    assert counts(function_of(text), vectors(5, 6, 7), fullgraph=True) == [1, 2, 2]


@pytest.mark.parametrize("text", split(BECOMES_CONSTANT))
def test_number_becomes_a_guarded_constant(text: str) -> None:
    assert counts(function_of(text), vectors(4, 5, 6, 5), fullgraph=True)[-1] <= 3


def test_power_of_a_negative_constant_is_not_negated() -> None:
    assert_same(
        lambda x: (-2.0) ** x,
        stator.compile(lambda x: (-2.0) ** x, backend="eager"),
        lambda: (numbered(3),),
    )


OF_BOOLS = """
b==True | True!=b | b==c | b<c | b>=True | b+True | b-c | b*n | n*b | f*b | b/2 | b//1 | b%2 | b**2 | 2**b | n**b
b<<1 | n>>b | b&c | b|c | b^c | b&True | b^True | b&1 | n&b | -b | ~b | +b | abs(b) | round(b) | divmod(b,2)
max(b,0) | min(n,b) | sum([b,c,True]) | [b].count(True) | [True,0].count(b) | b in {True:1} | hash(b) | f'{b}{c:d}'
math.sqrt(b) | math.floor(b) | operator.index(b) | operator.and_(b,c) | b.real | b.bit_length() | b.__eq__(1)
int.__add__(b,n) | [1,2][b] | 'x'*b | (1,2)[b:] | complex(b) | range(b) | x[b:] | x+b | x*b | x**b | x==b
torch.where(x>1,x,b) | torch.full((2,),b) | torch.tensor([b]) | sorted([b,c,0])
"""


@pytest.mark.parametrize("text", split(OF_BOOLS))
def test_symbolic_bool_is_a_number(text: str) -> None:
    counts(function_of(text), vectors(5, 3, 6, 4, 8, 2))


def test_symbolic_bool_is_the_singleton() -> None:
    def f(x: torch.Tensor) -> Any:
        big = x.shape[0] > 4
        return x + 1, big is True, big is False, (big and x) is x

    assert counts(f, vectors(5, 6, 4, 3, 7), fullgraph=True) == [1, 2, 3, 3, 3]


class Pair:
    def __init__(self, n: int) -> None:
        self.n = n

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Pair) and other.n == self.n

    def __hash__(self) -> int:
        return hash(self.n)


def test_size_in_a_user_object() -> None:
    def f(x: torch.Tensor) -> Any:
        pair = Pair(x.shape[0])
        return x * pair.n, pair.n, pair == Pair(99)

    assert counts(f, vectors(4, 5, 6), fullgraph=True) == [1, 2, 2]


def test_size_as_a_hashed_key_of_a_user_class_is_a_constant() -> None:
    assert (
        counts(lambda x: (x + 1, {Pair(x.shape[0]): 1}[Pair(x.shape[0])]), vectors(4, 5, 6))[-1]
        <= 3
    )


def test_integers_of_any_size() -> None:
    calls = [(numbered(2), n) for n in (2, 3, 2**62, 2**63 - 1, 2**63, -(2**63), 2**70)]
    assert counts(lambda x, n: (x + 1, n * 4, n + 1, n - 2**64), calls, fullgraph=True)[-1] == 1


# -- what data decides -----------------------------------------------------------------------------
def ints(*values: Any) -> tuple[torch.Tensor]:
    return (torch.tensor(values if len(values) > 1 else values[0]),)


DATA: dict[str, tuple[Function, list[tuple[Any, ...]]]] = {
    "item": (lambda x: (x + x.item(), x.item()), [ints(3), ints(4), ints(0), ints(1)]),
    "item of a float": (lambda x: x * x.item() + 1, [ints(3.5), ints(-0.5), ints(0.0)]),
    "item of a bool": (lambda x: (x.item(), x.int() + 1), [ints(True), ints(False)]),
    "item as a size": (lambda x: torch.zeros(x.item()) + 1, [ints(3), ints(0), ints(1)]),
    "item as a bound": (lambda x: torch.arange(9)[: x.item()] + 1, [ints(3), ints(0), ints(9)]),
    "tensor as a bound": (lambda x: torch.arange(9)[x[0] :] + x, [ints(3, 1), ints(0, 2)]),
    "item in split": (
        lambda x: torch.split(torch.arange(9), [x.item(), 9 - x.item()]),
        [ints(3), ints(4)],
    ),
    "tolist": (lambda x: (x.tolist(), x + 1), [ints(3, 1), ints(0, 5)]),
    "tolist, nested": (lambda x: (x.tolist(), x + 1), [(numbered(2, 2),), (-numbered(2, 2),)]),
    "tolist in split": (
        lambda x: torch.split(torch.arange(9), x.tolist()),
        [ints(3, 4, 2), ints(2, 7, 0)],
    ),
    "conversions": (lambda x: (x + int(x[0]), float(x[0]), bool(x[1])), [ints(3, 0), ints(0, 1)]),
    "arithmetic": (
        lambda x: (abs(x[0].item()) // 2, max(x[1].item(), 0)),
        [ints(-3, 7), ints(5, -1)],
    ),
    "nonzero": (
        lambda x: (x.nonzero() + 1, x.nonzero().shape[0]),
        [ints(3, 0, 1), ints(0, 0, 0), ints(1, 1, 1)],
    ),
    "nonzero as a tuple": (
        lambda x: x.nonzero(as_tuple=True)[0] + 1,
        [ints(3, 0, 1), ints(0, 0, 0)],
    ),
    "mask": (lambda x: x[x > 0] * 2, [ints(3, 0, 1), ints(0, 0, 0), ints(1, 1, 1)]),
    "size of a mask": (
        lambda x: (len(x[x > 0]), x[x > 0].sum()),
        [ints(3, 0, 1), ints(0, 0, 0), ints(1, 0, 0)],
    ),
    "masked_select": (lambda x: torch.masked_select(x, x > 0) + 1, [ints(3, 0, 1), ints(0, 0, 0)]),
    "where": (lambda x: torch.where(x > 0)[0] + 1, [ints(3, 0, 1), ints(0, 0, 0)]),
    "repeat_interleave": (
        lambda x: torch.repeat_interleave(torch.arange(3), x),
        [ints(3, 0, 1), ints(0, 0, 0)],
    ),
    "unique": (
        lambda x: (x.unique() + 1, torch.unique(x, return_counts=True)[1]),
        [ints(3, 0, 3), ints(1, 1, 1)],
    ),
    "unique_consecutive": (
        lambda x: torch.unique_consecutive(x) + 1,
        [ints(3, 0, 3), ints(1, 1, 1)],
    ),
    "bincount": (lambda x: torch.bincount(x) + 1, [ints(3, 0, 1), ints(0, 0, 0)]),
    "chained": (
        lambda x: torch.cat([x[x > 0], x[x > 0] * 2]).view(-1, 1) + 1,
        [ints(3, 0, 1), ints(0, 0, 0)],
    ),
    "broadcast of one": (lambda x: x[x > 0] + numbered(3), [ints(3, 1, 1), ints(0, 5, 0)]),
}


@pytest.mark.parametrize("name", DATA)
def test_data_dependent_results_are_captured_under_fullgraph(name: str) -> None:
    fn, calls = DATA[name]
    assert (
        counts(fn, calls, name in ("tensor as a bound", "broadcast of one"), fullgraph=True)[-1]
        == 1
    )


@pytest.mark.parametrize("name", DATA)
def test_data_dependent_results_break_where_they_are_not_captured(name: str) -> None:
    fn, calls = DATA[name]
    counts(fn, calls)


@pytest.mark.parametrize("backend", ["aot_eager"])
@pytest.mark.parametrize(
    "name", ["item as a size", "tolist in split", "nonzero", "mask", "unique", "broadcast of one"]
)
def test_data_dependent_results_are_lowered(name: str, backend: str) -> None:
    fn, calls = DATA[name]
    compiled, arguments = stator.compile(fn, backend=backend, fullgraph=True), iter(calls)
    assert_same(fn, compiled, lambda: next(arguments), calls=len(calls))


def test_one_item_is_one_break() -> None:
    backend = Counting()
    compiled = stator.compile(lambda x: (x * 2) * (x * 2).item() + 1, backend=backend)
    assert_same(lambda x: (x * 2) * (x * 2).item() + 1, compiled, lambda: ints(3), calls=2)
    assert backend.count == 2


def test_branch_on_data_compiles_each_side_when_it_is_reached() -> None:
    def f(x: torch.Tensor) -> torch.Tensor:
        x = x * 2
        if x.sum() > 7:
            return x + 1
        return x - 1

    assert counts(f, [ints(3), ints(2), ints(4), ints(9), ints(1)]) == [2, 2, 3, 3, 3]


def test_branch_on_data_is_refused_under_fullgraph_with_its_line() -> None:
    def f(x: torch.Tensor) -> torch.Tensor:
        if x.item() > 3:
            return x + 1
        return x - 1

    with pytest.raises(stator.Unsupported, match="depends on data") as refused:
        stator.compile(f, backend="eager", fullgraph=True)(*ints(3))
    assert refused.value.where.line == f.__code__.co_firstlineno + 1


# -- what has to hold at run time ------------------------------------------------------------------
WHOLE = [
    asserting.asserts,
    asserting.asserts_several,
    asserting.raises,
    asserting.raises_deeper,
    asserting.asserts_after_a_write,
    asserting.asserts_in_try,
    asserting.checks,
]
VALUES = [ints(1.0), ints(9.0), ints(2.0), ints(3.0)]


@pytest.mark.parametrize("fn", WHOLE, ids=lambda fn: fn.__name__)
def test_assertion_about_data_is_part_of_the_graph(fn: Function) -> None:
    calls = [(values[0].reshape(1),) for values in VALUES]
    assert counts(fn, calls) == [1, 1, 1, 1]
    assert counts(fn, calls, fullgraph=True) == [1, 1, 1, 1]


@pytest.mark.parametrize(
    "fn", [asserting.asserts_a_number, asserting.checks_a_number], ids=lambda fn: fn.__name__
)
def test_assertion_about_an_unbacked_number(fn: Function) -> None:
    assert counts(fn, [ints(1, 1), ints(9, 1), ints(0, 3), ints(4, 0)], fullgraph=True) == [
        1,
        1,
        1,
        1,
    ]


def test_effects_before_a_failed_assertion_stay() -> None:
    compiled = stator.compile(asserting.asserts_between_effects, backend="eager")
    for values in VALUES:
        seen = []
        for fn in (asserting.asserts_between_effects, compiled):
            try:
                fn(*values)
            except AssertionError:
                seen.append("raised")
            seen.append(str(asserting.reached))
        assert seen[: len(seen) // 2] == seen[len(seen) // 2 :]


def test_assertion_about_several_values_fails_as_in_python() -> None:
    counts(
        asserting.asserts_whole,
        [(torch.tensor([1.0]),), (torch.tensor([1.0, 2.0]),), (torch.tensor([0.0]),)],
    )


def test_handled_exception_is_no_assertion() -> None:
    def f(x: torch.Tensor) -> Any:
        try:
            if x.sum() > 5:
                raise KeyError("big")
        except KeyError:
            return x - 1
        return x * 2

    assert counts(f, VALUES) == [2, 3, 3, 3]


def test_exception_of_the_program_is_raised_under_fullgraph() -> None:
    assert counts(asserting.asserts_a_size, vectors(9, 4, 9, 5, 6), fullgraph=True) == [
        0,
        1,
        1,
        1,
        1,
    ]


def branching(x: torch.Tensor) -> torch.Tensor:
    width = len(f"{x.shape[0]}")
    return x * width if x.sum() > 0 else x


IN_VAIN: dict[str, Function] = {
    "operator": lambda x: (x.sin(), torch.combinations(x)),
    "body": lambda x: checkpoint(branching, x.sin(), use_reentrant=False),
    "call": lambda x: (x.sin(), print(f"{x.shape[0]:>3}", end="")),
}


@pytest.mark.parametrize("name", IN_VAIN)
def test_what_was_learned_before_a_break_that_undid_it_is_not_guarded(name: str) -> None:
    assert counts(IN_VAIN[name], vectors(5, 6, 7, 5, 9)) == [1, 2, 2, 2, 2]


# -- numbers as arguments --------------------------------------------------------------------------
FLOATS: dict[str, Function] = {
    "product": lambda x, f: (x * f, f, -f, f * 2, f == 2.5),
    "text": lambda x, f: (x * f, f"{f}", f"{f + 0.1 + 0.2}"),
    "branch": lambda x, f: x * 2 if f > 3 else x - f,
    "branch on a sum": lambda x, f: x * (f * 0.1 + 0.2 + 0.3) if f * 0.1 + 0.2 + 0.3 > 0.85 else x,
    "guarded division": lambda x, f: x + 1 if f != 0 and 10 / f > 2 else x - 1,
    "tensor": lambda x, f: torch.full((3,), f) + x[:3] // f,
    "clamp": lambda x, f: x.clamp(max=f),
    "member": lambda x, f: (f in (2.5, 3.5), x * f),
    "size": lambda x, f: torch.zeros(int(f * 2)),
}


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("name", FLOATS)
def test_floats_of_every_kind(name: str, backend: str) -> None:
    values = (2.5, 3.5, 4.5, 0.0, -0.0, 1.0, 7.5, float("inf"), float("nan"), 2.5, 3.5)
    arguments = iter([(numbered(4), value) for value in values])
    compiled = stator.compile(FLOATS[name], backend=backend, recompile_limit=20)
    assert_same(FLOATS[name], compiled, lambda: next(arguments), calls=len(values))


def test_guard_that_cannot_be_computed_does_not_hold() -> None:
    def f(x: torch.Tensor, n: int) -> torch.Tensor:
        return x + 1 if n != 0 and 10 // n == 2 else x - 1

    counts(f, [(numbered(2), n) for n in (4, 5, 0, 10, 0, 4)])


class Settings:
    def __init__(self, n: int) -> None:
        self.n = n


class Scaled(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.n = 1

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * self.n


def test_changed_int_of_an_object_and_of_a_module_is_symbolic() -> None:
    assert counts(lambda x, s: x * s.n, [(numbered(2), Settings(n)) for n in (2, 3, 4, 5)]) == [
        1,
        2,
        2,
        2,
    ]
    module, backend = Scaled(), Counting()
    compiled = stator.compile(module, backend=backend)
    for module.n in (2, 3, 4):
        assert torch.equal(compiled(numbered(2)), numbered(2) * module.n)
    assert backend.count == 2


# -- strides, offsets, marks -----------------------------------------------------------------------
def test_changed_stride_is_symbolic() -> None:
    calls = [(numbered(64).as_strided((4, 4), (n, 1)),) for n in (4, 5, 6, 7)]
    assert (
        counts(
            lambda x: (x * 2, x.stride(), x.contiguous(), x.t().reshape(-1)), calls, fullgraph=True
        )[-1]
        == 2
    )


def test_offset_that_is_read_is_guarded() -> None:
    calls = [(numbered(8)[k : k + 4],) for k in (1, 2, 3, 1)]
    assert (
        counts(
            lambda x: (x * 2, x.storage_offset(), x[1:].storage_offset()), calls, fullgraph=True
        )[-1]
        == 3
    )


def marked(mark: Callable[..., None], size: int, *args: Any, **kwargs: Any) -> tuple[torch.Tensor]:
    tensor = numbered(size, 3)
    mark(tensor, *args, **kwargs)
    return (tensor,)


def counts_of_marked(fn: Function, calls: list[tuple[Any, ...]], **options: Any) -> list[int]:
    """Without copies of the arguments: those would have no marks."""
    backend, seen = Counting(), []
    compiled = stator.compile(fn, backend=backend, **options)
    for args in calls:
        torch.testing.assert_close(compiled(*args), fn(*args), rtol=0, atol=0)
        seen.append(backend.count)
    return seen


OURS = {
    "dynamic": stator.mark_dynamic,
    "maybe": stator.maybe_mark_dynamic,
    "unbacked": stator.mark_unbacked,
}
TORCHS = {
    "dynamic": torch._dynamo.mark_dynamic,
    "maybe": torch._dynamo.maybe_mark_dynamic,
    "unbacked": torch._dynamo.decorators.mark_unbacked,
}


@pytest.mark.parametrize("marks", [OURS, TORCHS], ids=["stator", "torch"])
@pytest.mark.parametrize("name", OURS)
def test_marked_dimension_is_symbolic_at_once(name: str, marks: dict[str, Function]) -> None:
    calls = [marked(marks[name], size, 0) for size in (4, 5, 6)]
    assert counts_of_marked(lambda x: x * 2 + x.shape[0], calls) == [1, 1, 1]


@pytest.mark.parametrize("marks", [OURS, TORCHS], ids=["stator", "torch"])
@pytest.mark.parametrize("name", OURS)
def test_marked_dimension_may_be_counted_from_the_end(
    name: str, marks: dict[str, Function]
) -> None:
    calls = [marked(marks[name], size, -2) for size in (4, 5, 6)]
    assert counts_of_marked(lambda x: x * 2 + x.shape[0], calls) == [1, 1, 1]


@pytest.mark.parametrize("mark", [stator.mark_unbacked, TORCHS["unbacked"]])
def test_strict_unbacked_dimension_is_not_specialized(mark: Function) -> None:
    def added(x: torch.Tensor) -> torch.Tensor:
        return x + torch.ones(4, 1)

    assert counts_of_marked(added, [marked(mark, 4, 0)]) == [1]
    assert counts_of_marked(lambda x: x * 2, [marked(mark, 4, 0, strict=True)]) == [1]
    with pytest.raises(stator.InvalidUse, match="specialized"):
        stator.compile(added, backend="eager")(*marked(mark, 4, 0, strict=True))


@pytest.mark.parametrize(
    "mark", [OURS["dynamic"], TORCHS["dynamic"], OURS["unbacked"], TORCHS["unbacked"]]
)
def test_size_that_compilers_are_to_assume(mark: Function) -> None:
    hints: list[dict[Any, int]] = []

    def backend(graph: Any, inputs: list[Any]) -> Any:
        (symbol,) = (value for value in inputs if isinstance(value, torch.SymInt))
        hints.append(symbol.node.shape_env.var_to_hint_override)
        return graph.forward

    stator.compile(lambda x: x * 2, backend=backend)(*marked(mark, 4, 0, hint_override=100))
    assert [[*hint.values()] for hint in hints] == [[100]]


def test_unbacked_dimension_serves_zero_and_one() -> None:
    calls = [marked(stator.mark_unbacked, size, 0) for size in (4, 1, 0)]
    assert counts_of_marked(lambda x: x * 2 + 1, calls) == [1, 1, 1]


def test_marked_range_is_guarded() -> None:
    calls = [marked(stator.mark_dynamic, size, 0, min=2, max=8) for size in (4, 8, 2)]
    assert counts_of_marked(lambda x: x * 2, calls) == [1, 1, 1]
    with pytest.raises(stator.InvalidUse):
        stator.compile(lambda x: x * 2, backend="eager")(
            *marked(stator.mark_dynamic, 9, 0, min=2, max=8)
        )


def test_marked_dimension_that_is_needed_as_a_constant_is_refused() -> None:
    with pytest.raises(stator.InvalidUse, match="maybe_mark_dynamic"):
        stator.compile(lambda x: x + len([1] * x.shape[0]), backend="eager")(
            *marked(stator.mark_dynamic, 4, 0)
        )
    assert counts_of_marked(
        lambda x: x + len([1] * x.shape[0]), [marked(stator.maybe_mark_dynamic, 4, 0)]
    ) == [1]


def test_static_mark_keeps_a_graph_for_each_size() -> None:
    assert counts_of_marked(
        lambda x: x * 2, [marked(stator.mark_static, size) for size in (4, 5, 6)]
    ) == [1, 2, 3]


def test_static_address_is_guarded_when_asked() -> None:
    first, second = numbered(3), numbered(3)
    for tensor in (first, second):
        stator.mark_static_address(tensor, guard=True)
    assert counts_of_marked(lambda x: x * 2, [(first,), (second,), (first,)]) == [1, 2, 2]


def test_mark_of_no_dimension_is_refused() -> None:
    with pytest.raises(stator.InvalidUse, match="no dimension 2"):
        stator.mark_dynamic(numbered(2, 2), 2)


def test_dynamic_true_makes_all_symbolic_at_once_and_false_nothing() -> None:
    calls = [(numbered(size), number) for size, number in ((4, 7), (5, 8), (6, 9), (1, 9))]
    assert counts(lambda x, n: x * n, calls, dynamic=True) == [1, 1, 1, 2]
    assert counts(lambda x, n: x * n, calls, dynamic=False) == [1, 2, 3, 4]


def test_dynamic_true_leaves_the_settings_of_modules_static_until_they_change() -> None:
    class Layer(torch.nn.Module):
        def __init__(self, n: int) -> None:
            super().__init__()
            self.n = n

    settings = [types.SimpleNamespace(n=n) for n in (3, 4, 5)]
    layers = [Layer(n) for n in (3, 4, 5)]
    for made, expected in ((settings, [1, 1, 1]), (layers, [1, 2, 2])):
        calls = [(numbered(2), each) for each in made]
        assert counts(lambda x, o: x * o.n, calls, dynamic=True) == expected


def test_view_that_only_tells_its_shape_costs_no_entry_of_a_compiler() -> None:
    """AOTAutograd would look at the view of one row, and guard that it is one."""
    compiled = stator.compile(
        lambda x: (x[1:].t().storage_offset(), x + 1), backend="aot_eager", dynamic=True
    )
    for rows in (2, 5):
        compiled(torch.ones(rows, 3, requires_grad=True))
    assert [len(compiled.report.graphs), compiled.report.graphs[0].code.count("getitem")] == [1, 0]


@pytest.mark.parametrize("sizes", [(3, 5, 3), (3, 5, 6), (5, 3, 6, 3), (3, 1, 5, 3)])
@pytest.mark.parametrize("mode", [False, "operations", 3, 4, 7])
@pytest.mark.parametrize(
    "text",
    [
        "{1: 3, 3: 5}[n]",
        "'abcd'[n]",
        "1 // (n - 3)",
        "(1, 2, 3, 4)[n]",
        "[1][n - 3:][0]",
        "{1, 3} - {n} or n[0]",
    ],
)
def test_a_number_that_makes_the_program_raise_is_guarded(
    text: str, mode: Any, sizes: tuple[int, ...]
) -> None:
    """Also one that only the instruction which raises has read: its trace takes that back."""
    fn = eval(f"lambda x: (x + 1, {text.replace('n', 'x.shape[0]')})")
    remaining = iter(sizes)
    compiled = stator.compile(fn, backend="eager", options={"break_everywhere": mode})
    assert_same(fn, compiled, lambda: (torch.ones(next(remaining)),), calls=len(sizes))


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_an_input_that_an_operator_resizes_has_no_symbols_of_those_after_it(backend: str) -> None:
    def f(x: torch.Tensor, y: torch.Tensor) -> Any:
        seen = x.sum()
        torch.mul(y, 2, out=x)
        return x + seen

    remaining = iter((2, 3, 4, 5))
    assert_same(
        f,
        stator.compile(f, backend=backend),
        lambda: (torch.empty(0), torch.ones(next(remaining), 3)),
        4,
    )


@pytest.mark.parametrize("layer", [torch.nn.Dropout(0.5).eval(), torch.nn.Dropout(0.0)])
def test_dropout_that_drops_nothing_gives_its_input(layer: Any) -> None:
    def f(x: torch.Tensor) -> Any:
        y = layer(x)
        y.add_(1)
        return y is x, x

    remaining = iter((2, 3, 4, 1))
    compiled = stator.compile(f, backend="eager", fullgraph=True)
    assert_same(f, compiled, lambda: (torch.ones(next(remaining), 3),), calls=4)


def causal(x: torch.Tensor) -> Any:
    """An operator that takes no symbolic bool."""
    attended = torch.nn.functional.scaled_dot_product_attention(x, x, x, is_causal=x.shape[2] > 3)
    with torch.set_grad_enabled(x.shape[2] > 4):
        return attended, x * 2, x.sum(0, keepdim=x.shape[2] > 3)


def test_symbolic_bools_are_decided_where_a_real_one_is_wanted() -> None:
    remaining = iter((2, 3, 4, 5, 6))
    compiled = stator.compile(causal, backend="eager", fullgraph=True)
    assert_same(
        causal,
        compiled,
        lambda: (torch.ones(1, 2, next(remaining), 4, requires_grad=True),),
        calls=5,
    )
    assert compiled.report.entry_count == 4


def sums(a: torch.Tensor, b: torch.Tensor, n: int, m: int) -> Any:
    rows, both = a.shape[0] + b.shape[0], n + m
    tags = ["seven" if rows == 7 else "other", list(range(both))[-1:]]
    total, more = rows + n, m + both
    both += m
    return (
        tags,
        total,
        more,
        list(range(both))[-1:],
        a.new_ones(total).shape,
        torch.cat([a, b, a]).shape[0],
        rows - n,
    )


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("dynamic", [None, True])
def test_a_sum_that_turned_out_to_be_a_number_is_added_to(
    backend: str, dynamic: bool | None
) -> None:
    remaining = iter([(2, 3, 4, 1), (3, 4, 5, 2), (4, 3, 6, 1), (2, 5, 5, 2), (6, 2, 7, 3)])

    def make() -> Any:
        rows, others, *numbers = next(remaining)
        return torch.ones(rows), torch.ones(others), *numbers

    assert_same(sums, stator.compile(sums, backend=backend, dynamic=dynamic), make, 5)


def test_a_comparison_that_torch_solves_by_dividing_by_zero_breaks() -> None:
    def f(x: torch.Tensor, s: int, q: int) -> Any:
        part = s // max(1, abs(q))
        return "other" if part != x.shape[0] * part else "same", x + part

    remaining = iter([(3, 8, 3), (4, 1, 5), (5, 9, 2), (6, 0, 4)])

    def make() -> Any:
        rows, *numbers = next(remaining)
        return torch.ones(rows), *numbers

    assert_same(f, stator.compile(f, backend="eager", dynamic=True), make, 4)


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_a_gradient_that_is_a_view_of_an_input_of_known_shape(backend: str) -> None:
    def f(weight: torch.Tensor, x: torch.Tensor) -> Any:
        return weight.shape[0] * 2, x.shape, weight.grad is None, x + 1

    remaining = iter([(2, False), (3, False), (3, True), (3, True), (4, True), (4, False)])

    def make() -> Any:
        size, is_viewed = next(remaining)
        weight, x = numbered(size, 3).requires_grad_(), numbered(3, size)
        if is_viewed:
            weight.grad = x.view(-1).view(size, 3)
        return weight, x

    assert_same(f, stator.compile(f, backend=backend), make, 6)
