"""Environment variables that make a process write logs and traces."""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys

import pytest

PROGRAM = """
import torch, stator

def step(x):
    y = x @ x
    stator.graph_break("on purpose")
    return (y.relu() + 1).sum()

stator.compile(step, backend={backend!r})(torch.ones(3, 3))
"""


def run(folder: pathlib.Path, backend: str = "eager", **variables: str) -> str:
    """Run the program in a process of its own; return what it wrote to stderr."""
    environment = {**os.environ, **variables, "TORCHINDUCTOR_CACHE_DIR": str(folder / "cache")}
    command = [sys.executable, "-c", PROGRAM.format(backend=backend)]
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stderr


def test_nothing_is_logged_without_variables(tmp_path: pathlib.Path) -> None:
    assert run(tmp_path, STATOR_LOGS="") == ""


@pytest.mark.parametrize("variable", ["STATOR_LOGS", "TORCH_LOGS"])
def test_logs_of_a_process(tmp_path: pathlib.Path, variable: str) -> None:
    logged = run(tmp_path, **{variable: "graph_breaks"})
    assert "on purpose" in logged
    assert "guards of" not in logged


def test_logs_in_a_file(tmp_path: pathlib.Path) -> None:
    file = tmp_path / "compile.log"
    run(tmp_path, STATOR_LOGS="+graph_breaks,guards", STATOR_LOGS_OUT=str(file))
    assert "on purpose" in file.read_text()
    assert "guards of step" in file.read_text()


@pytest.mark.slow
def test_trace_has_artifacts_of_stator_and_of_inductor(tmp_path: pathlib.Path) -> None:
    run(tmp_path, "inductor", TORCH_TRACE=str(tmp_path / "trace"))
    (file,) = (tmp_path / "trace").iterdir()
    text = file.read_text()
    for name in ("dynamo_start", "dynamo_output_graph", "dynamo_cpp_guards_str", "stator_entry"):
        assert f'"{name}"' in text
    assert '"inductor_output_code"' in text
    assert '"compilation_metrics"' in text


@pytest.mark.slow
def test_debug_variable_makes_inductor_write_its_files(tmp_path: pathlib.Path) -> None:
    run(tmp_path, "inductor", TORCH_COMPILE_DEBUG="1")
    names = {path.name for path in (tmp_path / "torch_compile_debug").rglob("*")}
    assert {"output_code.py", "fx_graph_readable.py", "tlparse"} <= names
