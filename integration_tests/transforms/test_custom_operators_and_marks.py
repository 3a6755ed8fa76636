"""Custom operators and functions with marks of torch.compiler: captured, or one break, as their
marks say."""

# mypy: disable-error-code="untyped-decorator, no-untyped-call"
# torch's marks have no types.

from __future__ import annotations

import collections
import dataclasses
from collections.abc import Callable
from typing import Any

import pytest
import stator
import torch
from torch import Tensor
from torch._dynamo import decorators
from torch.utils import _pytree as pytree
from torch.utils.checkpoint import checkpoint

from integration_tests.corpora.models import Call
from integration_tests.support.counting import Counting
from integration_tests.support.oracle import assert_same

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


sine.register_autograd(
    lambda ctx, grad: (grad * ctx.saved_tensors[0].cos() * 7, None), setup_context=_keep_input
)


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
    return (
        checkpoint(lambda a: chosen_by_data(a, {"scale": first})[0], x, use_reentrant=False)
        + second
    )


def function_traced_without_looking(x: Tensor) -> Any:
    made = not_looked_into(x, {"scale": 3})["made"]
    return made[0] + made[1]


# which looks into it is up to compilers
@torch.library.triton_op("stator_marked::doubled", mutates_args={})
def doubled(x: Tensor) -> Tensor:
    return x.sin() * 2


doubled.register_autograd(
    lambda ctx, grad: grad * 5, setup_context=lambda ctx, inputs, output: None
)


def triton_operator(x: Tensor) -> Any:
    return doubled(x) + torch.ops.stator_marked.doubled(x * 2)


CAPTURED = (
    leaf_function,
    triton_operator,
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


# -- arguments and results that are pytrees, modules among them ------------------------------------
class Pair:
    """Registered with torch, which tells how to take it apart."""

    def __init__(self, first: Any, second: Any) -> None:
        self.first, self.second = first, second


@dataclasses.dataclass
class Settings:
    scale: Tensor
    count: int = 3


@dataclasses.dataclass(frozen=True)
class Mark:
    """Registered as a constant."""

    factor: int


pytree.register_pytree_node(
    Pair, lambda pair: ([pair.first, pair.second], None), lambda parts, _: Pair(*parts)
)
pytree.register_dataclass(Settings)
pytree.register_constant(Mark)
Named = collections.namedtuple("Named", "left right")
LAYER, NORM = torch.nn.Linear(3, 3), torch.nn.BatchNorm1d(3, momentum=None)
LAYER_TWICE = torch.nn.Sequential(LAYER, torch.nn.Sequential(LAYER))
TRIPLE, WEIGHT, WANTED = Mark(3), torch.linspace(0, 1, 3), torch.linspace(0, 1, 3).requires_grad_()


def of_structures(pair: Pair, settings: Settings, *, more: Any) -> Any:
    torch._dynamo.graph_break()
    made = Settings(pair.first * settings.scale * more["n"], settings.count + 1)
    return (
        Pair(made, [pair.second]),
        Named(pair.first + 1, None),
        collections.OrderedDict(a=pair.second.sin()),
    )


def empty_structures(pair: Pair, settings: Settings, *, more: Any) -> Any:
    made = Settings(torch.empty_like(pair.first), settings.count + 1)
    return (
        Pair(made, [pair.second]),
        Named(torch.empty_like(pair.first), None),
        collections.OrderedDict(a=torch.empty_like(pair.second)),
    )


def of_modules(one: Any, two: Any, x: Tensor) -> Any:
    torch._dynamo.graph_break()
    return [one(x) + two(x)]


structured = {"nonstrict": decorators.nonstrict_trace(of_structures), "leaf": leaf(of_structures)}
with_modules = {"nonstrict": decorators.nonstrict_trace(of_modules), "leaf": leaf(of_modules)}
structured["leaf"].register_fake(empty_structures)
with_modules["leaf"].register_fake(lambda one, two, x: [torch.empty_like(x)])


class Model(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = torch.nn.Linear(3, 3)

    @decorators.nonstrict_trace
    def whole(self, x: Tensor) -> Any:
        torch._dynamo.graph_break()
        return self.layer(x) if self.training else x

    def forward(self, x: Tensor) -> Any:
        return self.whole(x) + 1


MODEL = Model()


@decorators.nonstrict_trace
def multiplied(mark: Mark, x: Tensor) -> Any:
    return x * mark.factor * WEIGHT


@decorators.nonstrict_trace
def with_wanted(x: Tensor) -> Any:
    return x * WANTED


@leaf(mutates_args={"total", "norm.running_mean"})
def accumulated(x: Tensor, total: Tensor, norm: Any) -> Any:
    total.add_(x.sum().item())
    norm.running_mean.add_(1)
    return (x * total,)


accumulated.register_fake(lambda x, total, norm: (torch.empty_like(x),))


def writing(x: Tensor) -> Any:
    total = x.detach() * 1
    return accumulated(x, total, NORM), total


# in the backward of a leaf
torch_copies_specs = pytest.mark.filterwarnings("ignore:.*LeafSpec:FutureWarning")


@torch_copies_specs
@pytest.mark.parametrize(
    ("mark", "backend", "dynamic"),
    [
        ("nonstrict", "eager", True),
        ("nonstrict", "aot_eager", None),
        ("nonstrict", "aot_eager", True),
        ("leaf", "eager", True),
        ("leaf", "aot_eager", None),
    ],
)
def test_marked_function_takes_and_gives_pytrees(
    mark: str, backend: str, dynamic: bool | None
) -> None:
    def program(x: Tensor) -> Any:
        pair, named, ordered = structured[mark](
            Pair(x, x.cos()), Settings(x * 2), more={"n": x.shape[0]}
        )
        return pair.first.scale + named.left, pair.first.count, pair.second, type(named), ordered

    compiled = stator.compile(program, backend=backend, fullgraph=True, dynamic=dynamic)
    assert_same(program, compiled, make_args, graphs_may_raise=False)


@torch_copies_specs
@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("mark", with_modules)
def test_marked_function_takes_modules(mark: str, backend: str) -> None:
    def program(x: Tensor) -> Any:
        inner = checkpoint(
            lambda a: with_modules["nonstrict"](LAYER, MODEL.layer, a)[0], x, use_reentrant=False
        )
        return with_modules[mark](LAYER, LAYER, inner), with_modules[mark](LAYER_TWICE, LAYER, x)

    assert_same(
        program,
        stator.compile(program, backend=backend, fullgraph=True),
        make_args,
        graphs_may_raise=False,
    )


@torch_copies_specs
@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize(
    "program",
    [
        writing,
        lambda x: MODEL(x) * 2,
        lambda x: multiplied(TRIPLE, x.detach()),
    ],
)
def test_marked_function_uses_what_it_is_given(
    program: Callable[[Tensor], Any], backend: str
) -> None:
    assert_same(
        program,
        stator.compile(program, backend=backend, fullgraph=True),
        make_args,
        graphs_may_raise=False,
    )


def test_module_that_stops_to_train_is_looked_at_again() -> None:
    compiled = stator.compile(lambda x: MODEL(x) * 1, backend="aot_eager", fullgraph=True)
    x = torch.ones(2, 3)
    try:
        assert torch.equal(compiled(x), MODEL.train()(x))
        assert torch.equal(MODEL.eval()(x), x + 1)
        assert torch.equal(compiled(x), x + 1)
    finally:
        MODEL.train()


@pytest.mark.parametrize(
    ("reason", "program"),
    [
        ("real-tensor", lambda x: with_wanted(x) + 1),
        ("graph-argument", lambda x: multiplied(Mark(3), x.detach())),
    ],
)
def test_what_a_marked_function_cannot_be_given_is_one_break(
    reason: str, program: Callable[[Tensor], Any]
) -> None:
    compiled = stator.compile(program, backend="aot_eager")
    assert_same(program, compiled, make_args, graphs_may_raise=False)
    assert reason in [met.reason for met in compiled.report.breaks]


@pytest.mark.parametrize("program", CAPTURED, ids=lambda program: program.__name__)
def test_operator_is_one_node(program: Callable[[Tensor], Any]) -> None:
    counting = Counting()
    program(*make_args().args)
    assert_same(program, stator.compile(program, backend=counting, fullgraph=True), make_args)
    assert counting.count == 1


def test_operator_made_of_kernels_is_passed_through() -> None:
    compiled = stator.compile(triton_operator, backend="aot_eager", fullgraph=True)
    assert_same(triton_operator, compiled, make_args, graphs_may_raise=False)
    nodes = stator.compile(triton_operator, backend="eager", fullgraph=True)
    nodes(*make_args().args)
    graph = nodes.report.graphs[0].graph
    operators = torch.ops.stator_marked.doubled.default, torch.ops.stator_marked.doubled
    assert [len(graph.find_nodes(op="call_function", target=target)) for target in operators] == [
        1,
        1,
    ]


@pytest.mark.parametrize("program", BROKEN, ids=lambda program: program.__name__)
def test_function_that_cannot_be_captured_costs_one_break(program: Callable[[Tensor], Any]) -> None:
    counting = Counting()
    assert_same(program, stator.compile(program, backend=counting), make_args)
    assert counting.count == 2


def test_code_can_ask_whether_it_is_compiled() -> None:
    def f() -> Any:
        return (
            torch.compiler.is_compiling(),
            torch.compiler.is_dynamo_compiling(),
            torch.compiler.is_exporting(),
        )

    assert stator.compile(f, backend="eager")() == (True, True, False)
