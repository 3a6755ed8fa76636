"""`bisect` names the first layer that differs; each failure of a backend leaves a script."""

from __future__ import annotations

import builtins
import random
import subprocess
import sys
import types
from argparse import Namespace
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
import stator
import torch
from stator.__main__ import COMMANDS, main
from stator._bisect import smallest_sufficient
from stator._command_line._command import UsageError
from stator_backends import BackendError, eager, lookup
from stator_bytecode import HandlerTable
from stator_variables import ConstantTracker, Space, SymbolicDomain
from torch import Tensor, nn

TOYS = """
import torch

def crash_with_symbols(gm, example_inputs):
    if any(isinstance(value, torch.SymInt) for value in example_inputs):
        return crash(gm, example_inputs)
    return gm.forward

def crash(gm, example_inputs):
    if any(node.target is torch.cos for node in gm.graph.nodes):
        raise ValueError("no kernel")
    return gm.forward

def wrong_fusion(gm, example_inputs):
    for node in gm.graph.nodes:
        if node.target is torch.cos:
            node.target = torch.sin
    gm.recompile()
    return gm.forward
"""


@pytest.fixture
def toys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Any]:
    """Backends in a file, which another process can load."""
    monkeypatch.setenv("STATOR_REPRO_FOLDER", str(tmp_path / "repros"))
    (tmp_path / "toys.py").write_text(TOYS)
    return lambda name: lookup(f"{tmp_path / 'toys.py'}:{name}")


class Layers(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 4)
        self.norm = nn.BatchNorm1d(4)

    def forward(self, x: Tensor, scale: float = 1.0) -> Tensor:
        hidden = torch.relu(self.norm(self.linear(x)))
        print(end="")
        return torch.cos(hidden).sum(0) * scale


def test_layers_that_do_the_same_are_listed() -> None:
    torch.manual_seed(0)  # the gradient of a batch of three is ill-conditioned for some numbers
    model, x = Layers(), torch.randn(3, 4, requires_grad=True)
    found = stator.bisect(model, (x,), {"scale": 2.0}, backends=["aot_eager"])
    assert found.first is None
    assert str(found).splitlines() == [
        "eager: the same",
        "aot_eager: the same",
        "aot_eager_decomp_partition: the same",
        "aot_eager: the same",
    ]
    assert x.grad is None
    assert model.norm.num_batches_tracked == 0


@pytest.mark.parametrize("name", ["crash", "wrong_fusion"])
def test_first_layer_that_differs_is_named_with_its_smallest_graph(
    name: str, toys: Callable[[str], Any], tmp_path: Path
) -> None:
    torch.manual_seed(0)  # as above
    found = stator.bisect(Layers(), (torch.randn(3, 4),), backends=[toys(name)], folder=tmp_path)
    assert found.first == name
    assert found.reduced is not None
    assert found.reduced.ops == 1
    done = subprocess.run(
        [sys.executable, str(found.script)], cwd="/", capture_output=True, text=True, check=False
    )
    assert done.returncode == 1, done.stderr
    assert "1 operators show it" in str(found)


def test_capture_is_the_first_layer() -> None:
    def changed_by_capture(x: Tensor) -> Tensor:
        return x + (1 if stator.is_compiling() else 0)

    found = stator.bisect(changed_by_capture, (torch.zeros(2),))
    assert found.first == "eager"
    assert found.captures == ("tensors.torch_functions",)


def handled(function: Callable[..., Any], result: float) -> stator.Stack:
    """The standard handlers, with another one for a function."""

    def handle(t: Space, args: list[Any], kwargs: dict[str, Any]) -> Any:
        return ConstantTracker(result)

    def handlers() -> HandlerTable[Any, Any]:
        standard = stator.default_handlers()
        handle.__module__ = standard[function].__module__
        return standard.overridden_by({function: handle})

    return stator.Stack(handlers=handlers)


def test_capture_with_a_wrong_handler_is_named() -> None:
    def program(x: Tensor, numbers: list[int]) -> Tensor:
        numbers.append(random.randrange(4))
        return x * len(numbers) + random.random()

    args = torch.ones(2), [1, 2]
    right = stator.bisect(program, args, backends=[])
    assert (right.first, right.captures) == (None, ())
    planted: dict[Any, str] = {
        random.Random.random: "library.random.python",
        list.__len__: "objects.list_methods",
    }
    for function, capture in planted.items():
        found = stator.bisect(program, args, stack=handled(function, 7))
        assert found.first == "eager"
        assert found.captures == (capture,)
        advice = f"without the capture '{capture}' it does the same: "
        assert f"{advice}options={{'without': ['{capture}']}}" in str(found)


def test_fault_outside_of_all_captures_is_said_to_be_there() -> None:
    class Adding(SymbolicDomain):
        def binary(self, operator: str, left: Any, right: Any) -> Any:
            return super().binary("+" if operator == "*" else operator, left, right)

    found = stator.bisect(lambda x: x * 3, (torch.ones(2),), stack=stator.Stack(domain=Adding))
    assert (found.first, found.captures) == ("eager", ())
    assert "also without handlers" in found.note


@pytest.mark.parametrize("needed", ["", "a", "e", "c", "bd", "ae", "abcde"])
def test_smallest_set_of_sufficient_names(needed: str) -> None:
    tried: list[Sequence[str]] = []

    def is_sufficient(names: Sequence[str]) -> bool:
        tried.append(names)
        return set(needed) <= set(names)

    assert "".join(smallest_sufficient("abcde", is_sufficient)) == needed
    assert len(tried) <= 1 + 4 * len(needed)


def test_accuracy_of_a_bisection(toys: Callable[[str], Any]) -> None:
    def angle(x: Tensor) -> Tensor:
        return torch.cos(x)

    backends = [toys("wrong_fusion")]
    found = stator.bisect(angle, (torch.ones(2),), backends=backends, accuracy="crash")
    assert found.first is None
    with pytest.raises(stator.InvalidUse, match="no accuracy is called 'exact'"):
        stator.bisect(angle, (torch.ones(2),), accuracy="exact")


def failure(backend: Any) -> stator.BackendFailed:
    compiled = stator.compile(Layers(), backend=backend)
    with pytest.raises(stator.BackendFailed) as caught:
        compiled(torch.randn(3, 4))
    return caught.value


def test_failed_backend_leaves_a_script_that_one_command_reduces(
    toys: Callable[[str], Any], capsys: pytest.CaptureFixture[str]
) -> None:
    failed = failure(toys("crash"))
    assert failed.repro in str(failed)
    assert main(["minify", failed.repro, "--accuracy", "crash"]) == 0
    printed = capsys.readouterr().out
    assert "# 1 operators: " in printed
    small = Path(failed.repro).with_name(f"{Path(failed.repro).stem}_minified.py")
    done = subprocess.run(
        [sys.executable, str(small)], capture_output=True, text=True, check=False, cwd="/"
    )
    assert (done.returncode, done.stdout) == (1, "crash: ValueError: no kernel\n"), done.stderr


def test_failed_backend_says_why_there_is_no_script(
    toys: Callable[[str], Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("STATOR_REPRO_FOLDER", str(tmp_path / "file"))
    failed = failure(toys("crash"))
    assert "script: no script was written: " in str(failed)
    assert "minify" not in str(failed)


def test_failure_of_a_dynamic_graph_is_reduced_with_its_symbols(
    toys: Callable[[str], Any], capsys: pytest.CaptureFixture[str]
) -> None:
    def f(x: Tensor, y: Tensor) -> Tensor:
        rows = torch.cat([x @ y, x], 1)
        return torch.cos(rows.reshape(-1, x.shape[0])) * rows.shape[1]

    compiled = stator.compile(f, backend=toys("crash_with_symbols"), dynamic=True)
    with pytest.raises(stator.BackendFailed) as caught:
        compiled(torch.randn(6, 4), torch.randn(4, 5))
    script = Path(caught.value.repro)
    assert main(["minify", str(script)]) == 0
    assert "# 1 operators: " in capsys.readouterr().out

    for path in (script, script.with_name(f"{script.stem}_minified.py")):
        done = subprocess.run(
            [sys.executable, str(path)], capture_output=True, text=True, check=False, cwd="/"
        )
        assert (done.returncode, done.stdout) == (1, "crash: ValueError: no kernel\n"), done.stderr


def test_wrong_number_of_outputs_leaves_a_script(toys: Callable[[str], Any]) -> None:
    def forgets(gm: torch.fx.GraphModule, example_inputs: Sequence[Any]) -> Any:
        return lambda *args: eager(gm, ())(*args)[:0]

    failed = failure(forgets)
    assert "0 outputs instead of a tuple of" in failed.reason
    assert "# set it: <function" in Path(failed.repro).read_text()
    with pytest.raises(UsageError, match="names no backend"):
        COMMANDS["minify"].run(Namespace(file=failed.repro, backend=None))


def test_failure_that_falls_back_is_reported_with_its_script(toys: Callable[[str], Any]) -> None:
    compiled = stator.compile(Layers(), backend=toys("crash"), options={"fallback": True})
    compiled(torch.randn(3, 4))
    assert "script: " in str(compiled.report)


def test_failure_that_another_trace_avoids_leaves_no_script(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STATOR_REPRO_FOLDER", str(tmp_path))

    def without_symbols(gm: Any, example_inputs: Any) -> Any:
        if any(isinstance(value, Tensor) and value.dim() == 0 for value in example_inputs):
            raise RuntimeError("numbers have to be constants")
        return gm.forward

    compiled = stator.compile(lambda x, k: x * k, backend=without_symbols)
    for k in (2.0, 3.0, 4.0):
        assert torch.equal(compiled(torch.ones(3), k), torch.ones(3) * k)
    assert not [*tmp_path.iterdir()]

    def failing(gm: Any, example_inputs: Any) -> Any:
        gm.graph.erase_node(next(iter(reversed(gm.graph.nodes))))
        raise RuntimeError("no kernel")

    with pytest.raises(stator.BackendFailed):
        stator.compile(lambda x: x.sin() * 2, backend=failing)(torch.ones(3))
    (script,) = tmp_path.iterdir()
    assert "graph.output((mul, ))" in script.read_text()


SCRIPT = """
import stator, torch

{before}

def shifted(gm, inputs):
    return lambda *args: tuple(out + 1 for out in gm(*args))

STARTED.append(__name__)
if len(STARTED) > 3:
    raise SystemExit("started again and again")
found = stator.bisect(lambda x: torch.relu(x.sin() + 1), (torch.ones(3),), backends=[shifted])
"""


def started(path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[list[str], Any]:
    """Run a script as Python does, as `__main__`."""
    names: list[str] = []
    monkeypatch.setattr(builtins, "STARTED", names, raising=False)
    module = types.ModuleType("__main__")
    module.__file__ = str(path)
    monkeypatch.setitem(sys.modules, "__main__", module)
    exec(compile(path.read_text(), str(path), "exec"), vars(module))
    return names, vars(module).get("found")


def test_a_script_that_bisects_at_its_top_level_is_run_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "toplevel.py"
    path.write_text(SCRIPT.format(before=""))
    names, found = started(path, monkeypatch)
    assert names == ["__main__"]
    assert found.first == "shifted"
    assert found.reduced is not None
    assert f"{path}:shifted" in found.script.read_text()


def test_a_script_that_starts_itself_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "endless.py"
    lookups = "from stator_backends import lookup; lookup(__file__ + ':not_there_yet')"
    path.write_text(SCRIPT.format(before=f"STARTED.append(__name__); {lookups}"))
    with pytest.raises(BackendError, match="if __name__ == '__main__'"):
        started(path, monkeypatch)
