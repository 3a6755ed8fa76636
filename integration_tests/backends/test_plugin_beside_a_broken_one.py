"""All parts of the outside package work next to a distribution that cannot be imported, which is
named in warnings and left out."""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import sys
import tomllib
from typing import Any

import pytest

PLUGIN = pathlib.Path(__file__).resolve().parents[1] / "plugin"
GROUPS = ("stator_operators", "stator_handlers", "stator_builders", "stator_backends")

PROGRAM = """
import json, sys, warnings
from array import array
import stator, torch

results, warned = {}, []
warnings.simplefilter("always")
warnings.showwarning = lambda message, *more: warned.append(str(message))
import stator_example_plugin as plugin

def note(name, compiled, *calls):
    for args in calls:
        compiled(*args)
    report = compiled.report
    results[name] = [report.graph_count, len(report.breaks)]

x = torch.ones(3)

def appended(x, numbers):
    numbers.append(len(numbers))
    return x * numbers[0] + numbers[-1]

numbers = array("i", [5, 6])
compiled = stator.compile(appended, backend="eager", fullgraph=True)
results["value"] = compiled(x, numbers).tolist()
results["items"] = numbers.tolist()
results["kinds"] = sorted({type(guard.kind).__name__ for guard in compiled.report.guards})
note("tracker", compiled, (x, array("i", [5, 6])), (x, array("i", [1])))

region = stator.compile(lambda x: plugin.region(torch.sin, x + 1), backend="eager")
note("operator", region, (x,))

limited = stator.compile(lambda x: x * 2, backend="example_limited")
with torch.no_grad():
    note("limited", limited, (torch.ones(3),), (torch.ones(4),), (torch.ones(5),))
results["shapes"] = [list(shape) for (shape,) in plugin.LIMITED]
trained = torch.ones(3, requires_grad=True)
limited(trained).sum().backward()
results["gradient"] = trained.grad.tolist()
results["uncompiled"] = sorted({each.reason for each in limited.report.uncompiled})
try:
    stator.compile(lambda x: x, backend="broken")
except stator.BackendFailed as error:
    results["backend"] = str(error)
results["warned"] = warned
print(json.dumps(results))
"""


def distribution(folder: pathlib.Path, name: str, points: dict[str, dict[str, str]]) -> None:
    """Write what tells `importlib.metadata` of an installed distribution."""
    info = folder / f"{name}-0.1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 0.1\n")
    lines = []
    for group, entries in points.items():
        lines += [f"[{group}]", *(f"{key} = {value}" for key, value in entries.items())]
    (info / "entry_points.txt").write_text("\n".join(lines))


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = tmp_path_factory.mktemp("installed")
    project = tomllib.loads((PLUGIN / "pyproject.toml").read_text())["project"]
    distribution(folder, "stator_example_plugin", project["entry-points"])
    distribution(
        folder, "stator_broken", {group: {"broken": "stator_broken:x"} for group in GROUPS}
    )
    (folder / "stator_broken.py").write_text("raise ImportError('of a missing library')")
    paths = [str(folder), str(PLUGIN / "src"), os.environ.get("PYTHONPATH", "")]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_tracker_and_its_handlers_and_guard_kind(results: Any) -> None:
    assert results["value"] == [7.0, 7.0, 7.0]
    assert results["items"] == [5, 6, 2]
    assert "ContentIs" in results["kinds"]
    assert results["tracker"] == [2, 0]


def test_operator(results: Any) -> None:
    assert results["operator"] == [1, 0]


def test_limited_backend_gets_specialized_graphs(results: Any) -> None:
    assert results["limited"] == [3, 0]
    assert results["shapes"] == [[3], [4], [5]]


def test_graph_with_gradients_runs_uncompiled_for_the_limited_backend(results: Any) -> None:
    assert results["gradient"] == [2.0, 2.0, 2.0]
    assert results["uncompiled"] == ["gradients, which the backend 'example_limited' does not have"]


def test_distribution_that_cannot_be_imported_is_named(results: Any) -> None:
    for kind in ("operators", "handlers", "builders"):
        expected = f"the {kind} 'broken' (stator_broken:x) are not available"
        assert sum(expected in text for text in results["warned"]) == 1
    assert "of a missing library" in results["backend"]
