"""One tensor under several names, which a break carries: a continuation relies on that only if it
reads the tensor by two of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import stator
import torch
from torch import Tensor

from integration_tests.support.counting import Counting

Program = Callable[[Tensor, Tensor], Any]


def carrying_the_first(a: Tensor, b: Tensor) -> Any:
    stator.graph_break()
    return b * 2, a is b, a


def reading_both(a: Tensor, b: Tensor) -> Any:
    stator.graph_break()
    return a * 2 + b


def writing_one_and_reading_the_other(a: Tensor, b: Tensor) -> Any:
    stator.graph_break()
    a.add_(1)
    return b * 2


def writing_one_and_giving_the_other(a: Tensor, b: Tensor) -> Any:
    stator.graph_break()
    a.add_(1)
    return b


def comparing(a: Tensor, b: Tensor) -> Any:
    stator.graph_break()
    return "same" if a is b else "others"


def comparing_by_id(a: Tensor, b: Tensor) -> Any:
    stator.graph_break()
    return id(a) == id(b)


def in_a_list(a: Tensor, b: Tensor) -> Any:
    stator.graph_break()
    given = [a, b]
    return given, given[0] is given[1], a.sum()


def searched_in_a_list(a: Tensor, b: Tensor) -> Any:
    stator.graph_break()
    return any(each is a for each in [b, b + 1])


def as_keys(a: Tensor, b: Tensor) -> Any:
    stator.graph_break()
    return len({a: 1, b: 2})


def with_an_attribute(a: Tensor, b: Any) -> Any:
    stator.graph_break()
    a.note = 5  # type: ignore[attr-defined]
    return getattr(b, "note", None)


def over_another_break(a: Tensor, b: Tensor) -> Any:
    stator.graph_break()
    c = a * 2
    stator.graph_break()
    b.mul_(3)
    stator.graph_break()
    return a + c


def in_a_called_function(a: Tensor, b: Tensor) -> Any:
    def inner(c: Tensor) -> Tensor:
        stator.graph_break()
        return c * 3

    return inner(b) + a


def replaced(a: Tensor, b: Tensor) -> Any:
    stator.graph_break()
    b = b * 2
    stator.graph_break()
    return a + b


def in_a_closure(a: Tensor, b: Tensor) -> Any:
    def inner() -> Tensor:
        return a * b

    stator.graph_break()
    return inner() + b


PROGRAMS: tuple[Program, ...] = (
    carrying_the_first,
    reading_both,
    writing_one_and_reading_the_other,
    writing_one_and_giving_the_other,
    comparing,
    comparing_by_id,
    in_a_list,
    searched_in_a_list,
    as_keys,
    with_an_attribute,
    over_another_break,
    in_a_called_function,
    replaced,
    in_a_closure,
)


def outcome(program: Program, order: tuple[bool, ...]) -> list[Any]:
    found: list[Any] = []
    for is_one in order:
        a = torch.arange(3.0)
        b = a if is_one else torch.ones(3)
        result = program(a, b)
        parts = result if isinstance(result, tuple) else (result,)
        flat = [each for part in parts for each in (part if isinstance(part, list) else [part])]
        for each in (*flat, a, b):
            is_tensor = isinstance(each, Tensor)
            found.append(each.tolist() if is_tensor else each)
            found.append((each is a, each is b))
    return found


@pytest.mark.parametrize("order", [(True, True, False, True), (False, True, False)])
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda each: each.__name__)
def test_a_tensor_under_two_names_is_one_tensor(program: Program, order: tuple[bool, ...]) -> None:
    compiled = stator.compile(program, backend="eager")
    assert outcome(compiled, order) == outcome(program, order)


def test_a_loop_that_begins_with_two_names_compiles_its_body_once() -> None:
    def program(start: Tensor) -> Any:
        y = start
        while True:
            z = y.sin() * 2
            if z.sum() > 100:
                return z
            y = z + y
            if y.sum() > 12:
                break
        return y, start

    counting = Counting()
    compiled: Any = stator.compile(program, backend=counting)
    start = torch.ones(4)
    expected, found = program(start), compiled(start)
    assert torch.equal(found[0], expected[0])
    assert found[1] is start
    same = [why for why in compiled.report.recompiles if "same object" in str(why)]
    assert not same


def test_a_continuation_that_reads_one_name_serves_other_tensors() -> None:
    def program(a: Tensor, b: Tensor) -> Any:
        stator.graph_break()
        return b.sin(), a

    counting = Counting()
    compiled = stator.compile(program, backend=counting)
    a, b = torch.ones(3), torch.zeros(3)
    for first, second in ((a, a), (a, b), (b, a), (b, b)):
        found = compiled(first, second)
        assert torch.equal(found[0], second.sin())
        assert found[1] is first
    assert counting.count == 1
