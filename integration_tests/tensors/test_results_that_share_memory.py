"""Views and other tensors over one memory that a compiled graph gives, and writes to them after a
break."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import stator
import torch
from torch import Tensor

Program = Callable[[Tensor], Any]


def everything(x: Tensor) -> Any:
    y = torch.zeros(3, 3)
    return y, y[0], y[0], y.detach(), y.data, y.view(3, 3), y[1].detach()


def views_of_nothing_given(x: Tensor) -> Any:
    y = torch.zeros(3, 3)
    return y[0], y[1], y.t()


def a_view_and_what_is_detached_of_it(x: Tensor) -> Any:
    y = torch.zeros(3, 3)
    v = y[0]
    return v, v.detach(), v


def turned(x: Tensor) -> Any:
    y = (x.detach() + 1).view(-1)
    return y, y.view(3, 3).t(), y.unfold(0, 3, 3), y[::2]


def made_under_no_grad(x: Tensor) -> Any:
    y = torch.zeros(3, 3)
    with torch.no_grad():
        v = y[0]
    return y, v, y[1]


def of_what_is_given(x: Tensor) -> Any:
    return x[0], x.view(-1), x.detach()


def written_before(x: Tensor) -> Any:
    y = torch.zeros(3, 3)
    y[0].fill_(1)
    y.add_(1)
    return y[0], y, y.detach()


def parts_of_complex_numbers(x: Tensor) -> Any:
    y = torch.complex(x, x + 1)
    return y.real[0], y.imag[0], torch.view_as_real(y)[1]


def conjugates(x: Tensor) -> Any:
    y = torch.complex(x, x + 1)
    return y.conj()[0], y.conj()[1], y.conj().imag[0]


def words_of_numbers(x: Tensor) -> Any:
    y = x + 1
    return y[0].view(torch.int32), y[1].view(torch.int32), y.detach()[0]


GIVING = [
    *(everything, views_of_nothing_given, a_view_and_what_is_detached_of_it, turned),
    *(made_under_no_grad, of_what_is_given, written_before),
    *(parts_of_complex_numbers, conjugates, words_of_numbers),
]


def relations(given: tuple[Tensor, ...]) -> Any:
    """Who is whom, a view of what, and counts its writes with whom."""
    bases = [value if value._base is None else value._base for value in given]
    same = [[one is other for other in given] for one in given]
    related = [[one is other for other in bases] for one in bases]
    versions = [value._version for value in given]
    counted = []
    for value in given:
        with torch.no_grad():
            value.add_(0)
        counted.append([one._version for one in given])
    return (
        same,
        related,
        versions,
        counted,
        [value._is_view() for value in given],
        [value.tolist() for value in given],
    )


@pytest.mark.parametrize("backend", ["eager", "aot_eager", "inductor"])
@pytest.mark.parametrize("grad", [True, False])
@pytest.mark.parametrize("fn", GIVING, ids=lambda fn: fn.__name__)
def test_results_are_related_as_in_plain_python(fn: Program, grad: bool, backend: str) -> None:
    compiled = stator.compile(fn, backend=backend)
    with torch.set_grad_enabled(grad):
        for _ in range(2):
            assert relations(compiled(torch.ones(3, 3))) == relations(fn(torch.ones(3, 3)))


def with_what_they_are_of(x: Tensor) -> Any:
    y = x + 1
    return y, y[1:], y.detach(), y.t(), y[0].detach()


def halves(x: Tensor) -> Any:
    y = (x + 1).view(-1)
    a, b = y[: x.shape[0]], y[x.shape[0] :]
    return a, b, a.detach()


def overlapping(x: Tensor) -> Any:
    y = (x + 1).sin()
    return y[1:], y[:-1], y[1:].t()


def of_two(x: Tensor) -> Any:
    both = x @ x
    y, z = both[:1], both[1:]
    w = z * 2
    return z, x * 2, y, w[0], w[1]


@pytest.mark.parametrize("backend", ["eager", "aot_eager", "inductor"])
@pytest.mark.parametrize(
    "fn", [with_what_they_are_of, halves, overlapping, of_two], ids=lambda fn: fn.__name__
)
def test_results_of_other_sizes_are_related_likewise(fn: Program, backend: str) -> None:
    compiled = stator.compile(fn, backend=backend)
    for size in (3, 4, 6, 5):
        assert relations(compiled(torch.ones(size, size))) == relations(fn(torch.ones(size, size)))


def a_view(x: Tensor) -> Any:
    y = torch.zeros(3, 3)
    v = y[0]
    stator.graph_break()
    v.copy_(x[0])
    return (y * y).sum(), v


def a_base(x: Tensor) -> Any:
    y = torch.zeros(3, 3)
    v = y[0]
    stator.graph_break()
    y.add_(x)
    return (v * v).sum(), y


def what_was_detached(x: Tensor) -> Any:
    y = torch.zeros(3, 3)
    v = y.detach()
    stator.graph_break()
    v.add_(x)
    stator.graph_break()
    y.mul_(x)
    return (y * y).sum(), v.sum()


def what_was_computed(x: Tensor) -> Any:
    y = x * 2
    stator.graph_break()
    y.mul_(x)
    return (y * y).sum(), y


def what_was_computed_and_viewed(x: Tensor) -> Any:
    y = x * 2
    v = y[0]
    stator.graph_break()
    v.mul_(x[0])
    return v, y


def views_in_turn(x: Tensor) -> Any:
    y = x.clone()
    v = y.view(-1)
    u = v[1:]
    stator.graph_break()
    u.mul_(x.view(-1)[1:])
    stator.graph_break()
    v.mul_(2)
    return (y * y).sum(), u


def one_of_two_views(x: Tensor) -> Any:
    y = x * 2
    v, w = y[0], y[0]
    stator.graph_break()
    v.mul_(3)
    w.add_(x[0])
    return (y * y).sum(), v * w


def several_at_once(x: Tensor) -> Any:
    v, w = torch.zeros(2, 3).unbind()
    stator.graph_break()
    try:
        v.copy_(x[0])
    except RuntimeError as error:
        return x.sum(), w, str(error)
    return v, w


WRITING = [
    *(a_view, a_base, what_was_detached, what_was_computed, what_was_computed_and_viewed),
    *(views_in_turn, one_of_two_views, several_at_once),
]


def trained(call: Program) -> Any:
    x = torch.arange(1.0, 10.0).view(3, 3).requires_grad_()
    given = call(x)
    values = [value for value in given if isinstance(value, Tensor)]
    sum((value * value).sum() for value in values).backward()  # type: ignore[union-attr]
    assert x.grad is not None
    return (
        [value.tolist() for value in values],
        [value.requires_grad for value in values],
        x.grad.tolist(),
        given[2:],
    )


@pytest.mark.parametrize("backend", ["eager", "aot_eager", "inductor"])
@pytest.mark.parametrize("fn", WRITING, ids=lambda fn: fn.__name__)
def test_a_write_after_a_break_gives_the_gradients_of_plain_python(
    fn: Program, backend: str
) -> None:
    compiled = stator.compile(fn, backend=backend)
    for _ in range(2):
        assert trained(compiled) == trained(fn)
