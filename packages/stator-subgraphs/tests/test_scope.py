"""Bodies of higher-order operators: what is lifted, in which order, and that the result runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from functorch.compile import nop
from stator_bytecode.errors import InternalError
from stator_subgraphs import Body, check_graph
from stator_subgraphs.conformance import Driver, FixedLocations
from stator_variables import GraphValue
from torch._functorch.aot_autograd import aot_module_simplified
from torch._guards import TracingContext, tracing
from torch._subclasses.fake_tensor import FakeTensorMode

HOPS = torch.ops.higher_order


def body(driver: Driver, hint: str, outputs: Callable[..., list[Any]], *arguments: Any) -> Body:
    with driver.recorder.subgraph(hint) as scope:
        made = scope.close(outputs(*[scope.argument(value) for value in arguments]))
    assert isinstance(made, Body)
    return made


def apply(driver: Driver, operator: Any, made: Body, *prefix: Any, **options: Any) -> GraphValue:
    """The first result of an operator that gives what its body gives."""
    held = driver.recorder.install("body", made.module)
    inputs = [*made.arguments, *made.lifted]
    result = driver.recorder.call(operator, (held, *prefix, *inputs), options, body=made)
    return driver.traced(driver.recorder.project(result, 0))


def names(made: Body) -> list[str]:
    return [node.name for node in made.module.graph.find_nodes(op="placeholder")]


def through_aot(driver: Driver, captured: Any) -> Callable[..., Any]:
    """The graph compiled as a training compiler does it, without optimising."""
    context = TracingContext(FakeTensorMode(shape_env=driver.recorder.shape_env))
    for tensor, symbolic in captured.contexts.items():
        context.tensor_to_context[tensor] = symbolic
    with tracing(context):
        compiled: Callable[..., Any] = aot_module_simplified(
            captured.module, captured.example_inputs(), fw_compiler=nop
        )
    return compiled


# -- lifting ---------------------------------------------------------------------------------------
def test_explicit_arguments_come_before_what_is_lifted(driver: Driver) -> None:
    x, y = driver.input("x", torch.ones(3)), driver.input("y", torch.ones(3))
    with driver.recorder.subgraph("body") as scope:
        free = driver.call(torch.neg, y)
        made = scope.close([driver.call(torch.add, scope.argument(x, "explicit"), free)])
    assert names(made) == ["explicit", "y"]
    assert (made.arguments, made.lifted) == ((x,), (y,))


def test_a_value_is_lifted_once(driver: Driver) -> None:
    x = driver.input("x", torch.ones(3))
    made = body(driver, "body", lambda: [driver.call(torch.add, driver.call(torch.neg, x), x)])
    assert made.lifted == (x,)


def test_an_explicit_argument_is_not_lifted_again(driver: Driver) -> None:
    x = driver.input("x", torch.ones(3))
    made = body(driver, "body", lambda inner: [driver.call(torch.add, inner, x)], x)
    assert (names(made), made.lifted) == (["arg"], ())


def test_nested_bodies_lift_through_each_other(driver: Driver) -> None:
    x = driver.call(torch.neg, driver.input("x", torch.ones(3)))

    def outer() -> list[Any]:
        inner = body(driver, "inner", lambda: [driver.call(torch.sin, x)])
        (through,) = inner.lifted
        assert through.node.op == "placeholder"
        return [driver.call(torch.add, through, x)]

    assert body(driver, "outer", outer).lifted == (x,)


def test_symbols_are_lifted_before_the_tensor_that_has_them(driver: Driver) -> None:
    x = driver.input("x", torch.ones(4, 3), "dynamic")
    made = body(driver, "body", lambda: [driver.call("sum", x, 0)])
    symbol, tensor = made.lifted
    assert isinstance(symbol.example, torch.SymInt)
    assert tensor is x
    assert check_graph(made.module) == []


def test_a_symbol_is_lifted_once_whatever_reads_it(driver: Driver) -> None:
    x = driver.input("x", torch.ones(4, 3), "dynamic")
    size = driver.call("size", x, 0)
    made = body(driver, "body", lambda: [driver.call(torch.mul, driver.call("sum", x), size)])
    assert len(made.lifted) == 2


def test_an_unbacked_symbol_is_read_from_what_made_it(scalar_driver: Driver) -> None:
    driver = scalar_driver
    x = driver.input("x", torch.tensor([1.0, 0.0, 2.0]))
    found = driver.call("nonzero", x)
    made = body(driver, "body", lambda: [driver.call(torch.neg, found)])
    captured = driver.finish(apply(driver, HOPS.wrap, made))
    assert driver.run(captured)[0].tolist() == [[0], [-2]]
    assert driver.run(captured, x=torch.ones(3))[0].tolist() == [[0], [-1], [-2]]


def test_what_the_graph_holds_is_held_by_the_body_too(driver: Driver) -> None:
    scale = driver.recorder.install("scale", torch.tensor([3.0]))
    x = driver.input("x", torch.ones(2))
    made = body(driver, "body", lambda: [driver.call(torch.mul, x, scale)])
    assert made.lifted == (x,)
    assert made.module(torch.ones(2))[0].tolist() == [3.0, 3.0]


def test_an_input_first_read_in_a_body_is_an_input_of_the_whole(driver: Driver) -> None:
    made = body(driver, "body", lambda: [driver.call(torch.neg, driver.input("x", torch.ones(2)))])
    assert [traced.node.op for traced in made.lifted] == ["placeholder"]
    assert names(made) == ["x"]


def test_an_outer_value_may_be_an_output(driver: Driver) -> None:
    x = driver.input("x", torch.ones(2))
    made = body(driver, "body", lambda: [x, 3, None])
    assert made.module(torch.ones(2))[1:] == (3, None)
    assert made.outputs[1:] == (3, None)


def test_what_is_lifted_and_not_used_is_left_out(driver: Driver) -> None:
    x = driver.input("x", torch.ones(2))
    made = body(driver, "body", lambda: [driver.call("size", x, 0), driver.call(torch.neg, x)][1:])
    assert names(made) == ["x"]


# -- what a body does to memory --------------------------------------------------------------------
def test_writes_and_aliases_of_a_body_are_told(driver: Driver) -> None:
    x, y = driver.input("x", torch.ones(2)), driver.input("y", torch.ones(2))
    made = body(driver, "body", lambda: [driver.call("view", x, 1, 2), driver.call("add_", y, 1)])
    assert (made.written, made.aliased) == ((1,), ((0, 0), (1, 1)))


# -- leaving ---------------------------------------------------------------------------------------
def test_an_error_in_a_body_takes_everything_back(driver: Driver) -> None:
    x = driver.call(torch.neg, driver.input("x", torch.ones(3)))

    def outputs() -> list[GraphValue]:
        driver.call("mul_", x, driver.input("w", torch.nn.Parameter(torch.ones(3))))
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        body(driver, "body", outputs)
    assert not x.example.requires_grad
    assert [str(item.source) for item in driver.finish(x).inputs] == ["x"]


def test_a_rollback_may_go_back_into_a_body(driver: Driver) -> None:
    x = driver.input("x", torch.ones(3))
    with driver.recorder.subgraph("body") as scope:
        inner = scope.argument(x)
        mark = driver.recorder.mark()
        driver.call(torch.neg, inner)
        driver.recorder.rollback(mark)
        made = scope.close([driver.call(torch.sin, inner)])
    assert [node.op for node in made.module.graph.nodes] == [
        "placeholder",
        "call_function",
        "output",
    ]


def test_a_rollback_to_before_a_body_forgets_it(driver: Driver) -> None:
    x = driver.input("x", torch.ones(3))
    mark = driver.recorder.mark()
    made = body(driver, "body", lambda: [driver.call(torch.neg, x)])
    apply(driver, HOPS.wrap, made)
    driver.recorder.rollback(mark)
    captured = driver.finish(driver.call(torch.sin, x))
    assert list(captured.module.named_children()) == []


def test_a_value_of_a_body_that_was_left_is_refused(driver: Driver) -> None:
    x, kept = driver.input("x", torch.ones(3)), []

    def outputs() -> list[GraphValue]:
        kept.append(driver.call(torch.neg, x))
        return kept[:]

    body(driver, "body", outputs)
    with pytest.raises(InternalError, match="was left"):
        driver.call(torch.sin, kept[0])


def test_a_body_must_be_left_before_the_end(driver: Driver) -> None:
    x = driver.input("x", torch.ones(3))
    with driver.recorder.subgraph("body"), pytest.raises(InternalError, match="still open"):
        driver.recorder.finish([x])


def test_nodes_know_the_operators_they_are_inside_of(
    driver: Driver, places: FixedLocations
) -> None:
    x, kept = driver.input("x", torch.ones(3)), []

    def outputs() -> list[GraphValue]:
        kept.append(driver.call(torch.neg, x))
        return kept[:]

    body(driver, "checkpoint", outputs)
    assert [name for name, _ in kept[0].node.meta["source_fn_stack"]] == ["checkpoint", "neg"]


# -- operators -------------------------------------------------------------------------------------
def cond_graph(driver: Driver, x: GraphValue) -> Any:
    w = driver.input("w", torch.nn.Parameter(torch.ones(3)))
    taken = body(
        driver, "true", lambda inner, weight: [driver.call(torch.mul, inner, weight)], x, w
    )
    other = body(
        driver, "false", lambda inner, weight: [driver.call(torch.sub, weight, inner)], x, w
    )
    assert taken.lifted == other.lifted
    held = [
        driver.recorder.install(name, made.module)
        for name, made in (("true", taken), ("false", other))
    ]
    predicate = driver.call(torch.gt, driver.call("sum", x), 0)
    result = driver.call(HOPS.cond, predicate, *held, (x, w, *taken.lifted))
    return driver.finish(driver.recorder.project(result, 0))


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_cond_takes_a_branch_and_trains(driver: Driver, sign: float) -> None:
    captured = cond_graph(driver, driver.input("x", torch.ones(3)))
    arguments = driver.arguments(captured, x=sign * torch.ones(3))
    (result,) = through_aot(driver, captured)(*arguments)
    result.sum().backward()
    assert result.tolist() == ([1.0] * 3 if sign > 0 else [2.0] * 3)
    assert driver.values["w"].grad.tolist() == [1.0, 1.0, 1.0]


def test_cond_with_a_dynamic_size(driver: Driver) -> None:
    captured = cond_graph(driver, driver.input("x", torch.ones(4, 3), "dynamic"))
    compiled = through_aot(driver, captured)
    for rows in (4, 6):
        (result,) = compiled(*driver.arguments(captured, x=torch.ones(rows, 3)))
        assert result.shape == (rows, 3)


def wrapped(driver: Driver, operator: Any, *prefix: Any, **options: Any) -> Any:
    """`operator` around two operators on an input and a lifted parameter, used twice."""
    x, w = (
        driver.input("x", torch.ones(2, 3)),
        driver.input("w", torch.nn.Parameter(torch.full((3,), 2.0))),
    )
    made = body(driver, "body", lambda: [driver.call(torch.sin, driver.call(torch.mul, x, w))])
    return driver.finish(apply(driver, operator, made, *prefix, **options))


@pytest.mark.parametrize(
    ("operator", "prefix", "options"),
    [
        (HOPS.invoke_subgraph, ("body_0",), {}),
        (HOPS.tag_activation_checkpoint, (), {"use_reentrant": False}),
        (HOPS.wrap, (), {}),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_operators_that_wrap_a_body_run_and_train(
    driver: Driver, operator: Any, prefix: Any, options: Any
) -> None:
    captured = wrapped(driver, operator, *prefix, **options)
    (result,) = through_aot(driver, captured)(*driver.arguments(captured))
    x, w = driver.values["x"], driver.values["w"]
    assert torch.allclose(result, (x * w).sin())
    result.sum().backward()
    assert torch.allclose(w.grad, (x * (x * w).cos()).sum(0))


def test_a_checkpoint_in_a_checkpoint(driver: Driver) -> None:
    operator = HOPS.tag_activation_checkpoint
    x = driver.input("x", torch.ones(3, requires_grad=True))

    def outer() -> list[Any]:
        made = body(driver, "inner", lambda: [driver.call(torch.sin, x)])
        return [driver.call(torch.cos, apply(driver, operator, made, use_reentrant=False))]

    made = body(driver, "outer", outer)
    captured = driver.finish(apply(driver, operator, made, use_reentrant=False))
    (value,) = through_aot(driver, captured)(*driver.arguments(captured))
    assert torch.allclose(value, torch.ones(3).sin().cos())
