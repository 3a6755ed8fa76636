"""First calls from many threads compile once, and different functions never wait for each other."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import stator
import torch

X = torch.arange(3.0)


def test_eight_first_calls_compile_once() -> None:
    asked, ready = [], threading.Barrier(8)

    def backend(graph: Any, inputs: Any) -> Any:
        asked.append(graph)
        return graph.forward

    compiled = stator.compile(lambda x: x.sin() + 1, backend=backend)

    def call(_: int) -> Any:
        ready.wait()
        return compiled(X)

    with ThreadPoolExecutor(8) as threads:
        results = list(threads.map(call, range(8)))
    assert all(torch.equal(result, X.sin() + 1) for result in results)
    assert len(asked) == 1


def test_function_does_not_wait_for_another_one_being_compiled() -> None:
    inside, done = threading.Event(), threading.Event()

    def waiting(graph: Any, inputs: Any) -> Any:
        inside.set()
        assert done.wait(10)
        return graph.forward

    waiting.spec = _spec()  # type: ignore[attr-defined]
    slow = stator.compile(lambda x: x + 1, backend=waiting)
    fast = stator.compile(lambda x: x + 2, backend="eager")
    with ThreadPoolExecutor(1) as threads:
        result = threads.submit(slow, X)
        assert inside.wait(10)
        assert torch.equal(fast(X), X + 2)  # compiles while the other one does
        done.set()
        assert torch.equal(result.result(10), X + 1)


def _spec() -> Any:
    from stator_backends import BackendSpec

    return BackendSpec("waiting", compiles=False)


def test_calls_from_threads_with_different_entries() -> None:
    compiled: Any = stator.compile(lambda x, name: x + ord(name), backend="eager")
    names = "abcd" * 8
    with ThreadPoolExecutor(4) as threads:
        results = list(threads.map(lambda name: compiled(X, name), names))
    assert all(
        torch.equal(result, X + ord(name)) for result, name in zip(results, names, strict=True)
    )
    assert compiled.report.entry_count == 4
