"""Running what was dumped gives the same result, in this process and in another."""

from __future__ import annotations

import importlib
import pathlib
import subprocess
import sys
import threading
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


def test_text_of_graphs_that_was_not_kept_is_missed(tmp_path: pathlib.Path) -> None:
    compiled = stator.compile(lambda x: x + 1, backend="eager", options={"keep_text": False})
    compiled(X)
    with pytest.raises(stator.InvalidUse, match="the text of graphs was not kept"):
        stator.dump(compiled, tmp_path)


def test_object_that_no_file_can_hold_is_named(tmp_path: pathlib.Path) -> None:
    lock = threading.Lock()
    compiled = stator.compile(lambda x: (x + 1, lock), backend="eager")
    compiled(X)
    with pytest.raises(stator.InvalidUse, match=r"cannot dump: cannot pickle '_thread\.lock'"):
        stator.dump(compiled, tmp_path)


def test_guards_that_only_this_process_can_check_are_left_out(tmp_path: pathlib.Path) -> None:
    class Local:
        k = 3

    compiled = stator.compile(lambda x, local: x * local.k, backend="eager")
    compiled(X, Local())
    loaded = stator.load(stator.dump(compiled, tmp_path))
    assert torch.equal(loaded(X, Local()), X * 3)
    assert torch.equal(loaded(X + 1, Local()), (X + 1) * 3)


def test_constants_of_a_graph_and_cells_without_a_value(tmp_path: pathlib.Path) -> None:
    def shifted(x: Any, late: bool = False) -> Any:
        return absent if late else x + torch.tensor([1.0, 2.0, 3.0])

    compiled = stator.compile(shifted, backend="eager")
    compiled(X)
    loaded = stator.load(stator.dump(compiled, tmp_path))
    assert torch.equal(loaded(X), shifted(X))
    for run in (loaded, shifted):
        with pytest.raises(NameError, match="absent"):
            run(X, late=True)
    absent = 1


def test_function_of_a_module_that_is_not_imported(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "SCALE = 3\ndef scaled(x):\n    return x * SCALE\n"
    (tmp_path / "a_program_to_dump.py").write_text(text)
    with monkeypatch.context() as importable:
        importable.syspath_prepend(tmp_path)
        program: Any = importlib.import_module("a_program_to_dump")
        compiled = stator.compile(program.scaled, backend="eager")
        compiled(X)
        folder = stator.dump(compiled, tmp_path / "dumped")
        del sys.modules["a_program_to_dump"]
        assert torch.equal(stator.load(folder)(X), X * 3)
    del sys.modules["a_program_to_dump"]
    assert torch.equal(stator.load(folder)(X), X * 3)  # from the file
