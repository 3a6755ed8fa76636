"""What type checkers see of compiled objects: their signatures, and the report. `mypy --strict`
checks this file; running it shows that the types are true."""

from __future__ import annotations

from collections.abc import Callable
from typing import assert_type

import stator
import torch
from torch import Tensor, nn

X = torch.ones(2)


@stator.compile
def bare(x: Tensor, times: int = 1) -> Tensor:
    return x * times


@stator.compile(backend="eager", mode=None, dynamic=False)
def with_settings(x: Tensor, times: int = 1) -> tuple[Tensor, int]:
    return x * times, times


class Plain:
    def plain(self, x: Tensor, by: float) -> Tensor:
        return x * by

    @stator.compile(backend="eager")
    def scaled(self, x: Tensor, by: float) -> Tensor:
        return x * by


class Scaling(nn.Module):
    @stator.compile(backend="eager")
    def forward(self, x: Tensor) -> Tensor:
        return x * 2


def of_a_module(module: nn.Module, x: Tensor) -> Tensor:
    result: Tensor = module(x)
    return result


def of_anything(x: object = "a", times: int = 1) -> int:
    return len(str(x)) * times


def test_a_function_keeps_its_signature_and_has_a_report() -> None:
    assert_type(with_settings(X, times=2), tuple[Tensor, int])
    assert_type(with_settings.report, stator.Report)
    assert with_settings.report.graph_count == 1
    assert bare.__name__ == "bare"


def test_a_method_is_bound() -> None:
    result = assert_type(Plain().scaled(X, 2.0), Tensor)
    assert torch.equal(result, X * 2)
    assert_type(Plain().scaled.report, stator.Report)


def test_a_module_stays_one_and_its_forward_may_be_compiled() -> None:
    model = assert_type(stator.compile(Scaling(), backend="eager"), Scaling)
    assert isinstance(model(X), Tensor)


def test_a_function_of_a_module_keeps_its_type() -> None:
    compiled = stator.compile(of_a_module, backend="eager")
    assert_type(compiled(Scaling(), X), Tensor)
    assert_type(stator.report_of(compiled), stator.Report)
    assert torch.equal(compiled(Scaling(), X), X * 2)
    assert stator.report_of(compiled).graph_count == 1


def test_a_function_that_takes_anything_first_keeps_its_signature_and_has_a_report() -> None:
    compiled = stator.compile(of_anything, backend="eager")
    decorated = stator.compile(backend="eager")(of_anything)
    assert_type(compiled(), int)
    assert_type(compiled("two", times=2), int)
    assert_type(decorated("two"), int)
    assert_type(decorated.report, stator.Report)
    assert compiled() == 1
    assert compiled("two", times=2) == decorated("two", times=2) == 6


def test_a_lambda_and_a_method_keep_their_signatures_and_have_reports() -> None:
    doubled: Callable[[Tensor], Tensor] = lambda x: x * 2  # noqa: E731
    of_lambda = stator.compile(doubled, backend="eager")
    assert_type(of_lambda(X), Tensor)
    assert_type(of_lambda.report, stator.Report)

    of_method = stator.compile(Plain().plain, backend="eager")
    assert_type(of_method(X, 2.0), Tensor)
    assert_type(of_method.report, stator.Report)
    assert torch.equal(of_lambda(X), X * 2)
    assert torch.equal(of_method(X, 2.0), X * 2)
    assert of_lambda.report.graph_count == of_method.report.graph_count == 1


def test_a_class_stays_one() -> None:
    class Adding:
        def __call__(self, x: Tensor) -> Tensor:
            return x + 1

    made = assert_type(stator.compile(Adding, backend="eager"), type[Adding])
    assert torch.equal(made()(X), X * 2)


def test_the_report_of_anything_compiled() -> None:
    module = stator.compile(Scaling(), backend="eager")
    in_place = stator.compile_in_place(nn.Linear(2, 2), backend="eager")
    for model in (module, in_place):
        model(X)
        assert stator.report_of(model).op_count == 1
