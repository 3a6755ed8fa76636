"""The sessions of the noxfile, in clones whose folder has any name."""

from __future__ import annotations

import importlib.util
import pathlib
import shutil
import subprocess
import sys
from types import ModuleType
from typing import Any

import attrs
import nox.registry
import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
COPIED = ("noxfile.py", "pyproject.toml", "README.md", "tools/*.py", "packages/*/pyproject.toml")
PIP = 'printf "%s\\n" "$@" >> "$0.log"\n'
"""A `pip` that writes its arguments down."""


@attrs.define
class Session:
    """A session of nox that makes no environments: it runs what a shell is given, and no more."""

    folder: pathlib.Path
    environments: list[pathlib.Path] = attrs.field(factory=list)

    def create_tmp(self) -> str:
        self.folder.mkdir()
        return str(self.folder)

    def run(self, *command: str, **options: Any) -> None:
        """Pass over the examples."""

    def run_install(self, *command: str, **options: Any) -> str:
        if "venv" in command:
            self._make(pathlib.Path(command[-1]))
        elif "--target" in command:
            pathlib.Path(command[command.index("--target") + 1]).mkdir(parents=True)
        elif command[0] in ("sh", "bash"):
            subprocess.run(command, check=True, cwd=self.folder.parent)
        return str(self.folder)

    def _make(self, folder: pathlib.Path) -> None:
        self.environments.append(folder)
        pip = folder / "bin" / "pip"
        pip.parent.mkdir(parents=True, exist_ok=True)
        pip.write_text(f"#!/bin/sh\n{PIP}")
        pip.chmod(0o755)
        pip.with_name("activate").write_text(f'PATH="{pip.parent}:$PATH"\n')


@pytest.fixture(params=["stator", "packages", "stator-guards", "a clone"])
def clone(
    request: pytest.FixtureRequest, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> pathlib.Path:
    root = tmp_path / str(request.param)
    for pattern in (*COPIED, "packages/*/README.md"):
        for path in ROOT.glob(pattern):
            copy = root / path.relative_to(ROOT)
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, copy)
    monkeypatch.setattr(pathlib.Path, "home", lambda: tmp_path / "home")
    monkeypatch.setattr(sys, "path", [*sys.path])
    nox.registry.reset()
    return root


def noxfile_of(clone: pathlib.Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location("noxfile_of_a_clone", clone / "noxfile.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_each_page_has_an_environment_of_its_own(clone: pathlib.Path) -> None:
    session = Session(clone / "tmp")
    noxfile_of(clone).pages(session)

    made = session.environments
    assert len(set(made)) == len(made) == 1 + len(list(clone.glob("packages/*")))
    assert not [one for one in made for other in made if one in other.parents]


def test_each_page_installs_packages_of_the_clone(clone: pathlib.Path) -> None:
    session = Session(clone / "tmp")
    noxfile_of(clone).pages(session)

    for environment in session.environments:
        given = (environment / "bin" / "pip.log").read_text().split("\n")
        folders = [clone / each for each in given if each.startswith("./")]
        assert folders
        assert all((folder / "pyproject.toml").exists() for folder in folders)


def test_the_folder_of_torch_needs_no_quotes(clone: pathlib.Path) -> None:
    """Inductor's compiler is given its path without any."""
    shared = noxfile_of(clone).shared_folder()
    assert " " not in str(shared.relative_to(clone.parent))
    assert shared.is_relative_to(clone) == (" " not in clone.name)
