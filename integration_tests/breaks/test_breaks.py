"""A break costs one break, wherever it stands: the same answer as plain Python, and exactly one
graph more."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from types import FunctionType
from typing import Any

import pytest
import stator
import torch
from torch import Tensor, nn

from integration_tests.breaks.broken_holders import CUT, EXPLODES
from integration_tests.corpora.models import Call
from integration_tests.support.counting import Counting
from integration_tests.support.oracle import assert_same


def quiet() -> None:
    """Instead of a break."""


@stator.disable
def explode() -> None:
    raise ValueError("one", "two")


def make_args(cut: Callable[[], Any]) -> Call:
    return Call((torch.linspace(-1, 1, 6).reshape(2, 3).requires_grad_(), cut))


def graphs(fn: Callable[..., Any], cut: Callable[[], Any]) -> int:
    counting = Counting()
    call = make_args(cut)
    stator.compile(fn, backend=counting)(*call.args)
    return counting.count


@pytest.mark.parametrize("title", CUT)
def test_broken_function_gives_what_plain_python_gives(title: str) -> None:
    assert_same(
        CUT[title],
        stator.compile(CUT[title], backend="eager"),
        lambda: make_args(stator.graph_break),
    )


@pytest.mark.parametrize("title", CUT)
def test_break_costs_one_graph(title: str) -> None:
    assert graphs(CUT[title], quiet) == 1
    assert graphs(CUT[title], stator.graph_break) == 2


@pytest.mark.parametrize("title", EXPLODES)
def test_exception_of_a_broken_call_meets_its_handlers(title: str) -> None:
    assert_same(
        EXPLODES[title],
        stator.compile(EXPLODES[title], backend="eager"),
        lambda: make_args(explode),
    )


def test_break_in_a_long_loop_does_not_nest() -> None:
    def loop(x: Tensor) -> Tensor:
        for _ in range(2000):
            x = x + 1
            stator.graph_break()
        return x

    counting = Counting()
    assert stator.compile(loop, backend=counting)(torch.zeros(2)).tolist() == [2000.0, 2000.0]
    assert counting.count <= 8


def test_every_break_says_why_where_and_what_to_try() -> None:
    compiled = stator.compile(CUT["a method five deep"], backend="eager")
    compiled(*make_args(stator.graph_break).args)
    (found,) = compiled.report.breaks
    assert found.reason
    assert found.hint
    assert "broken.py" in str(found.where)


@pytest.mark.parametrize(
    "builtin", [any, all, max, min, sum, lambda x: [*filter(None, x)], lambda x: max(x, key=abs)]
)
def test_break_in_what_c_does_names_the_line_of_the_program(builtin: Callable[..., Any]) -> None:
    def call(x: Tensor) -> Any:
        found = builtin([x.sum(), x.mean()])
        return found if torch.is_tensor(found) and found > 0 else x

    compiled = stator.compile(call, backend="eager")
    compiled(torch.ones(3))
    assert {str(broke.where.filename) for broke in compiled.report.breaks} == {__file__}


def test_a_traceback_that_is_formatted_costs_what_a_call_costs() -> None:
    def fn(x: Tensor) -> Any:
        try:
            raise ValueError("as text")
        except ValueError:
            return x + 1, traceback.format_exc()

    compiled = stator.compile(fn, backend="eager")
    assert_same(fn, compiled, lambda: (torch.ones(2),))
    assert [broke.reason for broke in compiled.report.breaks] == ["exception-object", "not-inlined"]


LAZY: dict[str, Callable[[], nn.Module]] = {
    "layers": lambda: nn.Sequential(nn.LazyLinear(5), nn.ReLU(), nn.LazyLinear(2)),
    "convolutions": lambda: nn.Sequential(
        nn.LazyConv1d(4, 1), nn.LazyBatchNorm1d(), nn.Flatten(), nn.LazyLinear(2)
    ),
    "one that is used twice": lambda: nn.Sequential(*[nn.LazyLinear(4)] * 2),
}


@pytest.mark.filterwarnings("ignore:Lazy modules")
@pytest.mark.parametrize("title", LAZY)
def test_the_first_call_of_a_lazy_module_costs_no_break(title: str) -> None:
    make = LAZY[title]
    torch.manual_seed(0)
    plain, module = make(), make()
    compiled: Any = stator.compile(module, backend="eager")
    assert_same(plain, compiled, lambda: (torch.ones(2, 4, 4),), calls=1, owners=(plain, module))
    assert [type(one) for one in plain.modules()] == [type(one) for one in module.modules()]
    assert compiled.report.breaks == []


def test_fullgraph_refuses_a_break() -> None:
    fn = stator.compile(CUT["straight line"], backend="eager", fullgraph=True)
    with pytest.raises(stator.StatorError, match=r"broken\.py"):
        fn(*make_args(stator.graph_break).args)


def test_function_made_of_the_code_of_a_module_runs_plainly_where_it_breaks() -> None:
    text = "y = x + 1\nstator.graph_break()\nfor i in range(2):\n    y = y + i\n"
    names: dict[str, Any] = {"x": torch.ones(2), "stator": stator, "__builtins__": __builtins__}
    compiled: Any = stator.compile(
        FunctionType(compile(text, "text", "exec"), names), backend="eager"
    )
    for _ in range(2):
        compiled()
        assert names["y"].tolist() == [3, 3]
        assert names["i"] == 1
    assert [reason.reason for reason in compiled.report.breaks] == ["class-body"]
