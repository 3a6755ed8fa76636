"""Jagged nested tensors: as inputs, made in the region, through layers and attention, with
gradients."""

# mypy: disable-error-code="no-untyped-call, attr-defined, union-attr, arg-type"
# torch's nested tensors have no types.

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import stator
import torch
from torch import Tensor, nn
from torch.nested._internal.nested_tensor import NestedTensor
from torch.utils._pytree import tree_leaves, tree_map

Program = Callable[..., Any]
CAPTURED: dict[str, Program] = {}
BROKEN: dict[str, Program] = {}


def captured(fn: Program) -> Program:
    CAPTURED[fn.__name__.replace("_", " ")] = fn
    return fn


def broken(fn: Program) -> Program:
    BROKEN[fn.__name__.replace("_", " ")] = fn
    return fn


def rows(*lengths: int) -> list[Tensor]:
    torch.manual_seed(sum(lengths))
    return [torch.randn(length, 8, dtype=torch.float64) for length in lengths]


def jagged(*lengths: int, **kwargs: Any) -> Any:
    return torch.nested.nested_tensor(rows(*lengths), layout=torch.jagged, **kwargs)


def plain(value: Any) -> Any:
    """The parts of a jagged tensor, in the place of it."""
    if isinstance(value, NestedTensor):
        facts = (value._ragged_idx, value.requires_grad, value.dtype, len(value.shape))
        return "jagged", facts, value._values.detach(), value._offsets, value._lengths
    if isinstance(value, Tensor):
        return "plain", value.requires_grad, value.detach()
    return value


def equal(one: Any, other: Any) -> None:
    assert_alike(*(tree_leaves(tree_map(plain, each)) for each in (one, other)))


def assert_alike(found: list[Any], wanted: list[Any]) -> None:
    assert len(found) == len(wanted)
    for one, other in zip(found, wanted, strict=True):
        if isinstance(one, Tensor) and isinstance(other, Tensor):
            torch.testing.assert_close(one, other)
        else:
            assert type(one) is type(other)
            assert one == other


def gradients(result: Any, inputs: list[Tensor]) -> list[Any]:
    total = sum(part.values().sum() if part.is_nested else part.sum() for part in _trained(result))
    if isinstance(total, Tensor):
        total.backward()
    return [plain(x.grad) for x in inputs]


def _trained(result: Any) -> list[Any]:
    found: list[Any] = []
    tree_map(
        lambda x: found.append(x) if isinstance(x, Tensor) and x.requires_grad else None, result
    )
    return found


LAYER, NORM = nn.Linear(8, 8).double(), nn.LayerNorm(8).double()


@captured
def pointwise(n: Any, x: Tensor) -> Any:
    return n.sin() * 2 + n, -n, n * n, (n > 0), n.float().dtype


@captured
def pointwise_with_plain_tensors(n: Any, x: Tensor) -> Any:
    return n * x[0], x[:1] + n, n * torch.tensor(2.0)


@captured
def values_and_offsets(n: Any, x: Tensor) -> Any:
    return n.values() * 2, n.offsets() + 1, n.offsets().diff(), n.lengths() is None


@captured
def layers(n: Any, x: Tensor) -> Any:
    return NORM(nn.functional.gelu(LAYER(n))), nn.functional.dropout(n, 0.0), LAYER(n).relu()


@captured
def softmax_over_features(n: Any, x: Tensor) -> Any:
    return nn.functional.softmax(n.detach(), dim=2), n.detach().softmax(-1) + n


@captured
def padded(n: Any, x: Tensor) -> Any:
    return n.to_padded_tensor(0.5), torch.nested.to_padded_tensor(n * 2, 0.0)


@captured
def shapes(n: Any, x: Tensor) -> Any:
    facts = (n.size(0), n.size(-1), n.dim(), n.ndim, n.is_nested, n.layout, n.dtype, n.device)
    return n * n.size(-1), facts, isinstance(n, NestedTensor), type(n), len(n.shape), n.shape[0]


@captured
def heads(n: Any, x: Tensor) -> Any:
    q = LAYER(n).unflatten(-1, [2, 4]).transpose(1, 2)
    return q, q.transpose(1, 2).flatten(-2), n.reshape(n.size(0), -1, 2, 4)


@broken
def attention(n: Any, x: Tensor) -> Any:
    q, k, v = (LAYER(n).unflatten(-1, [2, 4]).transpose(1, 2) for _ in range(3))
    y = nn.functional.scaled_dot_product_attention(q, k, v)
    return y.transpose(1, 2).flatten(-2)


@captured
def reductions(n: Any, x: Tensor) -> Any:
    m = n.detach()
    return m.sum(dim=1), m.sum(), m.mean()


@captured
def made_from_rows(n: Any, x: Tensor) -> Any:
    m = torch.nested.nested_tensor([x, x[:2] * 2], layout=torch.jagged)
    return m, (m.sin() * 2).values()


@captured
def made_as_nested(n: Any, x: Tensor) -> Any:
    m = torch.nested.as_nested_tensor([x, x[:2] * 2], layout=torch.jagged)
    return m.cos(), m.offsets()


@captured
def made_from_values_and_offsets(n: Any, x: Tensor) -> Any:
    m = torch.nested.nested_tensor_from_jagged(x * 2, torch.tensor([0, 1, 3]))
    return (
        m + 1,
        m.values(),
        torch.nested.nested_tensor_from_jagged(n.values() * 3, n.offsets()) + n,
    )


@captured
def identities(n: Any, x: Tensor) -> Any:
    return n, [n], n.offsets() is n.offsets(), n is n * 1, n.detach()


@captured
def an_intermediate_written_to(n: Any, x: Tensor) -> Any:
    m = n.detach() * 2
    m.mul_(3)
    return m, m.values().add_(1)


@captured
def under_no_grad(n: Any, x: Tensor) -> Any:
    with torch.no_grad():
        a = n * 2
    return a, n * 3


@captured
def clones_and_likes(n: Any, x: Tensor) -> Any:
    return n.clone(), torch.zeros_like(n), torch.ones_like(n) + n, torch.where(n > 0, n, -n)


@captured
def concatenated_features(n: Any, x: Tensor) -> Any:
    return torch.cat([n, n * 2], -1), n.unsqueeze(-1).squeeze(-1), n.chunk(2, -1)


@broken
def rows_apart(n: Any, x: Tensor) -> Any:
    return [row * 2 for row in (n + 1).unbind()]


@broken
def printed(n: Any, x: Tensor) -> Any:
    return repr(n.offsets()), (n * 2).sum(), n._values.shape


@broken
def narrowed(n: Any, x: Tensor) -> Any:
    m = torch.nested.narrow(
        x.expand(2, 3, 8).clone(),
        1,
        torch.tensor([0, 1]),
        torch.tensor([3, 2]),
        layout=torch.jagged,
    )
    return m.lengths(), m.offsets()


def run(fn: Program, lengths: tuple[int, ...], trained: bool) -> Any:
    n, x = jagged(*lengths), rows(3)[0]
    LAYER.zero_grad()
    if trained:
        n, x = n.detach().requires_grad_(), x.requires_grad_()
    result = fn(n, x)
    return result, gradients(result, [n, x, LAYER.weight])


@broken
def an_argument_written_to(n: Any, x: Tensor) -> Any:
    m = n * 2
    with torch.no_grad():
        n.mul_(2)
    return m, n + 1, n._version


@broken
def a_break_between(n: Any, x: Tensor) -> Any:
    m = LAYER(n).relu()
    k = m * x[0]
    stator.graph_break()
    return m + k, m.offsets() is k.offsets(), k.shape[1] == n.shape[1]


@captured
def ragged_sizes(n: Any, x: Tensor) -> Any:
    m = n.sin()
    same = n.shape[1] == m.shape[1], n.size(1) == n.size(1), n.shape == m.shape
    view = n.view(n.size(0), n.size(1), 2, 4)
    return view, same, m.view_as(n), n.numel()


@captured
def history(n: Any, x: Tensor) -> Any:
    m = n * 2
    return m, n.is_leaf, n.requires_grad, n.grad is None, m.requires_grad, n.grad_fn is None


@captured
def parts_of_several(n: Any, x: Tensor) -> Any:
    m, k = n * 2, n + 1
    same = m.offsets() is k.offsets(), n.offsets() is m.offsets(), m.offsets() is x
    other = torch.nested.nested_tensor_from_jagged(x * 1, torch.tensor([0, 1, 3]))
    return same, other.offsets() is other.sin().offsets(), m + k, other


SERIES = [(2, 4), (3, 5, 2), (3, 3), (6, 2, 2, 3, 4), (1, 4)]


@pytest.mark.parametrize("trained", [False, True])
@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("title", CAPTURED)
def test_it_is_captured_in_at_most_two_graphs(title: str, backend: str, trained: bool) -> None:
    compiled = stator.compile(CAPTURED[title], backend=backend, fullgraph=True)
    for lengths in SERIES:
        equal(run(compiled, lengths, trained), run(CAPTURED[title], lengths, trained))
    assert 1 <= len(compiled.report.graphs) <= 2


@pytest.mark.parametrize("trained", [False, True])
@pytest.mark.parametrize("title", BROKEN)
def test_break_gives_what_plain_python_gives(title: str, trained: bool) -> None:
    compiled = stator.compile(BROKEN[title], backend="eager")
    for lengths in SERIES:
        equal(run(compiled, lengths, trained), run(BROKEN[title], lengths, trained))


# -- what is relied on -----------------------------------------------------------------------------
def added(a: Any, b: Any) -> Any:
    try:
        return a + b
    except RuntimeError:
        return a * 2


def sharing_offsets() -> Any:
    n = jagged(2, 4)
    return n, n * 2


def with_offsets_of_their_own() -> Any:
    return jagged(2, 4), jagged(2, 4)


def one_twice() -> Any:
    n = jagged(2, 4)
    return n, n


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize(
    "order", [[sharing_offsets, with_offsets_of_their_own], [one_twice, sharing_offsets]]
)
def test_common_offsets_are_guarded(order: Any, backend: str) -> None:
    compiled = stator.compile(added, backend=backend)
    for make in (*order, *reversed(order), with_offsets_of_their_own):
        equal(compiled(*make()), added(*make()))


def with_lengths() -> Any:
    x = torch.arange(72, dtype=torch.float64).reshape(3, 3, 8)
    starts, lengths = torch.tensor([0, 1, 1]), torch.tensor([1, 2, 1])
    return torch.nested.narrow(x, 1, starts, lengths, torch.jagged)


def with_another_ragged_dimension() -> Any:
    return jagged(2, 4).transpose(1, 2)


def of_a_view() -> Any:
    x = torch.ones(6, 8, dtype=torch.float64, requires_grad=True)
    return torch.nested.nested_tensor_from_jagged(x, torch.tensor([0, 2, 6]))


def computed() -> Any:
    return jagged(2, 4, requires_grad=True) * 2


def in_single_precision() -> Any:
    return jagged(2, 4).float()


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize(
    "make",
    [with_lengths, with_another_ragged_dimension, of_a_view, computed, in_single_precision],
)
def test_change_of_form_is_noticed(make: Any, backend: str) -> None:
    def f(n: Any) -> Any:
        return n * 2, n.is_leaf, n.dtype, n.lengths(), n.offsets()

    compiled = stator.compile(f, backend=backend, fullgraph=True)
    for each in (make, lambda: jagged(2, 4), make, lambda: jagged(2, 4)):
        equal(compiled(each()), f(each()))
    assert len(compiled.report.graphs) == 2


def test_gradients_reach_what_the_jagged_tensor_was_made_of() -> None:
    x = torch.ones(6, 8, dtype=torch.float64, requires_grad=True)
    compiled = stator.compile(lambda n: LAYER(n).relu().values().sum(), backend="aot_eager")
    for _ in range(2):
        n = torch.nested.nested_tensor_from_jagged(x, torch.tensor([0, 2, 6]))
        (got,) = torch.autograd.grad(compiled(n), [x])
        (want,) = torch.autograd.grad(LAYER(n).relu().values().sum(), [x])
        torch.testing.assert_close(got, want)


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner, self.norm = nn.Linear(8, 8).double(), nn.LayerNorm(8).double()

    def forward(self, n: Any) -> Any:
        return n + self.norm(self.inner(n).relu())


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_training_over_batches_of_varying_lengths(backend: str) -> None:
    def losses(compile: bool) -> list[Any]:
        torch.manual_seed(0)
        model = nn.Sequential(Block(), Block())
        called = stator.compile(model, backend=backend) if compile else model
        optimizer = torch.optim.SGD(model.parameters(), 0.1)
        found = []
        for lengths in SERIES * 2:
            optimizer.zero_grad()
            loss = called(jagged(*lengths)).values().square().mean()
            loss.backward()
            optimizer.step()
            found.append(loss.detach())
        if compile:
            assert len(called.report.graphs) <= 2
        return found

    torch.testing.assert_close(losses(True), losses(False))


def test_strided_nested_tensor_is_a_break() -> None:
    nested = torch.nested.nested_tensor(rows(2, 4), layout=torch.strided)
    compiled = stator.compile(lambda n, x: ((n * 2).unbind()[0], x + 1), backend="eager")
    first, second = compiled(nested, torch.ones(1))
    torch.testing.assert_close(first, rows(2, 4)[0] * 2)
    assert second.item() == 2
