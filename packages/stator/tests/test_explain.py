"""Explanations: what a backend would get of a function, without running that backend."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import stator
import torch
from stator_backends import Inductor

X = torch.arange(4.0)


def sparse(x: Any) -> Any:
    return (x.to_sparse() * 2).to_dense() + 1


def dense(x: Any) -> Any:
    return x.sin() + 1


def written(x: Any) -> Any:
    """A write that AOTAutograd refuses by itself: backward needs what is overwritten."""
    y = x.exp()
    weight = torch.ones(4, requires_grad=True)
    weight.data.mul_(2)
    return (y * weight).sum()


def copied(x: Any) -> Any:
    x[1:3].mul_(2)
    return x.clone() + 1


def broken(x: Any) -> Any:
    y = sparse(x)
    stator.graph_break()
    return y.sin()


@pytest.fixture
def default_backend() -> Iterator[None]:
    stator.set_default_backend("aot_eager")
    yield
    stator.set_default_backend(None)


def never(graph: object, inputs: object) -> Any:
    raise AssertionError("a backend that is explained does not run")


@pytest.mark.parametrize("fn", [sparse, dense, written, copied, broken])
@pytest.mark.parametrize("backend", ["aot_eager", pytest.param("inductor", marks=pytest.mark.slow)])
def test_operators_are_those_of_the_compiled_function(fn: Callable[..., Any], backend: str) -> None:
    def explained(report: stator.Report) -> Any:
        facts = [(each.reason, each.where) for each in report.uncompiled]
        return facts, report.compiled_count, report.op_count, report.backend

    compiled: Any = stator.compile(fn, backend=backend, options={"uncompiled": "allow"})
    expected = compiled(X.clone())
    seen: list[Any] = []
    explanation = stator.explain(lambda x: seen.append(fn(x)), backend=backend)(X.clone())
    torch.testing.assert_close(seen[0], expected)
    assert explained(explanation) == explained(compiled.report)


def test_default_backend_is_explained_and_does_not_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Inductor, "__call__", never)
    assert stator.explain(dense)(X).backend == "inductor"


def test_uncompiled_operators_are_counted_with_reason_and_line(default_backend: None) -> None:
    line = sparse.__code__.co_firstlineno + 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        explanation = stator.explain(broken)(X)
    assert (explanation.compiled_count, explanation.op_count) == (2, 5)
    assert {each.reason for each in explanation.uncompiled} == {"sparse tensors"}

    text = str(explanation)
    assert "backend 'aot_eager'" in text.splitlines()[0]
    assert "\n  1 operator is compiled\n  3 run as they are: sparse tensors\n" in text
    assert f'File "{__file__}", line {line}, in sparse: to_sparse, mul, to_dense' in text
    assert "\n  all operators are compiled" in text

    data = explanation.data()
    assert (data["backend"], data["compiled_operators"]) == ("aot_eager", 2)
    first, second = data["entries"]
    assert [each["reason"] for each in first["uncompiled"]] == ["sparse tensors"] * 3
    assert second["uncompiled"] == []


def test_function_as_backend_does_not_run() -> None:
    explanation = stator.explain(sparse, backend=never)(X)
    assert (explanation.backend, explanation.compiled_count) == ("never", 1)


def test_backend_that_compiles_nothing() -> None:
    explanation = stator.explain(sparse, backend="eager")(X)
    assert (explanation.compiled_count, explanation.op_count) == (0, 4)
    assert not explanation.uncompiled
    assert "compiled" not in str(explanation)


def test_error_that_the_program_requires(default_backend: None) -> None:
    options = {"uncompiled": "error"}
    with pytest.raises(stator.Unsupported, match="sparse tensors"):
        stator.explain(sparse, options=options)(X)
    assert stator.explain(sparse, fullgraph=True)(X).uncompiled  # it shows what the error names


def test_function_is_called_once_and_compiled_for_nobody_else(default_backend: None) -> None:
    seen: list[int] = []

    def fn(x: Any) -> Any:
        seen.append(1)
        return x + 1

    compiled: Any = stator.compile(fn)
    assert stator.explain(fn)(X).entry_count == 1
    assert seen == [1]
    assert compiled.report.entry_count == 0
