"""The conformance kit finds every defect of an outside backend, and none in those that have
none."""

from __future__ import annotations

import importlib
import subprocess
import sys
from typing import Any

import pytest
import stator
import stator_backends
import torch
from stator_backends import BackendSpec, GraphSpec, InputSpec
from stator_backends.conformance import capability_table
from torch import Tensor, nn

from integration_tests.support.description import Tolerance
from integration_tests.support.oracle import assert_same


@pytest.fixture
def plugin() -> Any:
    return importlib.import_module("stator_example_plugin")


@pytest.mark.parametrize("name", ["eager", "aot_eager"])
def test_backends_of_ours_keep_every_property(name: str) -> None:
    table = capability_table(stator_backends.lookup(name))
    assert table.faults == ()
    assert (table.graphs, table.excluded) == (165, 0)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["aot_eager_decomp_partition", "inductor"])
def test_compilers_keep_every_property(name: str) -> None:
    assert capability_table(stator_backends.lookup(name)).faults == ()


def test_good_backend_of_the_plugin_keeps_every_property(plugin: Any) -> None:
    assert capability_table(plugin.interpreted).faults == ()


def test_capabilities_that_a_spec_excludes_are_no_faults(plugin: Any) -> None:
    spec = BackendSpec("limited", training=False, symbolic_shapes=False)
    limited = stator_backends.BackendRegistry().register(plugin.interpreted, spec=spec)
    table = capability_table(limited)
    assert (table.faults, table.graphs + table.excluded) == ((), 165)
    assert table.excluded == 66


def test_one_command_finds_every_defect_of_the_bad_backend(plugin: Any) -> None:
    assert len(plugin.DEFECTS) == 10
    command = [
        sys.executable,
        "-m",
        "stator_backends.conformance",
        "stator_example_plugin:defective",
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1, done.stderr
    rows = [(row[:6].strip(), row[8:23].strip()) for row in done.stdout.splitlines()[1:]]
    assert {name for kept, name in rows if kept == "LOST"} >= {*plugin.DEFECTS}
    assert ("kept", "compiles") in rows


class Scaled(nn.Module):
    """Parameters, buffers, a plain attribute, an argument that is written to, and two views."""

    count: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(4, 4)])
        self.register_buffer("count", torch.zeros(()))
        self.offset = torch.ones(4)

    def forward(self, x: Tensor, out: Tensor, first: Tensor, second: Tensor) -> Tensor:
        out.add_(1)
        self.count.add_(1)
        result: Tensor = self.layers[0](x)
        return result + self.offset + first * second


def test_graph_spec_describes_each_input() -> None:
    seen: list[GraphSpec] = []

    def recording(gm: torch.fx.GraphModule, inputs: Any, **facts: GraphSpec) -> Any:
        seen.append(facts["graph_spec"])
        return gm.forward

    spec = BackendSpec("recording", wants_graph_spec=True)
    backend = stator_backends.BackendRegistry().register(recording, spec=spec)
    base, x = torch.randn(8), torch.randn(3, 4)
    stator.mark_dynamic(x, 0)
    model = stator.compile(Scaled(), backend=backend)
    model(x, torch.zeros(2), base[:4], base[4:])

    (found,) = seen
    inputs = {spec.name or spec.source: spec for spec in found.inputs}
    held = {name: spec.kind for name, spec in inputs.items() if spec.static_address}
    assert held == {
        "layers.0.weight": "parameter",
        "layers.0.bias": "parameter",
        "count": "buffer",
    }
    assert [name for name, spec in inputs.items() if spec.mutated] == ["args[1]", "count"]
    assert [name for name, spec in inputs.items() if spec.dynamic_dims] == ["args[0]"]
    aliases = {name: spec.alias_group for name, spec in inputs.items()}
    assert aliases["args[2]"] == aliases["args[3]"] is not None
    assert aliases["args[0]"] is None
    assert InputSpec("number", "args[0].size(0)") in found.inputs

    weight = torch.nn.Parameter(torch.ones(3))
    double: Any = stator.compile(lambda given: given * 2, backend=backend)
    assert torch.equal(double(weight), weight * 2)
    assert [spec.kind for spec in seen[-1].inputs] == ["parameter"]


def test_repeated_results_are_one_tensor() -> None:
    def given_twice(x: Tensor) -> tuple[Tensor, ...]:
        made = x * 2
        part = made[0]
        return made, part, x.t(), made, part

    first, part, _, again, part_again = stator.compile(given_twice, backend="aot_eager")(
        torch.ones(2, 3)
    )
    assert first is again
    assert part is part_again
    assert part._base is first


def copied_after_an_item_write(x: Tensor) -> Tensor:
    x[1:3] = 7
    copied = x.clone()
    x.add_(1)
    return copied.sin()


def copied_after_a_write_to_a_view(x: Tensor) -> tuple[Tensor, ...]:
    x[1:3].mul_(10)
    return x.clone(), x.reshape(-1).contiguous()


def copied_before_the_write(x: Tensor) -> Tensor:
    copied = x.clone()
    x.index_fill_(0, torch.tensor([1]), 5)
    return copied


@pytest.mark.parametrize(
    "fn", [copied_after_an_item_write, copied_after_a_write_to_a_view, copied_before_the_write]
)
def test_copies_of_an_input_that_is_written_to_in_part(fn: Any) -> None:
    """Inductor of torch 2.13 drops such a copy: the results are wrong there."""
    compiled = stator.compile(fn, backend="inductor")
    tolerance = Tolerance(relative=1e-6, absolute=1e-6)
    assert_same(fn, compiled, lambda: (torch.arange(12.0).reshape(4, 3),), tolerance=tolerance)
