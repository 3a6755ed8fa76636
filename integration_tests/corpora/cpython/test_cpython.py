"""Each method of CPython's own tests ends under `stator.compile` as it does plainly, and nothing of
ours fails."""

from __future__ import annotations

import importlib.util
import os
import pathlib
import subprocess
import sys

import pytest

from integration_tests.corpora.cpython.record import Record, read
from integration_tests.corpora.cpython.selection import EXCLUDED, GROUPS, MODULES, NIGHTLY

# some distributions leave them out, or package them apart
if importlib.util.find_spec("test.test_list") is None:
    pytest.skip("this CPython was installed without its own tests", allow_module_level=True)

ROOT = pathlib.Path(__file__).resolve().parents[3]


def _records(folder: pathlib.Path, *modules: str) -> dict[str, list[Record]]:
    """One process for all of them: what is imported on a first call takes longer than most
    modules."""
    paths = ":".join(path for path in (*sys.path, str(ROOT), str(ROOT / "tools")) if path)
    command = [
        sys.executable,
        "-m",
        "integration_tests.corpora.cpython",
        *modules,
        "--out",
        str(folder),
    ]
    subprocess.run(
        command, check=True, cwd=ROOT, env={**os.environ, "PYTHONPATH": paths}, capture_output=True
    )
    return {module: read(folder / f"{module}.json") for module in modules}


CHOSEN = [
    pytest.param(modules, id=name, marks=[pytest.mark.slow] if name in NIGHTLY else [])
    for name, modules in GROUPS.items()
]


@pytest.mark.parametrize("modules", CHOSEN)
def test_modules_end_as_they_do_plainly(modules: tuple[str, ...], tmp_path: pathlib.Path) -> None:
    records = _records(tmp_path, *modules)
    assert all(records.values()), "a module without methods"
    found = [record for module in modules for record in records[module]]
    assert not [record.said() for record in found if record.kind in ("wrong", "crashes")]


def test_no_module_is_left_out() -> None:
    assert set(MODULES) == {module for group in GROUPS.values() for module in group}


def test_exclusions_have_reasons() -> None:
    assert all(EXCLUDED.values())
