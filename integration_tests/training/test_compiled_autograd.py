"""Backward passes under `stator.compiled_autograd`: the gradients, hooks and errors of eager
autograd."""

# mypy: disable-error-code="no-untyped-call"

from __future__ import annotations

import functools
import gc
import itertools
import threading
import weakref
from collections.abc import Callable
from typing import Any, TypeAlias

import pytest
import stator
import torch
from torch import Tensor, nn
from torch.autograd.graph import saved_tensors_hooks
from torch.profiler import ProfilerActivity, profile
from torch.utils.checkpoint import checkpoint

from integration_tests.support.counting import Counting

Log: TypeAlias = list[Any]
BACKENDS = ("eager", "aot_eager")


def _noting(log: Log, name: str) -> Callable[[Tensor], None]:
    def hook(grad: Tensor) -> None:
        log.append((name, grad.tolist()))

    return hook


def _facts(grad: Tensor | None) -> Any:
    return grad if grad is None else (grad.stride(), grad.dtype)


# Calls of the engine


def _several_roots() -> Any:
    x, w = torch.randn(3, requires_grad=True), torch.randn(3, requires_grad=True)
    y = x * w
    z = y.exp()
    log: Log = []
    for name, value in {"x": x, "y": y, "z": z, "w": w}.items():
        value.register_hook(_noting(log, name))
    torch.autograd.backward([z, y], [torch.ones(3), torch.full((3,), 0.3)], inputs=[x, y])
    return log, x.grad, w.grad


def _roots_that_share_a_node() -> Any:
    x = torch.randn(4, requires_grad=True)
    log: Log = []
    x.register_hook(_noting(log, "x"))
    halves = x.sin().split(2)
    torch.autograd.backward(halves, [torch.ones(2), torch.full((2,), 3.0)])
    y = x.cos()
    torch.autograd.backward((y, y), [torch.ones(4), torch.full((4,), 2.0)])
    torch.autograd.backward((x, x), [torch.ones(4), torch.ones(4)])
    return log, x.grad


def _gradients() -> Any:
    x, w = torch.randn(4, 3, requires_grad=True), torch.randn(3, requires_grad=True)
    unused = torch.randn(2, requires_grad=True)
    results = [(x * w).sum(), (x**2).mean()]
    return torch.autograd.grad(results, [x, w, unused], allow_unused=True)


def _retained() -> Any:
    x = torch.randn(3, requires_grad=True)
    y = x.sin().exp().sum()
    y.backward(retain_graph=True)
    y.backward()
    with pytest.raises(RuntimeError, match="a second time"):
        y.backward()
    return x.grad


def _fourth_derivative() -> Any:
    x = torch.randn(3, requires_grad=True)
    y = (x**5 * x.sin()).sum()
    for _ in range(3):
        y = torch.autograd.grad(y, x, create_graph=True)[0].pow(2).sum()
    y.backward()
    return x.grad


def _penalty() -> Any:
    net = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
    x = torch.randn(5, 3, requires_grad=True)
    (slope,) = torch.autograd.grad(net(x).sum(), x, create_graph=True)
    ((slope.norm(dim=1) - 1) ** 2).mean().backward()
    return [p.grad for p in net.parameters()]


def _reentrant() -> Any:
    x, net, log = torch.randn(2, 3, requires_grad=True), nn.Linear(3, 3), []

    def body(value: Tensor) -> Tensor:
        log.append("body")
        result: Tensor = net(value).sin()
        return result

    checkpoint(body, x, use_reentrant=True).sum().backward()
    return log, x.grad, net.weight.grad


def _inside_of_a_hook() -> Any:
    x, seen = torch.randn(3, requires_grad=True), []

    def hook(grad: Tensor) -> None:
        with torch.enable_grad():
            other = grad.detach().requires_grad_()
            (other * 2).sum().backward()
            seen.append(other.grad)

    y = x * 2
    y.register_hook(hook)
    y.sum().backward()
    return seen, x.grad


def _callbacks_at_the_end() -> Any:
    x, log = torch.randn(3, requires_grad=True), []

    def hook(grad: Tensor) -> None:
        engine: Any = torch.autograd.Variable._execution_engine
        engine.queue_callback(lambda: log.append("end"))
        log.append("hook")

    y = x * 2
    y.register_hook(hook)
    x.register_hook(lambda grad: log.append("leaf"))
    y.sum().backward()
    return log, x.grad


def _unpacked() -> Any:
    x, log = torch.randn(4, 3, requires_grad=True), []

    def unpack(packed: Any) -> Tensor:
        log.append("unpack")
        value: Tensor = packed[0]
        return value

    with saved_tensors_hooks(lambda value: (value.detach() * 2,), unpack):
        y = x.sin() * x
    y.register_hook(lambda grad: log.append("y"))
    y.sum().backward()
    return log, x.grad


def _failing_unpack() -> Any:
    x = torch.randn(3, requires_grad=True)
    with saved_tensors_hooks(lambda value: value, lambda value: 3):  # type: ignore[arg-type, return-value]
        y = x.sin()
    with pytest.raises(TypeError) as failure:
        y.sum().backward()
    return str(failure.value)


class Faulty(torch.autograd.Function):
    """Gives a wrong number of gradients, or one for a number."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, results: Any) -> Tensor:
        ctx.results = results
        return x * 2

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        return ctx.results(grad)


def _faulty_functions() -> Any:
    texts: list[Any] = []
    answers: list[Callable[[Tensor], Any]] = [
        lambda g: (g,),
        lambda g: (g, None, None),
        lambda g: (g, g),
        lambda g: (g, None, g),
        lambda g: (g[:1], None),
        lambda g: (3, None),
    ]
    for answer in answers:
        x = torch.randn(4, requires_grad=True)
        try:
            Faulty.apply(x, answer).sum().backward()
        except (RuntimeError, TypeError) as error:
            texts.append((type(error), str(error)))
        texts.append(x.grad)
    return texts


def _mixed_types() -> Any:
    x = torch.randn(4, dtype=torch.float64, requires_grad=True)
    y = torch.randn(4, dtype=torch.bfloat16, requires_grad=True)
    z = torch.randn(4, dtype=torch.complex64, requires_grad=True)
    (x.float() * y * z).abs().sum().backward()
    return x.grad, y.grad, z.grad


def _layouts() -> Any:
    net = nn.Conv2d(3, 4, 3).to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    net(torch.randn(2, 3, 8, 8).to(memory_format=torch.channels_last)).sum().backward()
    x, y = torch.randn(3, requires_grad=True), torch.randn(2, 3, requires_grad=True)
    (x.expand(2, 3).sum() + y.t().sum()).backward()
    grads = [net.weight.grad, net.bias.grad, x.grad, y.grad]
    return grads, [_facts(grad) for grad in grads]


def _kept_by_a_hook() -> Any:
    x = torch.randn(3, requires_grad=True)
    kept: list[Tensor] = []
    x.register_hook(kept.append)
    (x * 1).sum().backward()
    first = kept[0].clone()
    (x * 3).sum().backward()
    return x.grad, kept, first


def _append(log: Log, name: str, grad: Tensor) -> None:
    log.append(name)


def _recurrent_and_attention() -> Any:
    recurrent = nn.LSTM(3, 4)
    layer = nn.TransformerEncoderLayer(4, 2, 8, batch_first=True, dropout=0.0)
    log: Log = []
    for name, parameter in layer.named_parameters():
        parameter.register_hook(functools.partial(_append, log, name))
    layer(recurrent(torch.randn(2, 5, 3))[0]).square().mean().backward()
    return log, [p.grad for p in (*recurrent.parameters(), *layer.parameters())]


class Remembering(torch.autograd.Function):
    """Writes attributes of its context in backward."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, log: Log) -> Tensor:
        ctx.log, ctx.runs = log, 0
        return x * 2

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        ctx.runs += 1
        ctx.log.append(ctx.runs)
        return grad * ctx.runs, None


def _written_contexts() -> Any:
    x, log = torch.randn(3, requires_grad=True), list[Any]()
    y = Remembering.apply(x, log).sum()
    y.backward(retain_graph=True)
    y.backward()
    return x.grad, log


def _sparse_gradients() -> Any:
    table = torch.randn(4, 3, requires_grad=True)
    index = torch.tensor([0, 2, 2])
    found: list[Any] = []
    for has_dense in (False, True):
        table.grad = None
        loss = nn.functional.embedding(index, table, sparse=True).sin().sum()
        (loss + table.cos().sum() if has_dense else loss).backward()
        assert table.grad is not None
        found += [table.grad.layout, table.grad.to_dense()]
    return found


class TwoResults(torch.autograd.Function):
    """Gets None for a result that is not used."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Any:
        ctx.set_materialize_grads(False)
        return x * 2, x * 3

    @staticmethod
    def backward(ctx: Any, first: Any, second: Any) -> Any:
        return first if second is None else second


def _replaced_none() -> Any:
    log: Log = []
    for kind in ("noted", "tensor hook", "node hook"):
        x = torch.randn(3, requires_grad=True)
        used, unused = TwoResults.apply(x)
        unused.register_hook(log.append)
        if kind == "tensor hook":
            unused.register_hook(lambda grad: torch.ones(3))
        elif kind == "node hook":
            used.grad_fn.register_prehook(lambda grads: (grads[0], torch.ones(3)))
        try:
            used.sum().backward()
        except RuntimeError as error:
            log.append(str(error))
        log.append(x.grad)
    return log


def _engine_without_python() -> Any:
    x, w = torch.randn(3, requires_grad=True), torch.randn(3, requires_grad=True)
    loss: Any = (x * w + x.sin()).sum()
    engine: Any = torch.autograd.Variable._execution_engine
    engine.run_backward(
        (loss,), (torch.ones(()),), False, False, (), allow_unreachable=True, accumulate_grad=True
    )
    return x.grad, w.grad


CALLS = (
    _written_contexts,
    _sparse_gradients,
    _replaced_none,
    _engine_without_python,
    _several_roots,
    _roots_that_share_a_node,
    _gradients,
    _retained,
    _fourth_derivative,
    _penalty,
    _reentrant,
    _inside_of_a_hook,
    _callbacks_at_the_end,
    _unpacked,
    _failing_unpack,
    _faulty_functions,
    _mixed_types,
    _layouts,
    _kept_by_a_hook,
    _recurrent_and_attention,
)


def _same(one: Any, other: Any) -> bool:
    if isinstance(one, Tensor):
        return torch.equal(one, other)
    if isinstance(one, list | tuple):
        return len(one) == len(other) and all(map(_same, one, other))
    return bool(one == other)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("call", CALLS, ids=lambda call: call.__name__.strip("_"))
def test_calls_of_the_engine_equal_eager_autograd(call: Callable[[], Any], backend: str) -> None:
    torch.manual_seed(0)
    expected = call()
    with stator.compiled_autograd(backend=backend):
        for _ in range(2):
            torch.manual_seed(0)
            assert _same(call(), expected)


# Compilations


def _train(net: nn.Module, sizes: tuple[int, ...]) -> list[Tensor]:
    grads: list[Tensor] = []
    for size in sizes:
        torch.manual_seed(size)
        net.zero_grad()
        net(torch.randn(size, 3)).pow(2).mean().backward()
        grads += [p.grad.clone() for p in net.parameters() if p.grad is not None]
    return grads


def _net() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2))


SIZES = (2, 2, 5, 7, 9)


@pytest.mark.parametrize(("dynamic", "count"), [(None, 2), (True, 2), (False, 4)])
def test_five_batch_sizes_need_two_compilations(dynamic: bool | None, count: int) -> None:
    net, counting = _net(), Counting()
    expected = _train(net, SIZES)
    with stator.compiled_autograd(backend=counting, dynamic=dynamic):
        assert _same(_train(net, SIZES), expected)
        assert counting.count == count


def test_accumulation_into_an_existing_gradient_needs_no_other_compilation() -> None:
    net, counting = _net(), Counting()
    with stator.compiled_autograd(backend=counting):
        for _ in range(3):
            net(torch.ones(4, 3)).sum().backward()
    assert counting.count == 1


def test_contexts_with_equal_settings_share_what_was_compiled() -> None:
    net, counting = _net(), Counting()
    for _ in range(3):
        with stator.compiled_autograd(backend=counting):
            _train(net, (4,))
    assert counting.count == 1


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_compiled_forward_has_the_gradients_of_eager(backend: str) -> None:
    net = _net()
    expected = _train(net, SIZES)
    with stator.compiled_autograd(backend=backend):
        assert _same(_train(stator.compile(net, backend=backend), SIZES), expected)


# The context


def _is_captured(net: nn.Module, counting: Counting, factor: int) -> bool:
    """Return True if a backward of a new structure reaches the backend."""
    before = counting.count
    value = net(torch.ones(2, 3))
    for _ in range(factor):
        value = value.sin()
    value.sum().backward()
    return counting.count > before


def test_contexts_nest_and_restore_what_was_installed() -> None:
    net, outer, inner = _net(), Counting(), Counting()
    with stator.compiled_autograd(backend=outer):
        with stator.compiled_autograd(backend=inner):
            assert _is_captured(net, inner, 1)
        with stator.compiled_autograd(disable=True):
            assert not _is_captured(net, outer, 2)
        assert _is_captured(net, outer, 3)
    assert not _is_captured(net, outer, 4)
    assert torch.autograd.is_multithreading_enabled()


def test_an_error_leaves_the_context_usable() -> None:
    net, counting = _net(), Counting()
    with stator.compiled_autograd(backend=counting):
        y = net(torch.ones(2, 3))
        y.register_hook(lambda grad: grad[9])
        with pytest.raises(IndexError):
            y.sum().backward()
        assert _is_captured(net, counting, 5)
        raise_in_block = pytest.raises(KeyError)
        with raise_in_block, stator.compiled_autograd(backend="eager"):
            raise KeyError
        assert _is_captured(net, counting, 6)
    assert not _is_captured(net, counting, 7)


def test_another_thread_runs_plainly() -> None:
    net, grads = _net(), []
    expected = _train(net, (3,))

    def run() -> None:
        grads.extend(_train(_net(), (3,)))

    with stator.compiled_autograd(backend="aot_eager"):
        thread = threading.Thread(target=run)
        thread.start()
        thread.join()
    assert _same(grads, expected)


def test_fullgraph_refuses_hooks() -> None:
    net = _net()
    with stator.compiled_autograd(backend="eager", fullgraph=True):
        net(torch.ones(2, 3)).sum().backward()
        y = net(torch.ones(2, 3))
        y.register_hook(lambda grad: None)
        with pytest.raises(stator.Unsupported, match="backward pass"):
            y.sum().backward()


@pytest.mark.filterwarnings("ignore:Anomaly Detection")
@pytest.mark.parametrize("backend", BACKENDS)
def test_anomaly_mode_names_the_function_that_gave_nan(backend: str) -> None:
    x = torch.zeros(3, requires_grad=True)
    with stator.compiled_autograd(backend=backend), torch.autograd.detect_anomaly(check_nan=True):
        (x + 1).log().sum().backward()
        with pytest.raises(
            RuntimeError, match="Function 'SqrtBackward0' returned nan values in its 0th"
        ):
            (x * 0).sqrt().mul(0).sum().backward()


# Memory


@pytest.mark.parametrize("backend", BACKENDS)
def test_saved_tensors_are_released_while_the_backward_runs(backend: str) -> None:
    x, alive = torch.randn(4, requires_grad=True), []
    first = x.exp()
    second = first.exp()
    saved = weakref.ref(second)
    first.register_hook(lambda grad: alive.append(saved() is not None))
    loss = second.sum()
    del first, second
    with stator.compiled_autograd(backend=backend):
        loss.backward()
    assert alive == [False]


def test_nothing_of_the_program_is_kept_on_exit() -> None:
    class Hook:
        def __call__(self, grad: Tensor) -> None: ...

    x = torch.randn(4, requires_grad=True)
    hook = Hook()
    kept: list[weakref.ref[Any]] = [weakref.ref(x), weakref.ref(hook)]
    with stator.compiled_autograd(backend="aot_eager"):
        y = x.exp()
        y.register_hook(hook)
        y.sum().backward()
    del x, y, hook
    gc.collect()
    assert [each() for each in kept] == [None, None]


def test_an_option_of_compile_captures_the_backwards_of_its_calls() -> None:
    counting = Counting()

    def step(net: nn.Module, x: Tensor) -> None:
        net(x).sum().backward()

    compiled = stator.compile(step, backend=counting, options={"compiled_autograd": True})
    net, other = _net(), _net()
    for _ in range(2):
        compiled(net, torch.ones(2, 3))
        step(other, torch.ones(2, 3))
    assert ["SumBackward0" in graph.code for graph in counting.graphs].count(True) == 1
    assert _same([p.grad for p in net.parameters()], [p.grad for p in other.parameters()])
    assert not _is_captured(net, counting, 8)


def test_reset_forgets_compiled_backwards() -> None:
    net, counting = _net(), Counting()
    for _ in range(2):
        with stator.compiled_autograd(backend=counting):
            _train(net, (4,))
        stator.reset()
    assert counting.count == 2


# Code of the program in graphs


def _scaling(factor: float) -> Callable[[Tensor], Tensor]:
    return lambda grad: grad * factor


def _with_hooks(*hooks: Callable[[Tensor], Any]) -> Tensor | None:
    x = torch.arange(6.0).view(2, 3).requires_grad_()
    for _ in range(3):
        y = Faulty.apply(x.sin(), lambda grad: (grad * 2, None))
        for hook in hooks:
            y.register_hook(hook)
        y.exp().sum().backward()
    return x.grad


NORMS: list[float] = []


@pytest.mark.parametrize(
    ("hooks", "count"),
    [
        ((lambda grad: grad.clamp(-1, 1),), 1),
        ((_scaling(2.0), _scaling(3.0)), 1),
        ((lambda grad: grad.mul_(2),), 1),
        ((_scaling(2.0), lambda grad: NORMS.append(grad.norm().item()), _scaling(3.0)), 2),
    ],
)
def test_hooks_that_only_compute_are_part_of_a_graph(
    hooks: tuple[Callable[[Tensor], Any], ...], count: int
) -> None:
    counting = Counting()
    expected = _with_hooks(*hooks)
    with stator.compiled_autograd(backend=counting):
        assert _same(_with_hooks(*hooks), expected)
    assert counting.count == count


def test_functions_that_only_compute_are_part_of_a_graph() -> None:
    counting = Counting()
    with stator.compiled_autograd(backend=counting, fullgraph=True):
        _with_hooks()
    assert counting.count == 1


def test_a_hook_that_reads_an_accumulated_gradient_runs_after_the_accumulation() -> None:
    def run() -> list[Tensor | None]:
        x, w = torch.ones(3, requires_grad=True), torch.ones(3, requires_grad=True)
        y = x * 2
        y.register_hook(lambda grad: grad + w.grad)
        (y * w).sum().backward()
        return [x.grad, w.grad]

    expected = run()
    with stator.compiled_autograd(backend="aot_eager"):
        assert _same(run(), expected)


def _scaling_by_name(name: str) -> Callable[[Tensor], Tensor]:
    return lambda grad: grad * float(name)


@pytest.mark.parametrize(
    ("scaling", "count"),
    [
        (_scaling, 2),  # the second one with a symbol
        (lambda factor: _scaling_by_name(str(factor)), 6),  # then one on each side of the hook
    ],
)
def test_values_that_a_hook_has_captured_are_guarded(
    scaling: Callable[[float], Callable[[Tensor], Tensor]], count: int
) -> None:
    counting = Counting()

    def run(factor: float) -> Tensor | None:
        x = torch.ones(3, requires_grad=True)
        y = x * 2
        y.register_hook(scaling(factor))
        y.sum().backward()
        return x.grad

    with stator.compiled_autograd(backend=counting):
        for factor in (1.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0):
            assert _same(run(factor), torch.full((3,), 2 * factor))
    assert counting.count == count


def test_a_compiled_forward_and_what_follows_it_have_one_backward() -> None:
    net, counting = _net(), Counting()
    compiled = stator.compile(net, backend="aot_eager")
    with stator.compiled_autograd(backend=counting, fullgraph=True):
        _train(compiled, SIZES)
    assert counting.count == 2


# Plain backward passes


def test_callbacks_that_are_queued_by_a_reference_from_before_the_context_run() -> None:
    engine: Any = torch.autograd.Variable._execution_engine
    log, counting = [], Counting()

    def run() -> None:
        x = torch.ones(3, requires_grad=True)
        y = x * 2
        y.register_hook(lambda grad: engine.queue_callback(lambda: log.append(x.grad is not None)))
        y.sum().backward()

    with stator.compiled_autograd(backend=counting):
        for _ in range(3):
            run()
        assert counting.count == 0
        inside: Any = torch.autograd.Variable._execution_engine
        del engine
        engine = inside
        run()
    run()  # by a reference from inside of the context
    assert log == [True] * 5
    assert counting.count > 0
    assert torch.autograd.Variable._execution_engine is not inside


@pytest.mark.filterwarnings("ignore:Anomaly Detection")
def test_anomaly_mode_shows_where_the_forward_was() -> None:
    x = torch.zeros(3, requires_grad=True)
    context = stator.compiled_autograd(backend="aot_eager")
    with context, torch.autograd.detect_anomaly(check_nan=True):
        y = (x * 0).sqrt().mul(0).sum()
        shows = pytest.warns(
            UserWarning, match="Error detected in SqrtBackward0(?s:.*)test_anomaly"
        )
        with shows, pytest.raises(RuntimeError, match="returned nan"):
            y.backward()


def test_fullgraph_refuses_to_run_a_backward_plainly() -> None:
    x = torch.ones(3, requires_grad=True)
    with saved_tensors_hooks(lambda value: value, lambda value: value):
        y = checkpoint(torch.sin, x, use_reentrant=True)
    with (
        stator.compiled_autograd(backend="eager", fullgraph=True),
        pytest.raises(stator.Unsupported, match="history of a saved tensor"),
    ):
        y.sum().backward()


def test_an_operator_that_cannot_be_captured_runs_between_segments() -> None:
    def run() -> tuple[Tensor, ...]:
        x, w = torch.ones(4, 3, requires_grad=True), torch.ones(3, requires_grad=True)
        picked = nn.functional.embedding(torch.tensor([1, 3, 1]), x, sparse=True)
        (slope,) = torch.autograd.grad((picked * w).sin().sum(), x, create_graph=True)
        return torch.autograd.grad(slope.to_dense().exp().sum(), w)

    counting = Counting()
    expected = run()
    with stator.compiled_autograd(backend=counting):
        for _ in range(2):
            assert _same(run(), expected)
    assert 0 < counting.count < 5


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_autocast_around_a_backward_is_part_of_what_is_compiled(dtype: torch.dtype) -> None:
    def run(enabled: bool) -> list[Tensor | None]:
        x, w = torch.ones(4, 3, requires_grad=True), torch.ones(3, 3, requires_grad=True)
        loss = (x @ w).sin().sum()
        with torch.autocast("cpu", dtype, enabled=enabled):
            loss.backward()
        return [x.grad, w.grad]

    cases = (False, True, False, True)
    expected = [run(enabled) for enabled in cases]
    with stator.compiled_autograd(backend="aot_eager"):
        assert _same([run(enabled) for enabled in cases], expected)


# Peak memory


def _peak(run: Callable[[], None]) -> int:
    """Return the most bytes of tensors that are alive at one time, besides those from before."""
    gc.collect()  # what earlier tests left is not to be freed meanwhile
    for _ in range(2):  # the first profile may not count that what was made before it is freed
        with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as profiler:
            run()
    results: Any = profiler.profiler
    events = [each for each in results.kineto_results.events() if each.name() == "[memory]"]
    events.sort(key=lambda event: event.start_ns())
    sizes: list[int] = [event.nbytes() for event in events]
    return max(itertools.accumulate(sizes))


def _clamping(grad: Tensor) -> Tensor:
    return grad.clamp(-1, 1)


def _step(forward: Callable[[Tensor], Tensor], net: nn.Module, is_hooked: bool) -> None:
    net.zero_grad()
    y = forward(torch.ones(256, 32))
    if is_hooked:
        y.register_hook(_clamping)
    y.pow(2).sum().backward()


@pytest.mark.parametrize("is_hooked", [False, True])
@pytest.mark.parametrize("compiles_forward", [False, True])
@pytest.mark.parametrize("backend", BACKENDS)
def test_the_peak_of_memory_is_that_of_eager_autograd(
    backend: str, compiles_forward: bool, is_hooked: bool
) -> None:
    layers = [layer for _ in range(6) for layer in (nn.Linear(32, 32), nn.Tanh())]
    net = nn.Sequential(*layers)
    _step(net, net, is_hooked)
    expected = _peak(lambda: _step(net, net, is_hooked))
    forward = stator.compile(net, backend="aot_eager") if compiles_forward else net
    with stator.compiled_autograd(backend=backend):
        for _ in range(2):
            _step(forward, net, is_hooked)
        # the first gradient of each parameter may be a copy: see known-gaps.md
        allowed = 1.1 if compiles_forward and backend == "aot_eager" else 1.05
        assert _peak(lambda: _step(forward, net, is_hooked)) <= allowed * expected
