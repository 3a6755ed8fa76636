"""Graphs are reduced to the operators that show a fault, and scripts show it alone."""

from __future__ import annotations

import importlib
import operator
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from stator_backends import (
    BackendError,
    CountingBackend,
    FaultCheck,
    NoFault,
    SavedGraph,
    aot_eager,
    configure,
    eager,
    find_fault,
    lookup,
    lower,
    minify,
    minify_to,
    write_repro,
)
from stator_backends.testing import GraphBuilder, HandBuilt

TOYS = Path(__file__).with_name("toy_backends.py")
FAULTS = {
    "wrong_fusion": ("wrong", FaultCheck()),
    "crash": ("crash", FaultCheck("crash")),
    "slow_pass": ("slow", FaultCheck(seconds=0.2)),
}


def network(requires_grad: bool = False, dynamic: tuple[int, ...] = ()) -> HandBuilt:
    """Return a graph of some twenty operators around `sin(cos(x))`: a write, a tuple, a symbol."""
    build = GraphBuilder()
    x = build.input(torch.randn(4, 4, requires_grad=requires_grad), dynamic)
    weight = build.input(torch.randn(4, 4) / 4)
    value = x
    for _ in range(4):
        value = build.call(torch.relu, build.call(torch.matmul, value, weight))
    value = build.call(torch.matmul, value, weight)
    build.call("add_", value, 1)
    largest = build.call(torch.max, value, 0)
    first = build.call(operator.getitem, largest, 0)
    found = build.call(torch.sin, build.call(torch.cos, first))
    for _ in range(4):
        found = build.call(torch.tanh, build.call(torch.matmul, found, weight))
    return build.finish(found, value, build.call("size", x, 0))


def test_stage_that_does_not_exist_is_refused() -> None:
    built = network()
    with pytest.raises(ValueError, match="after='late' is none of capture, aot, backend"):
        minify(built.gm, built.inputs, eager, FaultCheck(), "late")


@pytest.mark.parametrize("name", FAULTS)
def test_planted_fault_is_reduced_to_two_operators(name: str) -> None:
    built, (kind, check) = network(), FAULTS[name]
    reduced = minify(built.gm, built.inputs, lookup(f"{TOYS}:{name}"), check)
    assert reduced.fault.kind == kind
    assert reduced.ops == 2
    targets = [node.target for node in reduced.gm.graph.nodes if node.op == "call_function"]
    assert targets == [torch.cos, torch.sin]


@pytest.mark.parametrize("dynamic", [(), (0,)])
@pytest.mark.parametrize("after", ["aot", "backend"])
def test_graphs_of_aot_autograd_are_reduced(after: str, dynamic: tuple[int, ...]) -> None:
    built = network(requires_grad=True, dynamic=dynamic)
    reduced = minify(built.gm, built.inputs, lookup(f"{TOYS}:crash"), FaultCheck("crash"), after)
    targets = [node.target for node in reduced.gm.graph.nodes if node.op == "call_function"]
    assert targets == [torch.ops.aten.cos.default, torch.ops.aten.sin.default]
    assert reduced.check.direct == (after == "backend")


def test_right_backend_has_nothing_to_reduce() -> None:
    built = network()
    with pytest.raises(NoFault, match="'aot_eager' has no fault here"):
        minify(built.gm, built.inputs, aot_eager)


def test_graph_that_raises_eagerly_is_no_fault_of_a_backend() -> None:
    graph = torch.fx.Graph()
    graph.output((graph.call_function(torch.add, (graph.placeholder("x"), "text")),))
    gm = torch.fx.GraphModule({}, graph)
    assert find_fault(gm, [torch.ones(2)], lookup(f"{TOYS}:crash")) is None


def test_accuracy_determines_what_is_a_fault() -> None:
    build = GraphBuilder()
    built = build.finish(build.call(torch.sin, build.input(torch.ones(3))))

    def nearly(gm: torch.fx.GraphModule, inputs: object) -> Callable[..., Any]:
        return lambda x: (gm(x)[0] * (1 + 1e-6),)

    found = [find_fault(built.gm, built.inputs, nearly, FaultCheck(level)) for level in LEVELS]
    assert [fault is not None for fault in found] == [False, False, False, True]
    with pytest.raises(ValueError, match="accuracy"):
        FaultCheck("exact")


@pytest.mark.parametrize("after", ["capture", "aot"])
@pytest.mark.parametrize("name", ["crash_with_symbols", "wrong_with_symbols"])
def test_sizes_stay_symbols_where_the_fault_needs_them(
    name: str, after: str, tmp_path: Path
) -> None:
    build = GraphBuilder()
    weight = build.input(torch.randn(4, 4))
    value = build.input(torch.randn(6, 4), (0,))
    for _ in range(3):
        value = build.call(torch.relu, build.call(torch.matmul, value, weight))
    found = build.call(torch.sin, build.call(torch.cos, value))
    built = build.finish(build.call(torch.tanh, found), build.call("size", value, 0))
    backend = lookup(f"{TOYS}:{name}")

    script = write_repro(built.gm, built.inputs, tmp_path, backend)
    (size,) = re.findall(r"SIZES = \{'(s\d+)': 6\}", script.read_text())
    assert f"tensor(({size}, 4, ), (4, 1, )" in script.read_text()
    assert run_alone(script, tmp_path).returncode == 1

    for saved in (SavedGraph.load(script), SavedGraph(built.gm, built.inputs)):
        reduced = minify_to(saved, backend, FaultCheck(), after, tmp_path / "small.py")
        assert reduced.ops == 2
        assert "SIZES = {'s" in (tmp_path / "small.py").read_text()
        assert run_alone(tmp_path / "small.py", tmp_path).stdout.startswith(
            name.split("_", maxsplit=1)[0]
        )


def test_sizes_are_numbers_where_the_fault_does_not_need_them(tmp_path: Path) -> None:
    built = network(dynamic=(0,))
    saved = SavedGraph(built.gm, built.inputs)
    minify_to(saved, lookup(f"{TOYS}:crash"), FaultCheck(), "capture", tmp_path / "small.py")
    assert "SIZES = {}" in (tmp_path / "small.py").read_text()


def test_sizes_of_a_reduced_graph_are_expressions(tmp_path: Path) -> None:
    build = GraphBuilder()
    x = build.input(torch.randn(5, 3), (0, 1))
    halved = build.call(operator.getitem, x, (slice(None, None, 2),))
    doubled = build.call(torch.cat, [halved, halved], 1)
    built = build.finish(build.call(torch.sin, build.call(torch.cos, doubled)))
    backend = lookup(f"{TOYS}:crash_with_symbols")
    saved = SavedGraph(built.gm, built.inputs)
    minify_to(saved, backend, FaultCheck(), "capture", tmp_path / "small.py")

    space: dict[str, Any] = {"__name__": "small", "__file__": str(tmp_path / "small.py")}
    exec((tmp_path / "small.py").read_text(), space)
    assert [*space["SIZES"].values()] == [5, 3]
    assert [tuple(space["inputs"](rows, 4)[-1].shape) for rows in (5, 8)] == [(3, 8), (4, 8)]
    assert run_alone(tmp_path / "small.py", tmp_path).stdout.startswith("crash")


LEVELS = ("crash", "loose", "default", "strict")


def run_alone(path: Path, folder: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(path)]
    return subprocess.run(
        command, cwd=folder, capture_output=True, text=True, check=False, timeout=120
    )


@pytest.mark.parametrize("name", FAULTS)
def test_minified_script_shows_the_fault_alone(name: str, tmp_path: Path) -> None:
    built, (kind, check) = network(), FAULTS[name]
    backend = lookup(f"{TOYS}:{name}")
    script = write_repro(built.gm, built.inputs, tmp_path, backend, check)
    saved = SavedGraph.load(script)
    assert saved.backend is backend
    reduced = minify_to(saved, backend, saved.check, "capture", tmp_path / "small.py")
    assert reduced.ops <= 3

    done = run_alone(tmp_path / "small.py", tmp_path)
    assert (done.returncode, done.stdout.partition(":")[0]) == (1, kind), done.stderr
    assert not (tmp_path / "small.pt").exists()


def test_values_are_saved_where_the_fault_needs_them(tmp_path: Path) -> None:
    build = GraphBuilder()
    x = build.input(torch.full((3,), 20.0))
    built = build.finish(build.call(torch.add, build.call(torch.mul, x, 2), 2))
    backend = lookup(f"{TOYS}:halved_result")
    minify_to(
        SavedGraph(built.gm, built.inputs), backend, FaultCheck(), "capture", tmp_path / "a.py"
    )
    assert (tmp_path / "a.pt").exists()
    assert run_alone(tmp_path / "a.py", tmp_path).stdout.startswith("wrong: output 0")


def test_pair_saved_by_torch_is_a_saved_graph(tmp_path: Path) -> None:
    graph = torch.fx.Graph()
    graph.output((graph.call_function(torch.sin, (graph.placeholder("x"),)),))
    torch.save((torch.fx.GraphModule({}, graph), [torch.ones(2)]), tmp_path / "pair.pt")
    saved = SavedGraph.load(tmp_path / "pair.pt")
    assert saved.backend is None
    assert torch.equal(saved.gm(*saved.inputs)[0], torch.ones(2).sin())


@pytest.mark.parametrize(
    ("backend", "expression"),
    [
        (eager, "lookup('eager')"),
        (CountingBackend(aot_eager), "lookup('aot_eager')"),
        (
            configure(lookup("inductor"), options={"max_fusion_size": 8}),
            "configure(lookup('inductor'), None, {'max_fusion_size': 8})",
        ),
        (lookup(f"{TOYS}:crash"), f"lookup('{TOYS}:crash')"),
        (
            configure(lookup(f"{TOYS}:crash"), mode="fast", options={"level": 1}),
            f"configure(lookup('{TOYS}:crash'), 'fast', {{'level': 1}})",
        ),
        (lambda gm, inputs: gm, "None  # set it: <function <lambda> at"),
    ],
)
def test_script_names_the_backend(backend: Any, expression: str, tmp_path: Path) -> None:
    build = GraphBuilder()
    built = build.finish(build.call(torch.sin, build.input(torch.ones(3))))
    path = write_repro(built.gm, built.inputs, tmp_path, backend)
    assert f"    return {expression}" in path.read_text()


def test_backend_of_a_module_that_is_not_installed_is_named_by_its_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "own_backend.py"
    file.write_text("def run(gm, example_inputs):\n    return gm.forward\n")
    monkeypatch.syspath_prepend(tmp_path)
    backend = importlib.import_module("own_backend").run
    build = GraphBuilder()
    built = build.finish(build.call(torch.sin, build.input(torch.ones(3))))
    path = write_repro(built.gm, built.inputs, tmp_path / "repros", backend)
    assert f"    return lookup('{file.resolve()}:run')" in path.read_text()
    done = run_alone(path, tmp_path)
    assert (done.returncode, done.stdout) == (0, "no fault\n"), done.stderr


def failing(gm: torch.fx.GraphModule, inputs: object) -> Any:
    raise NotImplementedError


def test_failure_without_a_script_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STATOR_REPRO_FOLDER", str(tmp_path / "file"))
    (tmp_path / "file").write_text("")
    reasons = {torch.sin: "no script was written: ", (lambda x: x + 1): "<function "}
    for function, reason in reasons.items():
        build = GraphBuilder()
        built = build.finish(build.call(function, build.input(torch.ones(3))))
        with pytest.raises(BackendError) as caught:
            lower(built.gm, built.inputs, failing, fake_mode=built.fake_mode, writes_repro=True)
        assert caught.value.repro.startswith(reason)
