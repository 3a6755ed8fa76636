"""Each method of CPython's own tests ends under `stator.compile` as it does plainly, and nothing of ours fails."""

from __future__ import annotations

import importlib.util
import os
import pathlib
import subprocess
import sys

import pytest

from integration_tests.cpython.record import read
from integration_tests.cpython.selection import EXCLUDED, MODULES, SAMPLE

if importlib.util.find_spec("test.test_list") is None:  # some distributions leave them out, or package them apart
    pytest.skip("this CPython was installed without its own tests", allow_module_level=True)

ROOT = pathlib.Path(__file__).resolve().parent.parent


@pytest.mark.parametrize(
    "module", [name if name in SAMPLE else pytest.param(name, marks=pytest.mark.slow) for name in MODULES]
)
def test_module_ends_as_it_does_plainly(module: str, tmp_path: pathlib.Path) -> None:
    paths = ":".join(path for path in (*sys.path, str(ROOT), str(ROOT / "tools")) if path)
    command = [sys.executable, "-m", "integration_tests.cpython", module, "--out", str(tmp_path)]
    subprocess.run(command, check=True, cwd=ROOT, env={**os.environ, "PYTHONPATH": paths}, capture_output=True)
    records = read(tmp_path / f"{module}.json")
    assert records
    assert not [record.said() for record in records if record.kind in ("wrong", "crashes")]


def test_exclusions_have_reasons() -> None:
    assert all(EXCLUDED.values())
