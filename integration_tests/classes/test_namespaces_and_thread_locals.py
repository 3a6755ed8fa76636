"""Namespaces and thread-local objects in a region: made, changed, compared, returned and carried
over a break."""

from __future__ import annotations

import threading
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
import stator
import torch
from torch import Tensor

from integration_tests.support.oracle import assert_same


class Total(SimpleNamespace):
    k = 1

    def total(self) -> Any:
        return sum(value.sum() for value in vars(self).values())


class Counted(SimpleNamespace):
    def __init__(self, a: Any, **rest: Any) -> None:
        super().__init__(a=a, **rest)
        self.n = len(rest)


def of_results(x: Tensor, given: Any) -> Any:
    return SimpleNamespace(loss=x.sum(), out=x * 2, extra=None)


def nested_and_changed(x: Tensor, given: Any) -> Any:
    o = SimpleNamespace(a=x, b=SimpleNamespace(c=x * 2))
    o.b.c = o.b.c + 1
    del o.a
    o.z = [o]
    return o, o.z[0] is o, vars(o).keys(), hasattr(o, "a"), getattr(o, "q", 3)


def compared(x: Tensor, given: Any) -> Any:
    one, two = SimpleNamespace(a=1), SimpleNamespace(a=2)
    same = (
        one == SimpleNamespace(a=1),
        one != two,
        one == two,
        SimpleNamespace() == SimpleNamespace(),
    )
    return x + 1, same, one == 3, one == {"a": 1}, one != 3, Total(a=1) == one, one == Total(a=1)


def of_subclasses(x: Tensor, given: Any) -> Any:
    s = Total(a=x, b=x * 2)
    return s, s.total(), s.k, isinstance(s, SimpleNamespace), type(s) is Total


def broken_in_between(x: Tensor, given: Any) -> Any:
    o = Counted(x, b=1, c=2)
    other = o
    stator.graph_break()
    o.d = x + o.n
    return o, other is o


def from_outside(x: Tensor, given: Any) -> Any:
    given.a = x + 1
    given.n += 1
    return given == SimpleNamespace(n=given.n, a=given.a), hasattr(given, "b")


def in_odd_ways(x: Tensor, given: Any) -> Any:
    said = []
    for attempt in (
        lambda: SimpleNamespace(1),  # type: ignore[call-arg]
        lambda: hash(SimpleNamespace()),
        lambda: SimpleNamespace(a=1) < SimpleNamespace(a=2),  # type: ignore[operator]
        lambda: SimpleNamespace().a,
    ):
        try:
            attempt()
        except (TypeError, AttributeError) as error:
            said.append(str(error))
    return x + 1, said, repr(SimpleNamespace(a=1, b="c")), SimpleNamespace(**{"a b": 1})


def with_a_generator(x: Tensor, given: Any) -> Any:
    o = SimpleNamespace()
    o.it = (v for v in range(3))
    next(o.it)
    stator.graph_break()
    return next(o.it) + x, o.__dict__.keys()


PROGRAMS = [
    *(
        of_results,
        nested_and_changed,
        compared,
        of_subclasses,
        broken_in_between,
        from_outside,
        in_odd_ways,
    ),
    with_a_generator,
]


@pytest.mark.parametrize("function", PROGRAMS)
def test_a_namespace_is_as_in_python(function: Callable[..., Any]) -> None:
    assert_same(
        function,
        stator.compile(function, backend="eager"),
        lambda: (torch.ones(2), SimpleNamespace(n=1)),
    )


@pytest.mark.parametrize(
    "function", [of_results, nested_and_changed, compared, of_subclasses, from_outside]
)
def test_a_namespace_is_no_break(function: Callable[..., Any]) -> None:
    stator.compile(function, backend="eager", fullgraph=True)(torch.ones(2), SimpleNamespace(n=1))


class Claiming(str):
    __class__ = SimpleNamespace  # type: ignore[assignment]


def test_what_only_claims_to_be_a_namespace_is_none() -> None:
    def f(x: Tensor, other: Any) -> Any:
        return x + 1, SimpleNamespace() == other, SimpleNamespace() != other

    assert stator.compile(f, backend="eager")(torch.ones(2), Claiming())[1:] == (False, True)


# -- thread-local objects --------------------------------------------------------------------------
class OfThread(threading.local):
    default = 2.0


@pytest.mark.parametrize("make", [threading.local, OfThread])
def test_dict_of_a_thread_local_object(make: Any) -> None:
    local = make()

    def f(x: torch.Tensor) -> Any:
        found = local.__dict__.get("factor", 3.0)
        return x * found, "factor" in vars(local), len(local.__dict__)

    compiled = stator.compile(f, backend="eager", fullgraph=True)
    for _ in range(2):
        assert repr(compiled(torch.ones(2))) == repr(f(torch.ones(2)))
    assert len(compiled.report.graphs) == 1

    local.factor = 5.0
    assert repr(compiled(torch.ones(2))) == repr(f(torch.ones(2)))

    found: list[Any] = []
    thread = threading.Thread(target=lambda: found.append(compiled(torch.ones(2))))
    thread.start()
    thread.join()
    assert repr(found[0]) == repr((torch.full((2,), 3.0), False, 0))
