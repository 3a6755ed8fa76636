"""The first things that a new user meets: switches of the environment, names in reports,
plugins."""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys

import pytest
import stator
import torch


class Scaled(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * 2


def run_script(text: str, *paths: pathlib.Path, **variables: str) -> str:
    """Run a program in a process of its own and return what it printed."""
    search = os.pathsep.join([*map(str, paths), *filter(None, sys.path)])
    done = subprocess.run(
        [sys.executable, "-c", text],
        env={**os.environ, "PYTHONPATH": search, **variables},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout


def test_report_names_the_forward_of_a_module() -> None:
    compiled = stator.compile(Scaled(), backend="eager")
    compiled(torch.ones(2))
    assert "Scaled.forward" in str(compiled.report)
    assert "_call_impl" not in str(compiled.report)


def test_limit_warning_names_the_forward_of_a_module() -> None:
    compiled = stator.compile(Scaled(), backend="eager", recompile_limit=1)
    compiled(torch.ones(2))
    with pytest.warns(UserWarning, match=r"Scaled\.forward"):
        compiled(torch.ones(2, dtype=torch.float64))


def test_module_with_a_call_of_its_own_keeps_its_name() -> None:
    class Called(torch.nn.Module):
        def __call__(self, x: torch.Tensor) -> torch.Tensor:
            return x + 1

    compiled = stator.compile(Called(), backend="eager")
    compiled(torch.ones(2))
    assert "Called.__call__" in str(compiled.report)


DISABLED = """
import stator, torch
model = torch.nn.Linear(2, 2)
fn = lambda x: x + 1
assert stator.compile(fn) is fn
assert stator.compile(backend="eager")(fn) is fn
assert stator.compile(model) is model
assert stator.compile_in_place(model) is model and model._compiled_call_impl is None
print("nothing compiled")
"""


@pytest.mark.parametrize("variable", ["TORCH_COMPILE_DISABLE", "TORCHDYNAMO_DISABLE"])
def test_environment_turns_compilation_off(variable: str) -> None:
    assert run_script(DISABLED, **{variable: "1"}) == "nothing compiled\n"


def test_environment_with_another_value_leaves_compilation_on() -> None:
    script = "import stator; fn = lambda x: x; print(stator.compile(fn, backend='eager') is fn)"
    assert run_script(script, TORCH_COMPILE_DISABLE="0") == "False\n"


def test_setting_of_torch_turns_compilation_off() -> None:
    setting = "importlib.import_module('torch._dynamo.config').disable = True"
    script = f"import importlib; {setting}" + DISABLED
    assert run_script(script) == "nothing compiled\n"


WITH_BROKEN_PLUGIN = """
import stator, torch, warnings
compiled = stator.compile(lambda x: x + 1, backend="eager", fullgraph=True)
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    assert compiled(torch.ones(2)).tolist() == [2.0, 2.0]
print(*[warning.message for warning in caught if "operators" in str(warning.message)])
"""


def test_operators_that_cannot_be_imported_are_named_and_left_out(tmp_path: pathlib.Path) -> None:
    information = tmp_path / "broken_plugin-1.0.dist-info"
    information.mkdir()
    (information / "METADATA").write_text("Name: broken-plugin\nVersion: 1.0\n")
    (information / "entry_points.txt").write_text(
        "[stator_operators]\nbroken = module_that_is_not_there:operators\n"
    )
    printed = run_script(WITH_BROKEN_PLUGIN, tmp_path)
    assert printed.startswith("the operators 'broken' (module_that_is_not_there:operators) are not")
    assert "ModuleNotFoundError" in printed
