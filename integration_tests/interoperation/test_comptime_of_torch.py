"""`torch._dynamo.comptime` in code that stator compiles: the functions that `stator.comptime`
offers to traces, by torch's names."""

from __future__ import annotations

from typing import Any

import pytest
import stator
import torch
from torch._dynamo.comptime import comptime

X = torch.linspace(-1.0, 2.0, 6)
look: Any = comptime
SEEN: list[Any] = []


@pytest.fixture(autouse=True)
def nothing_seen() -> None:
    SEEN.clear()


def prints(x: torch.Tensor, n: int) -> Any:
    y = x.sin()
    look.print(y)
    look.print_graph()
    look.print_locals()
    look.print_bt()
    look.print_guards()
    look.print_disas()
    look.print_value_stack()
    z = y + look.print_value_stack_and_return(y)
    look.sleep(0.0)
    return z * n


def test_printing_breaks_no_graph(capsys: pytest.CaptureFixture[str]) -> None:
    compiled = stator.compile(prints, backend="eager", fullgraph=True)
    for k in (2, 2, 2):
        assert torch.equal(compiled(X, k), X.sin() * 2 * k)
    printed = capsys.readouterr().out
    assert printed.count("FakeTensor(..., size=(6,))\n") == 3  # print, and two locals
    assert "call_method[target=sin]" in printed
    assert "n = " in printed
    assert ", in prints" in printed
    assert "x is a Tensor" in printed
    assert "--> CALL" in printed
    assert "- <TensorTracker" in printed


def test_function_runs_once_per_trace_and_its_fallback_in_eager_code() -> None:
    def fn(x: torch.Tensor, n: int) -> torch.Tensor:
        look(
            lambda trace: SEEN.append((trace.get_local("n").is_dynamic(), trace.parent())),
            lambda: SEEN.append("eagerly"),
        )
        return x * n

    compiled = stator.compile(fn, backend="eager", fullgraph=True)
    for n in (2, 2, 3, 4):
        assert torch.equal(compiled(X, n), X * n)
    assert [dynamic for dynamic, _ in SEEN] == [False, True]
    fn(X, 2)
    assert SEEN[-1] == "eagerly"


def test_sizes_are_made_constants() -> None:
    def fn(x: torch.Tensor) -> torch.Tensor:
        look.force_static(x)
        return x * 2

    compiled = stator.compile(fn, backend="eager", fullgraph=True, dynamic=True)
    for size in (3, 4, 5):
        assert torch.equal(compiled(torch.ones(size)), torch.ones(size) * 2)
    assert compiled.report.graph_count == 3


def test_symbol_where_a_constant_is_expected() -> None:
    def fn(x: torch.Tensor, n: int) -> torch.Tensor:
        look.assert_static(n)
        return x * n

    compiled = stator.compile(fn, backend="eager")
    compiled(X, 2)
    with pytest.raises(stator.InvalidUse, match="expected a constant"):
        compiled(X, 3)


def test_break_has_no_other_effect() -> None:
    def fn(x: torch.Tensor) -> torch.Tensor:
        y = x.sin()
        look.graph_break()
        return y.cos()

    compiled = stator.compile(fn, backend="eager")
    for _ in range(2):
        assert torch.equal(compiled(X), X.sin().cos())
    assert (compiled.report.graph_count, len(compiled.report.breaks)) == (2, 1)
