"""Hooks for gradients, on tensors and modules, registered and taken back in a compiled function or
around it."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import attrs
import pytest
import stator
import torch
from torch import Tensor, nn
from torch.utils.hooks import RemovableHandle

from integration_tests.support.counting import Counting


@attrs.define(eq=False)
class World:
    """What a program works on: a network, what its hooks noted, and handles that the caller removes
    later."""

    net: Any
    noted: list[Any] = attrs.field(factory=list)
    handles: list[Any] = attrs.field(factory=list)

    def doubling(self, name: str) -> Callable[[Tensor], Tensor]:
        def hook(grad: Tensor) -> Tensor:
            self.noted.append((name, rounded(grad)))
            return grad * 2

        return hook

    def noting(self, name: Any, factor: int = 1) -> Callable[..., Any]:
        """A full backward hook."""

        def hook(module: nn.Module, given: Any, taken: Any) -> Any:
            self.noted.append((name, type(module), rounded(given), rounded(taken)))
            scaled = tuple(None if grad is None else grad * factor for grad in given)
            return None if factor == 1 else scaled

        return hook


def rounded(value: Any) -> Any:
    if isinstance(value, Tensor):
        return [round(number, 4) for number in value.detach().flatten().tolist()]
    if isinstance(value, dict):
        return {key: rounded(part) for key, part in value.items()}
    if isinstance(value, tuple | list):
        return [rounded(part) for part in value]
    return type(value) if isinstance(value, RemovableHandle) else value


def world() -> World:
    torch.manual_seed(0)
    return World(nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 3)))


Program = Callable[[World, Any], Any]


# -- on tensors ------------------------------------------------------------------------------------
def on_an_input(w: World, x: Any) -> Any:
    x.register_hook(w.doubling("x"))
    return (x * x).sum()


def on_an_input_and_removed(w: World, x: Any) -> Any:
    handle = x.register_hook(w.doubling("x"))
    y = (x * x).sum()
    handle.remove()
    return y


def on_an_input_and_removed_later(w: World, x: Any) -> Any:
    w.handles.append(x.register_hook(w.doubling("x")))
    return (x * x).sum()


def on_a_parameter(w: World, x: Any) -> Any:
    w.net[0].weight.register_hook(w.doubling("weight"))
    return w.net(x).sum()


def after_accumulation(w: World, x: Any) -> Any:
    def take(parameter: Any) -> None:
        w.noted.append(rounded(parameter.grad))
        parameter.grad = None

    w.handles.append(w.net[0].weight.register_post_accumulate_grad_hook(take))
    return w.net(x).sum()


def retained_of_an_input(w: World, x: Any) -> Any:
    x.retain_grad()
    return (x * x).sum()


def on_the_result(w: World, x: Any) -> Any:
    y = (x * x).sum()
    y.register_hook(w.doubling("y"))
    return y


def on_the_result_with_its_handle(w: World, x: Any) -> Any:
    y = (x * x).sum()
    handle = y.register_hook(w.doubling("y"))
    return y, handle, [handle]


def called_again_by_its_own_handle(w: World, x: Any) -> Any:
    y = (x * x).sum()

    def once(grad: Tensor) -> Tensor:
        w.noted.append("once")
        handle.remove()
        return grad * 5

    handle = y.register_hook(once)
    return y


WHOLE: tuple[Program, ...] = (
    on_an_input,
    on_an_input_and_removed,
    on_an_input_and_removed_later,
    on_a_parameter,
    after_accumulation,
    retained_of_an_input,
    on_the_result,
    on_the_result_with_its_handle,
    called_again_by_its_own_handle,
)
"""Captured whole for every backend."""


def on_what_goes_on(w: World, x: Any) -> Any:
    y = x * 2
    y.register_hook(w.doubling("y"))
    return y.sin().sum()


def removed_behind(w: World, x: Any) -> Any:
    y = x * 2
    handle = y.register_hook(w.doubling("y"))
    z = y.sin()
    handle.remove()
    return z.sum()


def on_what_was_used_before(w: World, x: Any) -> Any:
    y = x * 2
    z = y.sin()
    y.register_hook(w.doubling("y"))
    return (z + y).sum()


def several_in_their_order(w: World, x: Any) -> Any:
    y = x * 2
    first = y.register_hook(w.doubling("1"))
    second = y.register_hook(w.doubling("2"))
    first.remove()
    third = y.register_hook(w.doubling("3"))
    return (y * y).sum(), third, second


def over_values_of_the_region(w: World, x: Any) -> Any:
    scale, y = x.detach() * 3, x * 2
    grads: dict[str, Tensor] = {}
    y.register_hook(lambda grad: grad * scale)
    y.register_hook(lambda grad: grads.__setitem__("y", grad))
    return (y * y).sum(), grads


def on_each_layer(w: World, x: Any) -> Any:
    for index, layer in enumerate(w.net):
        x = layer(x)
        x.register_hook(lambda grad, index=index: w.noted.append((index, rounded(grad))))
    return x.sum()


def in_a_with_statement(w: World, x: Any) -> Any:
    y = x * 2
    with y.register_hook(w.doubling("y")):
        z = y.sin()
    return z.sum()


def removing_itself(w: World, x: Any) -> Any:
    y = x * 2

    def once(grad: Tensor) -> Tensor:
        w.noted.append("once")
        handle.remove()
        return grad * 5

    handle = y.register_hook(once)
    return (y * y).sum()


def retained(w: World, x: Any) -> Any:
    y = x * 2
    y.retain_grad()
    y.register_hook(w.doubling("y"))
    return (y * y).sum(), y


def on_a_view(w: World, x: Any) -> Any:
    y = x * 2
    row = y[0]
    row.register_hook(w.doubling("row"))
    return (row * row).sum() + y.sum()


def by_objects_and_methods(w: World, x: Any) -> Any:
    class Hook:
        def __init__(self) -> None:
            self.calls = 0

        def __call__(self, grad: Tensor) -> Tensor:
            self.calls += 1
            return grad * 2

        def note(self, grad: Tensor) -> None:
            self.calls += 10

    hook, y = Hook(), x * 2
    y.register_hook(hook)
    y.register_hook(hook.note)
    y.register_hook(functools.partial(torch.mul, other=3))
    return (y * y).sum(), hook.__dict__


def behind_a_write(w: World, x: Any) -> Any:
    y = x * 2
    y.mul_(3)
    y.register_hook(w.doubling("y"))
    return (y * y).sum()


EAGER_WHOLE: tuple[Program, ...] = (
    on_what_goes_on,
    removed_behind,
    on_what_was_used_before,
    several_in_their_order,
    over_values_of_the_region,
    on_each_layer,
    in_a_with_statement,
    removing_itself,
    retained,
    on_a_view,
    by_objects_and_methods,
    behind_a_write,
)
"""Captured whole for a backend that runs the graph as it is."""


def before_a_write(w: World, x: Any) -> Any:
    y = x * 2
    y.register_hook(w.doubling("y"))
    y.mul_(3)
    return (y * y).sum()


def before_a_backward_inside(w: World, x: Any) -> Any:
    y = x * 2
    y.register_hook(w.doubling("y"))
    z = (y * y).sum()
    z.backward(retain_graph=True)
    return z


def around_a_break(w: World, x: Any) -> Any:
    y = x * 2
    handle = y.register_hook(w.doubling("y"))
    stator.graph_break()
    z = (y * y).sum()
    handle.remove()
    return z


def compared_handles(w: World, x: Any) -> Any:
    y = x * 2
    first, second = y.register_hook(w.doubling("1")), y.register_hook(w.doubling("2"))
    w.noted.append(second.id - first.id)
    return (y * y).sum()


def without_gradients(w: World, x: Any) -> Any:
    for register in ("register_hook", "register_post_accumulate_grad_hook"):
        try:
            getattr(x.detach(), register)(w.doubling("y"))
        except RuntimeError as error:
            w.noted.append(str(error))
    return x.sum()


BROKEN: tuple[Program, ...] = (
    before_a_write,
    before_a_backward_inside,
    around_a_break,
    compared_handles,
    without_gradients,
)


def outcome(program: Callable[[World, Any], Any], calls: int = 3) -> list[Any]:
    """Return what is visible of some calls, each with two backward passes; a handle is removed
    between these."""
    w, found = world(), []
    for _ in range(calls):
        x = torch.arange(6.0).reshape(2, 3).requires_grad_()
        number = RemovableHandle.next_id
        result = program(w, x)
        registered = RemovableHandle.next_id - number
        loss = result if isinstance(result, Tensor) else result[0]
        torch.autograd.backward(loss.sum(), retain_graph=True)
        first = rounded(x.grad)
        if w.handles:
            w.handles.pop().remove()
        torch.autograd.backward(loss.sum())
        grads = [rounded(parameter.grad) for parameter in w.net.parameters()]
        hooks = None if x._backward_hooks is None else len(x._backward_hooks)
        state = [rounded(w.noted), registered, hooks, rounded(retained_in(result))]
        found.append([rounded(result), first, rounded(x.grad), grads, *state])
        w.net.zero_grad()
    return found


def retained_in(result: Any) -> list[Any]:
    parts = result if isinstance(result, tuple) else (result,)
    return [part.grad for part in parts if isinstance(part, Tensor) and part.retains_grad]


BACKENDS = ["eager", "counting", "aot_eager"]


def backend_named(name: str) -> Any:
    return Counting() if name == "counting" else name


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("program", WHOLE + EAGER_WHOLE + BROKEN, ids=lambda each: each.__name__)
def test_hooks_of_tensors_are_called_as_eagerly(program: Program, backend: str) -> None:
    compiled = stator.compile(program, backend=backend_named(backend))
    assert outcome(compiled) == outcome(program)


@pytest.mark.parametrize("program", WHOLE, ids=lambda each: each.__name__)
def test_hooks_that_no_compiler_meets_are_captured_in_one_graph(program: Program) -> None:
    counting = Counting()
    compiled = stator.compile(program, backend=counting, fullgraph=True)
    assert outcome(compiled) == outcome(program)
    assert counting.count == 1


@pytest.mark.parametrize("program", EAGER_WHOLE, ids=lambda each: each.__name__)
@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_hooks_inside_are_captured_in_one_graph(program: Program, backend: str) -> None:
    """For a compiler the graph is divided at the tensors with hooks."""
    options = {"uncompiled": "allow"}
    compiled: Any = stator.compile(program, backend=backend, fullgraph=True, options=options)
    assert outcome(compiled) == outcome(program)
    assert compiled.report.graph_break_count == 0


@pytest.mark.parametrize("program", WHOLE + EAGER_WHOLE + BROKEN, ids=lambda each: each.__name__)
def test_hooks_are_the_same_where_everything_breaks(program: Program) -> None:
    options = {"break_everywhere": True}
    compiled = stator.compile(program, backend="eager", options=options)
    assert outcome(compiled) == outcome(program)


@pytest.mark.parametrize("backend", BACKENDS)
def test_hooks_registered_before_an_operator_raises_stay(backend: str) -> None:
    def program(w: World, x: Any, place: Tensor) -> Any:
        x.register_hook(w.doubling("x"))
        y = x * 2
        try:
            z = y[place]
        except IndexError:
            y.register_hook(w.doubling("y"))
            z = y
        return z.sum()

    counting = backend_named(backend)
    compiled = stator.compile(program, backend=counting)
    for place in (0, 9, 1):
        index = torch.tensor(place)
        expected = outcome(lambda w, x: program(w, x, index), calls=1)  # noqa: B023
        assert outcome(lambda w, x: compiled(w, x, index), calls=1) == expected  # noqa: B023


def test_a_compiled_graph_breaks_once_at_a_hook_inside() -> None:
    counting = Counting()
    stator.compile(on_what_goes_on, backend=counting)(world(), torch.ones(2, 3, requires_grad=True))
    assert counting.count == 2


def test_a_hook_on_a_tensor_with_a_history_from_outside() -> None:
    compiled = stator.compile(on_an_input, backend="aot_eager", fullgraph=True)
    expected = outcome(lambda w, x: on_an_input(w, x * 3))
    assert outcome(lambda w, x: compiled(w, x * 3)) == expected


# -- on modules ------------------------------------------------------------------------------------
def forward(w: World, x: Any) -> Any:
    return w.net(x).sum()


def scaled_before(module: nn.Module, taken: Any) -> Any:
    return tuple(grad * 3 for grad in taken)


MODULE_HOOKS: dict[str, Callable[[World], Any]] = {
    "one layer": lambda w: w.net[0].register_full_backward_hook(w.noting(0)),
    "the network": lambda w: w.net.register_full_backward_hook(w.noting("net")),
    "every layer": lambda w: [
        layer.register_full_backward_hook(w.noting(index, 2)) for index, layer in enumerate(w.net)
    ],
    "before": lambda w: w.net[2].register_full_backward_pre_hook(scaled_before),
    "before and behind": lambda w: (
        w.net[2].register_full_backward_pre_hook(scaled_before),
        w.net[2].register_full_backward_hook(w.noting(2)),
    ),
}


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("name", MODULE_HOOKS)
def test_full_backward_hooks_are_called_as_eagerly(name: str, backend: str) -> None:
    compiled = stator.compile(forward, backend=backend_named(backend), fullgraph=backend == "eager")

    def hooked(call: Program) -> Program:
        def program(w: World, x: Any) -> Any:
            if "hooked" not in w.net._buffers:
                MODULE_HOOKS[name](w)
                w.net.register_buffer("hooked", None)
            return call(w, x)

        return program

    assert outcome(hooked(compiled)) == outcome(hooked(forward))


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_module_whose_input_needs_no_gradient_is_captured_with_its_hook(backend: str) -> None:
    def run(compiler: Callable[[Any], Any]) -> Any:
        w = world()
        w.net.register_full_backward_hook(w.noting("net"))
        called = compiler(w.net)
        for _ in range(2):
            with pytest.warns(UserWarning, match="no inputs require gradients"):
                torch.autograd.backward(called(torch.ones(2, 3)).sum())
        return rounded([w.noted, [parameter.grad for parameter in w.net.parameters()]])

    chosen = backend_named(backend)
    found = run(lambda net: stator.compile(net, backend=chosen, fullgraph=True))
    assert found == run(lambda net: net)
    assert not isinstance(chosen, Counting) or chosen.count == 1


def test_an_in_place_operator_behind_a_module_with_hooks_raises_as_eagerly() -> None:
    def program(w: World, x: Any) -> Any:
        w.net[1].inplace = True
        handle = w.net[0].register_full_backward_hook(w.noting(0))
        try:
            return w.net(x).sum()
        except RuntimeError as error:
            w.noted.append(str(error))
            return x.sum()
        finally:
            handle.remove()

    compiled = stator.compile(program, backend="eager")
    assert outcome(compiled) == outcome(program)


# -- registered around a compiled function, again and again ----------------------------------------
REGISTERED: dict[str, Callable[[World], RemovableHandle]] = {
    "forward": lambda w: w.net[0].register_forward_hook(lambda module, args, output: output * 2),
    "forward with keywords": lambda w: w.net[2].register_forward_hook(
        lambda module, args, kwargs, output: output + len(kwargs), with_kwargs=True
    ),
    "before forward": lambda w: w.net[2].register_forward_pre_hook(
        lambda module, args: (args[0] + 1,)
    ),
    "before forward with keywords": lambda w: w.net[0].register_forward_pre_hook(
        lambda module, args, kwargs: ((args[0] * 2,), kwargs), with_kwargs=True
    ),
    "on the network": lambda w: w.net.register_forward_hook(lambda module, args, out: out + 1),
    "on a parameter": lambda w: w.net[0].weight.register_hook(lambda grad: grad * 2),
}


@pytest.mark.parametrize("name", REGISTERED)
def test_a_hook_registered_again_is_no_new_graph(name: str) -> None:
    def series(compiler: Callable[[Any], Any]) -> Any:
        w, found = world(), []
        called = compiler(w.net)

        def call() -> None:
            x = torch.arange(6.0).reshape(2, 3).requires_grad_()
            y = called(x)
            torch.autograd.backward(y.sum())
            found.append(rounded([y, x.grad, [each.grad for each in w.net.parameters()]]))

        call()
        for _ in range(4):
            handle = REGISTERED[name](w)
            call()
            call()
            handle.remove()
            call()
        return found

    counting = Counting()
    found = series(lambda net: stator.compile(net, backend=counting, fullgraph=True))
    assert found == series(lambda net: net)
    assert counting.count <= 2


# -- forward hooks registered inside ---------------------------------------------------------------
def features(w: World, x: Any) -> Any:
    kept: list[Any] = []
    handle = w.net[0].register_forward_hook(lambda module, args, output: kept.append(output))
    y = w.net(x)
    handle.remove()
    return y.sum(), kept, len(w.net[0]._forward_hooks)


def shapes_of_all_layers(w: World, x: Any) -> Any:
    handles = [
        layer.register_forward_hook(lambda module, args, out: w.noted.append(tuple(out.shape)))
        for layer in w.net
    ]
    y = w.net(x)
    for handle in handles:
        handle.remove()
    return y.sum()


def only_inside_a_with_statement(w: World, x: Any) -> Any:
    with w.net[0].register_forward_hook(lambda module, args, output: output + 1):
        y = w.net(x)
    return (y + w.net(x)).sum()


def put_first(w: World, x: Any) -> Any:
    handle = w.net[0].register_forward_hook(lambda module, args, out: out + 1, prepend=True)
    y = w.net(x)
    handle.remove()
    return y.sum()


def asked_for_their_numbers(w: World, x: Any) -> Any:
    handles = [w.net.register_forward_hook(lambda module, args, out: out * 2) for _ in range(2)]
    y = w.net(x)
    present = [handle.id in w.net._forward_hooks for handle in handles]
    for handle in handles:
        handle.remove()
    absent = [handle.id in w.net._forward_hooks for handle in handles]
    return y.sum(), handles[0].id != handles[1].id, present, absent


def gradients_of_a_layer(w: World, x: Any) -> Any:
    handle = w.net[0].register_full_backward_hook(w.noting(0))
    y = w.net(x)
    handle.remove()
    return y.sum()


def test_a_full_backward_hook_that_comes_and_goes_inside() -> None:
    compiled = stator.compile(gradients_of_a_layer, backend="eager", fullgraph=True)
    assert outcome(compiled) == outcome(gradients_of_a_layer)


INSIDE: tuple[Program, ...] = (
    features,
    shapes_of_all_layers,
    only_inside_a_with_statement,
    put_first,
    asked_for_their_numbers,
)


@pytest.mark.parametrize("is_hooked_before", [False, True])
@pytest.mark.parametrize("program", INSIDE, ids=lambda each: each.__name__)
def test_forward_hooks_that_come_and_go_inside(program: Program, is_hooked_before: bool) -> None:
    def hooked(call: Program) -> Program:
        def run(w: World, x: Any) -> Any:
            if is_hooked_before and not w.net[0]._forward_hooks:
                w.net[0].register_forward_hook(lambda module, args, output: output * 2)
            return call(w, x)

        return run

    counting = Counting()
    compiled = stator.compile(program, backend=counting)
    assert outcome(hooked(compiled)) == outcome(hooked(program))
    assert counting.count <= 2


def test_a_handle_from_outside_removes_its_hook_inside() -> None:
    def program(w: World, x: Any) -> Any:
        y = w.net(x)
        if w.handles:
            w.handles.pop().remove()
        return (y + w.net(x)).sum()

    def hooked(call: Program) -> Program:
        def run(w: World, x: Any) -> Any:
            w.handles.append(w.net[0].register_forward_hook(lambda module, args, out: out * 2))
            return call(w, x)

        return run

    compiled = stator.compile(program, backend="eager")
    assert outcome(hooked(compiled)) == outcome(hooked(program))


def test_a_number_looked_for_among_hooks_is_the_number_of_each_call() -> None:
    def program(w: World, x: Any, number: int) -> Any:
        y = w.net(x).sum()
        return y, number in w.net[0]._forward_hooks

    w = world()
    compiled = stator.compile(program, backend="eager")
    for _ in range(3):
        handle = w.net[0].register_forward_hook(lambda module, args, output: output * 2)
        for number in (handle.id, handle.id + 1):
            assert compiled(w, torch.ones(2, 3), number)[1] is (number == handle.id)
        handle.remove()
