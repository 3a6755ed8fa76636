"""Classes that the program registers as pytrees, as arguments and results of transforms."""

from __future__ import annotations

import collections
from collections.abc import Callable
from typing import Any, cast

import attrs
import pytest
import stator
import torch
from torch import Tensor
from torch._functorch import vmap as steps
from torch.func import grad, grad_and_value, hessian, jacrev, jvp, linearize, vjp, vmap
from torch.utils import _pytree as pytree

from integration_tests.corpora.models import Call
from integration_tests.support.counting import Counting
from integration_tests.support.oracle import Tolerance, assert_same

Program = Callable[[Tensor], Any]
CLOSE = Tolerance(1e-9, 1e-12, strides=False)
CAPTURED: dict[str, Program] = {}
BROKEN: dict[str, Program] = {}


def captured(fn: Program) -> Program:
    CAPTURED[fn.__name__.replace("_", " ")] = fn
    return fn


def broken(fn: Program) -> Program:
    BROKEN[fn.__name__.replace("_", " ")] = fn
    return fn


@attrs.define(eq=False)
class State:
    value: Any
    rate: Any
    name: str = "state"


@attrs.define(eq=False)
class Counted:
    value: Any


@attrs.define(eq=False)
class Hiding:
    value: Any
    hidden: Any


@attrs.define(eq=False)
class Failing:
    value: Any


FLATTENED: list[int] = []


def _flatten_and_count(node: Counted) -> Any:
    FLATTENED.append(1)
    return (node.value,), None


def _fail(node: Failing) -> Any:
    raise ValueError("cannot be flattened")


pytree.register_pytree_node(
    State,
    lambda node: ([node.value, node.rate], [node.name]),
    lambda children, context: State(*children, *context),
)
pytree.register_pytree_node(Counted, _flatten_and_count, lambda children, _: Counted(*children))
pytree.register_pytree_node(
    Hiding,
    lambda node: ([node.value], node.hidden),
    lambda children, hidden: Hiding(next(iter(children)), hidden),
)
pytree.register_pytree_node(Failing, _fail, lambda children, _: Failing(*children))


def parts(state: Any) -> Any:
    return type(state), state.value, state.rate, state.name


def make_args() -> Call:
    return Call((torch.linspace(-1, 1, 6, dtype=torch.float64).reshape(2, 3),))


@captured
def mapped_over(x: Tensor) -> Any:
    return vmap(lambda state: state.value * state.rate)(State(x, x + 1))


@captured
def mapped_inside_of_a_dict(x: Tensor) -> Any:
    given = {"a": [State(x, {"b": x.cos()})]}
    return vmap(lambda tree: tree["a"][0].value + tree["a"][0].rate["b"])(given)


@captured
def given_by_a_mapped_function(x: Tensor) -> Any:
    of_results: Any = State(0, 1, "made")
    return parts(vmap(lambda row: State(row.sum(), row, "made"), out_dims=of_results)(x))


@captured
def dimensions_in_one(x: Tensor) -> Any:
    dims = State(1, None, "rows")
    return vmap(lambda state: state.value * state.rate, in_dims=(dims,))(State(x, x[:, 0], "rows"))


@captured
def mapped_in_chunks(x: Tensor) -> Any:
    return parts(vmap(lambda state: state, chunk_size=1)(State(x * 2, x)))


@captured
def changed_by_the_mapped_function(x: Tensor) -> Any:
    def rename(state: Any) -> Any:
        state.name += "!"
        return state

    given = State(x, x + 1)
    return parts(vmap(rename)(given)), given.name


@captured
def containers_that_torch_registers(x: Tensor) -> Any:
    given = collections.deque([x, x + 1]), collections.defaultdict(lambda: x, a=x)
    return vmap(lambda both, named: both[0] * both[1] + named["a"])(*given)


@captured
def differentiated(x: Tensor) -> Any:
    return parts(grad(lambda state: (state.value * state.rate).sum())(State(x, x + 1)))


@captured
def auxiliary_result(x: Tensor) -> Any:
    function = grad_and_value(lambda y: ((y * y).sum(), State(y * 2, y, "aux")), has_aux=True)
    gradient, results = function(x)
    value, aux = cast(Any, results)
    return gradient, value, parts(aux)


@captured
def keyword_of_a_differentiated_function(x: Tensor) -> Any:
    return grad(lambda y, *, state: (state.value * y).sum())(x, state=State(x, 2.0))


@captured
def slices_of_gradients(x: Tensor) -> Any:
    return parts(vmap(grad(lambda state: (state.value * state.rate).sum()))(State(x, x + 1)))


@captured
def pushed_forward(x: Tensor) -> Any:
    primal, tangent = State(x, x + 1), State(x * 2, x)
    results: Any = jvp(lambda state: State(state.value.sin(), state.rate), (primal,), (tangent,))
    out, pushed = results
    return parts(out), parts(pushed)


@captured
def pulled_back(x: Tensor) -> Any:
    results: Any = vjp(lambda state: State(state.value.sin(), state.rate * 2), State(x, x + 1))
    out, pull = results
    return parts(out), parts(pull(State(x, x * 3))[0])


@captured
def linearized(x: Tensor) -> Any:
    out, push = linearize(lambda state: State(state.value.sin(), state.rate * 2), State(x, x + 1))
    return parts(out), parts(push(State(x, x * 3)))


@captured
def jacobian(x: Tensor) -> Any:
    return parts(jacrev(lambda state: state.value * state.rate)(State(x[0], x[1])))


@captured
def second_derivatives(x: Tensor) -> Any:
    return hessian(lambda state: (state.value**3).sum())(State(x[0], x[1])).value.value


@captured
def error_of_a_function_that_flattens(x: Tensor) -> Any:
    try:
        return vmap(lambda failing: failing.value)(Failing(x + 1))
    except ValueError as error:
        return str(error), x * 2


@captured
def error_in_a_differentiated_argument(x: Tensor) -> Any:
    y = x + 1
    try:
        return grad(lambda failing: failing.value.sum())(Failing(y))
    except ValueError as error:
        return str(error), y * 2


@broken
def dimensions_with_another_context(x: Tensor) -> Any:
    y = x + 1
    try:
        return vmap(lambda state: state.value, in_dims=(State(0, 0, "other"),))(State(y, y)) + 1
    except ValueError:
        return y * 2


@broken
def tangents_with_another_context(x: Tensor) -> Any:
    y = x + 1
    try:
        return jvp(lambda state: state.value, (State(y, y),), (State(y, y, "other"),))[1] + 1
    except RuntimeError:
        return y * 2


@broken
def result_that_hides_a_tensor_of_the_body(x: Tensor) -> Any:
    y = x + 1
    function = grad(lambda z: (z.sum(), Hiding(z * 2, z.shape)), has_aux=True)
    hiding = vmap(lambda row: Hiding(row * 2, row.dim() + torch.zeros(())))(y)
    return function(y)[1].hidden, hiding.value + 1


@broken
def function_that_flattens_with_an_effect(x: Tensor) -> Any:
    FLATTENED.clear()
    y = x + 1
    return vmap(lambda counted: counted.value)(Counted(y)) + 1, len(FLATTENED)


QUICK = {"mapped over"}


def _marked(title: str) -> Any:
    return pytest.param(title, marks=() if title in QUICK else (pytest.mark.slow,))


@pytest.mark.parametrize("title", [_marked(title) for title in CAPTURED])
def test_transform_of_registered_classes_is_captured(title: str) -> None:
    counting = Counting()
    compiled = stator.compile(CAPTURED[title], backend=counting)
    assert_same(CAPTURED[title], compiled, make_args, tolerance=CLOSE)
    assert counting.count == 1
    assert not compiled.report.breaks


@pytest.mark.slow
@pytest.mark.parametrize("title", ["mapped over", "slices of gradients", "pulled back"])
def test_compiler_gets_transforms_of_registered_classes(title: str) -> None:
    compiled = stator.compile(CAPTURED[title], backend="aot_eager", fullgraph=True)
    assert_same(CAPTURED[title], compiled, make_args, tolerance=CLOSE)


@pytest.mark.parametrize("title", BROKEN)
def test_tree_that_torch_refuses_or_that_has_effects_is_one_break(title: str) -> None:
    compiled = stator.compile(BROKEN[title], backend="eager")
    assert_same(BROKEN[title], compiled, make_args, tolerance=CLOSE)
    assert len(compiled.report.breaks) == 1


def test_class_that_is_registered_again_is_traced_again(monkeypatch: pytest.MonkeyPatch) -> None:
    def double(x: Tensor) -> Any:
        return vmap(lambda state: state.value * 2)(State(x, x))

    compiled = stator.compile(double, backend="eager")
    x = torch.arange(4.0)
    assert torch.equal(compiled(x), double(x))

    registered = pytree.SUPPORTED_NODES[State]
    negated = registered._replace(flatten_fn=lambda node: ([-node.value, node.rate], [node.name]))
    monkeypatch.setitem(pytree.SUPPORTED_NODES, State, negated)
    assert torch.equal(compiled(x), double(x))
    assert torch.equal(compiled(x), -2 * x)


def test_library_that_replaces_steps_of_vmap_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    def double(x: Tensor) -> Any:
        return vmap(lambda state: state.value * 2)(State(x, x))

    compiled = stator.compile(double, backend="eager")
    x = torch.arange(4.0)
    assert torch.equal(compiled(x), double(x))

    unwrap = steps._unwrap_batched

    def replaced(*args: Any) -> Any:
        unwrapped: Any = unwrap(*args)
        return unwrapped + 1

    monkeypatch.setattr(steps, "_unwrap_batched", replaced)
    assert torch.equal(compiled(x), double(x))
    assert torch.equal(compiled(x), 2 * x + 1)
