"""Inference mode is part of the graph, marks included; a call of autograd in the region costs one
break."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, cast

import pytest
import stator
import torch
import torch.nn.functional as F
from torch import Tensor

from integration_tests.support.oracle import Tolerance, assert_same

LINEAR = torch.nn.Linear(3, 3)


def marks(value: Any) -> Any:
    """What autograd and inference mode leave on the tensors of a result."""
    if isinstance(value, tuple | list):
        return [marks(part) for part in value]
    return (
        (value.is_inference(), value.requires_grad, value.tolist())
        if isinstance(value, Tensor)
        else value
    )


def a_block(x: Tensor) -> Any:
    y = x * 3
    with torch.inference_mode():
        z = y * 2
        seen = z.is_inference(), torch.is_grad_enabled(), torch.is_inference_mode_enabled()
    return y, z, seen, y + 1


@torch.inference_mode()
def a_decorated_function(x: Tensor) -> Any:
    y = x + 1
    y.add_(1)
    return LINEAR(x), y, y[0], x.view(-1)


def nested_blocks(x: Tensor) -> Any:
    with torch.inference_mode():
        y = x * 2
        with torch.inference_mode(False):
            z = torch.ones(3) * 2
        w = y + 1
    with torch.no_grad():
        return y, z, w, x * 3, torch.is_grad_enabled()


def a_block_left_by_return(x: Tensor) -> Any:
    for i in range(3):
        with torch.inference_mode():
            if i == 1:
                return x * i, torch.is_inference_mode_enabled()
    return x


@torch.inference_mode()
def views_by_composite_operators(x: Tensor) -> Any:
    square = x.view(-1, 1)
    found = [
        square.flatten(),
        square.view_as(square),
        square.reshape(-1),
        square.mT,
        square.T,
        square.swapaxes(0, 1),
    ]
    found += [
        square.expand_as(square),
        square.H,
        *square.tensor_split(2),
        *square.view_as(square).chunk(2),
    ]
    return found, square.data, square.detach(), square.real, (x * 2).flatten()


INSIDE = [
    views_by_composite_operators,
    a_block,
    a_decorated_function,
    nested_blocks,
    a_block_left_by_return,
]


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("fn", INSIDE)
def test_inference_mode_is_one_graph_and_keeps_its_marks(
    fn: Callable[[Tensor], Any], backend: str
) -> None:
    compiled = stator.compile(fn, backend=backend, fullgraph=True)
    for requires_grad in (False, True, False):
        x = torch.linspace(-1, 1, 6).reshape(2, 3).requires_grad_(requires_grad)
        assert marks(compiled(x)) == marks(fn(x))
        assert torch.is_grad_enabled()
        assert not torch.is_inference_mode_enabled()
    assert compiled.report.graph_count == 2


def dropout_outside_training(x: Tensor) -> Any:
    y = x * 2
    with torch.inference_mode():
        z = F.dropout(y, 0.5, training=False)
        return z is y, z * 2


def dropout_of_nothing(x: Tensor) -> Any:
    y = x * 2
    with torch.inference_mode():
        z = torch.nn.Dropout(0.0)(y.flatten())
        z[0] = 5.0
        return z is y, y


def dropout_of_what_was_made_inside(x: Tensor) -> Any:
    with torch.inference_mode():
        y = x * 2
        kept, dropped = F.dropout(y, 0.5, False), F.dropout(y, 0.5)
        kept.add_(1)
        return kept is y, dropped is y, y, dropped


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize(
    "fn", [dropout_outside_training, dropout_of_nothing, dropout_of_what_was_made_inside]
)
def test_dropout_that_drops_nothing_gives_its_input_in_inference_mode_too(
    fn: Any, backend: str
) -> None:
    compiled = stator.compile(fn, backend=backend, fullgraph=True)
    tolerance = Tolerance(0, 0, strides=False)
    assert_same(fn, compiled, lambda: (torch.ones(2, 3, requires_grad=True),), tolerance=tolerance)


def gradients_turned_on_inside(x: Tensor) -> Any:
    y = x * 1
    with torch.inference_mode(), torch.enable_grad():
        y[y > 2] = 0
        return y, y * 2, torch.is_grad_enabled()


def gradients_turned_on_after_a_break(x: Tensor) -> Any:
    with torch.inference_mode():
        stator.graph_break()
        y = x * 2
        with torch.set_grad_enabled(True):
            y.mul_(2)
            z, part = x * 3, x[1:]
            stator.graph_break()
            z.add_(1)
    return y, z, part, x * 2


def gradients_in_blocks_of_either_kind(x: Tensor) -> Any:
    y, z = x * 1, x * 2
    with torch.inference_mode(), torch.enable_grad():
        with torch.inference_mode(False):
            y.mul_(3)
            torch.set_grad_enabled(False)
        z.mul_(3)
        on = torch.is_grad_enabled()
    return y, z, on


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize(
    "fn",
    [
        gradients_turned_on_inside,
        gradients_turned_on_after_a_break,
        gradients_in_blocks_of_either_kind,
    ],
)
def test_in_inference_mode_nothing_gets_a_history_whatever_the_mode_of_gradients(
    fn: Any, backend: str
) -> None:
    tolerance = Tolerance(0, 0, strides=False)
    make = lambda: (torch.arange(4.0, requires_grad=True),)  # noqa: E731
    assert_same(fn, stator.compile(fn, backend=backend), make, tolerance=tolerance)


def broken_inside(x: Tensor) -> Any:
    with torch.inference_mode():
        y = x * 2
        stator.graph_break()
        z = y + 1
    return y, z, x + 3


def raising_inside(x: Tensor) -> Any:
    try:
        with torch.inference_mode():
            y = x * 2
            torch.mm(x, x)
    except RuntimeError:
        return y, torch.is_inference_mode_enabled(), torch.is_grad_enabled()


def in_a_step_that_is_taken_back(x: Tensor) -> Any:
    def producer(mode: bool) -> Any:
        with torch.inference_mode(mode):
            y = x * 2
            stator.graph_break()
            yield y, torch.is_grad_enabled()

    return (
        list(producer(True)),
        torch.is_grad_enabled(),
        max(producer(False)),
        torch.is_grad_enabled(),
    )


def behind_a_block_that_is_taken_back(x: Tensor) -> Any:
    def producer() -> Any:
        with torch.no_grad(), torch.inference_mode():
            y = x * 2
        stator.graph_break()
        yield y, torch.is_grad_enabled()

    with torch.inference_mode():
        return list(producer()), torch.is_grad_enabled()


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize(
    "fn",
    [
        broken_inside,
        raising_inside,
        in_a_step_that_is_taken_back,
        behind_a_block_that_is_taken_back,
    ],
)
def test_inference_mode_goes_on_after_a_break_and_ends_where_it_ends(
    fn: Callable[[Tensor], Any], backend: str
) -> None:
    compiled, x = stator.compile(fn, backend=backend), torch.ones(2, 3)
    for _ in range(2):
        assert marks(compiled(x)) == marks(fn(x))
        assert torch.is_grad_enabled()
        assert not torch.is_inference_mode_enabled()


def backward(x: Tensor, weight: Tensor) -> Any:
    loss = (x * weight).pow(2).sum()
    loss.backward()  # type: ignore[no-untyped-call]
    return loss + 1, weight.grad


def gradient(x: Tensor, weight: Tensor) -> Any:
    (found,) = torch.autograd.grad((x * weight).pow(2).sum(), weight, create_graph=True)
    return found * 2


def accumulated(x: Tensor, weight: Tensor) -> Any:
    before = weight.grad
    loss = (x * weight).sum()
    loss.backward()  # type: ignore[no-untyped-call]
    return weight.grad is before, weight.grad * 2 if weight.grad is not None else None


@pytest.mark.parametrize("fn", [backward, gradient, accumulated])
def test_a_call_of_autograd_is_an_operator_of_the_graph(fn: Callable[..., Any]) -> None:
    def make_args() -> tuple[Tensor, Tensor]:
        return torch.linspace(-1, 1, 6).reshape(2, 3), torch.ones(3, requires_grad=True)

    assert_same(fn, stator.compile(fn, backend="eager"), make_args)
    compiled = stator.compile(fn, backend="eager")
    compiled(*make_args())
    assert compiled.report.entry_count == 1


def left_again(x: Tensor) -> Any:
    with torch.inference_mode(False):
        y = torch.ones(3, requires_grad=True) * 3, x * 2
    return y


def left_again_after_a_break(x: Tensor) -> Any:
    with torch.inference_mode():
        stator.graph_break()
        with torch.inference_mode(False):
            y = torch.ones(3, requires_grad=True) * 3, torch.is_grad_enabled()
        return y, x * 2


@pytest.mark.parametrize("outside", [False, True])
@pytest.mark.parametrize("fn", [left_again, left_again_after_a_break])
def test_a_mode_that_the_graph_would_run_in_is_left(fn: Callable[..., Any], outside: bool) -> None:
    compiled = stator.compile(fn, backend="eager")
    with torch.inference_mode(outside):
        x = torch.ones(3)
        for _ in range(2):
            assert str(marks(compiled(x))) == str(marks(fn(x)))


def packs(x: Tensor, log: list[str]) -> Tensor:
    def pack(tensor: Tensor) -> Tensor:
        log.append("pack")
        return tensor

    def unpack(tensor: Tensor) -> Tensor:
        log.append("unpack")
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, unpack):
        stator.graph_break()
        return (x * x).sum() + x.exp().sum()


def test_hooks_on_saved_tensors_see_no_fakes() -> None:
    compiled = stator.compile(packs, backend="eager")
    assert_same(packs, compiled, lambda: (torch.ones(2, requires_grad=True), []))


class Keeping(torch.autograd.Function):
    """Saves what its backward may not ask for."""

    @staticmethod
    def forward(ctx: Any, a: Tensor, asks: Any) -> Tensor:
        ctx.asks = asks
        ctx.save_for_backward(a)
        return a * 2

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Any:
        if ctx.asks == "all":
            return g * ctx.saved_tensors[0], None
        if ctx.asks:
            ctx.saved_tensors  # noqa: B018 - which is checked as it is asked for
        return g * 3, None


@pytest.mark.parametrize("asks", [False, True, "all"])
@pytest.mark.parametrize("writes", [False, True])
def test_what_was_saved_is_checked_only_if_backward_asks_for_it(asks: Any, writes: bool) -> None:
    def f(x: Tensor) -> tuple[Tensor, Tensor]:
        kept = x.detach()
        found = Keeping.apply(torch.nn.Parameter(kept), asks)  # type: ignore[no-untyped-call]
        if writes:
            x.add_(1)
        return found, x + 1

    compiled = stator.compile(f, backend="eager")
    assert_same(f, compiled, lambda: (torch.ones(2),))


LEAVES: dict[str, Any] = {
    "ones": lambda x: torch.ones(3, requires_grad=True),
    "rand_like": lambda x: torch.rand_like(x, requires_grad=True),
    "tensor": lambda x: torch.tensor([1.0, 2.0, 3.0], requires_grad=True),
    "without gradients": lambda x: torch.no_grad()(torch.zeros)(3, requires_grad=True),
    "requires_grad_": lambda x: torch.ones(3).requires_grad_(),
    "detached": lambda x: (x * 2).detach().requires_grad_(),
    "Parameter": lambda x: torch.nn.Parameter(x + 1),
    "none": lambda x: torch.ones(3, requires_grad=False),
}


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("name", LEAVES)
def test_a_leaf_that_is_made_here_requires_gradients_under_every_backend(
    name: str, backend: str
) -> None:
    def f(x: Tensor, trains: bool) -> Any:
        leaf = LEAVES[name](x)
        found = (leaf * x).sum()
        if trains and found.requires_grad:
            found.backward()
        return leaf, leaf.grad, leaf.is_leaf, found, found.requires_grad

    for trains in (False, True):
        compiled = stator.compile(f, backend=backend)
        assert_same(f, compiled, lambda trains=trains: (torch.arange(3.0), trains))  # type: ignore[misc]


WRITES: dict[str, Callable[[Tensor, Tensor], Any]] = {
    "add_": lambda t, x: t.add_(1),
    "add_ to a view": lambda t, x: t.view(1, 2).add_(1),
    "an item": lambda t, x: operator.setitem(cast("Any", t), 0, 1),
    "an item by name": lambda t, x: t.__setitem__(0, 1),
    "out": lambda t, x: torch.add(x, x, out=t),
    "out to a view": lambda t, x: torch.add(x, x, out=t.view(2)),
    "lists and a number": lambda t, x: torch._foreach_add_([t], 1),
    "lists and tensors": lambda t, x: torch._foreach_mul_([x.clone(), t], [x, x]),
    "lists, copied": lambda t, x: torch._foreach_copy_([t], [x]),
    "lists, read only": lambda t, x: torch._foreach_add_([x], [t]),
}


@pytest.mark.parametrize("is_made_here", [True, False])
@pytest.mark.parametrize("name", WRITES)
def test_inference_tensors_are_not_written_to_outside_the_mode(
    name: str, is_made_here: bool
) -> None:
    """Found by a random program: `_foreach_add_([t], 0)` with such a `t` did not raise."""
    write = WRITES[name]

    def fn(x: Tensor, given: Tensor) -> Any:
        with torch.inference_mode():
            made = torch.ones(2)
        t = made if is_made_here else given
        try:
            write(t, x)
        except RuntimeError as error:
            return str(error), t + x
        return "no error", t + x

    assert_same(
        fn,
        stator.compile(fn, backend="eager"),
        lambda: (torch.ones(2), torch.inference_mode()(torch.ones)(2)),
    )


def sets_by_name(x: Tensor, flag: bool) -> Any:
    x.requires_grad = flag
    return x.requires_grad, x.is_leaf


def sets_by_a_call(x: Tensor, flag: bool) -> Any:
    return x.requires_grad_(flag) is x, x.requires_grad, x.is_leaf


def view_without_history() -> Tensor:
    with torch.no_grad():
        return torch.ones(3, requires_grad=True)[:2]


FLAGGED: dict[str, Callable[[], Tensor]] = {
    "leaf": lambda: torch.ones(3),
    "leaf with gradients": lambda: torch.ones(3, requires_grad=True),
    "view without history": view_without_history,
    "detached": (torch.ones(3, requires_grad=True) * 2).detach,
}


@pytest.mark.parametrize("flag", [True, False])
@pytest.mark.parametrize("name", FLAGGED)
@pytest.mark.parametrize("fn", [sets_by_name, sets_by_a_call])
def test_a_flag_of_gradients_that_is_set_to_what_it_is_may_still_be_refused(
    fn: Any, name: str, flag: bool
) -> None:
    assert_same(fn, stator.compile(fn, backend="eager"), lambda: (FLAGGED[name](), flag))


@pytest.mark.parametrize("flag", [True, False])
@pytest.mark.parametrize("fn", [sets_by_name, sets_by_a_call])
def test_so_may_that_of_an_input_that_was_computed(fn: Callable[..., Any], flag: bool) -> None:
    def run(x: Tensor, flag: bool) -> Any:
        y = x * 2
        stator.graph_break()
        try:
            return fn(y, flag)
        except RuntimeError as error:
            return str(error), y + 1

    assert_same(
        run, stator.compile(run, backend="eager"), lambda: (torch.ones(3, requires_grad=True), flag)
    )


def a_kept_mode(x: Tensor) -> Any:
    mode = torch.inference_mode()
    with mode:
        y = x + 1
    with mode:
        z = y * 2
    return z, mode, torch.is_inference_mode_enabled()


def a_kept_mode_over_a_break(x: Tensor) -> Any:
    mode = torch.inference_mode(False)
    with mode:
        y = x + 1
    stator.graph_break()
    return y * 2, mode, torch.is_grad_enabled()


@pytest.mark.parametrize("fn", [a_kept_mode, a_kept_mode_over_a_break])
def test_a_mode_that_was_left_and_is_kept_stays_left(fn: Callable[..., Any]) -> None:
    assert_same(fn, stator.compile(fn, backend="eager"), lambda: (torch.ones(3),))


def flags_by_position(x: Tensor) -> Any:
    return torch.Tensor.requires_grad_(x * 2, 1, 2)  # type: ignore[call-arg,arg-type]


def flags_by_another_name(x: Tensor) -> Any:
    return (x * 2).requires_grad_(mode=True)


def history_of_a_split(x: Tensor) -> Any:
    y = x * 2
    first, _ = torch.split(y, 2)
    y.mul_(2)
    return first.grad_fn


def attributes_of_a_part_written_without_gradients(x: Tensor) -> Any:
    first, _ = torch.split(x * 2, 2)
    with torch.no_grad():
        first.add_(1)
    return first.grad_fn is None, first.is_leaf


REFUSED = (
    *(flags_by_position, flags_by_another_name),
    *(history_of_a_split, attributes_of_a_part_written_without_gradients),
)


@pytest.mark.parametrize("fn", REFUSED)
def test_what_autograd_refuses_is_raised_as_plainly(fn: Callable[..., Any]) -> None:
    compiled = stator.compile(fn, backend="eager")
    assert_same(fn, compiled, lambda: (torch.arange(4.0, requires_grad=True),), gradients=False)
