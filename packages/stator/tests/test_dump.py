"""Running what was dumped gives the same result, in this process and in another."""

from __future__ import annotations

import pathlib
import subprocess
import sys
from typing import Any

import pytest
import stator
import torch

SCALE = 3
X = torch.arange(3.0)


def steps(x: Any, k: int = 2) -> Any:
    y = x.sin() * SCALE + k
    stator.graph_break()
    if y.sum() > 0:
        return {"y": y, "x": x}
    return [y * 2, k]


def values(result: Any) -> list[Any]:
    parts = result.values() if isinstance(result, dict) else result
    return [part.tolist() if isinstance(part, torch.Tensor) else part for part in parts]


@pytest.fixture
def dumped(tmp_path: pathlib.Path) -> pathlib.Path:
    compiled = stator.compile(steps, backend="eager")
    for x in (X, X - 100):
        compiled(x)
    return stator.dump(compiled, tmp_path / "dumped")


def test_every_part_is_a_file(dumped: pathlib.Path) -> None:
    names = {path.name for path in dumped.iterdir()}
    assert {
        "run.py",
        "report.txt",
        "constants.pkl",
        "entry_0.py",
        "guards_0.py",
        "graph_0.py",
        "break_0.txt",
    } <= names
    assert "code: y = x.sin() * SCALE + k" in (dumped / "graph_0.py").read_text()
    assert "SCALE" in (dumped / "guards_0.py").read_text()
    assert "runs natively" in (dumped / "break_0.txt").read_text()


def test_loaded_dump_gives_the_same(dumped: pathlib.Path) -> None:
    loaded = stator.load(dumped)
    for x in (X, X - 100):
        assert values(loaded(x)) == values(steps(x))
    assert values(loaded(X, k=7)) == values(steps(X, k=7))  # no entry for it: runs plainly


def test_what_the_files_say_is_what_runs(dumped: pathlib.Path) -> None:
    graph = dumped / "graph_0.py"
    graph.write_text(graph.read_text().replace("sin * 3", "sin * 30"))
    changed = values(stator.load(dumped)(X))
    assert changed[0] == (X.sin() * 30 + 2).tolist()


@pytest.mark.slow
def test_run_in_a_fresh_process(dumped: pathlib.Path) -> None:
    program = (
        "import sys; sys.path.insert(0, sys.argv[1]); from run import compiled; import torch\n"
    )
    program += "print([part.tolist() for part in compiled(torch.arange(3.0)).values()])"
    done = subprocess.run(
        [sys.executable, "-c", program, str(dumped)], capture_output=True, text=True, check=False
    )
    assert done.stdout.strip() == str(values(steps(X))), done.stderr


def test_module_and_closure(tmp_path: pathlib.Path) -> None:
    offset = 4
    model = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.ReLU())

    def shifted(x: Any) -> Any:
        return model(x) + offset

    compiled = stator.compile(shifted, backend="eager")
    expected = compiled(X)
    stator.dump(compiled, tmp_path)
    assert torch.equal(stator.load(tmp_path)(X), expected)

    module = stator.compile(model, backend="eager")
    module(X)
    stator.dump(module, tmp_path / "module")
    assert torch.equal(stator.load(tmp_path / "module")(model, X), model(X))


def test_folder_without_a_dump_is_refused(tmp_path: pathlib.Path) -> None:
    with pytest.raises(stator.InvalidUse, match="holds no dump"):
        stator.load(tmp_path)
    with pytest.raises(stator.InvalidUse, match="not compiled by stator"):
        stator.dump(len, tmp_path)
