"""What is one thing in one call is two in another: arguments that are also globals, one object
under two names, tensors that share memory, wholly, in part or not at all. Compiled once, called
with each arrangement after each other one.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import pytest
import stator
import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from integration_tests.support.oracle import assert_same

ARRANGEMENTS: dict[str, Callable[[Tensor], tuple[Tensor, Tensor]]] = {
    "apart": lambda t: (t[:2].clone(), t[:2].clone()),
    "the same object": lambda t: (t[:2],) * 2,
    "two views of the same": lambda t: (t[:2], t[:2]),
    "overlapping": lambda t: (t[:2], t[1:3]),
    "one within the other": lambda t: (t[:2], t[1].expand(2, 2)),
    "side by side": lambda t: (t[:2], t[2:]),
    "transposed": lambda t: (t[:2], t[:2].t()),
    "another type of the same bits": lambda t: (t[:2], t[:2].view(torch.int32)),
    "detached": lambda t: (t[:2], t.detach()[:2]),
}
WRITERS: dict[str, Callable[[Tensor, Tensor], Any]] = {}


def writer(fn: Callable[[Tensor, Tensor], Any]) -> Callable[[Tensor, Tensor], Any]:
    WRITERS[fn.__name__.replace("_", " ")] = fn
    return fn


@writer
def one_is_written_and_the_other_read(a: Tensor, b: Tensor) -> Any:
    a.add_(1)
    return b * 2, a is b


@writer
def both_are_written(a: Tensor, b: Tensor) -> Any:
    if a is b:
        return a.mul_(3)
    a.add_(1)
    a[0] += 2
    return a + b.float(), a.data_ptr() == b.data_ptr()


@writer
def one_is_copied_into_the_other(a: Tensor, b: Tensor) -> Any:
    before = b.clone()
    a.copy_(b.float() + 1)
    return before, b


@writer
def a_view_taken_before_sees_a_write(a: Tensor, b: Tensor) -> Any:
    first = b[0]
    a.zero_()
    return first + 1, first


@writer
def written_on_both_sides_of_a_break(a: Tensor, b: Tensor) -> Any:
    a.add_(1)
    stator.graph_break()
    read = b.float().sum()
    a.mul_(read)
    return b, read


@writer
def results_are_what_the_arguments_are(a: Tensor, b: Tensor) -> Any:
    results = {"a": a, "b": b, "both": [a, b], "view": a.view(-1)}
    a.sub_(1)
    return results


@writer
def an_operator_writes_to_what_it_is_given(a: Tensor, b: Tensor) -> Any:
    torch.sin(b.float(), out=a)
    return a.data_ptr() == b.data_ptr(), a + b


@writer
def an_error_after_a_write(a: Tensor, b: Tensor) -> Any:
    a.add_(1)
    try:
        b.view(7)
    except RuntimeError as error:
        a.add_(1)
        return str(error), b
    return None


def each_after_each(kinds: Any) -> list[Any]:
    """A walk in which every pair stands side by side often enough to matter: forwards, backwards,
    every other."""
    names = list(kinds)
    return [*names, *names[::-2], *names[::-1]]


@pytest.mark.parametrize("options", [{}, {"break_everywhere": 2}], ids=["as it is", "every second"])
@pytest.mark.parametrize("title", WRITERS)
def test_tensors_share_memory_in_some_calls(title: str, options: dict[str, Any]) -> None:
    check(title, "eager", ARRANGEMENTS, options=dict(options))


@pytest.mark.parametrize(
    "title", [title for title in WRITERS if title != "an operator writes to what it is given"]
)
def test_tensors_share_memory_where_the_backend_has_no_writes(title: str) -> None:
    """It refuses some arrangements, at first or when the graph runs, and the program itself runs
    then; of an operator that may not write to what it reads it does not say so."""
    check(title, "aot_eager", ARRANGEMENTS, options={"fallback": True})


def check(title: str, backend: str, arrangements: Any, options: dict[str, Any]) -> None:
    order = each_after_each(arrangements)
    wanted, fn = iter(order), WRITERS[title]
    compiled = stator.compile(fn, backend=backend, recompile_limit=64, options=options)
    assert_same(
        fn,
        compiled,
        lambda: arrangements[next(wanted)](torch.arange(8.0).reshape(4, 2)),
        len(order),
        graphs_may_raise="fallback" in options,
    )


# -- objects and containers ------------------------------------------------------------------------
class Thing:
    def __init__(self) -> None:
        self.value, self.items = 1, [1]
        self.other = self

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Thing) and self.value == other.value

    __hash__ = object.__hash__


Pair = tuple[Any, Any]
PAIRS: dict[str, Callable[[], Pair]] = {
    "apart": lambda: (Thing(), Thing()),
    "one": lambda: (Thing(),) * 2,
    "one holds the other": lambda: _linked(Thing(), Thing()),
    "they share a list": lambda: _sharing(Thing(), Thing()),
}


def _linked(a: Thing, b: Thing) -> Pair:
    a.other = b
    return a, b


def _sharing(a: Thing, b: Thing) -> Pair:
    b.items = a.items
    return a, b


HELD: dict[str, Any] = {}
READERS: dict[str, Callable[[Tensor, Any, Any], Any]] = {}


def reader(fn: Callable[[Tensor, Any, Any], Any]) -> Callable[[Tensor, Any, Any], Any]:
    READERS[fn.__name__.replace("_", " ")] = fn
    return fn


@reader
def a_branch_on_identity(x: Tensor, a: Any, b: Any) -> Any:
    a.value += 1
    return (x + 1 if a is b else x * b.value), a == b, a.other is b


@reader
def a_write_to_one_list_is_read_of_the_other(x: Tensor, a: Any, b: Any) -> Any:
    a.items.append(len(b.items))
    b.items.extend(a.items)
    return x * sum(a.items), a.items is b.items, [a.items, b.items]


@reader
def an_attribute_is_set_by_one_path_and_read_by_another(x: Tensor, a: Any, b: Any) -> Any:
    a.other.value = 5
    return x * a.value, x * b.value


@reader
def an_attribute_is_deleted_by_one_path(x: Tensor, a: Any, b: Any) -> Any:
    del a.other.value
    return [hasattr(thing, "value") for thing in (a, b, a.other)], x


@reader
def objects_are_members_and_keys(x: Tensor, a: Any, b: Any) -> Any:
    table = {a: 1}
    table[b] = table.get(b, 0) + 5
    return len({a, b}), list(table.values()), [a, b].index(b), x + len(table)


@reader
def a_global_is_an_argument_too(x: Tensor, a: Any, b: Any) -> Any:
    HELD["a"] = a
    HELD["a"].value += 1
    y = x * b.value
    del HELD["a"].value
    return y, hasattr(b, "value"), HELD.pop("a") is b


@reader
def one_thing_is_returned_in_many_places(x: Tensor, a: Any, b: Any) -> Any:
    stator.graph_break()
    return {"a": a, "b": [b, (a.other,)], "items": (a.items, b.items)}, x + 1


@reader
def a_closure_and_an_argument(x: Tensor, a: Any, b: Any) -> Any:
    def bump() -> int:
        a.value += 1
        return int(b.value)

    return [bump(), bump()], x * bump()


@pytest.mark.parametrize(
    "options", [{}, {"break_everywhere": "calls"}], ids=["as it is", "every call"]
)
@pytest.mark.parametrize("title", READERS)
def test_objects_are_one_in_some_calls(title: str, options: dict[str, Any]) -> None:
    order = each_after_each(PAIRS)
    wanted = iter(order)
    fn = READERS[title]
    compiled = stator.compile(fn, backend="eager", recompile_limit=64, options=dict(options))
    assert_same(fn, compiled, lambda: (torch.arange(3.0), *PAIRS[next(wanted)]()), len(order))


def test_an_argument_is_a_global_in_some_calls() -> None:
    """First the very list that is also a global, then others, by every order of the two."""
    known = [1, 2]

    def read(x: Tensor, items: list[int]) -> Any:
        items.append(3)
        return x * len(known), items is known, sum(known), known[-1]

    for order in itertools.permutations([known, [1], [1, 2], known], 4):
        compiled = stator.compile(read, backend="eager", recompile_limit=64)
        for items in order:
            found = []
            for call in (read, compiled):
                known[:], mine = [1, 2], (known if items is known else list(items))
                found.append([call(torch.ones(2), mine), mine])
            assert repr(found[0]) == repr(found[1])


def test_an_identity_that_is_used_again_is_that_of_another_object() -> None:
    def fn(x: Tensor, thing: Any) -> Any:
        return x * thing.value

    def at(address: int, cls: type) -> Any:
        """A new object in memory that was given back, unless something else got it."""
        made = [cls() for _ in range(10_000)]
        return next((thing for thing in made if id(thing) == address), None)

    first, second = (type("Made", (), {"value": i}) for i in range(2))
    for _ in range(100):
        compiled = stator.compile(fn, backend="eager")
        thing = first()
        address = id(thing)
        assert compiled(torch.ones(1), thing) == 0
        del thing
        thing = at(address, second)
        if thing is not None:
            break
    assert compiled(torch.ones(1), thing) == 1


COMPUTED_TWICE: dict[str, Callable[[Tensor], Any]] = {
    "orders": lambda x: (x.argsort(0), x.argsort(0), x.exp()),
    "parts of orders": lambda x: (x.argsort(0)[0], x.argsort(0)[0], x.exp()),
    "one seen twice": lambda x: (x.argsort(0), order := x.argsort(0), order.view(-1), x.exp()),
    "largest": lambda x: (*x.max(0), *x.max(0)),
    "in a checkpoint": lambda x: checkpoint(
        lambda a: (a.argsort(0), a.argsort(0), a.exp()), x, use_reentrant=False
    ),
}


@pytest.mark.parametrize("title", COMPUTED_TWICE)
def test_results_that_were_computed_twice_are_two(title: str) -> None:
    """Though compilers compute equal calls once."""
    fn = COMPUTED_TWICE[title]
    compiled = stator.compile(fn, backend="aot_eager", fullgraph=True)
    assert_same(
        fn,
        compiled,
        lambda: (torch.linspace(-1, 1, 6).reshape(2, 3).requires_grad_(),),
        graphs_may_raise=False,
    )
