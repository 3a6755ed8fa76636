"""What users put into their own code, and the marks they put for torch."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import pytest
import stator
import torch

X = torch.arange(3.0)
Compile = Callable[..., Any]


def test_disabled_function_breaks_the_graph_and_runs(compile_: Compile) -> None:
    ran = []

    @stator.disable
    def plain(x: Any) -> Any:
        ran.append(stator.is_compiling())
        return x + 1

    compiled = compile_(lambda x: plain(x * 2) * 3)
    assert torch.equal(compiled(X), (X * 2 + 1) * 3)
    assert ran == [False]
    assert [each.reason for each in compiled.report.breaks] == ["disabled"]
    assert compiled.report.graph_count == 2


def test_disabled_function_is_not_compiled(compile_: Compile) -> None:
    plain = stator.disable()(lambda x: x + 1)
    assert compile_(plain) is plain


def test_marks_of_torch_are_honoured(compile_: Compile) -> None:
    plain = torch.compiler.disable(lambda x: x + 1)  # type: ignore[no-untyped-call]
    assert compile_(plain) is plain
    compiled = compile_(lambda x: plain(x * 2))
    assert torch.equal(compiled(X), X * 2 + 1)
    assert len(compiled.report.breaks) == 1


def test_disabled_methods_of_every_kind(compile_: Compile) -> None:
    class Holder:
        @stator.disable
        def method(self, x: Any) -> Any:
            return x + 1

        @stator.disable
        @staticmethod
        def static(x: Any) -> Any:
            return x + 2

    holder = Holder()
    compiled = compile_(lambda x: holder.method(x) * holder.static(x))
    assert torch.equal(compiled(X), (X + 1) * (X + 2))
    assert len(compiled.report.breaks) == 2


def test_disabled_module_stays_the_object_it_is(compile_: Compile) -> None:
    plain = torch.nn.Linear(3, 3)
    assert stator.disable(plain) is plain
    compiled = compile_(lambda x: plain(x * 2) + 1)
    assert torch.equal(compiled(X), plain(X * 2) + 1)
    assert "disabled" in [each.reason for each in compiled.report.breaks]


def test_disabled_class_of_modules(compile_: Compile) -> None:
    @stator.disable
    class Plain(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            return x + int(stator.is_compiling())

    module = Plain()
    assert torch.equal(compile_(lambda x: module(x * 2))(X), X * 2)


def test_what_cannot_be_disabled_is_refused() -> None:
    for subject in (3, int):
        with pytest.raises(stator.InvalidUse, match="cannot disable"):
            stator.disable(subject)


def test_graph_break_does_nothing_plainly_and_breaks_when_compiled(compile_: Compile) -> None:
    def twice(x: Any) -> Any:
        y = x + 1
        stator.graph_break()
        return y * 2

    compiled = compile_(twice)
    assert torch.equal(compiled(X), twice(X))
    assert [each.reason for each in compiled.report.breaks] == ["graph-break"]
    assert compiled.report.graph_count == 2


def test_is_compiling_while_captured_only(compile_: Compile) -> None:
    def ask(x: Any) -> Any:
        return x + 1 if stator.is_compiling() else x - 1

    assert torch.equal(compile_(ask)(X), X + 1)
    assert torch.equal(ask(X), X - 1)


class Recursive(torch.nn.Module):
    """Its `__getattr__` needs attributes that are not there yet."""

    def __getattr__(self, name: str) -> Any:
        if hasattr(self, "extra"):
            return 1
        return super().__getattr__(name)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * 2


def test_compiling_reads_no_attribute_through_a_getattr_of_the_program() -> None:
    x = torch.ones(2)
    assert torch.equal(stator.compile(Recursive(), backend="eager")(x), x * 2)


def test_a_getattr_of_the_program_is_not_executed_when_its_object_is_compiled() -> None:
    read: list[str] = []

    class Doubling:
        def __getattr__(self, name: str) -> Any:
            read.append(name)
            return True

        def __call__(self, x: torch.Tensor) -> torch.Tensor:
            return x * 2

    compiled = stator.compile(Doubling(), backend="eager")
    partial = stator.compile(functools.partial(Doubling()), backend="eager")
    assert torch.equal(compiled(torch.ones(2)), torch.ones(2) * 2)
    assert torch.equal(partial(torch.ones(2)), torch.ones(2) * 2)
    assert read == []
    assert compiled.report.graph_count == 1


def test_a_method_of_a_disabled_function_stays_disabled() -> None:
    class Model:
        @stator.disable
        def run(self, x: torch.Tensor) -> torch.Tensor:
            return x * 2

    method = Model().run
    assert stator.compile(method, backend="eager") == method


def test_disabled_bound_method_stays_bound(compile_: Compile) -> None:
    class Holder:
        def method(self, x: Any) -> Any:
            return x + int(stator.is_compiling())

    holder = Holder()
    disabled = stator.disable(holder.method)
    assert disabled.__self__ is holder
    compiled = compile_(lambda x: disabled(x * 2))
    for _ in range(2):
        assert torch.equal(compiled(X), X * 2)
    assert [each.reason for each in compiled.report.breaks] == ["disabled"]


def test_compiling_a_form_of_what_is_disabled_runs_plainly(compile_: Compile) -> None:
    @stator.disable
    class Plain(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            return x + int(stator.is_compiling())

    @stator.disable
    def plain(x: Any, k: int) -> Any:
        return x * k + int(stator.is_compiling())

    assert torch.equal(compile_(Plain())(X), X)
    assert torch.equal(compile_(functools.partial(plain, k=2))(X), X * 2)


def test_functions_disabled_alone_call_each_other(compile_: Compile) -> None:
    @stator.disable(recursive=False)
    def inner(x: Any) -> Any:
        return helper(x) + int(stator.is_compiling())

    @stator.disable(recursive=False)
    def outer(x: Any) -> Any:
        return inner(x) + int(stator.is_compiling())

    def helper(x: Any) -> Any:
        return x + 10 * int(stator.is_compiling())

    compiled = compile_(lambda x: outer(x) * 2)
    for _ in range(2):
        assert torch.equal(compiled(X), (X + 10) * 2)


def test_unbacked_dimension_with_bounds(compile_: Compile) -> None:
    compiled = compile_(lambda x: x * 2 + x.shape[0])
    for size in (4, 5, 8, 2):
        x = torch.ones(size)
        stator.mark_unbacked(x, 0, min=2, max=8)
        assert torch.equal(compiled(x), x * 2 + size)
    assert compiled.report.graph_count == 1
    assert torch.equal(compiled(torch.ones(20)), torch.full((20,), 22.0))
