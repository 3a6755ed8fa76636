"""`copy.deepcopy` and `dataclasses.asdict` over objects that hold tensors: values, memory, memo and
compilations.

Each program runs plainly and compiled, three calls each on copies of the same arguments, and
everything that it leaves behind is compared, memory that tensors share included.
"""

# mypy: ignore-errors

from __future__ import annotations

import collections
import copy
import dataclasses
import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest
import stator
import torch
from torch import Tensor

from integration_tests.support.counting import Counting
from integration_tests.support.oracle import assert_same

Program = Callable[..., Any]


@dataclasses.dataclass
class Batch:
    values: Tensor
    extra: Any = None
    scale: float = 2.0


class Slotted:
    __slots__ = ("values",)

    def __init__(self, values: Tensor) -> None:
        self.values = values


class Pair(NamedTuple):
    first: Tensor
    second: Any = None


class Settings(dict[str, Any]):
    """A dict with attributes of its own."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.note = 1


class Stack(list[Any]):
    pass


class Custom:
    """Copies itself, under the memo it is given."""

    def __init__(self, values: Tensor) -> None:
        self.values = values

    def __deepcopy__(self, memo: dict[int, Any]) -> Custom:
        made = Custom(copy.deepcopy(self.values, memo))
        memo[id(self)] = made
        return made


def tensor() -> Tensor:
    return torch.linspace(-1.0, 1.0, 6)


def containers(x: Tensor) -> Any:
    copied = copy.deepcopy([x, [x], {"a": x, "b": (x, 3)}])
    copied[0].add_(1)
    return copied, copied[1][0] is copied[0], copied[2]["b"][0] is copied[0], x


def results(x: Tensor) -> Any:
    made = x * 2
    copied = copy.deepcopy((made, [made, x]))
    return copied, copied[0] is copied[1][0], copied[0] is made, made


def transposed(x: Tensor) -> Any:
    return copy.deepcopy(x.clone().view(2, 3).t())


def object_with_itself(x: Tensor) -> Any:
    batch = Batch(x)
    batch.extra = [batch, x]
    copied = copy.deepcopy(batch)
    return copied.values + 1, copied.extra[0] is copied, copied.extra[1] is copied.values


def own_way(x: Tensor) -> Any:
    copied = copy.deepcopy([Custom(x), x])
    return copied[0].values, copied[1], copied[0].values is copied[1]


def mapping(x: Tensor) -> Any:
    found = collections.OrderedDict(a=x, b=collections.defaultdict(list, c=[x]))
    copied = copy.deepcopy(found)
    same = copied["b"]["c"][0] is copied["a"]
    return copied["a"], same, copied["b"]["d"], [*copied], type(copied).__name__


def subclasses(x: Tensor) -> Any:
    settings = Settings({"a": x})
    settings.note = 3
    copied = copy.deepcopy([settings, Stack([x, 1]), Pair(x, [x])])
    same = copied[0]["a"] is copied[1][0] is copied[2].first is copied[2].second[0]
    return copied[0].note, copied[0]["a"], copied[1], copied[2], same


def shallow_subclasses(x: Tensor) -> Any:
    settings = Settings({"a": x})
    copied = copy.copy(settings), copy.copy(Stack([x])), copy.copy(Pair(x))
    return copied[0]["a"] + 1, copied[0].note, copied[1][0] is x, copied[2].first is x


def as_dict(x: Tensor) -> Any:
    found = dataclasses.asdict(Batch(x * 2, [x]))
    return found["values"] + 1, found["extra"][0], found["scale"]


def as_tuple(x: Tensor) -> Any:
    return dataclasses.astuple(Batch(x * 2, Batch(x)))


def replaced(x: Tensor) -> Any:
    batch = Batch(x, [x])
    copied = dataclasses.replace(batch, scale=3.0)
    return copied.values is batch.values, copied.extra is batch.extra, copied.values * copied.scale


def given_memo(x: Tensor) -> Any:
    known = x + 1
    memo: dict[int, Any] = {id(x): known}
    copied = copy.deepcopy([x, x * 2], memo)
    return copied[0] is known, copied[1], id(x) in memo, len(memo)


def memo_that_leaves(x: Tensor) -> Any:
    memo: dict[Any, Any] = {}
    copied = copy.deepcopy(x, memo)
    (storage,) = memo["torch"].values()
    return (
        copied,
        storage is copied.untyped_storage(),
        [type(value).__name__ for value in memo.values()],
    )


def shallow(x: Tensor) -> Any:
    copied = copy.copy(Batch(x, [x]))
    copied.values.mul_(2)
    return copied.extra, copied.values is x, x


def slots(x: Tensor) -> Any:
    return copy.deepcopy(Slotted(x * 2)).values + 1


ONE_GRAPH: dict[str, Program] = {
    function.__name__: function
    for function in (
        *(containers, results, transposed, object_with_itself, own_way, mapping, as_dict),
        *(as_tuple, replaced, shallow, slots, subclasses, shallow_subclasses, given_memo),
    )
}


@pytest.mark.parametrize("name", ONE_GRAPH)
def test_copies_are_captured_in_one_graph(name: str) -> None:
    counting = Counting()
    compiled = stator.compile(ONE_GRAPH[name], backend=counting, fullgraph=True)
    assert_same(ONE_GRAPH[name], compiled, lambda: (tensor(),))
    assert counting.count == 1


def part_of_a_storage(x: Tensor) -> Any:
    whole, part = copy.deepcopy((x, x[2:]))
    whole.add_(1)
    return whole, part, x


def part_first(x: Tensor) -> Any:
    part, whole = copy.deepcopy((x[2:], x))
    part.add_(1)
    return whole, part, x


def same_storage(x: Tensor) -> Any:
    flat, square = copy.deepcopy([x, x.view(2, 3)])
    square.add_(1)
    return flat, square, x


def with_attribute(x: Tensor) -> Any:
    x.note = [x]
    copied = copy.deepcopy(x)
    return copied + 1, copied.note[0] is copied


def with_gradients(x: Tensor) -> Any:
    leaf = x.clone().requires_grad_()
    copied = copy.deepcopy([leaf, leaf])
    return copied[0] * 2, copied[0].requires_grad, copied[0] is copied[1]


def no_leaf(x: Tensor) -> Any:
    return copy.deepcopy(x.clone().requires_grad_() * 2)


def complex_conjugate(x: Tensor) -> Any:
    return copy.deepcopy(torch.complex(x, x).conj())


def expanded(x: Tensor) -> Any:
    return copy.deepcopy(x[:1].expand(3))


def parameter(x: Tensor) -> Any:
    copied = copy.deepcopy([PARAMETER, {"again": PARAMETER}])
    same = copied[0] is copied[1]["again"]
    return copied[0] * x, type(copied[0]).__name__, same


PARAMETER = torch.nn.Parameter(torch.ones(6))
BROKEN: dict[str, Program] = {
    function.__name__: function
    for function in (
        *(part_of_a_storage, part_first, same_storage, with_attribute, with_gradients, no_leaf),
        *(complex_conjugate, expanded, parameter),
    )
}


@pytest.mark.parametrize("name", BROKEN)
def test_what_torch_copies_itself_is_compiled_once(name: str) -> None:
    compiled = stator.compile(BROKEN[name], backend="eager")
    for number in range(5):
        assert_same(BROKEN[name], compiled, lambda: (tensor(),), calls=1)
        if number == 1:
            compilations = compiled.report.entry_count
    assert compiled.report.entry_count == compilations


def test_a_memo_of_the_program_has_what_torch_puts_there() -> None:
    compiled = stator.compile(memo_that_leaves, backend="eager")
    assert_same(memo_that_leaves, compiled, lambda: (tensor(),))


def test_gradients_are_copied() -> None:
    def program(x: Tensor) -> Any:
        copied = copy.deepcopy(x)
        return copied * 2, copied.grad, copied.grad is x.grad

    def with_gradient() -> tuple[Tensor]:
        x = tensor().requires_grad_()
        x.grad = torch.full((6,), 5.0)
        return (x,)

    compiled = stator.compile(program, backend="eager")
    for number in range(4):
        assert_same(program, compiled, with_gradient, calls=1)
        if number == 1:
            compilations = compiled.report.entry_count
    assert compiled.report.entry_count == compilations


def test_arguments_that_share_memory_are_another_entry() -> None:
    def program(a: Tensor, b: Tensor) -> Any:
        first, second = copy.deepcopy([a, b])
        first.add_(1)
        return first, second

    compiled = stator.compile(program, backend="eager")
    x = tensor()
    for args in ((tensor(), tensor()), (x, x), (x, x.view(6)), (tensor(), tensor())):
        assert_same(program, compiled, functools.partial(tuple, args), calls=1)


def test_a_slice_as_argument_is_another_entry() -> None:
    compiled = stator.compile(containers, backend="eager")
    for x in (tensor(), torch.linspace(0.0, 1.0, 8)[:6], tensor()):
        assert_same(containers, compiled, lambda x=x: (x,), calls=1)


def test_sizes_change_without_compiling_each() -> None:
    counting = Counting()
    compiled = stator.compile(containers, backend=counting, fullgraph=True)
    for size in range(3, 9):
        assert_same(containers, compiled, lambda size=size: (torch.ones(size),), calls=1)
    assert counting.count == 2


def over_a_break(x: Tensor, thing: Any) -> Any:
    number = id(thing)
    memo = {number: x + 1}
    stator.graph_break()
    memo[number] = memo[number] * 2
    return memo[id(thing)], number in memo, id(memo) in memo


def number_that_is_returned(x: Tensor, thing: Any) -> Any:
    number = id(thing)
    stator.graph_break()
    return x + 1, number - id(thing)


def number_without_the_thing(x: Tensor) -> Any:
    thing = Custom(x)
    number, number_of_x = id(thing), id(x)
    del thing
    stator.graph_break()
    return x + 1, isinstance(number, int), number_of_x == id(x)


@pytest.mark.parametrize("program", [over_a_break, number_that_is_returned])
def test_identities_of_fresh_objects_go_over_a_break_without_compiling_again(
    program: Program,
) -> None:
    compiled = stator.compile(program, backend="eager")
    for number in range(6):
        thing = Custom(torch.ones(1))
        assert repr(compiled(tensor(), thing)) == repr(program(tensor(), thing)), number
        if number == 2:
            compilations = compiled.report.entry_count
    assert compiled.report.entry_count == compilations


def test_identities_of_what_has_gone_are_numbers() -> None:
    compiled = stator.compile(number_without_the_thing, backend="eager")
    for _ in range(3):
        assert repr(compiled(tensor())) == repr(number_without_the_thing(tensor()))
