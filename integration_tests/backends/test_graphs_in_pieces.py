"""Graphs that run in pieces: calls do what plain Python does, and what surrounds the operator
concerned is compiled; for each reason, at each position in the graph, trained or not."""

from __future__ import annotations

import copy
import traceback
from collections.abc import Callable
from typing import Any

import pytest
import stator
import torch
from stator_backends import aot_eager
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint


class Fault(RuntimeError):
    """Raised by an operator of the test's own library."""


MKLDNN: Any = torch.backends.mkldnn
FAULTS: list[Fault] = []
RUNS: list[int] = []


@torch.library.custom_op("stator_pieces_test::doubled", mutates_args=())
def doubled(x: Tensor) -> Tensor:
    RUNS.append(1)
    if FAULTS:
        raise FAULTS[-1]
    return x * 2


doubled.register_fake(torch.empty_like)
doubled.register_autograd(lambda context, gradient: gradient * 2)

Operator = Callable[[Any, list[Any]], Any]


def sparse(x: Any, log: list[Any]) -> Any:
    return (x.to_sparse() * 2).to_dense()


def window(x: Any, log: list[Any]) -> Any:
    y = x.clone()
    y.unfold(1, 2, 2).mul_(2)
    return y


def kernel_state(x: Any, log: list[Any]) -> Any:
    with MKLDNN.flags(enabled=False):
        return x.sin()


def hook(x: Any, log: list[Any]) -> Any:
    def tripled(gradient: Tensor) -> Tensor:
        log.append("hook")
        return gradient * 3

    y = x * 2
    z = y.sin()
    if y.requires_grad:
        y.register_hook(tripled)
    return z + y


def inner_gradient(x: Any, log: list[Any]) -> Any:
    y = x * 2
    if not y.requires_grad:
        return y
    (gradient,) = torch.autograd.grad(y.sin().sum(), y, retain_graph=True)
    return y + gradient


def effects_in_checkpoint(x: Any, log: list[Any]) -> Any:
    def body(y: Any) -> Any:
        log.append("body")
        return y.sin() * 2

    return checkpoint(body, x, use_reentrant=False)


def foreign(x: Any, log: list[Any]) -> Any:
    log.append("before")
    try:
        return doubled(x)
    except Fault as fault:
        log.append(fault is FAULTS[-1])
        return x * 3
    finally:
        log.append("finally")


def module_hook(x: Any, log: list[Any]) -> Any:
    layer = nn.Tanh()
    layer.register_full_backward_hook(lambda module, given, gave: log.append("module"))
    return layer(x)


def second_derivative(x: Any, log: list[Any]) -> Any:
    y = x * 2
    if not y.requires_grad:
        return y
    (gradient,) = torch.autograd.grad(y.sin().sum(), y, create_graph=True)
    return y + gradient * gradient


def all_dropped(x: Any, log: list[Any]) -> Any:
    return x + nn.functional.dropout(x, 1.0) + torch.rand(4)


def drawn_transposed(x: Any, log: list[Any]) -> Any:
    mask = torch.zeros(4, 3)
    mask.t().bernoulli_(0.5)
    return x * (mask.t() + 1)


def several_kinds(x: Any, log: list[Any]) -> Any:
    y = x.detach() * 2
    log.extend([y[0].view(torch.int32), y[1]])
    return x.sin()


OPERATORS: tuple[Operator, ...] = (
    *(sparse, window, kernel_state, hook, inner_gradient, effects_in_checkpoint, foreign),
    *(module_hook, second_derivative, all_dropped, drawn_transposed, several_kinds),
)
DRAWS = (all_dropped,)  # by an operator that Inductor compiles, with numbers of its own


class Net(nn.Module):
    """Layers around an operator, which is at `position`."""

    def __init__(self, operator: Operator, position: str) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(4, 4), nn.Linear(4, 4)
        self.operator = operator
        self.position = position

    def forward(self, x: Any, log: list[Any]) -> Any:
        if self.position in ("first", "twice"):
            x = self.operator(x, log)
        x = self.first(x).relu()
        if self.position in ("middle", "twice"):
            x = self.operator(x, log)
        x = self.second(x).tanh()
        return self.operator(x, log) if self.position == "last" else x


def outcome(net: Any, model: nn.Module, trains: bool, faulty: bool) -> list[Any]:
    """Return what can be observed of one call, and of its backward."""
    x = torch.linspace(-1, 1, 12).reshape(3, 4).requires_grad_(trains)
    log: list[Any] = []
    FAULTS[:] = [Fault("of the operator")] if faulty else []
    RUNS.clear()
    torch.manual_seed(0)
    with torch.set_grad_enabled(trains):
        result = net(x, log)
    if trains:
        result.sum().backward()
    FAULTS.clear()
    gradients = [x.grad, *(each.grad for each in model.parameters())]
    model.zero_grad()
    return [result.detach(), gradients, log, len(RUNS), MKLDNN.enabled]


def assert_equal(one: Any, other: Any) -> None:
    if isinstance(one, list):
        assert len(one) == len(other)
        for first, second in zip(one, other, strict=True):
            assert_equal(first, second)
    elif isinstance(one, Tensor):
        torch.testing.assert_close(one, other)
    else:
        assert one == other


def check(operator: Operator, position: str, trains: bool, backend: str) -> None:
    plain = Net(operator, position)
    model = copy.deepcopy(plain)
    compiled: Any = stator.compile(model, backend=backend, options={"uncompiled": "allow"})
    for faulty in (False, operator is foreign, False):
        expected = outcome(plain, plain, trains, faulty)
        assert_equal(expected, outcome(compiled, model, trains, faulty))
    report = compiled.report
    assert len(report.uncompiled) <= 2 * (3 if operator in (sparse, window) else 1)
    assert report.compiled_count >= (0 if backend == "eager" else 4)  # both layers


SAMPLE = [pytest.param("middle", True, id="middle-training")]
REST = [
    pytest.param(place, trains, id=f"{place}-{kind}", marks=pytest.mark.slow)
    for place in ("first", "middle", "last", "twice")
    for trains, kind in ((True, "training"), (False, "inference"))
    if (place, trains) != ("middle", True)
]


@pytest.mark.parametrize(("position", "trains"), [*SAMPLE, *REST])
@pytest.mark.parametrize("operator", OPERATORS, ids=lambda operator: operator.__name__)
def test_calls_are_those_of_plain_python(operator: Operator, position: str, trains: bool) -> None:
    check(operator, position, trains, "aot_eager")


@pytest.mark.slow
@pytest.mark.parametrize("trains", [True, False], ids=["training", "inference"])
@pytest.mark.parametrize("position", ["first", "middle", "last", "twice"])
@pytest.mark.parametrize("operator", OPERATORS, ids=lambda operator: operator.__name__)
@pytest.mark.parametrize("backend", ["eager", "inductor"])
def test_calls_with_other_backends(
    operator: Operator, position: str, trains: bool, backend: str
) -> None:
    if backend == "inductor" and operator in DRAWS:
        operator = nothing_drawn
    check(operator, position, trains, backend)


def nothing_drawn(x: Any, log: list[Any]) -> Any:
    return x + nn.functional.dropout(x, 1.0)


def beside_a_fault(operator: Operator, side: str) -> Operator:
    """Return an operator with one that may raise ahead of it, or behind it."""

    def program(x: Any, log: list[Any]) -> Any:
        try:
            if side == "ahead":
                x = doubled(x)
            log.append("ahead")
            x = operator(x, log)
            log.append("behind")
            return doubled(x) if side == "behind" else x
        except Fault as fault:
            log.append(fault is FAULTS[-1])
            return x * 3

    return program


def check_faults(operator: Operator, position: str, trains: bool, backend: str, side: str) -> None:
    plain = Net(beside_a_fault(operator, side), position)
    model = copy.deepcopy(plain)
    compiled: Any = stator.compile(model, backend=backend, options={"uncompiled": "allow"})
    for faulty in (False, True, False):
        expected = outcome(plain, plain, trains, faulty)
        assert_equal(expected, outcome(compiled, model, trains, faulty))


FAULTY = tuple(operator for operator in OPERATORS if operator is not foreign)


@pytest.mark.parametrize("side", ["ahead", "behind"])
@pytest.mark.parametrize("operator", [sparse, effects_in_checkpoint])
def test_exceptions_are_those_of_plain_python(operator: Operator, side: str) -> None:
    check_faults(operator, "middle", True, "aot_eager", side)


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("trains", [True, False], ids=["training", "inference"])
@pytest.mark.parametrize("position", ["first", "middle", "last", "twice"])
@pytest.mark.parametrize("operator", FAULTY, ids=lambda operator: operator.__name__)
def test_exceptions_beside_each_operator(
    operator: Operator, position: str, trains: bool, backend: str
) -> None:
    for side in ("ahead", "behind"):
        check_faults(operator, position, trains, backend, side)


@pytest.mark.slow
@pytest.mark.parametrize("side", ["ahead", "behind"])
@pytest.mark.parametrize("operator", FAULTY, ids=lambda operator: operator.__name__)
def test_exceptions_with_inductor_too(operator: Operator, side: str) -> None:
    each = nothing_drawn if operator in DRAWS else operator
    check_faults(each, "twice", True, "inductor", side)


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_modes_that_are_set_around_a_native_operator(backend: str) -> None:
    first, second = nn.Linear(4, 4), nn.Linear(4, 4)

    def program(x: Any) -> Any:
        with torch.autocast("cpu", torch.bfloat16):
            y = first(x)
            with torch.no_grad():
                z = (y.float().to_sparse() * 2).to_dense()
                z = second(z)
            y = second(y + z)
        return first(y.float())

    compiled = stator.compile(program, backend=backend, options={"uncompiled": "allow"})
    for _ in range(3):
        found = []
        for each in (program, compiled):
            x = torch.linspace(-1, 1, 12).reshape(3, 4).requires_grad_()
            result = each(x)
            result.sum().backward()
            modes = torch.is_autocast_enabled("cpu"), torch.is_grad_enabled()
            found.append([result.detach(), str(result.dtype), x.grad, first.weight.grad, modes])
            first.zero_grad()
        assert_equal(*found)


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_an_uncaught_exception_names_the_line_of_the_operator(backend: str) -> None:
    def program(x: Any, log: list[Any]) -> Any:
        y = x.exp()
        log.append("before")
        try:
            z = doubled(y)
        except ValueError:
            z = y
        log.append("behind")
        return z.sin() + y

    compiled = stator.compile(program, backend=backend)
    for faulty in (False, True, False, True):
        found = []
        for each in (program, compiled):
            FAULTS[:] = [Fault("of the operator")] if faulty else []
            log: list[Any] = []
            try:
                result: Any = each(torch.ones(3), log)
            except Fault as fault:
                frames = traceback.extract_tb(fault.__traceback__)
                lines = [frame.lineno for frame in frames if frame.name == "program"]
                result = fault is FAULTS[-1], lines
            found.append([result, log])
        FAULTS.clear()
        assert_equal(*found)


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_an_index_that_is_out_of_bounds_behind_a_piece(backend: str) -> None:
    def program(x: Tensor, index: Tensor, log: list[Any]) -> Any:
        y = (x.to_sparse() * 2).to_dense()
        log.append(1)
        x.add_(1)
        try:
            return y[index] + 1
        except IndexError:
            log.append("caught")
            return y.sum() + x

    compiled = stator.compile(program, backend=backend, options={"uncompiled": "allow"})
    for last in (1, 9, 1, 9):
        found = []
        for each in (program, compiled):
            x, log = torch.ones(3), list[Any]()
            found.append([each(x, torch.tensor([0, last]), log), x, log])
        assert_equal(*found)


def copied(x: Any, count: Any) -> Any:
    y = x * count.clone()
    count.add_(1)
    return y


def computed_before(x: Any, count: Any) -> Any:
    y = (x + count * 2).sin()
    count.lerp_(torch.zeros(3), 0.5)
    return y


def computed_behind(x: Any, count: Any) -> Any:
    count.add_(1)
    return x * (count * 2).sin()


def between_writes(x: Any, count: Any) -> Any:
    count[0] = 3
    y = x * count[:2].sum()
    count.mul_(2)
    return y * count.cos()


@pytest.mark.parametrize("backend", ["aot_eager", pytest.param("inductor", marks=pytest.mark.slow)])
@pytest.mark.parametrize("program", [copied, computed_before, computed_behind, between_writes])
def test_gradients_are_of_the_value_that_an_input_had(program: Any, backend: str) -> None:
    """Two calls before the backward: the input has two other values by then."""
    compiled = stator.compile(program, backend=backend)
    for _ in range(2):
        found = []
        for each in (program, compiled):
            x, count = torch.ones(3, requires_grad=True), torch.full((3,), 1.5)
            total = each(x, count).sum() + each(x, count).sum()
            total.backward()
            found.append([total.detach(), x.grad, count])
        assert_equal(*found)


def test_a_static_cache_is_compiled_as_a_whole() -> None:
    def step(cache: Tensor, keys: Tensor, position: Tensor) -> Tensor:
        cache.index_copy_(2, position, keys)
        return cache[:, :, None].expand(1, 2, 2, 4, 8).reshape(1, 4, 4, 8).sum(-1)

    compiled: Any = stator.compile(step, backend="inductor", fullgraph=True)
    caches = [torch.zeros(1, 2, 4, 8) for _ in range(2)]
    for place in range(3):
        keys, position = torch.full((1, 2, 1, 8), float(place)), torch.tensor([place])
        expected = step(caches[0], keys, position)
        assert_equal(expected, compiled(caches[1], keys, position))
        assert_equal(caches[0], caches[1])
    assert not compiled.report.uncompiled


def test_jagged_results_with_gradients_share_the_layout_of_their_input() -> None:
    weight = nn.Parameter(torch.randn(4, 3))

    def program(x: Any) -> Any:
        return nn.functional.linear(x, weight).relu()

    compiled = stator.compile(program, backend="aot_eager", fullgraph=True)
    for sizes in ((2, 5), (2, 5), (3, 1)):
        found = []
        for each in (program, compiled):
            parts = [torch.ones(size, 3) * size for size in sizes]
            x = torch.nested.nested_tensor(parts, layout=torch.jagged)
            result = each(x)
            total = (result + nn.functional.linear(x, weight)).values().sum()
            total.backward()
            found.append([result.values().detach(), weight.grad, result.offsets().tolist()])
            weight.grad = None
        assert_equal(*found)


@pytest.mark.parametrize("which", [0, 1])
def test_a_jagged_result_beside_one_of_its_values_has_gradients(which: int) -> None:
    weight = nn.Parameter(torch.randn(4, 3))

    def program(a: Tensor, b: Tensor) -> Any:
        x = torch.nested.as_nested_tensor([a, b], layout=torch.jagged)
        y = nn.functional.linear(x, weight)
        return y, y.values() * 2

    compiled = stator.compile(program, backend="aot_eager", fullgraph=True)
    found = []
    for each in (program, compiled):
        results = each(torch.ones(2, 3), torch.ones(5, 3))
        result = results[which]
        (result.values() if result.is_nested else result).pow(2).sum().backward()
        found.append([weight.grad, *(part.requires_grad for part in results)])
        weight.grad = None
    assert_equal(*found)


def turned(x: Tensor, first: Tensor, second: Tensor, log: list[Any]) -> Any:
    y = x.sin()
    for weight in (first, second):
        try:
            y = doubled(weight.transpose(0, 1).view_as(weight)) @ y
        except Fault:
            log.append("caught")
            y = weight.t() @ y
        y = y.tanh()
    return y


def test_views_go_with_the_operator_that_uses_them() -> None:
    results: list[list[str]] = []

    def compiler(gm: torch.fx.GraphModule, inputs: Any) -> Any:
        output = gm.graph.find_nodes(op="output")[0]
        results.append([str(node.target) for node in output.all_input_nodes])
        return aot_eager(gm, inputs)

    programs: list[Callable[..., Any]] = [turned, stator.compile(turned, backend=compiler)]
    for faulty in (False, True, False):
        found = []
        for each in programs:
            FAULTS[:] = [Fault("of the operator")] if faulty else []
            log: list[Any] = []
            given = [torch.linspace(-1, 1, 9).view(3, 3).requires_grad_() for _ in "123"]
            result = each(*given, log)
            result.sum().backward()
            found.append([result.detach(), [leaf.grad for leaf in given], log])
        FAULTS.clear()
        assert_equal(*found)

    assert len(results) == 2
    assert not {"transpose", "view_as"} & {name for names in results for name in names}
