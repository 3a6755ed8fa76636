"""`compare` sees every kind of difference, and `write_repro` writes a file that runs."""

from __future__ import annotations

import operator
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from stator_backends import (
    Backend,
    Tolerance,
    Unwritable,
    aot_eager,
    compare,
    eager,
    inductor,
    write_repro,
)
from stator_backends.conformance import GraphBuilder, HandBuilt


def weighted(dynamic: tuple[int, ...] = ()) -> HandBuilt:
    build = GraphBuilder()
    x = build.input(torch.randn(4, 3), dynamic)
    weight = build.input(torch.randn(3, requires_grad=True))
    count = build.input(torch.zeros(1, dtype=torch.int64))
    build.call("add_", count, 1)
    return build.finish(build.call(operator.mul, x, weight), None, 5)


def changed(**replace: Any) -> Any:
    """A backend that gives the graph's results, some of them replaced by position."""

    def backend(gm: torch.fx.GraphModule, example_inputs: Sequence[Any]) -> Any:
        return lambda *args: [
            replace.get(f"at{at}", value) for at, value in enumerate(gm.forward(*args))
        ]

    return backend


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # Inductor's import gives one
@pytest.mark.parametrize("backend", [eager, inductor])
def test_graph_of_aten_operators_goes_to_the_compiler_itself(backend: Backend) -> None:
    build = GraphBuilder()
    x, y = build.input(torch.randn(2, 3)), build.input(torch.randn(3, 2))
    built = build.finish(build.call(torch.ops.aten.mm.default, x, y))
    report = compare(built.gm, built.inputs, backend, direct=True)
    assert report.ok, str(report)


def forgetful(gm: torch.fx.GraphModule, example_inputs: Sequence[Any]) -> Any:
    return lambda *args: gm.forward(*[arg.detach().clone() for arg in args])


@pytest.mark.parametrize("dynamic", [(), (0,)])
def test_right_backend_is_reported_right(dynamic: tuple[int, ...]) -> None:
    built = weighted(dynamic)
    report = compare(built.gm, built.inputs, aot_eager, contexts=built.contexts)
    assert report.ok
    assert str(report).startswith(f"{report.checked} values compared, 0 differ")
    assert report.checked == 3 + len(built.inputs) + 1


def test_inputs_of_a_comparison_stay_as_they_are() -> None:
    built = weighted()
    compare(built.gm, built.inputs, eager)
    assert built.inputs[2].item() == 0


def test_differences_are_named() -> None:
    built = weighted()
    report = compare(built.gm, built.inputs, changed(at0=torch.zeros(4, 3), at1=3))
    assert [mismatch.where for mismatch in report.mismatches] == [
        "output 0",
        "output 1",
        "gradient of input 1",
    ]
    assert "output 1: 3 instead of None" in str(report)


def test_lost_write_and_lost_gradient_are_differences() -> None:
    built = weighted()
    wheres = {mismatch.where for mismatch in compare(built.gm, built.inputs, forgetful).mismatches}
    assert wheres == {"input 2 afterwards", "gradient of input 1"}


def test_tolerance_may_be_widened() -> None:
    built = weighted()
    near = changed(at2=5.01)
    assert not compare(built.gm, built.inputs, near).ok
    assert Tolerance(rtol=0.1, atol=0.1).difference(5.01, 5.0) is None


def with_subgraph() -> HandBuilt:
    """Nested graphs, tensor attributes, keyword arguments, constants of many kinds."""
    inner = GraphBuilder()
    inner_gm = inner.finish(inner.call(torch.sin, inner.input(torch.randn(2, 3)))).gm
    build = GraphBuilder()
    x = build.input(torch.randn(2, 3))
    build.attribute("weight", torch.nn.Parameter(torch.randn(3)))
    build.attribute("body", inner_gm)
    clipped = build.call(torch.clamp, x, min=float("-inf"), max=1.5)
    cast = build.call("to", clipped, dtype=torch.float64)
    part = build.call(operator.getitem, cast, (..., slice(0, 2, None), None))
    stacked = build.call(torch.stack, [part, part])
    build.call(torch.zeros, (2,), device=torch.device("cpu"))
    return build.finish(stacked, build.call(torch.ops.aten.neg.default, x), None, True)


def test_repro_rebuilds_graph_and_inputs(tmp_path: Path) -> None:
    built = with_subgraph()
    path = write_repro(built.gm, built.inputs, tmp_path / "new" / "folder", backend="eager")
    space: dict[str, Any] = {"__name__": "repro"}
    exec(compile(path.read_text(), str(path), "exec"), space)
    again, inputs = space["graph_0"](), space["values"]()
    assert [str(node) for node in again.graph.nodes] == [str(node) for node in built.gm.graph.nodes]
    assert [(value.shape, value.stride(), value.dtype) for value in inputs] == [
        (value.shape, value.stride(), value.dtype) for value in built.inputs
    ]
    assert again.body(torch.zeros(1))[0].tolist() == [0.0]
    assert again.weight.requires_grad
    for mine, original in zip(again(*built.inputs), built.gm(*built.inputs), strict=True):
        assert original is mine or torch.equal(mine, original)


def test_repro_runs_on_its_own(tmp_path: Path) -> None:
    built = weighted(dynamic=(0,))
    path = write_repro(built.gm, built.inputs, tmp_path, backend="aot_eager")
    done = subprocess.run(
        [sys.executable, str(path)], capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == "no fault\n"


def unwritable(target: Any, *args: Any) -> torch.fx.GraphModule:
    graph = torch.fx.Graph()
    graph.output((graph.create_node("call_function", target, args),))
    return torch.fx.GraphModule({}, graph)


def test_repro_refuses_what_has_no_text(tmp_path: Path) -> None:
    with pytest.raises(Unwritable, match="does not name it"):
        write_repro(unwritable(lambda x: x, 1), [], tmp_path)
    with pytest.raises(Unwritable, match="cannot be written down: no text for <class 'range'>"):
        write_repro(unwritable(len, range(3)), [], tmp_path)
