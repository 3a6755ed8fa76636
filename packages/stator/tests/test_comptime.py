"""`comptime`: functions that look at a trace."""

from __future__ import annotations

from typing import Any

import pytest
import stator
import torch

X = torch.arange(3.0)
SEEN: list[Any] = []


@pytest.fixture(autouse=True)
def nothing_seen() -> None:
    SEEN.clear()


def compiled(fn: Any, **settings: Any) -> Any:
    """Compile a function, and call it twice: what is noted is noted while tracing."""
    made = stator.compile(fn, backend="eager", **settings)
    for _ in range(2):
        made(X)
    return made


def note(trace: stator.ComptimeContext) -> None:
    SEEN.append([node.name for node in trace.graph().nodes])


def looked_at(x: torch.Tensor) -> torch.Tensor:
    y = x.sin()
    stator.comptime(note)
    return y.cos()


def test_function_is_called_once_per_trace_and_breaks_nothing() -> None:
    report = compiled(looked_at, fullgraph=True).report
    assert report.graph_count == 1
    assert SEEN == [["x", "sin"]]


def test_eager_code_calls_the_fallback() -> None:
    assert torch.equal(looked_at(X), X.sin().cos())
    assert not SEEN
    stator.comptime(note, lambda: SEEN.append("eagerly"))
    assert SEEN == ["eagerly"]


def test_local_variables() -> None:
    def fn(x: torch.Tensor) -> torch.Tensor:
        y, k, shared = x.sin(), 3, 5.0
        stator.comptime(lambda trace: SEEN.append(trace.get_local("y").as_fake().shape))
        stator.comptime(lambda trace: SEEN.append(trace.get_local("k").as_python_constant()))
        stator.comptime(lambda trace: SEEN.append(trace.get_local("shared").python_type()))
        stator.comptime(lambda trace: SEEN.append(trace.get_local("y").is_python_constant()))
        return y * k * (lambda: shared)()

    compiled(fn, fullgraph=True)
    assert SEEN == [(3,), 3, float, False]


@pytest.mark.parametrize(
    ("look", "error"),
    [
        (lambda trace: trace.get_local("z"), "'z'"),
        (lambda trace: trace.get_local("x").as_python_constant(), "is no constant"),
    ],
)
def test_error_of_a_look_names_it(look: Any, error: str) -> None:
    def fn(x: torch.Tensor) -> torch.Tensor:
        stator.comptime(look)
        return x + 1

    with pytest.raises(stator.InvalidUse, match=error):
        compiled(fn)


def test_lines_and_guards_and_graph_are_printed(capsys: pytest.CaptureFixture[str]) -> None:
    def inner(x: torch.Tensor) -> torch.Tensor:
        stator.comptime(lambda trace: SEEN.extend(span.function for span in trace.stack()))
        stator.comptime(lambda trace: trace.print_graph())
        stator.comptime(lambda trace: trace.print_guards())
        return x + 1

    def outer(x: torch.Tensor) -> torch.Tensor:
        return inner(x.sin())

    compiled(outer, fullgraph=True)
    assert [name.rpartition(".")[2] for name in SEEN] == ["inner", "outer"]
    printed = capsys.readouterr().out
    assert "call_method[target=sin]" in printed
    assert "x is a Tensor" in printed


def test_break_that_a_look_requests() -> None:
    def fn(x: torch.Tensor) -> torch.Tensor:
        y = x.sin()
        stator.comptime(lambda trace: trace.graph_break("on purpose"))
        return y.cos()

    report = compiled(fn).report
    assert report.graph_count == 2
    assert "on purpose" in str(report.breaks[0])


def test_function_with_a_closure_breaks() -> None:
    def fn(x: torch.Tensor) -> torch.Tensor:
        y = x.sin()
        stator.comptime(lambda trace: SEEN.append(y))
        return y.cos()

    (reason,) = compiled(fn).report.breaks
    assert reason.reason == "comptime"
    assert not SEEN


def test_nodes_and_sizes_of_values() -> None:
    def see(trace: stator.ComptimeContext) -> None:
        y = trace.get_local("y")
        SEEN.append((y.as_proxy().name, y.size(), y.size(0)))

    def fn(x: torch.Tensor) -> torch.Tensor:
        y = x.sin()
        stator.comptime(see)
        return y.cos()

    compiled(fn, fullgraph=True)
    assert SEEN == [("sin", (3,), 3)]
