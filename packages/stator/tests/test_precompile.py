"""Entries that are made before the first call: later processes interpret nothing for them."""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import sys
from typing import Any

import pytest
import stator
import torch
from stator.__main__ import main
from stator._shipping._example import Example, examples_of
from torch.export import Dim

SCALE = 2.0
X = torch.ones(3, 4)


@pytest.fixture(autouse=True)
def folder(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> pathlib.Path:
    monkeypatch.setenv("STATOR_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path


def scaled(x: Any, factor: int = 3, *, shift: Any = None) -> Any:
    y = x * SCALE * factor
    return y if shift is None else y + shift


def shapes(examples: list[Any]) -> list[list[tuple[int, ...]]]:
    calls = [call for each in examples for call in Example.of(each).calls()]
    return [[tuple(value.shape) for value in (*call.args, *call.kwargs.values())] for call in calls]


def in_a_new_process(fn: Any) -> Any:
    """Compile as a process does that finds the files."""
    stator.reset()
    return stator.compile(fn, backend="eager", options={"cache": True})


def test_calls_of_later_processes_are_not_interpreted(traces: list[int]) -> None:
    examples = [(X,), (X[:2],), (X.double(), 5), {"x": X, "shift": X}]
    lines = stator.precompile(scaled, examples, processes=0, backend="eager")
    assert len(lines) == 4
    assert all(line.endswith("written to the cache") for line in lines)
    traces.clear()
    compiled = in_a_new_process(scaled)
    with torch.no_grad():
        for x in (X, X[:2], torch.ones(7, 4)):
            assert torch.equal(compiled(x), scaled(x))
        assert torch.equal(compiled(X.double(), 5), scaled(X.double(), 5))
        assert torch.equal(compiled(x=X, shift=X), scaled(X, shift=X))
    assert not traces


def test_entry_of_a_range_serves_all_its_sizes(traces: list[int]) -> None:
    example = stator.ExampleTensor(((1, 64), 4))
    stator.precompile(scaled, [example], processes=0, backend="eager")
    traces.clear()
    compiled = in_a_new_process(scaled)
    with torch.no_grad():
        for size in (64, 1, 2, 33):
            assert torch.equal(compiled(torch.ones(size, 4)), scaled(torch.ones(size, 4)))
    assert not traces


def test_training_includes_the_backward_pass(traces: list[int]) -> None:
    example = stator.ExampleTensor((3, 4), requires_grad=True)
    stator.precompile(scaled, [example], mode="training", processes=0, backend="aot_eager")
    traces.clear()
    stator.reset()
    compiled = stator.compile(scaled, backend="aot_eager", options={"cache": True})
    x = X.clone().requires_grad_()
    compiled(x).sum().backward()
    assert torch.equal(x.grad if x.grad is not None else X, X * 6)
    assert not traces


@pytest.mark.parametrize(
    ("sizes", "expected"),
    [
        ((3, 4), [(3, 4)]),
        (((2, 9), 4), [(2, 4), (3, 4)]),
        (((1, 9), 4), [(2, 4), (3, 4), (1, 4)]),
        (((0, 9), 4), [(2, 4), (3, 4), (0, 4), (1, 4)]),
        (((5, 5), 4), [(5, 4), (5, 4)]),
        (((2, 9), (2, 9)), [(2, 3), (4, 5)]),
        (((1, 1), 4), [(1, 4), (1, 4), (1, 4)]),
    ],
)
def test_sizes_of_the_calls_of_a_range(sizes: Any, expected: list[Any]) -> None:
    assert shapes([stator.ExampleTensor(sizes)]) == [[each] for each in expected]


def test_equal_names_are_equal_sizes() -> None:
    batch = Dim("batch", min=1, max=8)
    one, other = stator.ExampleTensor((batch, 4)), stator.ExampleTensor((batch,), torch.int64)
    assert shapes([(one, other)]) == [[(2, 4), (2,)], [(3, 4), (3,)], [(1, 4), (1,)]]


def test_examples_of_a_document() -> None:
    tensor = {"shape": [[1, 8], 4], "dtype": "int64"}
    named = {"shape": [{"name": "batch", "min": 2, "max": 8}]}
    (found,) = examples_of({"calls": [{"args": [tensor, 3, [named]], "kwargs": {"k": None}}]})
    first = next(found.calls())
    assert first.args[0].dtype is torch.int64
    assert tuple(first.args[0].shape) == (2, 4)
    assert first.args[1] == 3
    assert tuple(first.args[2][0].shape) == (3,)
    assert first.kwargs == {"k": None}


@pytest.mark.parametrize(
    ("document", "text"),
    [
        ({}, "no list of calls"),
        ([3], "no list of calls"),
        ([{"arguments": []}], "a call has no 'arguments'"),
        ([{"args": [{"shape": [3], "type": "x"}]}], "a tensor has no 'type'"),
        ([{"args": [{"shape": [3], "dtype": "float3"}]}], "no dtype 'float3'"),
    ],
)
def test_mistake_in_a_document_is_named(document: Any, text: str) -> None:
    with pytest.raises(stator.InvalidUse, match=text):
        examples_of(document)


def generates(x: Any) -> Any:
    return (x for _ in range(3))


def test_what_cannot_be_precompiled_is_refused_with_the_reason() -> None:
    def local(x: Any) -> Any:
        return x + 1

    with pytest.raises(stator.InvalidUse, match="it makes generators"):
        stator.precompile(generates, [X], processes=0, backend="eager")
    with pytest.raises(stator.InvalidUse, match="no other process can have"):
        stator.precompile(local, [X], processes=1, backend="eager")
    assert stator.precompile(local, [X], backend="eager")  # in this process
    with pytest.raises(stator.InvalidUse, match="there is no mode 'quick'"):
        stator.precompile(scaled, [X], mode="quick")
    with pytest.raises(stator.InvalidUse, match="is no range of sizes"):
        stator.precompile(scaled, [stator.ExampleTensor(((9, 1),))], processes=0)
    compiled = stator.compile(scaled, backend="eager")
    with pytest.raises(stator.InvalidUse, match="scaled is compiled already"):
        stator.precompile(compiled, [X], processes=0)


def test_function_that_is_compiled_already_keeps_its_settings(traces: list[int]) -> None:
    compiled = in_a_new_process(scaled)
    assert stator.precompile(compiled, [X], processes=0)
    traces.clear()
    with torch.no_grad():
        assert torch.equal(in_a_new_process(scaled)(X), scaled(X))
    assert not traces


def test_command_names_mistakes(folder: pathlib.Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["precompile", "json:loads", "--shapes", str(folder / "none")]) == 2
    (folder / "shapes.json").write_text("[3]")
    assert main(["precompile", "json:loads", "--shapes", str(folder / "shapes.json")]) == 1
    assert "no list of calls" in capsys.readouterr().err


SERVING = """
import torch
import stator

model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Dropout(0.5)).eval()

@stator.compile(backend="aot_eager", options={"cache": True})
def serve(x, scale=1):
    return model(x).relu() * scale
"""
SECOND = """
import torch
from stator_bytecode import Machine
from serving import serve

runs = []
plain = Machine.run
Machine.run = lambda self, frames: runs.append(1) or plain(self, frames)
with torch.no_grad():
    for size in (1, 5, 64):
        serve(torch.ones(size, 4))
        serve(torch.ones(size, 4, dtype=torch.float64).float(), 2)
print(len(runs))
"""


@pytest.mark.slow
def test_processes_of_the_command_fill_the_cache_for_a_later_one(folder: pathlib.Path) -> None:
    (folder / "serving.py").write_text(SERVING)
    (folder / "second.py").write_text(SECOND)
    tensor = {"shape": [[1, 64], 4]}
    calls = [{"args": [tensor]}, {"args": [tensor], "kwargs": {"scale": 2}}]
    (folder / "shapes.json").write_text(json.dumps({"calls": calls}))
    command = ["-m", "stator", "precompile", "serving:serve", "--shapes", "shapes.json"]
    outputs = []
    for arguments in ([*command, "--processes", "2"], ["second.py"]):
        done = subprocess.run(
            [sys.executable, *arguments],
            cwd=folder,
            env={**os.environ, "STATOR_CACHE_DIR": str(folder / "cache")},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        outputs.append(done.stdout.split("\n"))
    assert all("written to the cache" in line for line in outputs[0][:-1])
    assert outputs[1][0] == "0"
