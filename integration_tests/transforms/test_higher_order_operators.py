"""Higher-order operators called by a program: plain Python's answer, in one graph with a body, or
one break that says why.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import pytest
import stator
import torch
from stator_subgraphs import check_graph
from torch import Tensor
from torch._dynamo._trace_wrapped_higher_order_op import TransformGetItemToIndex as IndexedByTensors
from torch._higher_order_ops import InvokeQuant
from torch._higher_order_ops.hints_wrap import hints_wrapper
from torch._higher_order_ops.map import map as torch_map
from torch._higher_order_ops.scan import scan
from torch._higher_order_ops.strict_mode import strict_mode as torch_strict_mode
from torch._higher_order_ops.while_loop import while_loop as torch_while_loop
from torch.autograd import forward_ad
from torch.compiler import nested_compile_region
from torch.nn.attention.flex_attention import and_masks, create_block_mask, flex_attention
from torch.utils import checkpoint as checkpointing
from torch.utils.checkpoint import checkpoint

from integration_tests.support.oracle import Tolerance, assert_same

# torch leaves these without types
allow_in_graph: Any = torch.compiler.allow_in_graph
selective: Any = checkpointing.create_selective_checkpoint_contexts
in_turn: Any = checkpointing.checkpoint_sequential
make_dual: Any = forward_ad.make_dual
map_function: Any = torch_map
strict_mode: Any = torch_strict_mode
unpack_dual: Any = forward_ad.unpack_dual
while_loop: Any = torch_while_loop


def inputs() -> tuple[Tensor, Tensor]:
    return torch.linspace(-1, 1, 6).reshape(2, 3).requires_grad_(), torch.linspace(1, 2, 6).reshape(
        2, 3
    )


def check_captured(
    fn: Callable[..., Any], make: Callable[[], Any] = inputs, backend: str = "eager"
) -> Any:
    """The same as plain Python, in one graph."""
    compiled = stator.compile(fn, backend=backend)
    assert_same(fn, compiled, make)
    (graph,) = compiled.report.graphs
    assert backend != "eager" or check_graph(graph) == []  # compilers rename symbols
    assert not compiled.report.breaks
    return graph


def check_refused(fn: Callable[..., Any], reason: str, make: Callable[[], Any] = inputs) -> Any:
    """The same as plain Python, by one break at the operator for this reason."""
    compiled = stator.compile(fn, backend="eager")
    assert_same(fn, compiled, make)
    (met,) = compiled.report.breaks
    assert met.reason == reason
    return met


def bodies(graph: Any) -> set[str]:
    """Names of the bodies, those in bodies too."""
    return {name.rpartition(".")[2] for name, _ in graph.named_modules() if name}


# -- checkpoint ------------------------------------------------------------------------------------
def run(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    return checkpoint(function, *args, use_reentrant=False, **kwargs)


def any_structure(x: Tensor, y: Tensor) -> Any:
    scale = y * 2

    def body(a: Tensor, *, b: Tensor) -> Any:
        h = a.sin()
        return {"product": h * scale, "same": [h, h], "given": a, "captured": b, "count": 3}

    found = run(body, x, b=y)
    return found, found["product"] + found["same"][0], found["given"] is x, found["captured"] is y


@torch.no_grad()
def effects(x: Tensor, y: Tensor) -> Any:
    seen: list[Tensor] = []
    count = 0

    def body(a: Tensor) -> Tensor:
        nonlocal count
        count += 1
        seen.append(a.cos())
        seen.append(a.sin())
        return a * y

    out = run(body, x)
    return out, seen[1] + 1, count


@torch.no_grad()
def nested(x: Tensor, y: Tensor) -> Any:
    made = []

    def inner(a: Tensor) -> Tensor:
        made.append(a + 1)
        return a.exp() * y

    def outer(a: Tensor) -> Any:
        return run(inner, a * 2) + run(inner, a)

    return run(outer, x), made


def nothing(x: Tensor, y: Tensor) -> Any:
    def body(a: Tensor) -> None:
        a.sin()

    return run(body, x), x + y


def module(x: Tensor, y: Tensor) -> Any:
    return run(LAYER, x) + y


def container(x: Tensor, y: Tensor) -> Any:
    return run(STACKED, x) + y


def parameters_put_in(x: Tensor, y: Tensor) -> Any:
    def body(a: Tensor) -> Any:
        return torch.func.functional_call(STACKED, {"0.weight": y[0].expand(3, 3)}, (a,))

    return run(body, x) + run(lambda a: run(body, a), x)


def in_segments(x: Tensor, y: Tensor) -> Any:
    return in_turn([torch.sin, LAYER, lambda a: a * y], 2, x, use_reentrant=False)


LAYER = torch.nn.Linear(3, 3)
STACKED = torch.nn.Sequential(LAYER, torch.nn.ReLU())


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize(
    "fn",
    [any_structure, effects, nested, nothing, module, container, parameters_put_in, in_segments],
)
def test_checkpointed_body_is_captured(fn: Callable[..., Any], backend: str) -> None:
    assert "wrap_body_0" in bodies(check_captured(fn, backend=backend))


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_dropout_is_recomputed_with_the_same_mask(backend: str) -> None:
    def fn(x: Tensor, y: Tensor) -> Any:
        return run(lambda a: torch.nn.functional.dropout(a.sin(), 0.5, True) * y, x)

    check_captured(fn, backend=backend)


def test_effect_that_backward_repeats_is_captured() -> None:
    def fn(x: Tensor, y: Tensor) -> Any:
        seen: list[Tensor] = []

        def body(a: Tensor) -> Tensor:
            seen.append(a.cos())
            return a.sin() * y

        return run(body, x), seen

    check_captured(fn)


def test_what_a_body_puts_back_that_was_changed_before_it_is_an_effect() -> None:
    def fn(x: Tensor, y: Tensor) -> Any:
        first, SHELF["weight"] = SHELF["weight"], y

        def body(a: Tensor) -> Tensor:
            found = a * SHELF["weight"]
            SHELF["weight"] = first
            return found

        return run(body, x)

    check_captured(fn)


SHELF = {"weight": torch.ones(3)}


def test_write_to_a_tensor_from_outside_stays() -> None:
    @torch.no_grad()
    def fn(x: Tensor, y: Tensor) -> Any:
        def body(a: Tensor) -> Tensor:
            y.add_(1)
            return a * 2

        return run(body, x), y + 0

    check_captured(fn)


def test_break_in_a_body_is_a_break_at_the_operator() -> None:
    def fn(x: Tensor, y: Tensor) -> Any:
        def body(a: Tensor) -> Tensor:
            print("here")
            return a * y

        before = x + 1
        return run(body, before) + 2

    met = check_refused(fn, "builtin")
    assert "in the body wrap_body" in met.detail
    assert met.where.function.endswith("body")


def save_products(context: Any, operator: Any, *args: Any, **kwargs: Any) -> Any:
    policy = checkpointing.CheckpointPolicy
    return policy.MUST_SAVE if operator == torch.ops.aten.mm.default else policy.PREFER_RECOMPUTE


RUNS = [0]


@torch.library.custom_op("stator_test::counted_sine", mutates_args=())
def counted_sine(x: Tensor) -> Tensor:
    RUNS[0] += 1
    return x.sin()


counted_sine.register_fake(torch.empty_like)
counted_sine.register_autograd(
    lambda ctx, grad: grad * ctx.saved_tensors[0].cos(),
    setup_context=lambda ctx, inputs, output: ctx.save_for_backward(*inputs),
)
PRODUCTS = [torch.ops.aten.mm.default]
CHOOSING: dict[str, dict[str, Any]] = {
    "nothing": {"use_reentrant": False},
    "to the end": {"use_reentrant": False, "early_stop": False},
    "operators": {"use_reentrant": False, "context_fn": lambda: selective(PRODUCTS)},
    "policy": {"use_reentrant": False, "context_fn": functools.partial(selective, save_products)},
    "reentrant": {"use_reentrant": True},
    "reentrant, other random numbers": {"use_reentrant": True, "preserve_rng_state": False},
}


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("title", CHOOSING)
def test_checkpoint_that_chooses_what_to_keep_is_captured(title: str, backend: str) -> None:
    def fn(x: Tensor, y: Tensor) -> Any:
        return checkpoint(lambda a: (a @ LAYER(a).T).sin() @ y, x * 2, **CHOOSING[title]) + 1

    check_captured(fn, backend=backend)


def recomputing(x: Tensor, y: Tensor, options: dict[str, Any]) -> Any:
    def body(a: Tensor) -> Tensor:
        hidden = torch.nn.functional.dropout(counted_sine(a), 0.5)
        found: Tensor = counted_sine(counted_sine(hidden) @ LAYER.weight) * y
        return found

    return checkpoint(body, x * 2, **options)


@pytest.mark.parametrize("title", CHOOSING)
def test_as_much_is_computed_again_as_in_plain_python(title: str) -> None:
    def count(fn: Callable[..., Any]) -> list[Any]:
        RUNS[0] = 0
        torch.manual_seed(0)
        x, y = inputs()
        out = fn(x, y, CHOOSING[title])
        forward = RUNS[0]
        out.sum().backward()
        return [
            forward,
            RUNS[0],
            out.tolist(),
            x.grad.tolist() if x.grad is not None else None,
            torch.rand(1).item(),
        ]

    compiled = stator.compile(recomputing, backend="eager", fullgraph=True)
    compiled(*inputs(), CHOOSING[title])  # traced before anything is counted
    assert count(compiled) == count(recomputing)


def test_policy_made_in_the_function_is_called_as_it_is() -> None:
    def fn(x: Tensor, y: Tensor) -> Any:
        kept = [torch.ops.aten.mm.default]

        def choose(context: Any, operator: Any, *args: Any, **kwargs: Any) -> Any:
            return (
                save_products(context, operator)
                if operator in kept
                else checkpointing.CheckpointPolicy.MUST_RECOMPUTE
            )

        context_fn = functools.partial(selective, choose)
        return checkpoint(
            lambda a: (a @ a.T).sin() @ y, x * 2, use_reentrant=False, context_fn=context_fn
        )

    check_captured(fn)


def value_error(call: Callable[[], Any]) -> Any:
    try:
        return call()
    except ValueError as error:
        return str(error)


REENTRANT: dict[str, tuple[str, Callable[..., Any]]] = {
    "no gradients": (
        "higher-order-operator",
        lambda x, y: checkpoint(torch.sin, y * 2, use_reentrant=True),
    ),
    "grad mode": (
        "higher-order-operator",
        lambda x, y: checkpoint(
            lambda a: a * (2 if torch.is_grad_enabled() else 3), x * 2, use_reentrant=True
        ),
    ),
    "detached": (
        "result-of-body",
        lambda x, y: checkpoint(lambda a: (a, a.detach()), x * 2, use_reentrant=True),
    ),
    "structure": (
        "result-of-body",
        lambda x, y: checkpoint(lambda a: (a.sin(), [y]), x * 2, use_reentrant=True),
    ),
    "list": (
        "result-of-body",
        lambda x, y: checkpoint(lambda a: [a.sin()], x * 2, use_reentrant=True),
    ),
    "tuple of one in a tuple": (
        "result-of-body",
        lambda x, y: checkpoint(lambda a: (a.sin(), (a.cos(),)), x * 2, use_reentrant=True),
    ),
    "unknown option": (
        "higher-order-operator",
        lambda x, y: value_error(
            lambda: checkpoint(torch.sin, x * 2, debug=True, use_reentrant=True)
        ),
    ),
    "warned about": ("higher-order-operator", lambda x, y: checkpoint(torch.sin, x * 2)),
}


@pytest.mark.parametrize("title", REENTRANT)
def test_reentrant_checkpoint_that_cannot_be_one_body_is_left_to_torch(title: str) -> None:
    reason, fn = REENTRANT[title]
    check_refused(fn, reason)


def test_effect_that_a_nested_checkpoint_repeats_is_left_to_torch() -> None:
    def fn(x: Tensor, y: Tensor) -> Any:
        calls: list[int] = []

        def body(a: Tensor) -> Tensor:
            calls.append(1)
            return a.sin()

        return run(lambda a: run(body, a) * y, x * 2), calls

    check_refused(fn, "effect-in-body")


def test_exception_in_a_body_reaches_its_handler() -> None:
    def fn(x: Tensor, y: Tensor) -> Any:
        def body(a: Tensor) -> Tensor:
            raise ValueError("no", a.dim())

        try:
            return run(body, x)
        except ValueError as error:
            return error.args, x + y

    compiled = stator.compile(fn, backend="eager")
    assert_same(fn, compiled, inputs)
    reasons = [met.reason for met in compiled.report.breaks]
    assert reasons == ["exception-in-body"]


def test_exception_handled_in_a_body_is_no_break() -> None:
    def fn(x: Tensor, y: Tensor) -> Any:
        def body(a: Tensor) -> Tensor:
            try:
                raise ValueError
            except ValueError:
                return a + 1

        return run(body, x) * y

    check_captured(fn)


def test_mode_that_a_body_leaves_changed_is_refused() -> None:
    def fn(x: Tensor, y: Tensor) -> Any:
        def body(a: Tensor) -> Tensor:
            torch._C._set_grad_enabled(False)
            return a * y

        out = run(body, x)
        torch._C._set_grad_enabled(True)
        return out

    check_refused(fn, "effect-in-body")


# -- cond ------------------------------------------------------------------------------------------
def choosing(x: Tensor, y: Tensor, p: Tensor) -> Any:
    scale = y * 2

    def true(a: Tensor) -> Any:
        return {"out": a.sin() * scale, "rest": [a + 1]}

    def false(a: Tensor) -> Any:
        return {"out": LAYER(a), "rest": [a + 2]}

    return torch.cond(p, true, false, (x,))


def one_in_another(x: Tensor, y: Tensor, p: Tensor) -> Any:
    def inner(a: Tensor) -> Any:
        return torch.cond(a.sum() > 0, lambda b: b * y, lambda b: b - 1, (a,))

    return torch.cond(p, inner, lambda a: run(torch.cos, a), (x,)) + 1


def both_ways(fn: Callable[..., Any]) -> Callable[..., Any]:
    return lambda x, y: (fn(x, y, x.sum() > -10), fn(x, y, x.sum() > 10))


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("fn", [choosing, one_in_another])
def test_branches_are_captured(fn: Callable[..., Any], backend: str) -> None:
    graph = check_captured(both_ways(fn), backend=backend)
    assert {"cond_true_0", "cond_false_0", "cond_true_1", "cond_false_1"} <= bodies(graph)


# -- floats ----------------------------------------------------------------------------------------
def float_in_branches(x: Tensor, f: float) -> Any:
    g = f * 2 + 1

    def inner(a: Tensor) -> Any:
        return torch.cond(a.sum() > 9, lambda b: b.sin(), lambda b: b * g, (a,))

    return torch.cond(x.sum() > -9, inner, lambda a: a + f, (x,))


def float_in_loops(x: Tensor, f: float) -> Any:
    ahead = while_loop(
        lambda i, a: i < 3, lambda i, a: (i + 1, a * f), (torch.tensor(0), x.detach())
    )
    scanned = scan(lambda c, a: (c * f, a * f), torch.zeros(3), x)
    return ahead, scanned, map_function(lambda a: a * f + x.shape[0] * 0.5, x)


def float_in_regions(x: Tensor, f: float) -> Any:
    region = nested_compile_region(lambda a, s: a * s)
    return region(x, f) + region(x, f + 1)


def float_that_decides(x: Tensor, f: float) -> Any:
    return torch.cond(x.sum() > 0, lambda a: a * f if f > 1 else a, lambda a: a + int(f), (x,))


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize(
    "fn", [float_in_branches, float_in_loops, float_in_regions, float_that_decides]
)
def test_body_uses_a_symbolic_float(fn: Callable[..., Any], backend: str) -> None:
    compiled = stator.compile(fn, backend=backend, dynamic=True, fullgraph=True)
    for value in (1.5, 1.75):
        # some plain functions run in torch's own compiler, which fails on another float
        torch._dynamo.reset()
        assert_same(fn, compiled, lambda: (inputs()[0], value), calls=1)  # noqa: B023
    # compilers may ask for the value
    assert backend == "aot_eager" or len(compiled.report.entries) == 1


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_body_uses_a_float_read_before_its_tensor_changed(backend: str) -> None:
    def fn(x: Tensor) -> Any:
        total = x.detach().sum()
        f = total.item()
        total.add_(1)
        return torch.cond(x.sum() > 0, lambda a: a * f, lambda a: a + f, (x,)), total

    compiled = stator.compile(fn, backend=backend, fullgraph=True)
    assert_same(fn, compiled, lambda: inputs()[:1], calls=2)


@pytest.mark.parametrize("dynamic", [None, True])
@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("number", [1.5, 3, True])
def test_operands_of_cond_may_be_numbers(number: float, backend: str, dynamic: bool | None) -> None:
    """As in torch when it compiles; plain torch wants them in closures."""

    def given(x: Tensor, n: float) -> Any:
        def true(a: Tensor, s: float, rest: Any) -> Any:
            return torch.cond(
                a.sum() > 9, torch.mul, lambda b, u: b * u + rest["rows"] + rest["few"], (a, s + 1)
            )

        rest = {"rows": x.shape[0], "few": x.shape[0] < 9, "more": [None, "text"]}
        return torch.cond(x.sum() > -9, true, lambda a, s, rest: a + s, (x, n, rest))

    def closed_over(x: Tensor, n: float) -> Any:
        return x * (n + 1) + 2 + 1

    compiled = stator.compile(given, backend=backend, dynamic=dynamic, fullgraph=True)
    assert_same(closed_over, compiled, lambda: (inputs()[0], number), graphs_may_raise=False)


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("operator", [torch.cond, run])
def test_body_uses_a_bool_that_depends_on_data(operator: Callable[..., Any], backend: str) -> None:
    def fn(x: Tensor, y: Tensor) -> Any:
        large = (y.sum() > 8).item()
        wide = x.shape[1] > 2

        def body(a: Tensor) -> Any:
            return run(lambda b: b * large + wide, a)

        return (
            torch.cond(x.sum() > -9, body, lambda a: a + large, (x,))
            if operator is torch.cond
            else run(body, x)
        )

    compiled = stator.compile(fn, backend=backend, dynamic=True, fullgraph=True)
    assert_same(fn, compiled, inputs, graphs_may_raise=False)


def test_map_takes_any_constant() -> None:
    check_captured(
        lambda x, y: map_function(
            lambda a, flag, n: a.sin() * n if flag else a, x, True, x.shape[0]
        )
    )


def test_a_python_value_chooses_the_branch_at_once() -> None:
    graph = check_captured(
        lambda x, y: torch.cond(x.dim() == 2, lambda a: a + y, lambda a: a[0], (x,))
    )
    assert bodies(graph) == set()


def appending(seen: list[Tensor]) -> Callable[[Tensor], Tensor]:
    def append(a: Tensor) -> Tensor:
        seen.append(a)
        return a.cos()

    return append


REFUSED: dict[str, tuple[str, Callable[..., Any]]] = {
    "effect": (
        "effect-in-body",
        lambda x, y, seen=[]: torch.cond(x.sum() > 9, appending(seen), torch.sin, (x,)),
    ),
    "structure": (
        "branches-differ",
        lambda x, y: torch.cond(x.sum() > 9, lambda a: (a + 1, a + 2), torch.sin, (x,)),
    ),
    "alias": (
        "alias-in-body",
        lambda x, y: torch.cond(x.sum() > 9, lambda a: a.view(3, 2), lambda a: a, (x,)),
    ),
    "object": (
        "result-of-body",
        lambda x, y: torch.cond(x.sum() > 9, lambda a: "text", lambda a: "text", (x,)),
    ),
    "operand": (
        "higher-order-operator",
        lambda x, y: torch.cond(x.sum() > 9, LAYER, torch.sin, (x, LAYER)),
    ),
    "predicate": (
        "higher-order-operator",
        lambda x, y: torch.cond(x > 9, torch.cos, torch.sin, (x,)),
    ),
    "operands that are no tuple": (
        "higher-order-operator",
        lambda x, y: torch.cond(x.sum() > 9, torch.cos, torch.sin, x),
    ),
    "write to what a loop carries": (
        "write-in-body",
        lambda x, y: while_loop(
            lambda i, a: i < 3, lambda i, a: (i + 1, a.mul_(2).clone()), (torch.tensor(0), x * 2)
        ),
    ),
    "scan of a number": (
        "higher-order-operator",
        lambda x, y: torch.ops.higher_order.scan(
            lambda a, b, n: (a + b, a * 2), [y[0]], [x, 3], ()
        ),
    ),
    "tensor as a hint": (
        "higher-order-operator",
        lambda x, y: hints_wrapper(torch.sin, (x,), {}, hints={"scale": y}),
    ),
}


@pytest.mark.parametrize("title", REFUSED)
def test_what_bodies_may_not_do_is_left_to_torch(title: str) -> None:
    """Its error is one of its own compiler, which holds half of that: only the kind is compared."""
    reason, fn = REFUSED[title]

    def caught(x: Tensor, y: Tensor) -> Any:
        try:
            return fn(x, y)
        except (AttributeError, RuntimeError) as error:
            return type(error).__name__

    with torch.no_grad():
        check_refused(caught, reason)


def test_number_beside_gradients_is_left_to_torch() -> None:
    """What torch has for their backward takes tensors only."""

    def fn(x: Tensor, y: Tensor) -> Any:
        return torch.cond(x.sum() > -9, lambda a: (a * y, 3), lambda a: (a + y, a.dim()), (x,))

    compiled = stator.compile(fn, backend="aot_eager")
    found, number = compiled(*inputs())
    assert [met.reason for met in compiled.report.breaks] == ["result-of-body"]
    assert torch.equal(found, fn(*inputs())[0])
    assert number == 3
    check_captured(torch.no_grad()(fn))


# -- loops -----------------------------------------------------------------------------------------
def looping(x: Tensor, y: Tensor) -> Any:
    return while_loop(
        lambda i, a: i.sum() < 3, lambda i, a: (i + 1, a * 0.5 + y), (torch.zeros(1), x)
    )


@torch.no_grad()
def counting(x: Tensor, y: Tensor) -> Any:
    return while_loop(
        lambda i, s: i < 3, lambda i, s: (i + 1, {"a": s["a"] + y * i}), (0, {"a": x})
    )


def mapping(x: Tensor, y: Tensor) -> Any:
    return map_function(lambda a, scale: {"out": [a * scale + y.sum(), a.sin()]}, x, y[0] * 2)


def scanning(x: Tensor, y: Tensor) -> Any:
    return scan(lambda carry, a: (carry + a * y[0], [carry.sin(), LAYER(a)]), y[1] * 1, x)


def backwards(x: Tensor, y: Tensor) -> Any:
    return scan(
        lambda carry, a: (carry + a, carry * a), torch.zeros(2), {"x": x}["x"], dim=1, reverse=True
    )


def in_a_branch(x: Tensor, y: Tensor) -> Any:
    return torch.cond(x.sum() > 9, lambda a: scanning(a, y)[0], lambda a: looping(a, y)[1][0], (x,))


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("fn", [looping, counting, mapping, scanning, backwards, in_a_branch])
def test_loops_are_captured(fn: Callable[..., Any], backend: str) -> None:
    check_captured(fn, backend=backend)


def test_bodies_of_loops_are_named_after_what_they_are() -> None:
    assert bodies(check_captured(looping)) == {"cond_fn_0", "body_fn_0"}
    assert bodies(check_captured(mapping)) == {"map_body_0"}
    assert bodies(check_captured(scanning)) == {"scan_combine_fn_0"}


def test_effect_in_a_loop_is_left_to_torch() -> None:
    seen: list[Tensor] = []

    def fn(x: Tensor, y: Tensor) -> Any:
        try:
            return while_loop(lambda a: a.sum() < 3, lambda a: (appending(seen)(a),), (x,))
        except RuntimeError as error:
            return type(error).__name__

    check_refused(fn, "effect-in-body")


# -- writes to the outside -------------------------------------------------------------------------
def branch_writes(x: Tensor, y: Tensor) -> Any:
    z = x * 1

    def true(a: Tensor) -> Tensor:
        y.add_(1)
        return a * y

    def false(a: Tensor) -> Tensor:
        z.mul_(3)
        return a.mul_(2) - z[0]

    return torch.cond(x.sum() > 1, true, false, (x,)), y * 2, z


def loop_writes(x: Tensor, y: Tensor) -> Any:
    z = y * 2

    def step(i: Any, a: Tensor) -> Any:
        z.mul_(2)
        return i + 1, a * 0.5 + y.add_(1) + z.sum()

    return while_loop(lambda i, a: i < 3, step, (0, x)), z + y


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("fn", [branch_writes, loop_writes])
@torch.no_grad()
def test_write_to_the_outside_without_gradients_is_captured(
    fn: Callable[..., Any], backend: str
) -> None:
    check_captured(fn, detached, backend)


def write_in_a_branch_of_a_branch(x: Tensor, y: Tensor) -> Any:
    def inner(a: Tensor) -> Any:
        return torch.cond(a.sum() > -9, lambda b: b * y.mul_(3), lambda b: b + 1, (a,)) + y

    return torch.cond(x.sum() > -9, inner, lambda a: a - y, (x,)), y


def write_seen_through_a_view(x: Tensor, y: Tensor) -> Any:
    z = y * 2
    row = z[0]
    return torch.cond(x.sum() > -9, lambda a: z.add_(1) + row, lambda a: a + 1, (x,)), row


def write_seen_through_a_view_in_a_loop(x: Tensor, y: Tensor) -> Any:
    z = y * 2
    row = z[0]
    return while_loop(
        lambda i, a: i.sum() < 3, lambda i, a: (i + 1, z.mul_(2) + row), (torch.zeros(1), x)
    ), row


def detached() -> tuple[Tensor, ...]:
    return tuple(tensor.detach() for tensor in inputs())


@pytest.mark.parametrize("fn", [write_in_a_branch_of_a_branch, write_seen_through_a_view])
@torch.no_grad()
def test_write_that_compilers_would_lose_is_left_to_torch(fn: Callable[..., Any]) -> None:
    check_refused(fn, "write-in-body", detached)


@pytest.mark.parametrize("fn", [branch_writes, loop_writes, write_seen_through_a_view_in_a_loop])
def test_write_that_torch_does_not_take_either_is_refused(fn: Callable[..., Any]) -> None:
    with (
        torch.set_grad_enabled(fn is not write_seen_through_a_view_in_a_loop),
        pytest.raises(stator.Unsupported) as met,
    ):
        stator.compile(fn, backend="eager", fullgraph=True)(*detached())
    assert met.value.reason == "write-in-body"


# -- operators that give what their body gives -----------------------------------------------------
def wrapping(x: Tensor, y: Tensor) -> Any:
    seen = []

    def body(a: Tensor, *, b: Tensor) -> Any:
        seen.append(a + b)
        y.add_(1)
        return {"new": a.sin(), "view": a.view(-1), "old": b}

    found = torch.ops.higher_order.wrap(body, x * 2, b=y)
    return found, found["old"] is y, seen[0] + 1


@torch.no_grad()
def hinted(x: Tensor, y: Tensor) -> Any:
    return hints_wrapper(lambda a, b: (a + b).sin(), (x, y), {}, hints={"width": 4})


@torch.no_grad()
def strictly(x: Tensor, y: Tensor) -> Any:
    return strict_mode(lambda a, b: [(a + b).sin(), a * 2], (x, y))


def generator_from_outside(x: Tensor, y: Tensor) -> Any:
    def sines() -> Any:
        t = x
        while True:
            t = t.sin()
            yield t

    it = sines()
    torch.ops.higher_order.wrap(lambda: next(it))
    return next(it) + y


def size_of_the_body(x: Tensor, y: Tensor) -> Any:
    n = torch.ops.higher_order.wrap(lambda a: a.shape[0] * 2, x)
    return x * n, n


def part_of_a_result(x: Tensor, y: Tensor) -> Any:
    return torch.ops.higher_order.wrap(lambda a: a.split(1, 0), x * 2)[1] + y[0]


def effects_of_nested_bodies(x: Tensor, y: Tensor) -> Any:
    seen: list[Tensor] = []

    def inner(a: Tensor) -> Tensor:
        seen.append(a * 2)
        return a + 1

    def outer(a: Tensor) -> Any:
        b = torch.ops.higher_order.wrap(inner, a)
        seen.append(b * 3)
        return torch.ops.higher_order.wrap(inner, b)

    return torch.ops.higher_order.wrap(outer, x), sum(seen)


ESCAPING = [generator_from_outside, size_of_the_body, part_of_a_result, effects_of_nested_bodies]


@pytest.mark.parametrize("dynamic", [None, True])
@pytest.mark.parametrize("fn", ESCAPING)
def test_value_gets_out_of_a_body_by_every_way(
    fn: Callable[..., Any], dynamic: bool | None
) -> None:
    compiled = stator.compile(fn, backend="aot_eager", dynamic=dynamic)
    assert_same(fn, compiled, inputs)
    assert not compiled.report.breaks


def test_result_that_nobody_uses_is_not_given() -> None:
    """Nor by the body around it; what an operator is computed from stays, since that may raise."""

    def fn(x: Tensor, y: Tensor) -> Any:
        def inner(a: Tensor) -> Any:
            return a.sin(), a.cos(), (a * y, a.exp())

        def outer(a: Tensor) -> Any:
            first, second, (third, fourth) = run(inner, a)
            return third, fourth + 1, first, second - 1

        return run(outer, x)[2] * 2

    graph = check_captured(fn)
    outer, inner = graph.wrap_body_1, graph.wrap_body_1.wrap_body_0
    assert [len(body.graph.output_node().args[0]) for body in (outer, inner)] == [1, 3]
    check_captured(fn, backend="aot_eager")


LAYERS = torch.nn.ModuleList([torch.nn.Linear(3, 3) for _ in range(3)])


@nested_compile_region
def block(layer: Any, x: Tensor, calls: list[str]) -> Any:
    calls.append("block")
    return layer(x).sin(), x


def regions(x: Tensor, y: Tensor) -> Any:
    calls: list[str] = []
    before = x + 1
    for layer in LAYERS:
        before, _ = block(layer, before, calls)
    return before * y, calls


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("fn", [wrapping, hinted, strictly, regions])
def test_wrapped_body_is_captured(fn: Callable[..., Any], backend: str) -> None:
    check_captured(fn, backend=backend)


def test_size_that_a_hinted_body_uses_is_known_inside() -> None:
    @torch.no_grad()
    def fn(x: Tensor, y: Tensor) -> Any:
        return hints_wrapper(lambda a: a.sin() * (y.shape[0] + 1), (x,), {}, hints={"width": 4})

    compiled = stator.compile(fn, backend="aot_eager", dynamic=True)
    for rows in (2, 4):
        args = torch.ones(rows, 3), torch.ones(rows + 1, 3)
        assert_same(fn, compiled, functools.partial(tuple, args))
    assert (len(compiled.report.entries), len(compiled.report.breaks)) == (1, 0)


def test_equal_regions_share_a_body() -> None:
    assert bodies(check_captured(regions)) == {"subgraph_0"}


def test_operator_with_the_common_base_is_captured() -> None:
    def fn(x: Tensor, y: Tensor) -> Any:
        return torch.ops.higher_order.invoke_quant(lambda a, b: (a + b).sin(), x, y, scheme="nf4")

    x, y = inputs()
    compiled = stator.compile(fn, backend="eager", fullgraph=True)
    assert torch.equal(compiled(x, y), (x + y).sin())
    assert bodies(compiled.report.graphs[0]) == {"invoke_quant_body_0"}


# -- what is left whole ----------------------------------------------------------------------------
@torch.library.custom_op("stator_test::increment", mutates_args=("x",))
def increment(x: Tensor) -> None:
    x.add_(1)


def twice_the_sine(x: Tensor) -> Tensor:
    return x.sin() * 2


allowed = allow_in_graph(twice_the_sine)


def marked(x: Tensor, y: Tensor) -> Any:
    z = x.clone()
    increment(z)
    return run(lambda a: allowed(a) * z, x) + y


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_operators_and_functions_that_are_not_looked_into_are_nodes_in_a_body_too(
    backend: str,
) -> None:
    x, y = inputs()
    compiled = stator.compile(marked, backend=backend)
    with torch.no_grad():
        assert torch.equal(compiled(x, y), marked(x, y))
    assert not compiled.report.breaks


OUTSIDE = InvokeQuant(codegen_low_precision=False)


@torch.no_grad()
def quantised(x: Tensor, y: Tensor) -> Any:
    scale = y * 2
    inside = InvokeQuant()(lambda a, b: (a * b, a + scale), x, y, scheme="nf4")
    return inside, OUTSIDE(lambda a: (a * a.shape[0]).sin(), x)


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_operator_with_a_record_of_options_is_captured(backend: str) -> None:
    graph = check_captured(quantised, backend=backend)
    assert bodies(graph) == {"invoke_quant_packed_body_0", "invoke_quant_packed_body_1"}


def test_gradients_through_an_operator_with_a_record_of_options_are_left_to_torch() -> None:
    check_refused(lambda x, y: OUTSIDE(lambda a: a * y, x), "higher-order-operator")


# -- attention -------------------------------------------------------------------------------------
BIAS = torch.linspace(0, 1, 8)
CAUSAL = create_block_mask(lambda b, h, i, j: i >= j, None, None, 8, 8, device="cpu")


def heads() -> tuple[Tensor, ...]:
    return tuple(torch.linspace(-1, 1, 64).reshape(1, 2, 8, 4) + shift for shift in (0, 1, 2))


def unchanged_scores(q: Tensor, k: Tensor, v: Tensor) -> Any:
    return flex_attention(q, k, v)


def biased_scores(q: Tensor, k: Tensor, v: Tensor) -> Any:
    scale, slope = 3, BIAS.flip(0)
    return flex_attention(
        q,
        k,
        v,
        score_mod=lambda score, b, h, i, j: score * scale + BIAS[i] - slope[j] + BIAS[0] * h,
    )


def causal_scores(q: Tensor, k: Tensor, v: Tensor) -> Any:
    return flex_attention(q * 2, k, v, block_mask=CAUSAL, return_lse=True)


def scores_in_documents(q: Tensor, k: Tensor, v: Tensor) -> Any:
    document, reach = torch.arange(q.shape[2]) // 3, 2
    near = and_masks(
        lambda b, h, i, j: document[i] == document[j], lambda b, h, i, j: (i - j).abs() <= reach
    )
    mask = create_block_mask(near, None, None, q.shape[2], k.shape[2], device=q.device)
    return flex_attention(
        q, k, v, block_mask=mask, score_mod=lambda score, b, h, i, j: score + document[i] * 0.5
    )


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize(
    "fn", [unchanged_scores, biased_scores, causal_scores, scores_in_documents]
)
# that it is slow, and that `return_lse` will have another name
@pytest.mark.filterwarnings("ignore")
def test_scores_and_masks_of_flex_attention_are_bodies(
    fn: Callable[..., Any], backend: str
) -> None:
    compiled = stator.compile(fn, backend=backend, fullgraph=True)
    assert_same(fn, compiled, heads, tolerance=Tolerance(1e-5, 1e-6))
    assert {"score_mod_0", "mask_mod_0"} <= bodies(compiled.report.graphs[0])


def test_number_indexes_as_a_tensor_under_the_mode_of_masks() -> None:
    def fn(x: Tensor, y: Tensor) -> Any:
        x = x.detach() + 1
        with IndexedByTensors():
            x[0].add_(1)  # of a copy
            x[1, 2].add_(1)
            x[1:].mul_(y[0, x.shape[0] - 2])
        return x, x[0].add_(1), torch._C._len_torch_function_stack()

    check_captured(fn)


def test_break_under_the_mode_of_masks_runs_under_it() -> None:
    def fn(x: Tensor, y: Tensor) -> Any:
        with IndexedByTensors():
            first = x[0]
            stator.graph_break()
            return first, x[0], torch._C._len_torch_function_stack()

    check_refused(fn, "graph-break")


# -- modes for every function of torch -------------------------------------------------------------
class Counting(torch.overrides.TorchFunctionMode):
    def __init__(self) -> None:
        super().__init__()
        self.names: list[str] = []

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.names.append(func.__name__)
        return func(*args, **(kwargs or {}))


class Exchanging(torch.overrides.TorchFunctionMode):
    """Another function in the place of one; it enters itself again."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        found = (torch.cos if func is torch.sin else func)(*args, **(kwargs or {}))
        if func is torch.sin:
            with self:
                return found + torch.exp(args[0])
        return found


def counted(x: Tensor, y: Tensor) -> Any:
    before, mode = torch.sin(x), Counting()
    with Exchanging(), mode:
        found = torch.sin(x) * 2 + y.sum()
    return before, torch.sin(found), mode.names


def in_a_helper(x: Tensor, y: Tensor) -> Any:
    def helper(a: Tensor) -> Tensor:
        with Exchanging():
            return torch.sin(a) * y

    return helper(x) + torch.sin(helper(x))


def in_a_loop(x: Tensor, y: Tensor) -> Any:
    for _ in range(3):
        with Exchanging():
            x = torch.sin(x) + y
    return x


def left_by_an_exception(x: Tensor, y: Tensor) -> Any:
    try:
        with Exchanging():
            found = torch.sin(x)
            raise ValueError
    except ValueError:
        return torch.sin(found)


@pytest.mark.parametrize("fn", [counted, in_a_helper, in_a_loop, left_by_an_exception])
def test_mode_for_every_function_is_captured(fn: Callable[..., Any]) -> None:
    check_captured(fn)


@pytest.mark.parametrize("mode", [Counting, Exchanging])
def test_under_a_mode_for_every_function_there_is_another_graph(mode: Any) -> None:
    def fn(x: Tensor, y: Tensor) -> Any:
        return torch.sin(x) * y

    compiled, given = stator.compile(fn, backend="eager"), inputs()
    for _ in range(2):
        with mode() as wanted:
            plain = fn(*given)
        with mode() as seen:
            found = compiled(*given)
        assert getattr(seen, "names", None) == getattr(wanted, "names", None)
        assert torch.equal(found, plain)
        assert torch.equal(compiled(*given), fn(*given))
    assert len(compiled.report.graphs) == 2


def asks_about_derivatives(x: Tensor, y: Tensor) -> Any:
    primal, tangent = unpack_dual(x)
    return x * 2 if tangent is None and primal is x else y * 5


def test_questions_about_derivatives_cost_no_break_and_are_asked_again() -> None:
    compiled = stator.compile(asks_about_derivatives, backend="eager")
    x, y = inputs()
    transforms: list[Callable[[Any], Any]] = [
        lambda fn: (fn(x, y),),
        lambda fn: (torch.vmap(fn)(x, y),),
        lambda fn: torch.func.jvp(lambda x: fn(x, y), (x,), (y,)),
    ]
    for transform in transforms:
        assert all(map(torch.equal, transform(asks_about_derivatives), transform(compiled)))
    with forward_ad.dual_level():
        dual = make_dual(x, y)
        assert torch.equal(asks_about_derivatives(dual, y), compiled(dual, y))
    assert [entry.reason for entry in compiled.report.entries] == [None, None]


@pytest.mark.parametrize(
    "transform",
    [
        torch.vmap(asks_about_derivatives),
        lambda x, y: torch.func.jvp(lambda x: asks_about_derivatives(x, y), (x,), (y,)),
    ],
)
def test_questions_about_derivatives_inside_a_transform_are_asked_natively(
    transform: Callable[..., Any],
) -> None:
    check_refused(transform, "forward-derivatives")


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_tangents_go_through_what_was_compiled(backend: str) -> None:
    compiled = stator.compile(lambda x, y: x.sin() * y, backend=backend)
    with forward_ad.dual_level():
        x, y = inputs()
        found = unpack_dual(compiled(make_dual(x, y), y))
    assert torch.equal(found.tangent, x.cos() * y * y)
    assert_same(lambda x, y: x.sin() * y, compiled, inputs, graphs_may_raise=False)


# -- attention, in gradients -----------------------------------------------------------------------
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_flex_attention_has_gradients(backend: str) -> None:
    table = torch.linspace(0, 1, 8)

    def fn(q: Tensor, k: Tensor, v: Tensor) -> Any:
        return flex_attention(
            q, k, v, score_mod=lambda score, b, h, i, j: score + table[i] * table[j]
        )

    compiled = stator.compile(fn, backend=backend, fullgraph=True)
    make = lambda: tuple(part.requires_grad_() for part in heads())  # noqa: E731
    assert_same(fn, compiled, make, tolerance=Tolerance(1e-5, 1e-6))


@pytest.mark.filterwarnings("ignore")
def test_break_in_a_score_is_one_break_at_flex_attention() -> None:
    def fn(q: Tensor, k: Tensor, v: Tensor) -> Any:
        seen = []

        def scored(score: Tensor, b: Tensor, h: Tensor, i: Tensor, j: Tensor) -> Tensor:
            seen.append(1)
            return score * 2

        try:
            return flex_attention(q, k, v, score_mod=scored) + 1
        except RuntimeError as error:
            return type(error).__name__

    assert check_refused(fn, "effect-in-body", heads).detail.endswith("in the body score_mod")


@pytest.mark.parametrize(
    "distance", [torch.nn.PairwiseDistance(), lambda a, b: (a - b).abs().sum(-1)]
)
def test_function_of_torch_that_is_given_a_callable_is_interpreted(
    distance: Callable[..., Any],
) -> None:
    def loss(a: Tensor, b: Tensor) -> Tensor:
        return torch.nn.functional.triplet_margin_with_distance_loss(
            a, b, a + b, distance_function=distance
        )

    compiled = stator.compile(loss, backend="eager", fullgraph=True)
    assert_same(
        loss,
        compiled,
        lambda: (torch.ones(2, 3).requires_grad_(), torch.linspace(0, 1, 6).view(2, 3)),
    )
