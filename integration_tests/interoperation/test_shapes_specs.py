"""The keyword `shapes_spec`: sizes and numbers that are symbols, by the classes of torch."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import stator
import torch
from torch.fx.experimental import dynamic_spec as specs

from integration_tests.support.counting import Counting

ones = torch.ones
A: Any
A, B, BOUNDED = specs.ShapeVar("a"), specs.ShapeVar("b"), specs.ShapeVar("c", min=2, max=6)
T = specs.TensorSpec


class Scaled(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(4, 4)

    def forward(self, x: torch.Tensor, *rest: torch.Tensor, scale: int = 2) -> Any:
        return sum(self.linear(each).sum() for each in (x, *rest)) * scale


def local(offset: int) -> Any:
    return lambda input: input + offset


def both(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return torch.cat([x, y]).sin()


def nested(items: dict[str, Any], pair: list[Any]) -> Any:
    return items["k"] + pair[0]


# function, specification, calls, number of graphs
DESCRIBED: list[Any] = [
    (lambda input: input.sin(), {"input": T([A, None])}, [(ones(n, 4),) for n in (3, 5, 1, 0)], 1),
    (local(1), {"input": T([A])}, [(ones(n),) for n in (3, 1, 2)], 1),
    (local(1), specs.ParamsSpec({"input": T([BOUNDED])}), [(ones(n),) for n in (2, 6)], 1),
    (both, {"x": T([A]), "y": T([A])}, [(ones(n), ones(n)) for n in (3, 1)], 1),
    (both, {"x": T([A]), "y": T([A * 2])}, [(ones(n), ones(2 * n)) for n in (3, 1)], 1),
    (both, {"x": T([A])}, [(ones(n), ones(m)) for n in (3, 4) for m in (2, 3)], 2),
    (lambda x, n: x * n, {"n": specs.IntVar("n")}, [(ones(2), n) for n in (2, 3, -4, 7)], 1),
    (lambda x, n: x * n, {"x": T([A])}, [(ones(m), n) for n in (2, 3) for m in (2, 5)], 2),
    (lambda *xs: xs[0] - xs[1], {"*args": [T([A]), T([A])]}, [(ones(n),) * 2 for n in (3, 5)], 1),
    (
        nested,
        {"items": specs.DictSpec({"k": T([A])}), "pair": specs.SeqSpec([T([A])])},
        [({"k": ones(n)}, [ones(n)]) for n in (3, 5)],
        1,
    ),
    (
        lambda config: config.x.sin(),
        {"config": specs.ObjectSpec({"x": T([A])})},
        [(SimpleNamespace(x=ones(n)),) for n in (3, 5, 1)],
        1,
    ),
    (Scaled(), {"x": T([A, None])}, [(ones(n, 4),) for n in (3, 5, 1)], 1),
    (
        Scaled(),
        {"x": T([A, 4]), "*args": [T([B, None])]},
        [(ones(n, 4), ones(n + 1, 4)) for n in (3, 5)],
        1,
    ),
]


@pytest.mark.parametrize(("fn", "spec", "calls", "count"), DESCRIBED)
def test_one_graph_serves_all_sizes_that_are_named(
    fn: Any, spec: Any, calls: list[Any], count: int
) -> None:
    counting = Counting()
    compiled = stator.compile(fn, backend=counting, shapes_spec=spec)
    for _ in range(2):
        for args in calls:
            assert torch.equal(compiled(*args), fn(*args))
    assert counting.count == count


# specification of `both`, a call that it describes, one that it does not, the problem
AT_ODDS: list[Any] = [
    ({"x": T([BOUNDED])}, (3, 2), (7, 2), r"x.size\(0\) is 7, not as ShapeVar"),
    ({"x": T([A]), "y": T([A])}, (3, 3), (5, 1), r"y.size\(0\) is 1, not as ShapeVar\(a"),
    ({"x": T([A]), "y": T([A + 1])}, (3, 4), (5, 1), r"a#\d+ \+ 1 is 6, not 1"),
    ({"x": T([3])}, (3, 4), (5, 1), r"x.size\(0\) is 5, not as 3"),
    (
        specs.ShapesSpec({"x": T([A]), "y": T([B])}, assumptions=[A + B > 5]),
        *((3, 3), (2, 1), r"> 5 is False, not True"),
    ),
]


@pytest.mark.parametrize(("spec", "good", "bad", "problem"), AT_ODDS)
def test_call_at_odds_with_its_specification(spec: Any, good: Any, bad: Any, problem: str) -> None:
    counting = Counting()
    compiled = stator.compile(both, backend=counting, shapes_spec=spec)
    for sizes in (good, bad, good, bad):
        if sizes is bad:
            with pytest.raises(stator.InvalidUse, match=problem):
                compiled(*map(ones, sizes))
        else:
            assert torch.equal(compiled(*map(ones, sizes)), both(*map(ones, sizes)))
    assert counting.count == 1


def test_specification_that_is_not_valid() -> None:
    with pytest.raises(stator.InvalidUse, match="dynamic and shapes_spec"):
        stator.compile(both, dynamic=True, shapes_spec={"x": T([A])})
    with pytest.raises(stator.InvalidUse, match="is not valid"):
        stator.compile(both, shapes_spec=[A])
    unbound = stator.compile(both, backend="eager", shapes_spec={"x": T([A * 2])})
    with pytest.raises(stator.InvalidUse, match="is of a name"):
        unbound(ones(2), ones(2))
    other_rank = stator.compile(both, backend="eager", shapes_spec={"x": T([A, A])})
    with pytest.raises(stator.InvalidUse, match="number of dimensions of x is 1, not as 2"):
        other_rank(ones(2), ones(2))


def test_compilations_with_other_specifications_share_nothing() -> None:
    counting = Counting()
    for spec in ({"x": T([A])}, {"y": T([A])}, None):
        compiled = stator.compile(both, backend=counting, shapes_spec=spec)
        assert torch.equal(compiled(ones(2), ones(3)), both(ones(2), ones(3)))
    assert counting.count == 3
