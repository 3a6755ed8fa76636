"""Signal handlers that run while the main thread compiles: they see torch as the program left
it."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import stator
import torch
from torch import Tensor

X = torch.arange(3.0)
SIGNAL = signal.SIGTERM
OTHER = signal.SIGINT


@pytest.fixture(autouse=True)
def _handlers_as_before() -> Iterator[None]:
    before = {number: signal.getsignal(number) for number in (SIGNAL, OTHER)}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@torch.library.custom_op("stator_tests::interrupted", mutates_args=())
def interrupted(x: Tensor) -> Tensor:
    return x.clone()


@interrupted.register_fake
def _(x: Tensor) -> Tensor:
    signal.raise_signal(SIGNAL)
    return torch.empty_like(x)


def interrupts_the_trace(x: Tensor) -> Any:
    with torch.no_grad():
        return interrupted(x * 2) + 1


def interrupting_backend(graph: Any, inputs: list[Any]) -> Any:
    from torch._guards import detect_fake_mode

    mode: Any = detect_fake_mode(inputs)
    with mode, torch.inference_mode():
        signal.raise_signal(SIGNAL)
    return graph.forward


WAYS: list[tuple[Callable[..., Any], Any]] = [
    (interrupts_the_trace, "eager"),
    (lambda x: x * 2 + 1, interrupting_backend),
]


def seen_by_handler(fn: Callable[..., Any], backend: Any) -> list[Any]:
    """Compile and call `fn` with a handler that uses tensors: what it saw."""
    seen: list[Any] = []

    def handler(number: int, frame: Any) -> None:
        made = torch.ones(3) * 2
        weight = torch.nn.Parameter(torch.ones(2))
        (weight * 3).sum().backward()  # type: ignore[no-untyped-call]
        assert weight.grad is not None
        seen.extend((type(made), made.tolist(), weight.grad.tolist(), made.is_inference()))
        seen.append((bool(torch.compiler.is_compiling()), signal.getsignal(SIGNAL) is handler))

    signal.signal(SIGNAL, handler)
    compiled = stator.compile(fn, backend=backend)
    result = compiled(X)
    assert signal.getsignal(SIGNAL) is handler
    assert torch.equal(result, X * 2 + 1)
    assert compiled.report.graph_count == 1
    return seen


@pytest.mark.parametrize(("fn", "backend"), WAYS, ids=["trace", "backend"])
def test_handler_sees_ordinary_torch_state(fn: Callable[..., Any], backend: Any) -> None:
    seen = seen_by_handler(fn, backend)
    assert seen[:5] == [Tensor, [2.0, 2.0, 2.0], [3.0, 3.0], False, (False, True)]


@pytest.mark.parametrize(("fn", "backend"), WAYS, ids=["trace", "backend"])
def test_handler_that_is_set_by_a_handler_stays(fn: Callable[..., Any], backend: Any) -> None:
    def other(number: int, frame: Any) -> None:
        pass

    def handler(number: int, frame: Any) -> None:
        signal.signal(SIGNAL, signal.SIG_IGN)
        signal.signal(OTHER, other)

    signal.signal(SIGNAL, handler)
    stator.compile(fn, backend=backend)(X)
    assert signal.getsignal(SIGNAL) is signal.SIG_IGN
    assert signal.getsignal(OTHER) is other


@pytest.mark.parametrize(("fn", "backend"), WAYS, ids=["trace", "backend"])
def test_what_a_handler_raises_is_raised_by_the_call(fn: Callable[..., Any], backend: Any) -> None:
    def handler(number: int, frame: Any) -> None:
        raise TimeoutError("too long")

    signal.signal(SIGNAL, handler)
    compiled = stator.compile(fn, backend=backend)
    with pytest.raises(TimeoutError, match="too long"):
        compiled(X)
    assert signal.getsignal(SIGNAL) is handler
    assert compiled.report.compile_count == 0

    signal.signal(SIGNAL, signal.SIG_IGN)
    assert torch.equal(compiled(X), X * 2 + 1)
    assert compiled.report.graph_count == 1


@pytest.mark.parametrize(("fn", "backend"), WAYS, ids=["trace", "backend"])
def test_handler_may_call_the_function_that_is_compiled(
    fn: Callable[..., Any], backend: Any
) -> None:
    seen: list[Any] = []

    def handler(number: int, frame: Any) -> None:
        signal.signal(SIGNAL, signal.SIG_IGN)
        seen.extend([compiled(X).tolist(), compiled(X).tolist()])

    signal.signal(SIGNAL, handler)
    compiled = stator.compile(fn, backend=backend)
    assert torch.equal(compiled(X), X * 2 + 1)
    assert seen == [(X * 2 + 1).tolist()] * 2
    assert len(compiled.report.entries) == compiled.report.compile_count == 1
    assert torch.equal(compiled(X), X * 2 + 1)
    assert compiled.report.compile_count == 1


def test_handler_runs_what_is_compiled_already() -> None:
    backends: list[str] = []

    def noting(graph: Any, inputs: list[Any]) -> Any:
        return lambda *args: (backends.append("compiled"), graph(*args))[1]

    other = stator.compile(lambda x: x + 3, backend=noting)
    other(X)

    def handler(number: int, frame: Any) -> None:
        backends.clear()
        assert torch.equal(other(X), X + 3)
        assert torch.equal(other(X[:2].double()), X[:2].double() + 3)

    signal.signal(SIGNAL, handler)
    stator.compile(interrupts_the_trace, backend="eager")(X)
    assert backends == ["compiled"]


def test_handler_outside_of_compilations_compiles() -> None:
    compiled = stator.compile(lambda x: x + 3, backend="eager")
    signal.signal(SIGNAL, lambda number, frame: compiled(X))
    signal.raise_signal(SIGNAL)
    assert compiled.report.compile_count == 1


@pytest.mark.slow
@pytest.mark.parametrize("body", ["pass", "compiled(x)"])
def test_a_fast_timer_runs_through_the_first_compilation(body: str) -> None:
    """In a process of its own, as modules are imported in the first compilation."""
    program = f"""
import signal, stator, torch

def handler(number, frame):
    {body}

def fn(x):
    for i in range(10):
        x = torch.sin(x) + i
    return x

compiled, x = stator.compile(fn, backend="eager"), torch.ones(2)
signal.signal(signal.SIGALRM, handler)
signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)
result = compiled(x)
signal.setitimer(signal.ITIMER_REAL, 0)
assert torch.equal(result, fn(x))
assert len(compiled.report.entries) == 1
"""
    subprocess.run([sys.executable, "-c", program], check=True)
