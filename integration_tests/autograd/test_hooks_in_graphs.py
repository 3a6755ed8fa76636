"""Hooks that do nothing but compute a gradient: a compiler gets them with the graph, forward and
backward. Others, and tensors that something else has, are registered behind it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs
import pytest
import stator
import torch
from torch import Tensor, nn
from torch.utils.hooks import RemovableHandle

CLIP = 0.5
Program = Callable[[Any, Any, list[Any]], Any]


def halved(grad: Tensor) -> Tensor:
    return grad * 0.5


def clamped(net: Any, x: Any, kept: list[Any]) -> Any:
    y = net(x)
    z = y * 2
    y.register_hook(lambda grad: grad.clamp(-1, 1))
    return (z + net(y)).sum()


def by_a_function_of_the_module(net: Any, x: Any, kept: list[Any]) -> Any:
    y = net(x)
    y.register_hook(halved)
    return y.sin().sum()


def with_a_number_of_the_frame(net: Any, x: Any, kept: list[Any]) -> Any:
    limit = 0.25
    y = net(x)
    y.register_hook(lambda grad, low=-0.5: torch.clamp(grad, low, limit))
    return y.sin().sum()


def by_its_norm(net: Any, x: Any, kept: list[Any]) -> Any:
    y = net(x)
    y.register_hook(lambda grad: grad / (grad.norm() + 1e-6))
    return y.sin().sum()


def several_on_one_tensor(net: Any, x: Any, kept: list[Any]) -> Any:
    y = net(x)
    y.register_hook(lambda grad: grad + 1)
    y.register_hook(lambda grad: grad * 2)
    y.register_hook(lambda grad: grad.clamp(max=5))
    return (y * y).sum()


def on_each_step(net: Any, x: Any, kept: list[Any]) -> Any:
    for _ in range(3):
        x = net(x)
        x.register_hook(lambda grad: grad.clamp(-0.1, 0.1))
    return x.sum()


def on_a_part(net: Any, x: Any, kept: list[Any]) -> Any:
    first, second = net(x).chunk(2)
    first.register_hook(lambda grad: -grad)
    return (first * second).sum()


def on_a_view(net: Any, x: Any, kept: list[Any]) -> Any:
    y = net(x)
    row = y[0]
    row.register_hook(lambda grad: grad * 3)
    return (row * row).sum() * y.sum() * row.prod()


def behind_all_uses(net: Any, x: Any, kept: list[Any]) -> Any:
    y = net(x)
    z = y.sin().sum()
    y.register_hook(lambda grad: grad * 3)
    return z


WHOLE = (
    clamped,
    by_a_function_of_the_module,
    with_a_number_of_the_frame,
    by_its_norm,
    several_on_one_tensor,
    on_each_step,
    on_a_part,
    behind_all_uses,
)


def reading_a_global(net: Any, x: Any, kept: list[Any]) -> Any:
    y = net(x)
    y.register_hook(lambda grad: grad.clamp(-CLIP, CLIP))
    return y.sin().sum()


def reading_a_variable_that_changes(net: Any, x: Any, kept: list[Any]) -> Any:
    factor = 2
    y = net(x)
    y.register_hook(lambda grad: grad * factor)
    z = y.sin().sum()
    factor = 5
    return z


def reading_a_variable_that_changes_later(net: Any, x: Any, kept: list[Any]) -> Any:
    factor = 2

    def change() -> None:
        nonlocal factor
        factor = 7

    y = net(x)
    y.register_hook(lambda grad: grad * factor)
    kept.append(change)
    return y.sin().sum()


def removed_later(net: Any, x: Any, kept: list[Any]) -> Any:
    y = net(x)
    kept.append(y.register_hook(lambda grad: grad * 2).remove)
    return y.sin().sum()


def removed_at_once(net: Any, x: Any, kept: list[Any]) -> Any:
    y = net(x)
    y.register_hook(lambda grad: grad * 2).remove()
    y.register_hook(lambda grad: grad * 3)
    return y.sin().sum()


def beside_one_with_effects(net: Any, x: Any, kept: list[Any]) -> Any:
    y, seen = net(x), []
    y.register_hook(lambda grad: grad * 2)
    y.register_hook(lambda grad: seen.append(grad.sum()))
    y.register_hook(lambda grad: grad * 3)
    return y.sin().sum(), seen


def on_a_result(net: Any, x: Any, kept: list[Any]) -> Any:
    y = net(x)
    y.register_hook(lambda grad: grad * 2)
    return y.sin().sum(), y


def behind_a_native_operator(net: Any, x: Any, kept: list[Any]) -> Any:
    handle = net.register_full_backward_hook(lambda module, given, taken: None)
    y = net(x)
    handle.remove()
    y.register_hook(lambda grad: grad.clamp(-1, 1))
    return (y * y).sum()


def beside_a_write_to_an_input(net: Any, x: Any, kept: list[Any]) -> Any:
    y = net(x)
    y.register_hook(lambda grad: grad + 1)
    kept[0].mul_(x.sum())
    return y.sum()


def before_a_write(net: Any, x: Any, kept: list[Any]) -> Any:
    y = net(x)
    y.register_hook(lambda grad: grad * 2)
    y.mul_(3)
    return y.sum()


def over_a_break(net: Any, x: Any, kept: list[Any]) -> Any:
    y = net(x)
    y.register_hook(lambda grad: grad * 2)
    stator.graph_break()
    return y.sin().sum()


def ahead_of_a_backward(net: Any, x: Any, kept: list[Any]) -> Any:
    y = net(x)
    y.register_hook(lambda grad: grad * 2)
    loss = y.sin().sum()
    (grad,) = torch.autograd.grad(loss, x, create_graph=True)
    return grad.sum()


def of_another_shape(net: Any, x: Any, kept: list[Any]) -> Any:
    y = net(x)
    y.register_hook(lambda grad: grad.sum())
    return y.sin().sum()


def in_place(net: Any, x: Any, kept: list[Any]) -> Any:
    y = net(x)
    y.register_hook(lambda grad: grad.mul_(2))
    return y.sin().sum()


def at_random(net: Any, x: Any, kept: list[Any]) -> Any:
    y = net(x)
    y.register_hook(lambda grad: grad * torch.rand(()))
    return y.sin().sum()


def that_gives_nothing(net: Any, x: Any, kept: list[Any]) -> Any:
    y = net(x)
    y.register_hook(lambda grad: None)
    return y.sin().sum()


OTHERS = (
    on_a_view,
    reading_a_global,
    reading_a_variable_that_changes,
    reading_a_variable_that_changes_later,
    removed_later,
    removed_at_once,
    beside_one_with_effects,
    on_a_result,
    behind_a_native_operator,
    beside_a_write_to_an_input,
    before_a_write,
    over_a_break,
    ahead_of_a_backward,
    of_another_shape,
    in_place,
    at_random,
    that_gives_nothing,
)


def outcome(program: Any) -> list[Any]:
    torch.manual_seed(0)
    found: list[Any] = []
    net = nn.Sequential(nn.Linear(4, 4), nn.ReLU())
    for _ in range(3):
        x = torch.linspace(-1, 2, 8).reshape(2, 4).requires_grad_()
        kept: list[Any] = [torch.ones(2, requires_grad=True) * 1]
        number = RemovableHandle.next_id
        result = program(net, x, kept)
        found.append(RemovableHandle.next_id - number)
        if len(kept) > 1:
            kept[1]()
        parts = result if isinstance(result, tuple) else (result,)
        try:
            parts[0].backward(retain_graph=True)
            parts[0].backward()
        except RuntimeError as error:
            found.append(type(error))
        given = [*parts, x.grad, *(parameter.grad for parameter in net.parameters())]
        found += map(rounded, given)
    return found


def rounded(value: Any) -> Any:
    if isinstance(value, list):
        return [rounded(item) for item in value]
    if not isinstance(value, Tensor):
        return value
    return [round(number, 4) for number in value.detach().flatten().tolist()]


@attrs.define
class Compiler:
    """A compiler that counts what it is given."""

    operators: int = 0
    graphs: int = 0

    def backend(self) -> Any:
        from torch._dynamo.backends.common import aot_autograd
        from torch._functorch._aot_autograd.utils import make_boxed_func

        def count(gm: Any, inputs: Any) -> Any:
            self.graphs += 1
            self.operators += sum(node.op == "call_function" for node in gm.graph.nodes)
            return make_boxed_func(gm.forward)

        return aot_autograd(fw_compiler=count, bw_compiler=count)


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("program", WHOLE + OTHERS, ids=lambda each: each.__name__)
def test_hooks_compute_what_eager_autograd_does(program: Program, backend: str) -> None:
    compiled = stator.compile(program, backend=backend, options={"uncompiled": "allow"})
    assert outcome(compiled) == outcome(program)


@pytest.mark.parametrize("program", WHOLE, ids=lambda each: each.__name__)
def test_a_hook_that_only_computes_does_not_divide_the_graph(program: Program) -> None:
    compiler = Compiler()
    compiled: Any = stator.compile(program, backend=compiler.backend(), fullgraph=True)
    outcome(compiled)
    assert compiler.graphs <= 3  # a backward that retains the graph has code of its own


def test_the_hook_itself_is_compiled() -> None:
    def with_hook(net: Any, x: Any, kept: list[Any]) -> Any:
        y = net(x)
        y.register_hook(lambda grad: grad.tanh())
        return y.sin().sum()

    def without(net: Any, x: Any, kept: list[Any]) -> Any:
        return net(x).sin().sum()

    counts = []
    for program in (with_hook, without):
        compiler = Compiler()
        net = nn.Sequential(nn.Linear(4, 4), nn.ReLU())
        stator.compile(program, backend=compiler.backend())(net, torch.ones(2, 4), []).backward()
        counts.append(compiler.operators)
    assert counts[0] == counts[1] + 1


def test_a_hook_that_zeros_could_reach_is_not_compiled() -> None:
    """A compiled backward has zeros for a result that has no gradient."""

    def program(net: Any, x: Any) -> Any:
        y = net(x)
        y.register_hook(lambda grad: grad + 1)
        return x.sin().sum(), y.sum()

    compiler = Compiler()
    compiled = stator.compile(program, backend=compiler.backend())
    compiled(nn.Linear(4, 4), torch.ones(2, 4, requires_grad=True))
    assert compiler.graphs == 2


@pytest.mark.parametrize("owner", [torch, Tensor])
def test_function_that_a_hook_reads_is_replaced(owner: Any, monkeypatch: Any) -> None:
    by_name = (lambda grad: torch.clamp(grad, -0.1, 0.1)) if owner is torch else None
    hook = by_name or (lambda grad: grad.clamp(-0.1, 0.1))

    def program(x: Tensor) -> Tensor:
        y: Any = x.sin()
        y.register_hook(hook)
        total: Tensor = (y * 2).sum()
        return total

    def gradient(fn: Any) -> Tensor:
        x = torch.linspace(0, 1, 4, requires_grad=True)
        fn(x).backward()
        assert x.grad is not None
        return x.grad

    compiled = stator.compile(program, backend="aot_eager")
    assert torch.equal(gradient(compiled), gradient(program))
    monkeypatch.setattr(owner, "clamp", lambda grad, low, high: grad * 0)
    assert torch.equal(gradient(compiled), gradient(program))
    monkeypatch.undo()
    assert torch.equal(gradient(compiled), gradient(program))


def test_hooks_of_equal_code_are_one_graph() -> None:
    """The second entry differs in a guard alone."""

    def program(net: Any, x: Any, kept: list[Any]) -> Any:
        y = net(x)
        y.register_hook(lambda grad: grad.clamp(-1, 1))
        return y.sin().sum(), len(kept)

    compiler = Compiler()
    compiled = stator.compile(program, backend=compiler.backend())
    net = nn.Linear(4, 4)
    for kept in ([], [1], [1, 2]):
        compiled(net, torch.ones(2, 4), kept)[0].backward()
    assert compiler.graphs == 2
