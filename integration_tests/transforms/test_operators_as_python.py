"""Operators that are a few lines of Python: results of every kind, effects, breaks and gradients
are those of plain Python; and `print` in the order of the program."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Callable
from typing import Any

import pytest
import stator
import torch
from torch import Tensor

ops: Any = torch.ops.higher_order
hops: Any = torch._higher_order_ops
Program = Callable[[Tensor, list[Any]], Any]


def outcome(program: Any, start: float = 0.5) -> str:
    """Return what two calls print, give, raise, write and append to a list, and gradients."""
    x, seen, printed = torch.full((2, 2), start), list[Any](), io.StringIO()
    x.requires_grad_()
    found: list[Any] = []
    with contextlib.redirect_stdout(printed):
        for _ in range(2):
            try:
                result = program(x * 1, seen)
                first = result[0] if isinstance(result, tuple) else result
                if isinstance(first, Tensor) and first.requires_grad:
                    torch.autograd.backward(first.sum())
            except RuntimeError as error:
                result = type(error).__name__, str(error)[:30]
            found.append((result, torch.is_grad_enabled(), torch.is_autocast_enabled("cpu")))
    return repr((found, seen, x.grad, printed.getvalue()))


def without_gradients(x: Tensor, seen: list[Any]) -> Any:
    def body(a: Tensor, times: int) -> Any:
        seen.append(torch.is_grad_enabled())
        return {"scaled": a * times}, (times, None, "text")

    return x * 2, ops.wrap_with_set_grad_enabled(False, body, x, times=3)


def with_autocast(x: Tensor, seen: list[Any]) -> Any:
    def body(a: Tensor) -> Any:
        seen.append(torch.get_autocast_dtype("cpu"))
        return (a @ a).float(), a.dtype

    return ops.wrap_with_autocast("cpu", torch.bfloat16, True, True, body, x)


def break_in_a_body(x: Tensor, seen: list[Any]) -> Any:
    def body(a: Tensor) -> Tensor:
        b = a.sin()
        print("between")
        return b * 2

    return ops.wrap_with_set_grad_enabled(True, body, x) + 1


def wrapper_that_counts(x: Tensor, seen: list[Any]) -> Any:
    def wrapper(inner: Callable[..., Any]) -> Callable[..., Any]:
        def counted(*args: Any, **kwargs: Any) -> Any:
            seen.append(len(args))
            return inner(*args, **kwargs) + 1, seen[-1]

        return counted

    return ops.dynamo_bypassing_wrapper(wrapper, lambda a, scale: a * scale, x, scale=2)


def hook_with_inputs(x: Tensor, seen: list[Any]) -> Any:
    scale = torch.full((2, 2), 3.0)
    return ops.register_hook(x.sin(), lambda grad, factor: grad * factor, scale) * 2


def mapped_over_lists(x: Tensor, seen: list[Any]) -> Any:
    y = x.detach()
    return tuple(hops.foreach_map(torch.mul, [y, y + 1], [y + 2, 2.0 * y]))


def mapped_by_a_function(x: Tensor, seen: list[Any]) -> Any:
    y = x.detach()
    return tuple(hops.foreach_map(lambda a, b: a.sin() + b, [y, y + 1], 2.0))


def printed_in_order(x: Tensor, seen: list[Any]) -> Any:
    hops.print("first {}", x.detach())
    print("second")
    for index in range(2):
        hops.print("{} of {total}", index, total=2)
    return x * 2


def printed_before_an_error(x: Tensor, seen: list[Any]) -> Any:
    hops.print("before {}", x.shape)
    return torch.linalg.cholesky(-x @ x)


def printed_before_an_error_that_is_handled(x: Tensor, seen: list[Any]) -> Any:
    try:
        hops.print("before {}", x.shape)
        return torch.linalg.cholesky(-x @ x)
    except RuntimeError as error:
        return type(error).__name__


def printed_around_a_write(x: Tensor, seen: list[Any]) -> Any:
    y = x.detach().clone()
    hops.print("{}", y.add_(1))
    hops.print("{}", y.mul_(2))
    return y


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize(
    "program",
    [
        without_gradients,
        with_autocast,
        break_in_a_body,
        wrapper_that_counts,
        hook_with_inputs,
        mapped_over_lists,
        mapped_by_a_function,
        printed_in_order,
        printed_before_an_error,
        printed_before_an_error_that_is_handled,
        printed_around_a_write,
    ],
)
def test_operator_does_what_it_does_in_plain_python(program: Program, backend: str) -> None:
    expected = outcome(program)
    actual = outcome(stator.compile(program, backend=backend))
    names = ("CompiledFunctionBackward", "AsStridedBackward0")
    if any(name in actual for name in names):
        expected, actual = (text.partition("grad_fn")[0] for text in (expected, actual))
    assert actual == expected


@pytest.mark.parametrize(
    "program",
    [
        without_gradients,
        with_autocast,
        wrapper_that_counts,
        hook_with_inputs,
        mapped_over_lists,
        mapped_by_a_function,
        printed_around_a_write,
    ],
)
def test_operator_is_captured_whole(program: Program) -> None:
    compiled = stator.compile(program, backend="eager", fullgraph=True)
    assert outcome(compiled) == outcome(program)


def test_print_of_a_size_is_no_constant() -> None:
    def program(x: Tensor) -> Tensor:
        hops.print("{} rows", x.shape[0])
        return x + 1

    compiled = stator.compile(program, backend="eager", fullgraph=True)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        for size in (2, 3, 4, 5):
            compiled(torch.ones(size))
    assert printed.getvalue() == "2 rows\n3 rows\n4 rows\n5 rows\n"
    assert len(compiled.report.graphs) == 2


def test_random_numbers_of_a_called_operator_advance_the_stream() -> None:
    def program(x: Tensor) -> Any:
        _, drawn = ops.run_and_save_rng_state(torch.ops.aten.bernoulli.p, x, 0.5)
        return drawn, torch.bernoulli(x * 0.5)

    compiled = stator.compile(program, backend="eager", fullgraph=True)
    found = []
    for call in (program, compiled):
        torch.manual_seed(0)
        found.append([*call(torch.ones(8)), torch.get_rng_state()])
    assert all(map(torch.equal, *found))
