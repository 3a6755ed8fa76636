"""Hooks in compiled backward passes: one graph with their effects, and the answers of eager."""

# mypy: disable-error-code="no-untyped-call"

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, TypeAlias

import pytest
import stator
import torch
from torch import Tensor, nn
from torch.autograd.graph import saved_tensors_hooks

from integration_tests.support.counting import Counting

Log: TypeAlias = list[Any]
Register: TypeAlias = Callable[[nn.Module, Log], None]


def _net() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(3, 4), nn.GELU(), nn.Linear(4, 2))


def _on_outputs(net: nn.Module, register: Callable[[Tensor], object]) -> None:
    def hook(module: nn.Module, args: Any, output: Tensor) -> None:
        register(output)

    for module in net.children():
        module.register_forward_hook(hook)


# Kinds of hooks: each is registered on a model once, and may write to the log.


def _tensors(net: nn.Module, log: Log) -> None:
    _on_outputs(net, lambda output: output.register_hook(lambda grad: grad.clamp(-1, 1)))
    for parameter in net.parameters():
        parameter.register_hook(lambda grad: grad * 2)


def _kept_gradients(net: nn.Module, log: Log) -> None:
    _on_outputs(net, lambda output: output.register_hook(log.append))
    for parameter in net.parameters():
        parameter.register_hook(log.append)


def _statistics(net: nn.Module, log: Log) -> None:
    facts: dict[str, Any] = {"count": 0}
    log.append(facts)

    def hook(grad: Tensor) -> None:
        facts["norm"] = grad.norm()
        facts["count"] += 1

    _on_outputs(net, lambda output: output.register_hook(hook))


def _after_accumulation(net: nn.Module, log: Log) -> None:
    def hook(parameter: Tensor) -> None:
        assert parameter.grad is not None
        parameter.grad.mul_(0.5)
        log.append(parameter.grad)

    for parameter in net.parameters():
        parameter.register_post_accumulate_grad_hook(hook)


def _steps(net: nn.Module, log: Log) -> None:
    """Register the step of an optimizer in the backward, which needs no gradients at its end."""

    def hook(parameter: Tensor) -> None:
        assert parameter.grad is not None
        with torch.no_grad():
            parameter.add_(parameter.grad, alpha=-0.1)
        parameter.grad = None

    for parameter in net.parameters():
        parameter.register_post_accumulate_grad_hook(hook)


def _modules(net: nn.Module, log: Log) -> None:
    def hook(module: nn.Module, gradients: Any, given: Any) -> Any:
        log.append(type(module).__name__)
        return tuple(each if each is None else each * 0.9 for each in gradients)

    for module in [*net.children()][1:]:
        module.register_full_backward_hook(hook)


def _before_modules(net: nn.Module, log: Log) -> None:
    def hook(module: nn.Module, gradients: Any) -> Any:
        log.append(gradients[0])
        return tuple(each * 0.9 for each in gradients)

    for module in [*net.children()][1:]:
        module.register_full_backward_pre_hook(hook)


def _nodes(net: nn.Module, log: Log) -> None:
    def register(output: Tensor) -> None:
        node: Any = output.grad_fn
        node.register_prehook(lambda given: tuple(each * 0.9 for each in given))
        node.register_hook(lambda results, given: log.append(given[0].sum()))

    _on_outputs(net, register)


KINDS: dict[str, Register] = {
    "tensors": _tensors,
    "kept gradients": _kept_gradients,
    "statistics": _statistics,
    "after accumulation": _after_accumulation,
    "steps": _steps,
    "modules": _modules,
    "before modules": _before_modules,
    "nodes": _nodes,
}


def _values(log: Log, net: nn.Module) -> Any:
    """Return what the log has, a gradient with the parameters whose memory it shares."""
    gradients = [each.grad for each in net.parameters()]

    def value(item: Any) -> Any:
        if isinstance(item, dict):
            return [(key, value(each)) for key, each in item.items()]
        if not isinstance(item, Tensor):
            return item
        memory = item.untyped_storage().data_ptr()
        sharing = [g is not None and g.untyped_storage().data_ptr() == memory for g in gradients]
        return item.tolist(), [item is each for each in gradients], sharing

    return [value(item) for item in log]


def _trained(register: Register, sizes: tuple[int, ...]) -> Any:
    """Train a model; gradients are accumulated over two steps."""
    net, log, facts = _net(), list[Any](), list[Any]()
    register(net, log)
    for number, size in enumerate(sizes):
        net(torch.linspace(-1, 1, 3 * size).view(size, 3)).pow(2).mean().backward()
        grads = [each.grad for each in net.parameters()]
        facts += [_values(log, net), [g if g is None else g.tolist() for g in grads]]
        facts += [[g if g is None else (g.stride(), g._is_view()) for g in grads]]
        if number % 2:
            net.zero_grad()
            log[:] = [each for each in log if isinstance(each, dict)]
    return facts, [each.tolist() for each in net.parameters()]


@pytest.mark.parametrize("kind", KINDS)
def test_hooks_are_part_of_one_graph_for_each_state_of_the_gradients(kind: str) -> None:
    counting = Counting()
    expected = _trained(KINDS[kind], (4, 4, 4, 4))
    with stator.compiled_autograd(backend=counting):
        assert _trained(KINDS[kind], (4, 4, 4, 4)) == expected
    is_seen = kind == "after accumulation"  # whether there are gradients before
    has_number = kind == "statistics"  # which is another one in each call
    assert counting.count == 1 + is_seen + has_number


@pytest.mark.parametrize("kind", ["tensors", "after accumulation", "modules"])
def test_hooks_need_one_more_graph_for_each_state_if_sizes_change(kind: str) -> None:
    counting, sizes = Counting(), (5, 5, 7, 7, 9, 9, 11, 11)
    expected = _trained(KINDS[kind], sizes)
    with stator.compiled_autograd(backend=counting):
        assert _trained(KINDS[kind], sizes) == expected
    assert counting.count == (4 if kind == "after accumulation" else 2)


@pytest.mark.parametrize("kind", KINDS)
def test_hooks_with_compiled_operators_equal_eager_autograd(kind: str) -> None:
    expected = _trained(KINDS[kind], (4, 4, 2, 2, 3))
    with stator.compiled_autograd(backend="aot_eager"):
        assert _trained(KINDS[kind], (4, 4, 2, 2, 3)) == expected


def _doubled(leaf: Tensor) -> None:
    assert leaf.grad is not None
    leaf.grad.mul_(2)


def test_a_gradient_that_two_parameters_get_is_not_shared_by_hooked_ones() -> None:
    def run() -> Any:
        x, y = (torch.ones(3, requires_grad=True) for _ in range(2))
        for each in (x, y):
            each.register_post_accumulate_grad_hook(_doubled)
        (x + y).pow(2).sum().backward()
        return [x.grad.tolist(), y.grad.tolist()]  # type: ignore[union-attr]

    expected = run()
    for backend in ("eager", "aot_eager"):
        with stator.compiled_autograd(backend=backend):
            assert run() == expected


def test_a_gradient_that_two_parameters_get_is_not_shared_behind_a_hook() -> None:
    def run() -> Any:
        x, y = (torch.ones(3, requires_grad=True) for _ in range(2))
        z = x + y
        z.register_hook(lambda grad: grad * 2)
        z.pow(2).sum().backward()
        assert x.grad is not None
        x.grad.zero_()
        return y.grad

    expected = run()
    with stator.compiled_autograd(backend="aot_eager"):
        assert torch.equal(run(), expected)


def test_a_gradient_that_a_hook_keeps_is_not_the_one_of_the_parameter() -> None:
    def run() -> list[Any]:
        x, kept = torch.ones(3, requires_grad=True), list[Tensor]()
        x.register_hook(kept.append)
        for _ in range(2):
            (x * 2).sum().backward()
        assert x.grad is not None
        return [each.tolist() for each in (*kept, x.grad)]

    expected = run()
    with stator.compiled_autograd(backend="aot_eager"):
        assert run() == expected


def test_a_hook_that_reads_the_gradient_of_another_parameter_runs_in_order() -> None:
    def run() -> Any:
        x, w, seen = (
            torch.ones(3, requires_grad=True),
            torch.ones(3, requires_grad=True),
            list[bool](),
        )
        x.register_post_accumulate_grad_hook(lambda leaf: seen.append(w.grad is None))
        (x * w).pow(2).sum().backward()
        (x.sin() * w).pow(2).sum().backward()
        return seen

    expected = run()
    with stator.compiled_autograd(backend="aot_eager"):
        assert run() == expected


def test_a_hook_that_drops_the_gradients_of_others_runs_in_order() -> None:
    def run() -> Any:
        net = _net()
        first = next(net.parameters())
        first.register_post_accumulate_grad_hook(lambda leaf: net.zero_grad())
        for _ in range(2):
            net(torch.ones(2, 3)).pow(2).sum().backward()
        return [each.grad if each.grad is None else each.grad.tolist() for each in net.parameters()]

    expected = run()
    with stator.compiled_autograd(backend="aot_eager"):
        assert run() == expected


@pytest.mark.parametrize("sparse", [False, True])
def test_hooks_behind_sparse_gradients_run_in_order(sparse: bool) -> None:
    def run() -> Any:
        table, log = nn.Embedding(4, 2, sparse=sparse), list[Any]()
        nn.init.ones_(table.weight)
        table.weight.register_post_accumulate_grad_hook(
            lambda leaf: log.append(leaf.grad.to_dense().tolist())
        )
        for _ in range(2):
            table(torch.tensor([1, 2, 1])).pow(2).sum().backward()
        return log

    expected = run()
    with stator.compiled_autograd(backend="aot_eager"):
        assert run() == expected


def _packed(value: Tensor) -> Any:
    return value.double() if value.is_floating_point() else value, value.dtype


def _unpacked(packed: Any) -> Tensor:
    value: Tensor = packed[0].to(packed[1])
    return value


def test_hooks_on_saved_tensors_are_part_of_one_graph_for_all_sizes() -> None:
    def run(sizes: tuple[int, ...]) -> list[Any]:
        net = _net()
        for size in sizes:
            with saved_tensors_hooks(_packed, _unpacked):
                loss = net(torch.linspace(-1, 1, 3 * size).view(size, 3)).pow(2).mean()
            loss.backward()
        return [each.grad.tolist() for each in net.parameters() if each.grad is not None]

    counting, sizes = Counting(), (4, 4, 5, 6, 7)
    expected = run(sizes)
    with stator.compiled_autograd(backend=counting):
        assert run(sizes) == expected
    assert counting.count == 2
    with stator.compiled_autograd(backend="aot_eager"):
        assert run(sizes) == expected


def test_a_scale_that_changes_in_each_step_needs_two_graphs() -> None:
    def run() -> list[Any]:
        x, scale = torch.ones(3, requires_grad=True), {"value": 1.0}
        x.register_hook(lambda grad: grad * scale["value"])
        found: list[Any] = []
        for number in range(5):
            x.grad, scale["value"] = None, 1.5 + 0.25 * number
            x.sin().sum().backward()
            found.append(x.grad)
        return [each.tolist() for each in found if each is not None]

    counting, expected = Counting(), run()
    with stator.compiled_autograd(backend=counting):
        assert run() == expected
    assert counting.count == 2
    with stator.compiled_autograd(backend="aot_eager"):
        assert run() == expected


@pytest.mark.parametrize("writes", [False, True])
def test_an_operator_that_raises_does_so_behind_the_effects_before_it(writes: bool) -> None:
    def run() -> Any:
        x, log, index = torch.ones(3, requires_grad=True), list[Any](), torch.tensor([0])
        total = torch.zeros(3)

        def first(grad: Tensor) -> None:
            log.append("first")
            if writes:
                total.add_(grad)

        def second(grad: Tensor) -> None:
            log.append(grad[index].clone())
            log.append("second")

        for number in (0, 1, 5):
            y = x * 2
            y.register_hook(first)
            y.register_hook(second)
            index.fill_(number)
            try:
                y.sum().backward()
            except IndexError as error:
                log.append(str(error))
        return [item.tolist() if isinstance(item, Tensor) else item for item in (*log, total)]

    expected = run()
    with stator.compiled_autograd(backend="aot_eager"):
        assert run() == expected


def test_a_warning_of_a_module_hook_is_about_the_line_of_the_backward() -> None:
    def run() -> Any:
        net = _net()
        net[0].register_full_backward_hook(lambda *_: None)
        with warnings.catch_warnings(record=True) as given:
            warnings.simplefilter("always")
            for _ in range(3):
                net(torch.ones(2, 3)).pow(2).sum().backward()
        return [(str(each.message), each.filename, each.lineno) for each in given]

    expected = run()
    assert len(expected) == 3
    with stator.compiled_autograd(backend="aot_eager"):
        assert run() == expected
