"""Counting, modes, the compile flag, the public names and the README."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import threading
import types
from pathlib import Path

import pytest
import stator_backends
import torch
from stator_backends import AmbientState, CountingBackend, aot_eager, compile_session, spec_of
from stator_backends._signal_handlers import ordinary_signal_handlers
from stator_backends._step import begin_step, current_step
from stator_backends.conformance import GraphBuilder, lower_built

README = Path(__file__).parents[1] / "README.md"


def test_counting_backend_remembers_graphs_and_operations() -> None:
    counting = CountingBackend(aot_eager)
    for calls in (1, 2):
        build = GraphBuilder()
        value = build.input(torch.zeros(2))
        for _ in range(calls):
            value = build.call(torch.sin, value)
        lower_built(build.finish(value), counting)
    assert (len(counting.graphs), counting.ops) == (2, [1, 2])
    assert spec_of(counting).name == "counting(aot_eager)"
    counting.clear()
    assert (counting.graphs, counting.ops) == ([], [])


def test_counting_backends_are_different_backends() -> None:
    assert CountingBackend() != CountingBackend()
    assert len({CountingBackend(), CountingBackend()}) == 2


@pytest.mark.parametrize("grad", [True, False])
def test_modes_are_put_back_inside_and_restored_outside(grad: bool) -> None:
    with torch.set_grad_enabled(grad), torch.autocast("cpu", torch.float16, cache_enabled=False):
        entry = AmbientState.capture()
    present = AmbientState.capture()
    with entry.restored():
        assert AmbientState.capture() == entry
    assert AmbientState.capture() == present


def test_modes_are_restored_after_an_error() -> None:
    with torch.no_grad():
        entry = AmbientState.capture()
    with pytest.raises(KeyError), entry.restored():
        raise KeyError
    assert torch.is_grad_enabled()


def test_inference_mode_is_put_back_as_no_grad() -> None:
    with torch.inference_mode():
        entry = AmbientState.capture()
        with entry.restored():
            assert not torch.is_inference_mode_enabled()
            assert not torch.is_grad_enabled()
        assert torch.is_inference_mode_enabled()
    with entry.restored():
        assert not torch.is_grad_enabled()


def test_compile_flag_is_that_of_one_thread() -> None:
    asked, seen = threading.Event(), []

    def hold() -> None:
        seen.append(bool(torch.compiler.is_compiling()))
        asked.set()
        with compile_session():
            seen.append(bool(torch.compiler.is_compiling()))

    thread = threading.Thread(target=hold)
    with compile_session():
        thread.start()
        assert asked.wait(10)
        thread.join(0.05)  # it waits for its turn
        assert seen == [False]
        assert torch.compiler.is_compiling()
    thread.join()
    assert seen == [False, True]
    assert torch.compiler.is_compiling() is False


def test_all_names_are_public_and_nothing_else_is() -> None:
    public = {
        name for name in vars(stator_backends) if not name.startswith("_") and name != "annotations"
    }
    assert public - {"errors", "conformance", "testing"} == set(stator_backends.__all__)


def test_import_is_light() -> None:
    heavy = ["sympy", "pytest", "torch._dynamo", "torch._inductor", "torch._functorch.aot_autograd"]
    program = (
        f"import sys, stator_backends; print([name for name in {heavy} if name in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.strip() == "[]"


def test_readme_is_short_and_its_example_runs() -> None:
    text = README.read_text()
    assert len(text.splitlines()) <= 70
    (example,) = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    exec(compile(example, str(README), "exec"), {})


def test_signal_handler_runs_without_function_modes_and_survives_the_compilation() -> None:
    seen: list[int] = []

    def handler(number: int, frame: object) -> None:
        seen.append(torch._C._len_torch_function_stack())

    before = signal.signal(signal.SIGTERM, handler)
    try:
        with ordinary_signal_handlers(), torch.device("cpu"):
            signal.raise_signal(signal.SIGTERM)
            kept = signal.getsignal(signal.SIGTERM)
            assert torch._C._len_torch_function_stack() == 1
        assert signal.getsignal(signal.SIGTERM) is handler
        signal.signal(signal.SIGTERM, kept)  # as a library does that had saved it
        signal.raise_signal(signal.SIGTERM)
        assert signal.getsignal(signal.SIGTERM) is handler
    finally:
        signal.signal(signal.SIGTERM, before)
    assert seen == [0, 0]


def test_steps_are_counted_until_the_program_marks_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch._inductor.cudagraph_trees", None)
    begin_step()
    first = current_step()
    begin_step()
    assert current_step() > first > 0
    trees = types.SimpleNamespace(MarkStepBox=types.SimpleNamespace(mark_step_counter=-3))
    monkeypatch.setitem(sys.modules, "torch._inductor.cudagraph_trees", trees)  # type: ignore[arg-type]
    assert current_step() == -3
