"""Custom operators and functions with marks of torch.compiler: captured, or one break, as their marks say."""

# mypy: disable-error-code="untyped-decorator, no-untyped-call"
# torch's marks have no types.

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import stator
import torch
from torch import Tensor
from torch._dynamo import decorators
from torch.utils.checkpoint import checkpoint

from integration_tests.counting import Counting
from integration_tests.models import Call
from integration_tests.oracle import assert_same

leaf: Any = decorators.leaf_function
LIBRARY = torch.library.Library("stator_marked", "DEF")
LIBRARY.define("twice(Tensor x, int n=2) -> Tensor")
LIBRARY.impl("twice", lambda x, n=2: x * n, "CompositeExplicitAutograd")


@torch.library.register_fake("stator_marked::twice")
def _twice(x: Tensor, n: int = 2) -> Tensor:
    return torch.empty_like(x)


def _keep_factor(ctx: Any, inputs: Any, output: Any) -> None:
    ctx.n = inputs[1]


torch.library.register_autograd(
    "stator_marked::twice", lambda ctx, grad: (grad * ctx.n * 10, None), setup_context=_keep_factor
)


@torch.library.custom_op("stator_marked::sine", mutates_args=())
def sine(x: Tensor, flag: bool = True) -> Tensor:
    return torch.from_numpy(x.detach().numpy() * 2)


@sine.register_fake
def _sine(x: Tensor, flag: bool = True) -> Tensor:
    return torch.empty_like(x)


def _keep_input(ctx: Any, inputs: Any, output: Any) -> None:
    ctx.save_for_backward(inputs[0])


sine.register_autograd(lambda ctx, grad: (grad * ctx.saved_tensors[0].cos() * 7, None), setup_context=_keep_input)


@torch.library.custom_op("stator_marked::add_to", mutates_args=("x",))
def add_to(x: Tensor, y: Tensor) -> None:
    x.add_(y)


@torch.library.custom_op("stator_marked::no_fake", mutates_args=())
def no_fake(x: Tensor) -> Tensor:
    return x * 3


@torch.compiler.allow_in_graph
def allowed(x: Tensor) -> Any:
    return {"double": x * 2, "pair": (x, x + 1)}


@leaf
def chosen_by_data(x: Tensor, given: dict[str, Tensor]) -> Any:
    return (x * 2 if x.sum().item() > 100 else x * given["scale"], x + 1)


@chosen_by_data.register_fake
def _chosen_by_data(x: Tensor, given: dict[str, Tensor]) -> Any:
    return torch.empty_like(x), torch.empty_like(x)


@decorators.nonstrict_trace
def not_looked_into(x: Tensor, given: dict[str, Any]) -> Any:
    torch._dynamo.graph_break()  # nobody looks
    return {"made": [x * given["scale"], x.sin()]}


@torch.compiler.disable
def disabled(x: Tensor) -> Tensor:
    return x * (5 if torch.compiler.is_compiling() else 6)


@torch.compiler.assume_constant_result
def a_constant() -> int:
    return 3


def make_args() -> Call:
    return Call((torch.linspace(-1, 1, 6).reshape(2, 3).requires_grad_(),))


def library_operator(x: Tensor) -> Any:
    return torch.ops.stator_marked.twice(x) + torch.ops.stator_marked.twice.default(x, 3)


def custom_operator(x: Tensor) -> Any:
    return sine(x, flag=False) + torch.ops.stator_marked.sine(x)


def custom_operator_that_writes(x: Tensor) -> Any:
    y = x.detach() * 1
    add_to(y, x.detach())
    return y + 1


def function_allowed_in_the_graph(x: Tensor) -> Any:
    made = allowed(x)
    return made["double"] + made["pair"][1], made["pair"][0] is x


def function_assumed_constant(x: Tensor) -> Any:
    return x + a_constant()


def leaf_function(x: Tensor) -> Any:
    first, second = chosen_by_data(x * 2, {"scale": x.sin()})
    return checkpoint(lambda a: chosen_by_data(a, {"scale": first})[0], x, use_reentrant=False) + second


def function_traced_without_looking(x: Tensor) -> Any:
    made = not_looked_into(x, {"scale": 3})["made"]
    return made[0] + made[1]


CAPTURED = (
    leaf_function,
    function_traced_without_looking,
    library_operator,
    custom_operator,
    custom_operator_that_writes,
    function_allowed_in_the_graph,
    function_assumed_constant,
)


def operator_without_a_fake(x: Tensor) -> Any:
    return no_fake(x.detach() * 2) + 1


def function_that_is_disabled(x: Tensor) -> Any:
    return disabled(x * 2) + 1


BROKEN = (operator_without_a_fake, function_that_is_disabled)


@pytest.mark.parametrize("program", CAPTURED, ids=lambda program: program.__name__)
def test_operator_is_one_node(program: Callable[[Tensor], Any]) -> None:
    counting = Counting()
    program(*make_args().args)
    assert_same(program, stator.compile(program, backend=counting, fullgraph=True), make_args)
    assert counting.count == 1


@pytest.mark.parametrize("program", BROKEN, ids=lambda program: program.__name__)
def test_function_that_cannot_be_captured_costs_one_break(program: Callable[[Tensor], Any]) -> None:
    counting = Counting()
    assert_same(program, stator.compile(program, backend=counting), make_args)
    assert counting.count == 2


def test_code_can_ask_whether_it_is_compiled() -> None:
    def f() -> Any:
        return torch.compiler.is_compiling(), torch.compiler.is_dynamo_compiling(), torch.compiler.is_exporting()

    assert stator.compile(f, backend="eager")() == (True, True, False)
