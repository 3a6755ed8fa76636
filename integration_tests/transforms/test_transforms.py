"""The transforms of torch.func in compiled code: one graph, and the same values, gradients and
errors as natively."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest
import stator
import torch
from torch import Tensor
from torch.func import (
    functional_call,
    grad,
    grad_and_value,
    hessian,
    jacfwd,
    jacrev,
    jvp,
    linearize,
    vjp,
    vmap,
)

from integration_tests.corpora.models import Call
from integration_tests.support.counting import Counting
from integration_tests.support.oracle import Tolerance, assert_same

Program = Callable[[Tensor, Tensor], Any]
CAPTURED: dict[str, Program] = {}
BROKEN: dict[str, Program] = {}


def captured(fn: Program) -> Program:
    CAPTURED[fn.__name__.replace("_", " ")] = fn
    return fn


def broken(fn: Program) -> Program:
    """One break, at the transform."""
    BROKEN[fn.__name__.replace("_", " ")] = fn
    return fn


def make_args() -> Call:
    x = torch.linspace(-1, 1, 6, dtype=torch.float64).reshape(2, 3).requires_grad_()
    return Call((x, torch.tensor([0.5, -1.0, 2.0], dtype=torch.float64)))


class Pair(NamedTuple):
    first: Any
    second: Any


MODEL = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Tanh(), torch.nn.Linear(4, 2)).double()
MADE_OUTSIDE = grad(lambda a, scale=2.0: (a * a * scale).sum())


# -- levels ----------------------------------------------------------------------------------------
LEVELS: Any = torch._C._functorch


def _levels() -> Any:
    active = torch._C._are_functorch_transforms_active()
    return active, LEVELS.maybe_current_level(), LEVELS.get_dynamic_layer_stack_depth()


@captured
def levels_outside(x: Tensor, w: Tensor) -> Any:
    kinds = (
        LEVELS.is_batchedtensor(x),
        LEVELS.is_gradtrackingtensor(x),
        LEVELS.is_functorch_wrapped_tensor(x),
    )
    stacks = LEVELS.peek_interpreter_stack(), LEVELS.get_interpreter_stack()
    return x + 1, _levels(), kinds, stacks, LEVELS.maybe_get_level(x), LEVELS.maybe_get_bdim(x)


@captured
def levels_inside(x: Tensor, w: Tensor) -> Any:
    seen = []

    def asking(a: Tensor) -> Tensor:
        seen.append((_levels(), LEVELS.current_level()))
        return (a * a).sum()

    made = (
        vmap(grad(asking))(x),
        hessian(asking)(w),
        jacrev(asking)(w),
        vjp(asking, w)[0],
        jvp(asking, (w,), (w,)),
    )
    return made, seen, _levels()


@broken
def kind_of_a_tensor_inside(x: Tensor, w: Tensor) -> Any:
    return vmap(lambda a: a + LEVELS.is_batchedtensor(a))(x + 1) + 1


@broken
def levels_under_linearize(x: Tensor, w: Tensor) -> Any:
    return linearize(lambda a: a.sin() * (LEVELS.maybe_current_level() or 3), w + 1)[0] + 1


# -- grad ------------------------------------------------------------------------------------------
@captured
def gradient_of_a_closure(x: Tensor, w: Tensor) -> Any:
    return grad(lambda a: (a.sin() * w * x[0]).sum())(w) + w


@captured
def gradient_of_an_argument_that_is_captured_too(x: Tensor, w: Tensor) -> Any:
    return grad(lambda a: (a * w).sum())(w)


@captured
def gradient_of_the_same_tensor_twice(x: Tensor, w: Tensor) -> Any:
    return grad(lambda a, b: (a * a * b).sum(), argnums=(0, 1))(w, w)


@captured
def gradient_with_structure_keywords_and_aux(x: Tensor, w: Tensor) -> Any:
    def loss(p: Any, b: Tensor, *, scale: Any) -> Any:
        y = (p["w"] * b + p["rest"][0] * scale["by"]).sum()
        return y, {"y": y, "b": b, "w": Pair(w, p["w"] * 2)}

    p = {"w": x, "rest": [w, (x[0],)]}
    return grad(loss, argnums=(-2,), has_aux=True)(p, w, scale={"by": w, "n": 3})


@captured
def gradient_and_value(x: Tensor, w: Tensor) -> Any:
    return grad_and_value(lambda a, n: (a**n).sum(), argnums=0)(x, 3)


@captured
def gradient_made_outside(x: Tensor, w: Tensor) -> Any:
    return MADE_OUTSIDE(x, scale=3.0) + MADE_OUTSIDE(w)


@captured
def gradient_of_a_gradient(x: Tensor, w: Tensor) -> Any:
    return grad(lambda a: grad(lambda b: (b**3 * a * w).sum())(a).sum())(w)


@captured
def gradient_with_grad_mode_off_outside(x: Tensor, w: Tensor) -> Any:
    with torch.no_grad():
        inner = grad(lambda a: (a * a * (2.0 if torch.is_grad_enabled() else 5.0)).sum())(x)
    return inner, torch.is_grad_enabled()


@captured
def gradient_with_grad_mode_off_inside(x: Tensor, w: Tensor) -> Any:
    def f(a: Tensor) -> Tensor:
        with torch.no_grad():
            c = a**2
        return (a - c).sum()

    return grad(f)(x)


@captured
def body_that_looks_at_its_input(x: Tensor, w: Tensor) -> Any:
    def f(a: Tensor) -> Tensor:
        facts = (a.requires_grad, a.shape == (2, 3), a.is_leaf)
        return (a * a.numel() * sum(facts)).sum()

    return grad(f)(x)


@captured
def body_that_writes_to_its_own_tensors(x: Tensor, w: Tensor) -> Any:
    def f(a: Tensor) -> Tensor:
        b = a * 2
        b.mul_(a)
        b[0] = 1.0
        return b.sum()

    return grad(f)(x)


@captured
def body_that_counts_its_calls(x: Tensor, w: Tensor) -> Any:
    counts = [0]

    def f(a: Tensor) -> Tensor:
        counts[0] += 1
        return (a * counts[0]).sum()

    return grad(f)(x), vmap(f)(x), vmap(f, chunk_size=1)(x), counts


# -- vmap ------------------------------------------------------------------------------------------
@captured
def mapped_over_chosen_dimensions(x: Tensor, w: Tensor) -> Any:
    def f(a: Any, b: Tensor, n: int) -> Any:
        return {"s": a["x"].sin() * b * n, "t": (b, a["x"][None])}

    dims: Any = {"s": 1, "t": 0}
    return vmap(f, in_dims=({"x": -1}, 0, None), out_dims=dims)({"x": x}, w, 2)


@captured
def mapped_with_results_that_are_not_mapped(x: Tensor, w: Tensor) -> Any:
    dims: Any = (0, None)
    return vmap(lambda a: (a * w, w), out_dims=dims)(x)


@captured
def mapped_twice(x: Tensor, w: Tensor) -> Any:
    return vmap(vmap(lambda a, b: a * b + w.sum()))(x, x.cos())


@captured
def mapped_in_chunks(x: Tensor, w: Tensor) -> Any:
    return vmap(lambda a: (a * 2, a.sin()), in_dims=1, out_dims=(1, 0), chunk_size=2)(x)


@captured
def mapped_with_a_dimension_in_a_tuple(x: Tensor, w: Tensor) -> Any:
    return vmap(lambda a: a * w, out_dims=(1,))(x)


@captured
def mapped_gradient_per_sample(x: Tensor, w: Tensor) -> Any:
    return vmap(grad(lambda p, row: (p * row).sin().sum()), in_dims=(None, 0))(w, x)


@captured
def mapped_body_that_asks_for_shapes(x: Tensor, w: Tensor) -> Any:
    return vmap(lambda a: a * a.dim() + a.shape[0] * len(a))(x)


@captured
def mapped_drawing_random_numbers(x: Tensor, w: Tensor) -> Any:
    same = vmap(lambda a: a + torch.rand(()), randomness="same")(x)
    return same, vmap(lambda a: a + torch.rand(3), randomness="different")(x)


@captured
def mapped_module(x: Tensor, w: Tensor) -> Any:
    return vmap(MODEL)(x)


# -- the others ------------------------------------------------------------------------------------
def _seen(function: Any) -> Any:
    names = (
        function.__name__,
        function.__qualname__,
        function.__module__,
        function.__doc__,
        function.__annotations__,
    )
    return names, list(inspect.signature(function).parameters), sorted(vars(function))


@captured
def what_transforms_take_over_from_their_function(x: Tensor, w: Tensor) -> Any:
    def loss(a: Tensor) -> Tensor:
        """How far off."""
        return (a**2).sum()

    made: list[Any] = [
        transform(loss) for transform in (grad, grad_and_value, vmap, jacrev, jacfwd, hessian)
    ]
    nested: Any = vmap(grad(loss))
    same = [each.__wrapped__ is loss for each in made], nested.__wrapped__.__wrapped__ is loss
    return [_seen(each) for each in made], same, [each(w) for each in made], nested(x)


@captured
def what_vjp_and_linearize_give_looks_like_theirs(x: Tensor, w: Tensor) -> Any:
    pull, push = vjp(torch.sin, w)[1], linearize(torch.sin, w)[1]
    mapped: Any = vmap(pull)
    return (
        _seen(pull),
        pull.__defaults__,
        _seen(push),
        _seen(mapped),
        mapped.__wrapped__ is pull,
        pull(w),
        push(w),
    )


@broken
def function_of_vjp_is_given_away(x: Tensor, w: Tensor) -> Any:
    value, pull = vjp(torch.sin, w + 1)[:2]
    return value * 2, pull


@broken
def function_of_linearize_is_given_away(x: Tensor, w: Tensor) -> Any:
    value, push = linearize(torch.sin, w + 1)
    return value * 2, push


@captured
def pulled_back(x: Tensor, w: Tensor) -> Any:
    out, pull = vjp(  # type: ignore[misc]  # without has_aux it is a pair
        lambda a, b: {"p": a * b, "q": b.sin()}, x, w
    )
    return out, pull({"p": x, "q": w}), pull({"p": x * 2, "q": w})


@captured
def pulled_back_with_aux_and_mapped(x: Tensor, w: Tensor) -> Any:
    out, pull, aux = vjp(lambda a: (a.sin(), a), w, has_aux=True)  # type: ignore[misc]
    return out, aux, vmap(pull)(torch.eye(3, dtype=w.dtype))


@captured
def pushed_forward(x: Tensor, w: Tensor) -> Any:
    return jvp(lambda a, b: ((a * b).sum(), b.sin()), (x, w), (x.cos(), w), has_aux=False)


@captured
def pushed_forward_with_aux(x: Tensor, w: Tensor) -> Any:
    return jvp(lambda a: (a.sin(), [a * 2]), (w,), (w,), has_aux=True)


@captured
def linearized(x: Tensor, w: Tensor) -> Any:
    scale = w * 2
    out, push = linearize(
        lambda d: {"r": (d["a"] * scale).sin() * d["b"].sum()}, {"a": w, "b": w.cos()}
    )
    return out, push({"a": w, "b": w}), push({"a": scale, "b": w})


@captured
def linearized_and_mapped(x: Tensor, w: Tensor) -> Any:
    out, push = linearize(lambda a, b: (a * b, b.sin()), w, w.cos())
    return out, vmap(push)(torch.eye(3, dtype=w.dtype), torch.ones(3, 3, dtype=w.dtype))


@captured
def body_that_notes_its_sizes(x: Tensor, w: Tensor) -> Any:
    seen: list[Any] = []

    def f(a: Tensor) -> Tensor:
        seen.append(a.shape)
        return a * a.shape[0]

    return vmap(f)(x), seen


@captured
def jacobian_by_reverse(x: Tensor, w: Tensor) -> Any:
    return jacrev(lambda a, b: (a * b, {"s": b.sin()}), argnums=(0, 1))(x, w)


@captured
def jacobian_by_reverse_in_chunks(x: Tensor, w: Tensor) -> Any:
    return jacrev(lambda a: (a**2, a.sum()), chunk_size=2, has_aux=True)(w)


@captured
def jacobian_by_forward(x: Tensor, w: Tensor) -> Any:
    return jacfwd(lambda a, b: (a * b).sin(), argnums=1)(x, w)


@captured
def hessian_of_a_captured_scale(x: Tensor, w: Tensor) -> Any:
    return hessian(lambda a: (a**3 * w).sum())(w.cos())


@captured
def ensemble_of_functional_calls(x: Tensor, w: Tensor) -> Any:
    params = {name: torch.stack([p, p * 2]) for name, p in MODEL.named_parameters()}
    return vmap(lambda p, a: functional_call(MODEL, p, (a,)))(params, x)


@captured
def gradient_through_a_functional_call(x: Tensor, w: Tensor) -> Any:
    params = {name: p.detach() for name, p in MODEL.named_parameters()}
    return grad(lambda p: functional_call(MODEL, p, (x,)).sum())(params)


CLOSE = Tolerance(1e-9, 1e-12, strides=False)


@pytest.mark.parametrize("title", CAPTURED)
def test_transform_gives_what_it_gives_natively_in_one_graph(title: str) -> None:
    counting = Counting()
    assert_same(
        CAPTURED[title],
        stator.compile(CAPTURED[title], backend=counting),
        make_args,
        tolerance=CLOSE,
    )
    assert counting.count == 1
    assert _depth() == 0


SOME = (
    "gradient of a gradient",
    "mapped gradient per sample",
    "pulled back",
    "jacobian by forward",
    "mapped in chunks",
)
SAMPLED = [
    title if title in SOME else pytest.param(title, marks=pytest.mark.slow) for title in CAPTURED
]


@pytest.mark.parametrize("title", SAMPLED)
def test_transform_is_lowered_by_aot(title: str) -> None:
    compiled = stator.compile(CAPTURED[title], backend="aot_eager", fullgraph=True)
    assert_same(CAPTURED[title], compiled, make_args, calls=1, tolerance=CLOSE)


_STATIC = ("jacobian by forward",)
"""torch has no `jacfwd` of one of several arguments over fake tensors with symbolic shapes."""
DYNAMIC = [
    pytest.param(title, marks=[] if title in SOME else pytest.mark.slow)
    for title in CAPTURED
    if title not in _STATIC
]


@pytest.mark.parametrize("title", DYNAMIC)
def test_transform_takes_dynamic_shapes(title: str) -> None:
    counting = Counting()
    compiled = stator.compile(CAPTURED[title], backend=counting, dynamic=True)
    assert_same(CAPTURED[title], compiled, make_args, calls=1, tolerance=CLOSE)
    assert counting.count == 1


# -- breaks and errors -----------------------------------------------------------------------------
@broken
def a_break_in_a_body(x: Tensor, w: Tensor) -> Any:
    def f(a: Tensor) -> Tensor:
        b = a * 2
        stator.graph_break()
        return (b * w).sum()

    y = x * 2
    return grad(f)(y) + y


@broken
def a_break_in_a_nested_body(x: Tensor, w: Tensor) -> Any:
    def f(a: Tensor) -> Tensor:
        print("in the body", a.dim())
        return (a * w).sum()

    return vmap(grad(f))(x.cos()) * 2


@broken
def a_break_in_a_jacobian(x: Tensor, w: Tensor) -> Any:
    def f(a: Tensor) -> Tensor:
        stator.graph_break()
        return a.sin()

    y = w * 2
    return jacrev(f)(y) + jacfwd(torch.sin)(y)


@broken
def an_error_in_a_body_that_is_caught(x: Tensor, w: Tensor) -> Any:
    def f(a: Tensor) -> Tensor:
        raise ValueError("from the body")

    y = x.sin()
    try:
        return grad(f)(y)
    except ValueError as error:
        return y * 2, str(error)


@broken
def a_gradient_of_what_is_no_scalar(x: Tensor, w: Tensor) -> Any:
    y = x.sin()
    try:
        return grad(lambda a: a * 2)(y)
    except RuntimeError as error:
        return y.cos(), str(error)


@broken
def a_linear_map_at_what_requires_gradients(x: Tensor, w: Tensor) -> Any:
    y = x.sin()
    return linearize(torch.cos, y)[0] + y


@broken
def a_linear_map_of_a_function_with_effects(x: Tensor, w: Tensor) -> Any:
    seen: list[int] = []

    def f(a: Tensor) -> Tensor:
        seen.append(1)
        return a.sin()

    y = x.sin()
    return linearize(f, w)[0] + y, seen


@broken
def mapped_over_lengths_that_differ(x: Tensor, w: Tensor) -> Any:
    y = x.sin()
    try:
        return vmap(torch.add)(y, w)
    except ValueError as error:
        return y.cos(), str(error)


@broken
def mapped_result_that_is_no_tensor(x: Tensor, w: Tensor) -> Any:
    y = x.sin()
    try:
        return vmap(lambda a: 3)(y)
    except ValueError as error:
        return y.cos(), str(error)


@broken
def a_value_of_the_body_that_gets_out(x: Tensor, w: Tensor) -> Any:
    kept: list[Any] = []

    def f(a: Tensor) -> Tensor:
        kept.append(a * 2)
        return a.sum()

    y = x.sin()
    return grad(f)(y) + y, len(kept)


@broken
def random_numbers_that_are_not_allowed(x: Tensor, w: Tensor) -> Any:
    y = x.sin()
    try:
        return vmap(lambda a: a + torch.rand(3))(y)
    except RuntimeError as error:
        return y * 2, type(error)


@broken
def a_transform_that_is_not_captured(x: Tensor, w: Tensor) -> Any:
    y = x.sin()
    return torch.func.functionalize(lambda a: a.clone().add_(1))(y) + 1


# -- arguments that a transform rejects, and rare ones ---------------------------------------------
class Tied(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.a = torch.nn.Linear(3, 3, dtype=torch.float64)
        self.b = torch.nn.Linear(3, 3, dtype=torch.float64)
        self.b.weight = self.a.weight

    def forward(self, x: Tensor) -> Any:
        return self.a(x) + self.b(x)


TIED = Tied()


def _twice(a: Any) -> Any:
    return a * 2


def _sum(a: Tensor) -> Tensor:
    return a.sum()


def _sum_of_first(a: Any) -> Any:
    return a[0].sum()


def _called_with_two_weights(x: Tensor, first: Tensor, second: Tensor) -> Any:
    return functional_call(TIED, {"a.weight": first, "b.weight": second}, (x,))


# torch's annotations do not allow what it rejects
any_vmap: Any = vmap
any_vjp: Any = vjp
any_jvp: Any = jvp
LEFT_A_TRANSFORM: list[Tensor] = []
any_vmap(LEFT_A_TRANSFORM.append, out_dims=None)(torch.ones(3, 3, dtype=torch.float64))
RARE: dict[str, Program] = {
    "tensor that left its transform": lambda y, w: LEFT_A_TRANSFORM[0] + y,
    "gradient of a number": lambda y, w: grad(_twice)(3.0),
    "gradient of integers": lambda y, w: grad(_sum)((y > 0).long()),
    "gradient of a list with a number": lambda y, w: grad(_sum_of_first)([y, 3]),
    "gradient of no pair": lambda y, w: grad(_sum, has_aux=True)(y),
    "gradient with an unknown flag": lambda y, w: grad(_sum, has_aux=w)(y),  # type: ignore[arg-type]
    "gradient of a missing argument": lambda y, w: grad(_sum, argnums=3)(y),
    "mapped over a number": lambda y, w: vmap(torch.mul)(y, 3.0),
    "mapped over a missing dimension": lambda y, w: vmap(_twice, in_dims=5)(y),
    "mapped over another structure": lambda y, w: any_vmap(_twice, in_dims=([0, 0],))([y]),
    "mapped over a dimension that is no integer": lambda y, w: any_vmap(_twice, (0.5,))(y),
    "mapped in chunks of unequal batches": vmap(torch.add, chunk_size=2),
    "mapped in chunks to what is not mapped": lambda y, w: any_vmap(
        lambda a: (a, w), out_dims=(0, None), chunk_size=1
    )(y),
    "vjp of nothing": lambda y, w: any_vjp(lambda a: (), y)[0],
    "cotangents of another structure": lambda y, w: any_vjp(lambda a: (a, a * 2), y)[1](y),
    "tangents of another number": lambda y, w: linearize(_twice, w)[1](w, w),
    "jvp at a list": lambda y, w: any_jvp(_twice, [w], [w]),
    "jvp with tangents of another structure": lambda y, w: jvp(_twice, (w,), (w, w)),
    "functional_call with two weights for one": lambda y, w: _called_with_two_weights(
        y, torch.eye(3, dtype=w.dtype), torch.ones(3, 3, dtype=w.dtype)
    ),
    "functional_call with one weight twice": lambda y, w: _called_with_two_weights(
        y, *[torch.eye(3, dtype=w.dtype)] * 2
    ),
}


def _handling_errors(fn: Program) -> Program:
    def program(x: Tensor, w: Tensor) -> Any:
        y = x.sin()
        try:
            return fn(y, w), y * 2
        except (RuntimeError, TypeError, ValueError) as error:
            return y.cos(), type(error), str(error)

    return program


BROKEN |= {title: _handling_errors(fn) for title, fn in RARE.items()}


@pytest.mark.parametrize("title", BROKEN)
def test_break_at_a_transform_gives_what_plain_python_gives(title: str) -> None:
    assert_same(
        BROKEN[title],
        stator.compile(BROKEN[title], backend="eager"),
        make_args,
        tolerance=CLOSE,
    )
    assert _depth() == 0


@pytest.mark.parametrize("title", BROKEN)
def test_break_at_a_transform_costs_one_break(title: str) -> None:
    call = make_args()
    compiled: Any = stator.compile(BROKEN[title], backend=Counting())
    compiled(*call.args)
    assert compiled.report.graph_count == 2


def test_error_at_run_time_leaves_no_level_behind() -> None:
    def f(x: Tensor, index: Tensor) -> Any:
        return vmap(lambda a: a[index])(x)

    compiled = stator.compile(f, backend="eager")
    x = torch.arange(6.0).reshape(2, 3)
    assert torch.equal(compiled(x, torch.tensor([0])), f(x, torch.tensor([0])))
    with pytest.raises(IndexError):
        compiled(x, torch.tensor([7]))
    assert _depth() == 0


def test_pull_back_that_leaves_the_function_is_the_native_one() -> None:
    def f(x: Tensor) -> Any:
        return vjp(torch.sin, x)[1]

    x = torch.arange(3.0)
    assert torch.equal(stator.compile(f, backend="eager")(x)(x)[0], f(x)(x)[0])


def test_gradients_through_a_transform_pass_gradcheck() -> None:
    def f(x: Tensor) -> Any:
        return vmap(grad(lambda a: (a**3).sum()))(x)

    compiled = stator.compile(f, backend="aot_eager", fullgraph=True)
    x = torch.linspace(-1, 1, 6, dtype=torch.float64).reshape(2, 3).requires_grad_()
    assert torch.autograd.gradcheck(compiled, (x,))


def _depth() -> int:
    depth: int = torch._C._functorch.get_dynamic_layer_stack_depth()
    return depth


@pytest.mark.parametrize(
    "transform", ["jvp", "vjp", "linearize", "vmap", "grad", "jacfwd", "hessian"]
)
@pytest.mark.parametrize("used", [False, True])
def test_sizes_that_leave_the_function_of_a_transform(transform: str, used: bool) -> None:
    """`jvp` compares sizes, so that they are numbers at the end of a body that began with
    symbols."""

    def f(x: Tensor, sizes: list[int]) -> Any:
        def inner(part: Tensor) -> Tensor:
            sizes.append(part.shape[0])
            made = part.sin() * (part.shape[0] if used else 2)
            return made.sum() if transform in ("grad", "hessian") else made

        return given(inner, x), sizes

    def given(inner: Any, x: Tensor) -> Any:
        if transform == "jvp":
            return torch.func.jvp(inner, (x,), (x,))
        if transform in ("vjp", "linearize"):
            return getattr(torch.func, transform)(inner, x)[0]
        return getattr(torch.func, transform)(inner)(x)

    compiled = stator.compile(f, backend="eager")
    for size in (3, 2, 4, 5):
        x = torch.arange(size * 3.0).reshape(size, 3)
        assert str(compiled(x, [])) == str(f(x, []))


BODIES: dict[str, Callable[[Tensor], Tensor]] = {
    "grad": lambda x: torch.func.grad(lambda y: y.sin().sum())(x * 2),
    "vmap": lambda x: torch.vmap(torch.sin)(x * 2),
    "checkpoint": lambda x: torch.utils.checkpoint.checkpoint(torch.sin, x, use_reentrant=False),
}


@pytest.mark.parametrize("backend", ["eager", "aot_eager", lambda gm, inputs: gm])
@pytest.mark.parametrize("name", BODIES)
def test_hooks_for_all_modules_hear_of_no_graph(name: str, backend: Any) -> None:
    heard: list[torch.nn.Module] = []
    compiled: Any = stator.compile(BODIES[name], backend=backend)
    handle = torch.nn.modules.module.register_module_forward_pre_hook(
        lambda module, args: heard.append(module)
    )
    try:
        for _ in range(2):
            compiled(torch.ones(3, requires_grad=True)).sum().backward()
    finally:
        handle.remove()
    assert not heard


def test_stacked_state_of_modules_is_captured() -> None:
    models = [torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Linear(4, 2)) for _ in range(3)]

    def ensemble(x: Tensor) -> Any:
        parameters, buffers = torch.func.stack_module_state(models)

        def call(weights: Any, state: Any, value: Tensor) -> Any:
            return torch.func.functional_call(models[0], (weights, state), (value,))

        result = vmap(call, (0, 0, None))(parameters, buffers, x)
        return result, [weight.requires_grad for weight in parameters.values()]

    compiled = stator.compile(ensemble, backend="eager")
    assert_same(ensemble, compiled, lambda: (torch.randn(2, 3),), calls=3, tolerance=CLOSE)
    assert (len(compiled.report.entries), len(compiled.report.breaks)) == (1, 0)


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("outer", [jacfwd, hessian])
def test_operator_that_torch_fails_on_in_nested_transforms_costs_a_break(
    outer: Callable[..., Any], backend: str
) -> None:
    """torch has no fake kernel for `pow` under these transforms, and leaves dispatch keys behind
    where it fails."""

    def cubes(x: Tensor) -> Tensor:
        return (x**3).sum()

    def second(x: Tensor) -> Tensor:
        result: Tensor = vmap(outer(jacfwd(cubes) if outer is jacfwd else cubes))(x * 2)
        return result + 1

    keys = torch._C._dispatch_tls_local_exclude_set
    x, before = torch.randn(3, 2), str(keys())
    expected = second(x)
    compiled = stator.compile(second, backend=backend)
    for _ in range(3):
        torch.testing.assert_close(compiled(x), expected)
        assert str(keys()) == before
    torch.testing.assert_close(second(x), expected)
