"""Backward passes in a region, small and irregular: equal to eager, or one break."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, cast

import attrs
import pytest
import stator
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from .optimizer_pair import assert_equal
from .test_captured_backward import facts_of

set_detect_anomaly: Any = torch.autograd.set_detect_anomaly


def leaf(*shape: int, number: int = 0) -> Tensor:
    generator = torch.Generator().manual_seed(number)
    return torch.randn(*shape, generator=generator).requires_grad_()


def total(x: Any) -> Any:
    return x.sin().sum()


def plain(a: Tensor, b: Tensor) -> object:
    total(a * b).backward()
    return a.grad


def unreached(a: Tensor, b: Tensor) -> object:
    total(a).backward()
    return a.grad, b.grad


def one_gradient_for_two(a: Tensor, b: Tensor) -> object:
    cast(Any, a + b).backward(torch.ones(3))
    cast(Any, a.grad).mul_(3)
    return a.grad, b.grad


def root_is_leaf(a: Tensor, b: Tensor) -> object:
    seed = b.detach()
    cast(Any, a).backward(seed)
    cast(Any, a.grad).add_(1)
    return seed * 1, a.grad is seed


def joined(a: Tensor, b: Tensor) -> object:
    total(torch.cat([a, b])).backward()
    cast(Any, a.grad).mul_(2)
    return a.grad, b.grad


def without_gradients(a: Tensor, b: Tensor) -> object:
    loss = total(a * b)
    with torch.no_grad():
        loss.backward()
    return loss, a.grad


def differentiated_twice(a: Tensor, b: Tensor) -> object:
    total(a * b).backward(create_graph=True)
    gradient: Any = a.grad
    a.grad = None
    gradient.pow(2).sum().backward()
    return gradient, a.grad


def added_with_history(a: Tensor, b: Tensor) -> object:
    total(a).backward(create_graph=True)
    first = a.grad
    total(a * b).backward()
    return first is a.grad


def retained(a: Tensor, b: Tensor) -> object:
    loss = total(a * b)
    loss.backward(retain_graph=True)
    loss.backward()
    return loss


def retained_for_later(a: Tensor, b: Tensor) -> object:
    loss = total(a * b)
    loss.backward(retain_graph=True)
    return loss


def other_history(a: Tensor, b: Tensor) -> object:
    other = b.exp()
    total(a).backward()
    return other


def several_results(a: Tensor, b: Tensor) -> object:
    out = a * b
    loss = total(out)
    loss.backward()
    return out, loss, loss, loss.detach(), out[0]


def second_is_caught(a: Tensor, b: Tensor) -> object:
    loss = total(a)
    loss.backward()
    try:
        loss.backward()
    except RuntimeError as error:
        return str(error), a.grad
    return None


def second_raises(a: Tensor, b: Tensor) -> object:
    loss = total(a)
    loss.backward()
    loss.backward()
    return loss


def of_no_history(a: Tensor, b: Tensor) -> None:
    with torch.no_grad():
        loss = total(a)
    loss.backward()


def of_no_scalar(a: Tensor, b: Tensor) -> None:
    cast(Any, a.sin()).backward()


def saved_is_written(a: Tensor, b: Tensor) -> None:
    y = a.exp()
    loss = total(y)
    with torch.no_grad():
        y.mul_(2)
    loss.backward()


def raises_behind(a: Tensor, b: Tensor) -> object:
    total(a).backward()
    try:
        return cast(Any, a.grad)[torch.tensor([7])]
    except IndexError:
        return a.grad


def with_checkpoint(a: Tensor, b: Tensor) -> object:
    total(checkpoint(lambda x: F.dropout(x.exp() * b), a, use_reentrant=False)).backward()
    return a.grad, b.grad


def with_reentrant_checkpoint(a: Tensor, b: Tensor) -> object:
    total(checkpoint(lambda x: x.exp(), a * b, use_reentrant=True)).backward()
    return a.grad


class Scaled(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, y: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        return x * x + y

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Any:
        return gradient * ctx.saved_tensors[0] * 3, None


def with_function(a: Tensor, b: Tensor) -> object:
    cast(Any, Scaled.apply(a, b)).sum().backward()  # type: ignore[no-untyped-call]
    return a.grad, b.grad


def with_hook(a: Tensor, b: Tensor) -> object:
    y: Any = a * b
    y.register_hook(lambda gradient: gradient * 3)
    total(y).backward()
    return a.grad


def with_retained_gradient(a: Tensor, b: Tensor) -> object:
    y: Any = a * b
    y.retain_grad()
    total(y).backward()
    return a.grad, y.grad


def for_intermediate(a: Tensor, b: Tensor) -> object:
    y: Any = a * b
    total(y).backward(inputs=[y])
    return a.grad, y.grad


def under_anomaly_detection(a: Tensor, b: Tensor) -> object:
    with set_detect_anomaly(True, check_nan=False):
        total(a).backward()
    return a.grad


def grad_of_leaves(a: Tensor, b: Tensor) -> object:
    y = a * b
    return torch.autograd.grad(total(y), [y, a])


def grad_of_unreached(a: Tensor, b: Tensor) -> object:
    return torch.autograd.grad(total(a), [a, b], allow_unused=True)


def grad_of_zeros(a: Tensor, b: Tensor) -> object:
    return torch.autograd.grad(total(a), (a, b), materialize_grads=True)


def grad_of_unused(a: Tensor, b: Tensor) -> object:
    return torch.autograd.grad(total(a), [a, b])


def grad_in_batches(a: Tensor, b: Tensor) -> object:
    return torch.autograd.grad(a.sin(), a, torch.eye(3), is_grads_batched=True)


def updated(a: Tensor, b: Tensor) -> object:
    loss = total(a * b)
    loss.backward()
    with torch.no_grad():
        a.sub_(cast(Any, a.grad), alpha=0.1)
        cast(Any, a.grad).zero_()
    return loss


@attrs.frozen
class Case:
    """Breaks with the eager backend, and with one that compiles."""

    eager: tuple[str, ...] = ()
    compiled: tuple[str, ...] = ()


ONE = ("backward",)
CASES: dict[Callable[[Tensor, Tensor], object], Case] = {
    **dict.fromkeys((plain, unreached, one_gradient_for_two, root_is_leaf, joined), Case()),
    **dict.fromkeys((without_gradients, retained, updated), Case()),
    **dict.fromkeys((several_results, with_function, raises_behind), Case()),
    **dict.fromkeys((grad_of_leaves, grad_of_unreached, grad_of_zeros), Case()),
    **dict.fromkeys((added_with_history, retained_for_later, other_history), Case()),
    differentiated_twice: Case(),  # `b.grad` keeps its history
    **dict.fromkeys((second_is_caught, second_raises), Case(*[("operator-error",)] * 2)),
    **dict.fromkeys((of_no_scalar, saved_is_written), Case(*[("operator-error",)] * 2)),
    grad_of_unused: Case(*[("operator-error",)] * 2),
    with_checkpoint: Case((), ONE),
    with_reentrant_checkpoint: Case(ONE, ONE),
    **dict.fromkeys((with_hook, with_retained_gradient), Case(ONE, ONE)),
    **dict.fromkeys((of_no_history, for_intermediate), Case(*[("not-inlined",)] * 2)),
    grad_in_batches: Case(*[("not-inlined",)] * 2),
    under_anomaly_detection: Case(*[("backward", "not-inlined")] * 2),
}


def outcome(function: Callable[..., object], a: Tensor, b: Tensor) -> Any:
    """The result, its facts, and the gradients; or the error."""
    torch.manual_seed(0)
    before = a.grad
    try:
        result: Any = facts_of(function(a, b))
    except RuntimeError as error:
        result = str(error)
    kept = before is not None and a.grad is before
    facts = [None if x.grad is None else (x.grad.stride(), x.grad.requires_grad) for x in (a, b)]
    return [result, kept, facts, facts_of([a, b, a.grad, b.grad])]


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize(("case", "expected"), CASES.items())
def test_case_is_that_of_eager(
    case: Callable[[Tensor, Tensor], object], expected: Case, backend: str
) -> None:
    compiled = stator.compile(case, backend=backend)
    mine, its = [[leaf(3), leaf(3, number=1)] for _ in range(2)]
    for _ in range(3):
        assert_equal(outcome(case, *mine), outcome(compiled, *its))
    reasons = expected.eager if backend == "eager" else expected.compiled
    assert {each.reason for each in compiled.report.breaks} == {*reasons}
    assert compiled.report.graph_count <= 3


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_freed_history_raises_afterwards(backend: str) -> None:
    def step(a: Tensor) -> Any:
        loss = total(a)
        loss.backward()
        return loss

    loss = stator.compile(step, backend=backend, fullgraph=True)(leaf(3))
    assert loss.requires_grad
    assert not loss.is_leaf
    with pytest.raises(RuntimeError, match="Trying to backward through the graph a second time"):
        loss.backward()


def transposed() -> Tensor:
    return leaf(3, 4).detach().t().requires_grad_()


def expanded() -> Tensor:
    return torch.ones(3).expand(2, 3).detach().requires_grad_()


def of_channels() -> Tensor:
    made = leaf(2, 3, 4, 4).detach().contiguous(memory_format=torch.channels_last)
    return made.requires_grad_()


def without_elements() -> Tensor:
    return torch.empty(0, 3, requires_grad=True)


@pytest.mark.parametrize("make", [transposed, expanded, of_channels, without_elements])
def test_layout_of_a_gradient(make: Callable[[], Tensor]) -> None:
    def step(a: Tensor) -> object:
        total(a.flatten()).backward()
        return cast(Any, a.grad).stride()

    mine, its = make(), make()
    compiled = stator.compile(step, backend="eager", fullgraph=True)
    for _ in range(2):
        assert step(mine) == compiled(its)
        assert_equal(mine.grad, its.grad)


@pytest.mark.parametrize("kind", ["register_hook", "register_post_accumulate_grad_hook"])
def test_hook_that_is_registered_later_breaks(kind: str) -> None:
    def seen(log: list[object], gradient: Tensor) -> None:
        log.append(gradient.shape)

    a, b, log = leaf(3), leaf(3, number=1), list[object]()
    compiled = stator.compile(plain, backend="eager")
    compiled(a, b)
    assert not compiled.report.breaks
    handle = getattr(a, kind)(partial(seen, log))
    compiled(a, b)
    assert log == [a.shape]
    assert [each.reason for each in compiled.report.breaks] == ["backward"]
    handle.remove()
    compiled(a, b)
    assert len(log) == 1


def test_history_from_outside_breaks() -> None:
    a = leaf(3)

    def step(y: Tensor) -> None:
        total(y * 2).backward()

    compiled = stator.compile(step, backend="eager")
    compiled(a * a)
    expected = torch.autograd.grad(total(a * a * 2), a)
    assert_equal(a.grad, expected[0])
    assert [each.reason for each in compiled.report.breaks] == ["backward"]


def test_sparse_gradient_breaks() -> None:
    table = nn.Embedding(5, 3, sparse=True)

    def step(indices: Tensor) -> None:
        total(table(indices)).backward()

    compiled = stator.compile(step, backend="eager")
    compiled(torch.tensor([1, 2]))
    gradient: Any = table.weight.grad
    assert gradient.is_sparse
    assert len(compiled.report.breaks) == 1


def test_training_alternates_between_two_entries() -> None:
    """`.grad` is None in one call, and a tensor in the next."""
    a, b = leaf(3), leaf(3, number=1)
    compiled = stator.compile(plain, backend="eager")
    for number in range(8):
        if number % 2:
            a.grad = b.grad = None
        compiled(a, b)
    assert compiled.report.entry_count == 2


def test_size_that_changes_is_symbolic() -> None:
    weight = leaf(3)

    def step(x: Tensor) -> object:
        weight.grad = None
        total(x @ weight).backward()
        return weight.grad

    compiled = stator.compile(step, backend="aot_eager")
    for size in (2, 3, 4, 7):
        x = torch.ones(size, 3)
        torch.testing.assert_close(compiled(x), step(x))
    assert compiled.report.graph_count <= 3
    assert not compiled.report.breaks


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("is_first", [False, True])
def test_hooks_on_saved_tensors_from_outside(backend: str, is_first: bool) -> None:
    """A compiler may save other tensors, but saves some."""

    def seen(log: list[object], tensor: Tensor) -> Tensor:
        log.append(tensor.shape)
        return tensor

    found = []
    for function in (updated, stator.compile(updated, backend=backend)):
        a, b, log = leaf(3), leaf(3, number=1), list[object]()
        if not is_first:
            function(a, b)
        with torch.autograd.graph.saved_tensors_hooks(partial(seen, log), partial(seen, log)):
            function(a, b)
        found.append(a.detach())
        assert log
    assert_equal(*found)
