"""Calls under modes for functions of torch that were entered before, `torch.set_default_device`
among them: captured, and each mode hears what it hears in plain Python."""

# mypy: ignore-errors

from __future__ import annotations

import contextlib
import threading

import pytest
import stator
import torch
import torch.nn.functional as F
from torch import nn
from torch.overrides import TorchFunctionMode
from torch.utils.checkpoint import checkpoint

from integration_tests.modes import test_function_modes as inside
from integration_tests.modes.test_function_modes import Adding, Doubling, Hearing, depth, tensors
from integration_tests.support.oracle import Tolerance, assert_same

AROUND = {
    "one that hears": lambda: [Hearing()],
    "two": lambda: [Doubling(), Hearing()],
    "the other way round": lambda: [Hearing(), Doubling()],
    "a device": lambda: [torch.device("cpu")],
    "a device and one that hears": lambda: [torch.device("cpu"), Hearing()],
}


@contextlib.contextmanager
def entered(made):
    """They are on the stack before and after, whatever happens."""
    with contextlib.ExitStack() as stack:
        modes = [stack.enter_context(mode) for mode in made()]
        before = [torch._C._get_function_stack_at(at) for at in range(depth())]
        yield modes
        after = [torch._C._get_function_stack_at(at) for at in range(depth())]
        assert [*map(id, before)] == [*map(id, after)]


def under(fn, made):
    """What was heard is part of the result."""

    def called(*args):
        with entered(made) as modes:
            result = fn(*args)
        return result, [getattr(mode, "heard", None) for mode in modes]

    return called


@pytest.fixture(scope="module", autouse=True)
def _torch_has_done_what_it_does_once():
    with torch.device("cpu"):
        torch.ones(1)
    with Hearing():
        torch.cond(torch.tensor(True), lambda y: y + 1, lambda y: y - 1, (torch.ones(1),))


# it empties the stack
TITLES = {*inside.CAPTURED, *inside.BREAKING} - {"its function leaves another entered"}


@pytest.mark.parametrize("around", ["the other way round", "a device and one that hears"])
@pytest.mark.parametrize("title", sorted(TITLES))
def test_programs_with_modes_of_their_own(title, around):
    fn, numbers = {**inside.CAPTURED, **inside.BREAKING}[title], iter([2, 3, 4])
    compiled = under(stator.compile(fn, backend="eager"), AROUND[around])
    given = lambda: (tensors(next(numbers)),)  # noqa: E731
    assert_same(under(fn, AROUND[around]), compiled, given, 3, tolerance=Tolerance(1e-5, 1e-5))


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.norm, self.last = nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Linear(4, 2)
        self.calls = 0

    def forward(self, x):
        self.calls += 1
        y = F.dropout(F.relu(self.norm(self.first(x))), 0.5, self.training)
        return self.last(y) + torch.ones(2) * x.shape[0]


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("around", AROUND)
def test_a_model_is_one_graph(around, backend):
    def trained(compile):
        torch.manual_seed(1)
        net = Net()
        step, found = compile(net), []
        with entered(AROUND[around]) as modes:
            for rows in (4, 4, 6):
                loss = step(torch.linspace(0, 1, rows * 3).reshape(rows, 3)).square().sum()
                loss.backward()
                found.append(loss.detach().clone())
        heard = [getattr(mode, "heard", None) for mode in modes]
        return (
            [*found, *(p.grad for p in net.parameters()), net.norm.running_mean],
            heard,
            net.calls,
            step,
        )

    plainly, heard, calls, _ = trained(lambda net: net)
    ours, ours_heard, ours_calls, step = trained(
        lambda net: stator.compile(net, backend=backend, fullgraph=True)
    )
    torch.testing.assert_close(ours, plainly)
    assert (ours_heard, ours_calls) == (heard, calls)
    assert step.report.graph_count >= 1


def simple(x):
    return x.sin() + torch.ones(2)


def test_default_device_is_captured_and_counts():
    compiled = stator.compile(simple, backend="eager", fullgraph=True)
    x = torch.ones(2)
    for device in ("cpu", None, "meta", "cpu", None):
        torch.set_default_device(device)
        try:
            if device == "meta":
                with pytest.raises(RuntimeError, match="meta"):
                    simple(x)
                with pytest.raises(stator.Unsupported):
                    compiled(x)
            else:
                assert torch.equal(compiled(x), simple(x))
        finally:
            torch.set_default_device(None)
    assert compiled.report.entry_count == 2
    with torch.device("meta"):
        assert stator.compile(lambda x: torch.ones(2), fullgraph=True)(x).device.type == "meta"


def test_a_mode_of_another_class_or_state_is_another_entry():
    compiled = stator.compile(simple, backend="eager", fullgraph=True)
    x, counts = torch.ones(2), []
    for made in (Hearing, Hearing, Doubling, lambda: Adding(1), lambda: Adding(2), Hearing):
        plain_mode, mode = made(), made()
        with plain_mode:
            expected = simple(x)
        with mode:
            found = compiled(x)
        assert torch.equal(found, expected)
        assert getattr(mode, "heard", None) == getattr(plain_mode, "heard", None)
        counts.append(compiled.report.entry_count)
    assert counts[0] == counts[1] == 1
    assert counts[-1] == counts[-2]


def broken_under_its_own(x):
    with Hearing() as mode:
        y = x.sin()
        stator.graph_break()
        y = y.cos()
        stator.graph_break()
        z = y + 1
    return z * 2, mode.heard


def test_break_under_a_mode_costs_one_break():
    compiled = stator.compile(broken_under_its_own, backend="eager")
    assert_same(broken_under_its_own, compiled, lambda: (torch.ones(2),), 3)
    assert (compiled.report.graph_count, compiled.report.entry_count) == (3, 3)


def raises(x, n):
    try:
        with Hearing() as mode:
            y = x.sin()
            y.view(n)
    except RuntimeError as error:
        return str(error), mode.heard, x + 1
    return y, mode.heard, x


@pytest.mark.parametrize("around", AROUND)
def test_what_raises_while_it_runs(around):
    """The graph raises: the program runs plainly instead, under the same modes."""
    given = iter([(torch.ones(2), 2), (torch.ones(2), 3), (torch.ones(4), 4), (torch.ones(4), 3)])
    compiled = stator.compile(raises, backend="eager", dynamic=True)
    assert_same(
        under(raises, AROUND[around]), under(compiled, AROUND[around]), lambda: next(given), 4
    )


def escapes(x, wrong):
    y = x.cos()
    if wrong:
        raise KeyError(str(y.shape))
    return y + 1


@pytest.mark.parametrize("around", AROUND)
def test_exception_that_leaves(around):
    given = iter(
        [
            (torch.ones(2), False),
            (torch.ones(2), True),
            (torch.ones(3), True),
            (torch.ones(2), False),
        ]
    )
    compiled = stator.compile(escapes, backend="eager")
    assert_same(
        under(escapes, AROUND[around]), under(compiled, AROUND[around]), lambda: next(given), 4
    )


def leaves_the_one_outside(x):
    mode = torch._C._pop_torch_function_stack()
    y = x.sin()
    torch._C._push_on_torch_function_stack(mode)
    return y.cos(), mode.heard


def test_mode_of_outside_is_left_and_entered_again():
    made = AROUND["one that hears"]
    compiled = stator.compile(leaves_the_one_outside, backend="eager", fullgraph=True)
    assert_same(
        under(leaves_the_one_outside, made), under(compiled, made), lambda: (torch.ones(2),), 3
    )


def test_compiled_functions_call_each_other():
    inner = stator.compile(lambda x: x.sin() + 1, backend="eager")
    outer = stator.compile(
        lambda x: stator.disable(lambda y: inner(y) * 2)(x.cos()) - 1, backend="eager"
    )
    plain = lambda x: (x.cos().sin() + 1) * 2 - 1  # noqa: E731
    for _ in range(3):
        with Hearing() as ours:
            found = outer(torch.ones(2))
        with Hearing() as mode:
            expected = plain(torch.ones(2))
        assert torch.equal(found, expected)
        assert ours.heard == mode.heard


class Calling(TorchFunctionMode):
    """Calls a compiled function each time."""

    def __init__(self, fn):
        self.fn, self.count = fn, 0

    def __torch_function__(self, func, types, args=(), kwargs=None):
        self.count += 1
        return self.fn(func(*args, **(kwargs or {})))


def test_mode_that_calls_a_compiled_function():
    compiled = stator.compile(lambda x: x * 2, backend="eager")
    for _ in range(3):
        for fn in (lambda x: x * 2, compiled):
            with Hearing() as outer, Calling(fn) as mode:
                found = torch.ones(2).sin()
            assert mode.count == 2
            assert [name for name, *_ in outer.heard] == ["ones", "mul", "sin", "mul"]
            assert torch.equal(found, (torch.ones(2) * 2).sin() * 2)


def test_each_thread_has_its_own():
    compiled, heard = stator.compile(simple, backend="eager"), {}

    def run(number):
        with Hearing() as mode:
            for _ in range(20):
                compiled(torch.ones(2))
        heard[number] = len(mode.heard)

    members = [threading.Thread(target=run, args=(number,)) for number in range(3)]
    for member in members:
        member.start()
    compiled(torch.ones(2))
    for member in members:
        member.join(120)
    with Hearing() as mode:
        for _ in range(20):
            simple(torch.ones(2))
    assert heard == dict.fromkeys(range(3), len(mode.heard))


class Scaled(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * torch.arange(1, 3)

    @staticmethod
    def backward(ctx, grad):
        return grad * torch.arange(1, 3)


def filled(x):
    return (x * torch.full((2,), 3.0)).sin() + torch.arange(2)


BODIES = {
    "cond": lambda x: torch.cond(x.sum() > 0, filled, lambda y: y - torch.ones(2), (x,)),
    "checkpoint": lambda x: checkpoint(filled, x, use_reentrant=False),
    "reentrant checkpoint": lambda x: checkpoint(filled, x, use_reentrant=True),
    "vmap": lambda x: torch.vmap(filled)(torch.stack([x, x])),
    "grad": lambda x: torch.func.grad(lambda y: filled(y).sum())(x * 2),
    "hessian": lambda x: torch.func.hessian(lambda y: filled(y).sum())(x * 2),
    "jvp": lambda x: torch.func.jvp(filled, (x,), (torch.ones(2),)),
    "autograd function": Scaled.apply,
}


@pytest.mark.parametrize("name", BODIES)
def test_bodies_of_operators_under_a_default_device(name):
    fn, numbers = BODIES[name], iter([1.0, -1.0, 2.0])
    compiled = stator.compile(lambda x: fn(x.sin()), backend="eager", fullgraph=True)
    made = lambda: (torch.full((2,), next(numbers), requires_grad=True),)  # noqa: E731
    around = [under(each, AROUND["a device"]) for each in (lambda x: fn(x.sin()), compiled)]
    assert_same(*around, made, 3)
    assert compiled.report.graph_count == 1


def by_device(x):
    return x * x.new_full((2,), 2.0 if torch.ones(1).is_meta else 3.0)


class Late(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, grad):
        return by_device(grad)


LATER = {
    "checkpoint, which enters it again": lambda x: checkpoint(by_device, x, use_reentrant=False),
    "reentrant checkpoint": lambda x: checkpoint(by_device, x, use_reentrant=True),
    "autograd function": Late.apply,
}


@pytest.mark.parametrize("name", LATER)
def test_what_runs_once_the_device_has_been_left_has_the_one_of_then(name):
    def program(x):
        with torch.device("meta"):
            return LATER[name](x)

    def gradient(run):
        run(x := torch.ones(2, requires_grad=True)).backward(torch.ones(2))
        return x.grad

    assert torch.equal(gradient(stator.compile(program, backend="eager")), gradient(program))
