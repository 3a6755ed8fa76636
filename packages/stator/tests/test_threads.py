"""First calls from many threads compile once, and different functions never wait for each other."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
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


def exit_code_of_child(work: Callable[[], bool]) -> int:
    """Fork, and return the exit code of a child that does `work`: 0 if that gives True."""
    child = os.fork()
    if not child:
        code = 1
        try:
            signal.alarm(20)
            code = 0 if work() else 2
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are not forked here")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_child_forked_while_another_thread_compiles_can_compile() -> None:
    inside, done = threading.Event(), threading.Event()

    def waiting(graph: Any, inputs: Any) -> Any:
        inside.set()
        assert done.wait(20)
        return graph.forward

    busy = stator.compile(lambda x: x.cos() * 2, backend=waiting)
    idle = stator.compile(lambda x: x.sin() + 1, backend="eager")

    def work() -> bool:
        done.set()
        made = stator.compile(lambda x: x * 3, backend="eager")
        results = [torch.equal(made(X), X * 3), torch.equal(idle(X), X.sin() + 1)]
        results.append(torch.equal(busy(X), X.cos() * 2))
        counts = [each.report.graph_count for each in (made, idle, busy)]
        return all(results) and counts == [1, 1, 1]

    thread = threading.Thread(target=busy, args=(X,))
    thread.start()
    assert inside.wait(20)
    try:
        assert exit_code_of_child(work) == 0
    finally:
        done.set()
        thread.join()
