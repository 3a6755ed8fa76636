"""`torch.autograd.Function` in compiled code: one graph, and values, gradients and errors as
natively."""

# mypy: disable-error-code="no-untyped-call"
# `Function.apply` has no types.

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import pytest
import stator
import torch
from torch import Tensor, masked
from torch.autograd import Function
from torch.autograd.function import NestedIOFunction, once_differentiable
from torch.utils.checkpoint import checkpoint

from integration_tests.corpora.models import Call
from integration_tests.support.counting import Counting
from integration_tests.support.oracle import Tolerance, assert_same

Program = Callable[[Tensor, Tensor], Any]
CAPTURED: dict[str, Program] = {}
BROKEN: dict[str, Program] = {}
OUTSIDE: list[Any] = []
HELD: list[Tensor] = []


def _registered(table: dict[str, Program], fn: Program) -> Program:
    table[fn.__name__.replace("_", " ")] = fn
    return fn


captured = functools.partial(_registered, CAPTURED)
broken = functools.partial(_registered, BROKEN)
"""One break, at `apply`."""


def make_args() -> Call:
    x = torch.linspace(-1, 1, 6, dtype=torch.float64).reshape(2, 3).requires_grad_()
    return Call((x, torch.tensor([0.5, -1.0, 2.0], dtype=torch.float64).requires_grad_()))


class Power(Function):
    """Gradients are ten times too large, so that it shows whose they are."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, n: Any, label: Any = None) -> Any:
        ctx.save_for_backward(x)
        ctx.n, ctx.label = n, label
        assert not torch.is_grad_enabled()
        return x**n

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        (x,) = ctx.saved_tensors
        return grad * ctx.n * x ** (ctx.n - 1) * 10, None, None


class Product(Function):
    """In the style of `setup_context`; saves an argument, an output and a tensor of its own."""

    generate_vmap_rule = True

    @staticmethod
    def forward(x: Tensor, y: Tensor) -> Any:
        return x * y, (x + y).sin(), 3

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        x, y = inputs
        ctx.save_for_backward(x, None, output[0])
        ctx.extra = {"y": (y, [x.shape[0]]), "words": "kept"}

    @staticmethod
    def backward(ctx: Any, first: Tensor, second: Tensor, third: None) -> Any:
        x, nothing, out = ctx.saved_tensors
        assert nothing is third is None
        y, (size,) = ctx.extra["y"]
        return first * y * size + second, (first * x + out if ctx.needs_input_grad[1] else None)


class Stash(Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, scales: list[Tensor]) -> Tensor:
        y = x.exp() * scales[0]
        ctx.y = y
        ctx.middle, ctx.shape, ctx.part = x.cos(), x.shape, slice(0, len(scales))
        return y + 1

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> Any:
        return (grad * ctx.y + ctx.middle).expand(ctx.shape)[ctx.part], None


class Doubled(Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.mark_dirty(x)
        return x.mul_(2)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        return grad * 20


class Shifted(Function):
    """Writes to its argument and marks nothing, as sparsemax does in libraries."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        x -= x.max(-1, keepdim=True).values
        y = x.clamp(min=-0.7)
        ctx.save_for_backward(x == y, y)
        return y

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        inside, y = ctx.saved_tensors
        return grad * inside * y * 10


class WritesHeld(Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        return x * HELD[0].mul_(2)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        return grad * 20


class Sorted(Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Any:
        values, order = x.sort()
        rest = x * 2
        ctx.mark_non_differentiable(order, rest)
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(order)
        return values, order, rest

    @staticmethod
    def backward(ctx: Any, grad: Any, unused: Any, rest: Any) -> Any:
        if grad is None:
            return None
        (order,) = ctx.saved_tensors
        return torch.zeros_like(grad).scatter(-1, order, grad)


class Same(Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, y: Tensor) -> Any:
        return x, y * 2

    @staticmethod
    def backward(ctx: Any, a: Tensor, b: Tensor) -> Any:
        return a * 3, b * 2


class Outer(Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Any:
        ctx.save_for_backward(x)
        return Power.apply(x, 2)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        (x,) = ctx.saved_tensors
        return Power.apply(x, 2) * grad


class LooksAtGradients(Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        return x * 2

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        return grad * 2 if grad.is_contiguous() else grad * 200


class ForwardOnly(Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        return x * 2


class Writes(Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        OUTSIDE.append(1)
        return x * 2

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        return grad * 2


class PrintsBackward(Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        return x * 2

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        print("backward")
        return grad * 2


class KeepsContext(Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, box: Any) -> Tensor:
        box.append(ctx)
        return x * 2

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        return grad * 2, None


class Raises(Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        raise ValueError("from forward")


@captured
def saved_and_constant_arguments(x: Tensor, w: Tensor) -> Any:
    return Power.apply(x.sin(), 3) + Power.apply(w, 2, "label")


@captured
def with_setup_context(x: Tensor, w: Tensor) -> Any:
    first, second, third = Product.apply(x, w)
    return first + second * third, type(third)


@captured
def one_argument_without_gradients(x: Tensor, w: Tensor) -> Any:
    return Product.apply(x, w.detach())[0]


@captured
def used_twice_on_one_tensor(x: Tensor, w: Tensor) -> Any:
    return Product.apply(x, x)[0] + Product.apply(x, w)[1]


@captured
def tensors_stored_on_the_context(x: Tensor, w: Tensor) -> Any:
    return Stash.apply(x, [w, 3]) * 2


@captured
def under_no_grad(x: Tensor, w: Tensor) -> Any:
    with torch.no_grad():
        y = Power.apply(x, 2)
    return y, PrintsBackward.apply(x.detach()), ForwardOnly.apply(w.detach())


@captured
def not_differentiable_results(x: Tensor, w: Tensor) -> Any:
    values, order, rest = Sorted.apply(x * w)
    return values * 2, order, rest.requires_grad, order.requires_grad, rest


@captured
def an_argument_that_is_returned(x: Tensor, w: Tensor) -> Any:
    y = x * 1
    same, other = Same.apply(y, w)
    return same, other, same is y


@captured
def one_inside_another(x: Tensor, w: Tensor) -> Any:
    return Outer.apply(x * w)


@captured
def an_intermediate_marked_dirty(x: Tensor, w: Tensor) -> Any:
    y = x * 1
    z = Doubled.apply(y)
    return z, z is y, y + 1


@captured
def an_intermediate_written_to_unmarked(x: Tensor, w: Tensor) -> Any:
    y = x.sin()
    z = Shifted.apply(y)
    return z * y, y


@captured
def an_intermediate_written_to_twice(x: Tensor, w: Tensor) -> Any:
    y = x + w
    return Shifted.apply(y) + Shifted.apply(y) * w, y


@captured
def an_argument_written_to_unmarked(x: Tensor, w: Tensor) -> Any:
    return Shifted.apply(x.detach()) * w


@captured
def a_backward_that_looks_at_strides(x: Tensor, w: Tensor) -> Any:
    return LooksAtGradients.apply(x).sum() + (LooksAtGradients.apply(w) * w).sum()


@captured
def inside_a_checkpointless_loop(x: Tensor, w: Tensor) -> Any:
    for n in range(1, 4):
        x = Power.apply(x, n) + w
    return x


@captured
def inside_a_transform(x: Tensor, w: Tensor) -> Any:
    return torch.func.grad(lambda a: Product.apply(a, w)[0].sum())(x)


@captured
def inside_a_checkpoint(x: Tensor, w: Tensor) -> Any:
    return checkpoint(lambda a: Product.apply(a, w)[0] * 2, x, use_reentrant=False)


@captured
def inside_both_branches(x: Tensor, w: Tensor) -> Any:
    return torch.cond(
        x.sum() > -9, lambda a: Product.apply(a, w)[0], lambda a: Power.apply(a, 3) * w, (x,)
    )


@captured
def with_what_its_bodies_use_besides(x: Tensor, w: Tensor) -> Any:
    width = x.shape[1]

    class Scaled(Function):
        @staticmethod
        def forward(ctx: Any, a: Tensor) -> Any:
            ctx.size = a.shape[0]
            ctx.save_for_backward(a)
            return a * width + w

        @staticmethod
        def backward(ctx: Any, grad: Tensor) -> Any:
            return grad * ctx.size * width * w * ctx.saved_tensors[0]

    return Scaled.apply(x)


@captured
def a_class_made_inside(x: Tensor, w: Tensor) -> Any:
    class Scaled(Function):
        @staticmethod
        def forward(ctx: Any, a: Tensor, n: float) -> Any:
            ctx.save_for_backward(a)
            return a * n + w.detach()

        @staticmethod
        def backward(ctx: Any, grad: Tensor) -> Any:
            return grad * ctx.saved_tensors[0] * 100, None

    return Scaled.apply(x, 3.0), Scaled.apply(w, 2.0).sum(), Scaled.__name__


@captured
def masked_operations(x: Tensor, w: Tensor) -> Any:
    """torch makes a class in each call."""
    return masked.softmin(x, 1, mask=x.detach() > 0), masked.sum(x, 0, mask=x.detach() > 0)


@captured
def a_list_from_outside_that_forward_appends_to(x: Tensor, w: Tensor) -> Any:
    return Writes.apply(x * 2) + w


class ScaledBy(Function):
    @staticmethod
    def forward(x: Tensor, w: Tensor, by: Any = 2, *rest: Any) -> Any:
        return x * w * by

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        x, w, ctx.by, *ctx.rest = inputs
        ctx.save_for_backward(x, w)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        x, w = ctx.saved_tensors
        return grad * w * ctx.by * 10, (grad * x).sum(0) * ctx.by, *[None] * (1 + len(ctx.rest))


@captured
def arguments_from_defaults(x: Tensor, w: Tensor) -> Any:
    return ScaledBy.apply(x, w), ScaledBy.apply(x, w, 3), ScaledBy.apply(x, w, 4, "more")


CLOSE = Tolerance(1e-9, 1e-12, strides=False)


@pytest.mark.parametrize("title", CAPTURED)
def test_function_gives_what_it_gives_natively_in_one_graph(title: str) -> None:
    counting = Counting()
    assert_same(
        CAPTURED[title],
        stator.compile(CAPTURED[title], backend=counting),
        make_args,
        tolerance=CLOSE,
    )
    assert counting.count == 1


def a_leaf_written_to_unmarked(x: Tensor, w: Tensor) -> Any:
    return Shifted.apply(w) * x


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_unmarked_write_to_a_leaf_is_seen_by_its_owner(backend: str) -> None:
    compiled = stator.compile(a_leaf_written_to_unmarked, backend=backend)
    assert_same(a_leaf_written_to_unmarked, compiled, make_args, tolerance=CLOSE)


SOME = (
    "an intermediate written to unmarked",
    "with setup context",
    "an intermediate marked dirty",
    "one inside another",
    "not differentiable results",
)
SAMPLED = [
    title if title in SOME else pytest.param(title, marks=pytest.mark.slow) for title in CAPTURED
]


@pytest.mark.parametrize("title", SAMPLED)
def test_function_is_lowered_by_aot(title: str) -> None:
    compiled = stator.compile(CAPTURED[title], backend="aot_eager", fullgraph=True)
    assert_same(CAPTURED[title], compiled, make_args, calls=1, tolerance=CLOSE)


@pytest.mark.parametrize("title", SAMPLED)
def test_function_takes_dynamic_shapes(title: str) -> None:
    compiled = stator.compile(CAPTURED[title], backend="aot_eager", fullgraph=True, dynamic=True)
    assert_same(CAPTURED[title], compiled, make_args, calls=1, tolerance=CLOSE)


def graph_of(fn: Any, args: tuple[Any, ...], dynamic: bool | None) -> torch.fx.GraphModule:
    counting = Counting()
    stator.compile(fn, backend=counting, fullgraph=True, dynamic=dynamic)(*args)
    return counting.graphs[0]


def given_to(graph: torch.fx.GraphModule) -> tuple[Any, ...]:
    """Values for its placeholders, which come in the order of their use."""
    named = dict(zip("xw", make_args().args, strict=True))

    def value(node: torch.fx.Node) -> Any:
        example = node.meta["example_value"]
        if not isinstance(example, Tensor):
            return int(example.node.hint)
        return named.get(
            node.name, torch.ones([int(size) for size in example.shape], dtype=example.dtype)
        )

    return tuple(map(value, graph.graph.find_nodes(op="placeholder")))


@pytest.mark.parametrize("dynamic", [None, pytest.param(True, marks=pytest.mark.slow)])
@pytest.mark.parametrize("title", SAMPLED)
def test_graph_of_it_is_captured_whole_in_several_rounds(title: str, dynamic: bool | None) -> None:
    """Also where nothing is differentiated any more."""
    first = graph = graph_of(CAPTURED[title], make_args().args, dynamic)
    for _ in range(3):
        graph = graph_of(graph, given_to(graph), dynamic)

    def call(*args: Any) -> Any:
        return first(*args)

    def call_again(*args: Any) -> Any:
        return graph(*args)

    compiled = [
        stator.compile(call, backend=name, fullgraph=True, dynamic=dynamic)
        for name in ("eager", "aot_eager")
    ]
    for again in (call_again, *compiled):
        assert_same(call, again, lambda: given_to(first), calls=2, tolerance=CLOSE)
    with torch.no_grad():
        assert_same(call, compiled[0], lambda: given_to(first), gradients=False, tolerance=CLOSE)


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_graph_without_a_backward_gets_one_where_it_is_called_with_gradients(backend: str) -> None:
    first = graph_of(with_setup_context, tuple(arg.detach() for arg in make_args().args), None)

    def call(x: Tensor, w: Tensor) -> Any:
        return first(x, w)

    assert_same(
        call, stator.compile(call, backend=backend, fullgraph=True), make_args, tolerance=CLOSE
    )


@broken
def whose_backward_prints(x: Tensor, w: Tensor) -> Any:
    y = x * 2
    return PrintsBackward.apply(y) + w


@broken
def whose_context_gets_out(x: Tensor, w: Tensor) -> Any:
    y = x * 2
    box: list[Any] = []
    z = KeepsContext.apply(y, box) + w
    return z, len(box)


@broken
def without_a_backward(x: Tensor, w: Tensor) -> Any:
    y = x * 2
    return ForwardOnly.apply(y).detach() + w


@broken
def that_marks_a_view_dirty(x: Tensor, w: Tensor) -> Any:
    y = x * 2
    z = Doubled.apply(y[0])
    return y, z + 1


@broken
def that_writes_to_a_view_unmarked(x: Tensor, w: Tensor) -> Any:
    y = x * 2
    z = Shifted.apply(y[0])
    return y, z + 1


@broken
def that_writes_to_what_is_no_argument(x: Tensor, w: Tensor) -> Any:
    y = x * 2
    HELD[:] = [w.exp()]
    return WritesHeld.apply(y) + 1, HELD.pop()


@broken
def whose_forward_raises(x: Tensor, w: Tensor) -> Any:
    y = x * 2
    try:
        return Raises.apply(y)
    except ValueError as error:
        return y + 1, str(error)


@broken
def that_misses_an_argument(x: Tensor, w: Tensor) -> Any:
    y = x * 2
    try:
        return ScaledBy.apply(y)
    except TypeError as error:
        return y + 1, str(error)


class ScaledInside(ScaledBy):
    forward: Any = staticmethod(
        functools.wraps(ScaledBy.forward)(lambda *args: ScaledBy.forward(*args) + 1)
    )


@broken
def whose_defaults_are_those_of_what_it_wraps(x: Tensor, w: Tensor) -> Any:
    y = x * 2
    return ScaledInside.apply(y, w) + 1


@broken
def that_no_transform_takes(x: Tensor, w: Tensor) -> Any:
    y = x * 2
    try:
        return torch.func.grad(lambda a: Power.apply(a, 2).sum())(y)
    except RuntimeError as error:
        return y + 1, str(error)


class KeepsName(ForwardOnly):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.kept = ctx.name()
        return x * 2


class ReadsNothing(ForwardOnly):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Any:
        return x * ctx.nothing


class GivesList(ForwardOnly):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Any:
        return x * 2, [1, 2]


class SavesList(ForwardOnly):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.to_save = [x]
        return x * 2


class MarksNoOutput(ForwardOnly):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.mark_dirty(x)
        return x * 2


class SavesNumber(ForwardOnly):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.save_for_backward(x, 3)
        return x * 2


class WritesUnmarked(ForwardOnly):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        return x.mul_(2)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        return grad * 2


class TwoGradients(ForwardOnly):
    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        return grad, grad


class NumberAsGradient(ForwardOnly):
    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        return 3


class Batched(Function):
    @staticmethod
    def forward(x: Tensor) -> Tensor:
        return x * 2

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.factor = 2

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        return grad * ctx.factor

    @staticmethod
    def vmap(info: Any, in_dims: Any, x: Tensor) -> Any:
        return x * 3, in_dims[0]


def _under_vmap(x: Tensor, w: Tensor) -> Any:
    y = x * 2
    return torch.vmap(Batched.apply)(y), y + w


class Boxed(LooksAtGradients):
    boxed_grads_call = True


class InTheOldStyle(NestedIOFunction):
    def forward_extended(self, *inputs: Any) -> Any:
        return inputs[0] * 2


def _applying(cls: type[Function], **kwargs: Any) -> Program:
    def program(x: Tensor, w: Tensor) -> Any:
        y = x * 2
        try:
            return cls.apply(y, **kwargs), y + w
        except (AttributeError, RuntimeError, TypeError) as error:
            return y + 1, type(error), str(error)

    return program


BROKEN |= {
    "that reads a method of the real context": _applying(KeepsName),
    "that reads an attribute which nothing has": _applying(ReadsNothing),
    "that gives a list": _applying(GivesList),
    "that saves a list": _applying(SavesList),
    "that marks what it does not give": _applying(MarksNoOutput),
    "that saves a number": _applying(SavesNumber),
    "that gives an argument written to unmarked": _applying(WritesUnmarked),
    "whose backward gives two gradients": _applying(TwoGradients),
    "whose backward gives a number": _applying(NumberAsGradient),
    "with a vmap of its own, under it": _under_vmap,
    "whose backward takes a list": _applying(Boxed),
    "of the old style": _applying(InTheOldStyle),
    "with a keyword argument": _applying(Power, n=2),
}


@pytest.mark.parametrize("title", BROKEN)
def test_break_at_apply_gives_what_plain_python_gives(title: str) -> None:
    assert_same(
        BROKEN[title],
        stator.compile(BROKEN[title], backend="eager"),
        make_args,
        tolerance=CLOSE,
    )


@pytest.mark.parametrize("title", BROKEN)
def test_break_at_apply_costs_one_break(title: str) -> None:
    counting = Counting()
    compiled = stator.compile(BROKEN[title], backend=counting)
    for _ in range(2):  # a first call that changes what it relied on is not compiled
        compiled(*make_args().args)
    assert counting.count == 2


def test_gradients_pass_gradcheck() -> None:
    class Cube(Function):
        @staticmethod
        def forward(ctx: Any, x: Tensor) -> Any:
            ctx.save_for_backward(x)
            return x**3

        @staticmethod
        def backward(ctx: Any, grad: Tensor) -> Any:
            (x,) = ctx.saved_tensors
            return 3 * x**2 * grad

    def f(x: Tensor) -> Any:
        return Cube.apply(x)

    x = make_args().args[0]
    assert torch.autograd.gradcheck(stator.compile(f, backend="aot_eager", fullgraph=True), (x,))
    assert torch.autograd.gradgradcheck(stator.compile(f, backend="eager", fullgraph=True), (x,))


def test_saved_tensor_that_is_written_to_is_noticed_in_backward() -> None:
    def f(x: Tensor) -> Any:
        y = x * 1
        z = Power.apply(y, 2)
        y.add_(1)
        return z

    out = stator.compile(f, backend="eager", fullgraph=True)(make_args().args[0])
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        out.sum().backward()


def test_missing_gradient_is_none_for_a_backward_that_wants_to_know() -> None:
    def f(x: Tensor) -> Any:
        return Sorted.apply(x)[0], x * 3

    for compiled in (f, stator.compile(f, backend="eager", fullgraph=True)):
        x = make_args().args[0]
        values, other = compiled(x)
        other.sum().backward()
        assert torch.equal(x.grad, torch.full_like(x, 3.0))
        assert values.grad_fn.name() == "SortedBackward"


OUTSIDE_OF_VMAP: dict[str, Program] = {
    "alone": _applying(Batched),
    "under grad": lambda x, w: torch.func.grad(lambda y: Batched.apply(y * w).sum())(x),
    "under jacrev": lambda x, w: torch.func.jacrev(Batched.apply)(x[0]) + w.sum(),
}


@pytest.mark.parametrize("title", OUTSIDE_OF_VMAP)
def test_a_vmap_of_its_own_is_no_break_where_nothing_is_mapped(title: str) -> None:
    program = OUTSIDE_OF_VMAP[title]
    compiled = stator.compile(program, backend="eager", fullgraph=True)
    assert_same(program, compiled, make_args, tolerance=CLOSE)
