"""`x.data = y`, `x.grad = y` and their neighbours: done after the graph, which goes on with what
was set."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import stator
import torch
from torch import Tensor, nn

from integration_tests.support.oracle import assert_same

CAPTURED: dict[str, Callable[[Any], Any]] = {}
BREAKING: dict[str, Callable[[Any], Any]] = {}


class Kept(nn.Module):
    """What each program may change, which differs from call to call."""

    def __init__(self, rows: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.linspace(-1, 1, rows * 3).reshape(rows, 3))
        self.average = nn.Parameter(torch.zeros(rows, 3), requires_grad=False)
        self.register_buffer("state", torch.arange(3.0 * rows).reshape(rows, 3))
        self.plain = torch.linspace(0, 1, 3 * rows).reshape(rows, 3)
        self.weight.grad = torch.ones(rows, 3)


def captured(fn: Callable[[Any], Any]) -> Callable[[Any], Any]:
    CAPTURED[fn.__name__.replace("_", " ")] = fn
    return fn


def breaking(fn: Callable[[Any], Any]) -> Callable[[Any], Any]:
    BREAKING[fn.__name__.replace("_", " ")] = fn
    return fn


@captured
def a_step_of_sgd_by_data(m: Any) -> Any:
    m.weight.data = m.weight.data - 0.1 * m.weight.grad
    m.weight.grad = None
    return m.weight.data.sum(), m.weight.requires_grad, m.weight.grad is None


@captured
def an_average_follows_the_parameters(m: Any) -> Any:
    m.average.data = 0.9 * m.average.data + 0.1 * m.weight.data
    return m.average * 2, m.average.requires_grad


@captured
def the_graph_goes_on_with_the_new_data(m: Any) -> Any:
    view = m.state[0]
    m.state.data = m.plain * 2
    m.state.add_(1)
    return view, m.state, m.state[0] * 3, m.state.mean() * m.weight


@captured
def data_of_another_shape_and_dtype(m: Any) -> Any:
    m.plain.data = torch.ones(4, 2, dtype=torch.float64)
    return m.plain.shape, m.plain.dtype, m.plain + 1


@captured
def data_that_are_shared(m: Any) -> Any:
    m.state.data = m.plain
    m.state.mul_(3)
    m.plain.add_(1)
    return m.state.sum(), m.plain.sum(), m.state is m.plain


@captured
def data_that_are_a_view(m: Any) -> Any:
    m.state.data = m.plain.t()
    return m.state.shape, m.state.is_contiguous(), m.state @ m.plain, m.state.storage_offset()


@captured
def data_set_twice_and_back(m: Any) -> Any:
    before = m.state.data
    m.state.data = m.plain
    m.state.data = m.state.data * 2
    first = m.state.sum()
    m.state.data = before
    return first, m.state.sum()


@captured
def data_of_a_parameter_used_without_gradients(m: Any) -> Any:
    m.weight.data = m.weight.data.clamp(-0.5, 0.5)
    with torch.no_grad():
        seen = m.weight * 2
        m.weight.add_(1)
        return seen, m.weight.sum(), m.weight.requires_grad, m.weight.is_leaf, m.weight


@captured
def data_of_what_is_made_here(m: Any) -> Any:
    made = torch.zeros(2)
    made.data = torch.ones(3) * 2
    return made, made + 1


@captured
def data_are_copied_into(m: Any) -> Any:
    m.weight.data.copy_(m.plain)
    m.weight.data.mul_(2).add_(1)
    m.weight.grad.zero_()
    m.weight.grad.data.add_(3)
    return m.weight * 2, m.weight.grad


@captured
def data_and_gradient_change_their_shape(m: Any) -> Any:
    m.weight.grad = None
    m.weight.data = m.weight.data[:1]
    m.weight.grad = m.weight.data * 2
    return m.weight.shape


@captured
def real_and_imaginary_parts_are_set(m: Any) -> Any:
    z = torch.zeros(3, dtype=torch.complex64)
    z.real = torch.ones(3)
    z.imag += 2
    return z


@captured
def data_of_all_parameters(m: Any) -> Any:
    for p in m.parameters():
        p.data = p.data.clone()
    return sum(p.data.sum() for p in m.parameters())


@captured
def data_set_in_one_branch(m: Any) -> Any:
    try:
        m.state.data = m.plain
        raise KeyError("here")
    except KeyError:
        return m.state * 2


@breaking
def a_tensor_with_a_gradient_changes_its_shape(m: Any) -> Any:
    m.plain.grad = m.plain + 1
    m.plain.unsqueeze_(0)
    return m.plain * 2


@breaking
def a_gradient_changes_its_shape(m: Any) -> Any:
    m.plain.grad = found = m.plain + 1
    found.t_()
    return found * 2, m.plain.grad is found


@breaking
def a_tensor_with_a_gradient_is_resized(m: Any) -> Any:
    m.average.grad = m.average + 1
    m.average.resize_(1, 2).fill_(3)
    return m.average * 2


@breaking
def a_parameter_is_used_with_gradients_after(m: Any) -> Any:
    m.weight.data = m.weight.data * 2
    return (m.weight * m.plain).sum()


@breaking
def what_autograd_has_kept_is_replaced(m: Any) -> Any:
    loss = (m.weight * m.plain).sum()
    m.plain.data = m.plain * 2
    return loss


@breaking
def data_of_a_view_are_replaced(m: Any) -> Any:
    row = m.plain[0]
    row.data = torch.ones(3)
    return row + 1, m.plain


@breaking
def data_of_a_wrong_kind(m: Any) -> Any:
    try:
        m.weight.data = 3
    except TypeError as error:
        return str(error)
    return None


@breaking
def gradients_with_history_get_into_replaced_data(m: Any) -> Any:
    m.plain.data = torch.ones(m.plain.shape)
    m.plain.mul_(m.weight)
    return m.plain.requires_grad, m.plain.sum()


def run(fn: Callable[[Any], Any], **options: Any) -> None:
    """Three calls over modules of their own, the last of another size; what they have become is
    compared."""
    rows = iter([3, 3, 3, 2, 2])
    compiled = stator.compile(fn, **options)
    assert_same(fn, compiled, lambda: (Kept(next(rows)),), 5)


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("title", CAPTURED)
def test_what_is_set_is_captured(title: str, backend: str) -> None:
    options = {"uncompiled": "allow"}  # a write past autograd runs natively
    run(CAPTURED[title], backend=backend, fullgraph=True, options=options)


@pytest.mark.parametrize("title", [*CAPTURED, *BREAKING])
def test_what_is_set_is_right_with_breaks(title: str) -> None:
    run({**CAPTURED, **BREAKING}[title], backend="eager", options={"break_everywhere": True})


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("title", BREAKING)
def test_what_cannot_wait_is_done_at_once(title: str, backend: str) -> None:
    run(BREAKING[title], backend=backend)


def test_two_parameters_that_are_one_now_are_told_apart() -> None:
    def fn(a: Tensor, b: Tensor) -> Tensor:
        a.data = b + 1
        return a + b

    pairs: Any = [torch.ones(3), torch.ones(3)]
    one = torch.ones(3)
    compiled = stator.compile(fn, backend="eager")
    assert torch.equal(compiled(*pairs), torch.tensor([3.0] * 3))
    assert torch.equal(compiled(one, one), torch.tensor([4.0] * 3))


def test_whether_two_tensors_are_the_same_memory_is_asked_of_them() -> None:
    """Fakes have no memory, and so are never set to it."""

    def fn(x: Tensor) -> Any:
        return x.is_set_to(x), x.is_set_to(x.view(-1)[:2]), x.is_set_to(x.detach()), x * 2

    assert_same(fn, stator.compile(fn, backend="eager"), lambda: (torch.ones(3, 2),))
