"""The outside package in ``plugin/`` works without a change to ours: found by name, or passed as an
object."""

from __future__ import annotations

import importlib
import pathlib
from typing import Any

import pytest
import stator
import torch
from torch import Tensor

PLUGIN = pathlib.Path(__file__).resolve().parents[1] / "plugin" / "src"


@pytest.fixture
def plugin() -> Any:
    return importlib.import_module("stator_example_plugin")


def double(x: Tensor) -> Tensor:
    return x * 2


def test_plugin_is_installed_and_listed(plugin: Any) -> None:
    assert "example_plugin" in stator.list_backends()
    assert not pathlib.Path(plugin.__file__).is_relative_to(PLUGIN), (
        "installed from a wheel, not found in the tree"
    )


def test_backend_of_the_plugin_compiles(plugin: Any) -> None:
    before = len(plugin.SEEN)
    assert stator.compile(double, backend="example_plugin")(torch.ones(2)).tolist() == [2.0, 2.0]
    assert len(plugin.SEEN) == before + 1


def test_guard_layer_of_the_plugin_replaces_ours(plugin: Any) -> None:
    guards = plugin.CountingGuards()
    compiled = stator.compile(double, backend="eager", stack=stator.Stack(guards=guards))
    assert compiled(torch.ones(2)).tolist() == [2.0, 2.0]
    assert compiled(torch.ones(2, dtype=torch.float64)).dtype == torch.float64
    assert guards.count > 0


def test_operator_of_the_plugin_is_one_node_with_a_body(plugin: Any) -> None:
    seen = []

    def labelled(x: Tensor) -> Any:
        def body(a: Tensor) -> Any:
            seen.append(a.dim())
            return a.sin(), x

        return plugin.region(body, x + 1, label="here")

    compiled = stator.compile(labelled, backend="eager")
    plugin.ENTERED.clear()
    x = torch.ones(2)
    assert compiled(x)[1] is x
    assert (plugin.ENTERED, seen) == (["here"], [1])
    (graph,) = compiled.report.graphs
    assert [name for name, _ in graph.named_children()] == ["region_body_0"]
