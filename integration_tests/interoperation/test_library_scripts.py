"""Scripts that use libraries, unchanged, under the command line: they print what they print without
a compiler, and the report shows what was compiled.

Scripts whose library is not installed are left out.
"""

from __future__ import annotations

import importlib.util
import json
import os
import pathlib
import subprocess
import sys

import pytest

FOLDER = pathlib.Path(__file__).parent / "library_scripts"
LIBRARIES = {
    "diffusers_pipeline": "diffusers",
    "lightning_module": "lightning",
    "pyg_script": "torch_geometric",
    "timm_training": "timm",
    "transformers_trainer": "accelerate",
}
RUNNABLE = [name for name, each in LIBRARIES.items() if importlib.util.find_spec(each)]


def run(arguments: list[str], folder: pathlib.Path, **environment: str) -> str:
    found = subprocess.run(
        [sys.executable, "-W", "ignore", *arguments],
        cwd=folder,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert found.returncode == 0, found.stderr
    return found.stdout


def test_every_script_has_its_library() -> None:
    assert set(LIBRARIES) == {path.stem for path in FOLDER.glob("*.py")}


@pytest.mark.slow
@pytest.mark.parametrize("name", RUNNABLE)
def test_script_runs_unchanged_under_the_command_line(name: str, tmp_path: pathlib.Path) -> None:
    script = str(FOLDER / f"{name}.py")
    expected = run([script], tmp_path, TORCH_COMPILE_DISABLE="1")

    report = tmp_path / "report.json"
    options = ["--backend", "eager", "--json", "--output", str(report)]
    printed = run(["-m", "stator", "report", *options, script], tmp_path)

    assert printed.splitlines()[-1] == expected.splitlines()[-1]
    compiled = json.loads(report.read_text())["compiled"]
    assert compiled
    assert all(each["graphs"] for each in compiled.values())
