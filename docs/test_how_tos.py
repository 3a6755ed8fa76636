"""The steps of each how-to work: its files are written in a copy of the packages, and its tests run
there.

A block that is marked with a path is that file, or a change of it where its language is ``diff``.
Nothing else is changed, and the conformance kit of the package has to pass as well. A page may also
write a distribution of its own, whose tests are all that runs.
"""

from __future__ import annotations

import os
import pathlib
import re
import shutil
import subprocess
import sys
import textwrap
import tomllib
from typing import Any

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent
FOLDER = ROOT / "docs" / "how-to"
BLOCK = re.compile(r"^ *```(py|diff|toml) (\S+)\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)

# Pages that are one program. `nox -s pages` runs them on every change, in another environment.
PROGRAMS = (
    "compile-a-training-step.md",
    "deploy-a-compiled-model.md",
    "export-a-model.md",
    "serve-without-compile-pauses.md",
)
# Pages whose files are a distribution of somebody else.
OUTSIDE = ("add-a-capture.md",)
# The conformance tests of the package that a page changes, if it does.
KITS = {
    "add-a-backend.md": None,
    "add-a-guard-kind.md": "packages/stator-guards/tests/test_conformance.py",
    "add-a-tracker.md": "packages/stator-variables/tests/test_conformance.py",
    "add-an-opcode.md": "packages/stator-bytecode/tests/test_conformance.py",
    "add-an-operator.md": "packages/stator-subgraphs/tests/test_conformance.py",
}


def steps(page: str) -> list[tuple[str, str, str]]:
    """Return the kind, the path and the text of each block with a path."""
    found = BLOCK.findall((FOLDER / page).read_text())
    return [(kind, path, textwrap.dedent(text)) for kind, path, text in found]


def apply(root: pathlib.Path, kind: str, path: str, text: str) -> None:
    """Write a new file, or replace the lines of a change, which must be there once."""
    target = root / path
    if kind != "diff":
        assert not target.exists(), path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)
        return

    lines = text.splitlines(keepends=True)
    before = "".join(line[1:] for line in lines if line[0] in " -")
    after = "".join(line[1:] for line in lines if line[0] in " +")
    source = target.read_text()
    assert source.count(before) == 1, f"{path}: {before}"
    target.write_text(source.replace(before, after))


def test_every_page_with_steps_is_tested() -> None:
    assert {path.name for path in FOLDER.glob("*.md") if steps(path.name)} == {*KITS, *OUTSIDE}


@pytest.mark.parametrize("page", KITS)
def test_steps_of_the_page_work(page: str, tmp_path: pathlib.Path) -> None:
    hidden = shutil.ignore_patterns("__pycache__", ".*")
    shutil.copytree(ROOT / "packages", tmp_path / "packages", ignore=hidden)
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    for step in steps(page):
        apply(tmp_path, *step)

    paths = {path for _, path, _ in steps(page)}
    tests = sorted(path for path in paths if "/tests/" in path or path.startswith("integration"))
    assert tests
    kit = KITS[page]
    run_tests(tmp_path, tests if kit is None else [*tests, kit])


def run_tests(root: pathlib.Path, paths: list[str]) -> None:
    """Run tests in a process that imports the packages of the copy, and those of the page."""
    run_tests_beside(root, root, paths)


def run_tests_beside(folder: pathlib.Path, root: pathlib.Path, paths: list[str]) -> None:
    """Run tests of a folder, in a process that imports the packages below `root` and what the
    folder has."""
    packages = [*root.glob("packages/*/src"), *folder.glob("*/src")]
    sources = [str(folder), *map(str, packages)]
    found = subprocess.run(
        [sys.executable, "-m", "pytest", "-n0", "-p", "no:cacheprovider", *paths],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sources)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert found.returncode == 0, found.stdout + found.stderr


@pytest.mark.parametrize("page", OUTSIDE)
def test_files_of_a_distribution_of_somebody_else_work(page: str, tmp_path: pathlib.Path) -> None:
    """No file of the packages is touched: they are imported from where they are."""
    for step in steps(page):
        apply(tmp_path, *step)
    announce(tmp_path, tomllib.loads((tmp_path / "pyproject.toml").read_text())["project"])
    run_tests_beside(tmp_path, ROOT, [path.name for path in tmp_path.glob("test_*.py")])


def announce(folder: pathlib.Path, project: dict[str, Any]) -> None:
    """Write what an installation of the distribution leaves beside its modules."""
    name, version = project["name"].replace("-", "_"), project["version"]
    written = folder / f"{name}-{version}.dist-info"
    written.mkdir()
    (written / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    lines = []
    for group, points in project["entry-points"].items():
        lines += [f"[{group}]", *(f"{key} = {value}" for key, value in points.items())]
    (written / "entry_points.txt").write_text("\n".join(lines))


@pytest.mark.parametrize(
    "name", [PROGRAMS[0], *(pytest.param(name, marks=pytest.mark.slow) for name in PROGRAMS[1:])]
)
def test_programs_of_the_page_run(name: str, tmp_path: pathlib.Path) -> None:
    page = (FOLDER / name).read_text()
    program = "\n".join(re.findall(r"^```python\n(.*?)^```$", page, re.MULTILINE | re.DOTALL))
    environment = {**os.environ, "STATOR_CACHE_DIR": str(tmp_path)}
    subprocess.run([sys.executable, "-c", program], check=True, env=environment)
