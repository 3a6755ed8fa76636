"""Calls of compiled functions begin steps where the backend has CUDA graphs, and only there."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import attrs
import pytest
import stator
import torch
from stator_backends import CudaGraphs, configure, eager, inductor, uses_steps
from stator_backends._cuda_graphs._rejection import reason_not_to_record
from torch import Tensor, nn
from torch._dynamo.mutation_guard import GenerationTracker
from torch._subclasses.fake_tensor import FakeTensorMode

GPU_CHECK = Path(__file__).resolve().parents[2] / "tools" / "gpu_check.py"


@attrs.frozen
class WithSteps:
    """A backend that declares steps and runs graphs eagerly."""

    uses_steps: bool = True

    def __call__(self, gm: torch.fx.GraphModule, inputs: Sequence[Any]) -> Callable[..., Any]:
        return eager(gm, inputs)


def broken_before_and_after(x: Tensor) -> Tensor:
    print(end="")
    y = x * 2
    print(end="")
    return y + 1


def one_graph(x: Tensor) -> Tensor:
    return x * 2


@pytest.mark.parametrize("fn", [broken_before_and_after, one_graph])
def test_each_call_begins_one_step(fn: Callable[[Tensor], Tensor]) -> None:
    compiled = stator.compile(fn, backend=WithSteps())
    before = GenerationTracker.generation
    for calls in (1, 2, 3):
        compiled(torch.ones(2))
        assert GenerationTracker.generation - before == calls


def test_no_step_begins_without_cuda_graphs() -> None:
    compiled = stator.compile(one_graph, backend="eager")
    before = GenerationTracker.generation
    compiled(torch.ones(2))
    assert GenerationTracker.generation == before
    assert "begin_step" not in compiled.report.entries[0].source


def test_modes_of_inductor_with_cuda_graphs_use_steps() -> None:
    modes = ["default", "reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs"]
    found = {mode: uses_steps(configure(inductor, mode=mode)) for mode in modes}
    assert found == dict(zip(modes, [False, True, True, False], strict=True))


def test_parameters_and_buffers_are_marked_for_backends_with_cuda_graphs() -> None:
    seen: list[list[str]] = []

    class Marking(WithSteps):
        def __call__(self, gm: torch.fx.GraphModule, inputs: Sequence[Any]) -> Callable[..., Any]:
            nodes = gm.graph.find_nodes(op="placeholder")
            seen.append([node.name for node in nodes if "tensor_dict" not in node.meta])
            return eager(gm, inputs)

    stator.compile(nn.BatchNorm1d(4), backend=Marking())(torch.ones(3, 4))
    assert len(seen[0]) == 1


def test_graphs_on_the_cpu_run_without_recordings() -> None:
    model = nn.Sequential(nn.Linear(4, 4), nn.ReLU())
    backend, x = CudaGraphs(), torch.randn(3, 4, requires_grad=True)
    compiled = stator.compile(model, backend=backend)
    for _ in range(3):
        result = compiled(x)
        assert torch.equal(result, model(x))
        result.sum().backward()
    assert backend.rejected == Counter({"input primals_1 is on the cpu": 2})


aten = torch.ops.aten


def reason(target: Any, static: Sequence[int] = (), inputs: str = "cuda", result: str = "") -> str:
    """Return why a graph of one operator is not recorded, for devices that need not exist."""
    graph = torch.fx.Graph()
    x, y = graph.placeholder("x"), graph.placeholder("y")
    node = graph.call_function(target, (x, y))
    graph.output((node,))
    with FakeTensorMode():
        given = [torch.empty(4, device=inputs) for _ in range(2)]
        node.meta["val"] = torch.empty(4, device=result or inputs)
    return reason_not_to_record(torch.fx.GraphModule({}, graph), given, static)


def test_reasons_not_to_record() -> None:
    assert reason(aten.add.Tensor) == ""
    assert reason(aten.add.Tensor, inputs="cpu") == "input x is on the cpu"
    assert reason(aten.add.Tensor, result="cpu") == "add_tensor is on the cpu"
    assert reason(aten.copy_.default) == "it writes to input x, whose address changes"
    assert reason(aten.copy_.default, static=[0]) == ""


def test_graphs_with_changing_sizes_are_not_recorded() -> None:
    backend = CudaGraphs()
    compiled = stator.compile(one_graph, backend=backend, dynamic=True)
    for size in (3, 5):
        assert compiled(torch.ones(size)).tolist() == [2.0] * size
    assert backend.rejected == Counter({"its sizes change": 1})


def test_gpu_check_reports_the_absence_of_a_device() -> None:
    done = subprocess.run(
        [sys.executable, str(GPU_CHECK)], capture_output=True, text=True, check=False
    )
    if torch.cuda.is_available():
        assert done.returncode == 0, done.stdout
    else:
        assert (done.returncode, done.stdout) == (2, "no CUDA device: nothing was checked\n")
