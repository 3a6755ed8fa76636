"""The nightly session of a torch and a CPython: it runs an interpreter that has both and writes the
row of the run, or says that it did not run."""

from __future__ import annotations

import importlib.util
import pathlib
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any, NoReturn

import attrs
import interpreters
import nox.registry
import pytest
import version_table
from version_table import Cell

CELL = Cell("7.2", "3.99")
REPORT = (
    '<testsuites><testsuite tests="4" skipped="1" failures="{failed}" errors="0"/></testsuites>'
)
TABLE = f"{version_table.HEADER}\n{version_table.RULE}\n"


class Ended(Exception):
    """A session that was skipped or that failed, with its message."""


@attrs.define
class Session:
    """A session of nox in which pytest counts four tests."""

    folder: pathlib.Path
    failed: int = 0
    posargs: tuple[str, ...] = ()
    run_with: list[tuple[str, ...]] = attrs.field(factory=list)
    variables: list[dict[str, str]] = attrs.field(factory=list)

    def create_tmp(self) -> str:
        return str(self.folder)

    def install(self, *names: str, **options: Any) -> None:
        """Install nothing."""

    run_install = install

    @contextmanager
    def chdir(self, folder: pathlib.Path) -> Iterator[None]:
        assert folder.is_dir()
        yield

    def run(self, *command: str, env: dict[str, str], **options: Any) -> None:
        (report,) = (each for each in command if each.startswith("--junitxml="))
        path = pathlib.Path(report.partition("=")[2])
        path.write_text(REPORT.format(failed=self.failed))
        self.run_with.append(command)
        self.variables.append(env)

    def skip(self, message: str) -> NoReturn:
        raise Ended(message)

    error = skip


@pytest.fixture
def noxfile(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The noxfile of the repository, whose page is a table without rows."""
    page = tmp_path / "versions.md"
    page.write_text(TABLE)
    monkeypatch.setattr(version_table.record, "__defaults__", (page,))
    monkeypatch.setattr(sys, "path", [*sys.path])
    nox.registry.reset()

    root = pathlib.Path(__file__).resolve().parents[2]
    spec = importlib.util.spec_from_file_location("noxfile_of_versions", root / "noxfile.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def interpreter(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A program that answers as a CPython with a torch does, named by the variable."""
    path = tmp_path / "named"
    path.write_text(
        '#!/bin/sh\ncase "$2" in *metadata*) echo 7.2.1;; *) echo cpython 3.99;; esac\n'
    )
    path.chmod(0o755)
    monkeypatch.setenv(interpreters.NAMED, str(path))
    monkeypatch.setattr(interpreters, "_answer", lambda *command: "")  # no other ones
    return str(path)


def rows(tmp_path: pathlib.Path) -> list[str]:
    return (tmp_path / "versions.md").read_text().removeprefix(TABLE).splitlines()


def test_an_interpreter_with_this_torch_runs_as_it_is(
    noxfile: ModuleType, interpreter: str, tmp_path: pathlib.Path
) -> None:
    session = Session(tmp_path)
    noxfile.versions(session, CELL)
    assert {command[0] for command in session.run_with} == {interpreter}
    assert all(str(tmp_path) in each["PYTHONPATH"] for each in session.variables)
    assert len(session.run_with) == len(noxfile.PACKAGES) + 1


def test_both_rows_have_the_counts_of_their_tests(
    noxfile: ModuleType, interpreter: str, tmp_path: pathlib.Path
) -> None:
    noxfile.versions(Session(tmp_path), CELL)
    packages, programs = rows(tmp_path)
    assert packages.startswith("| 7.2 | 3.99 | packages | 18 | 0 | 6 | 20")
    assert programs.startswith("| 7.2 | 3.99 | programs | 3 | 0 | 1 | 20")


def test_failed_tests_are_counted_and_fail_the_session(
    noxfile: ModuleType, interpreter: str, tmp_path: pathlib.Path
) -> None:
    with pytest.raises(Ended, match=r"torch 7.2, CPython 3.99, .* in packages, programs"):
        noxfile.versions(Session(tmp_path, failed=1), CELL)
    assert "| packages | 12 | 6 | 6 |" in rows(tmp_path)[0]


def test_a_run_of_selected_tests_leaves_the_table(
    noxfile: ModuleType, interpreter: str, tmp_path: pathlib.Path
) -> None:
    session = Session(tmp_path, posargs=("-k", "watch"))
    noxfile.versions(session, CELL)
    assert session.run_with[0][-2:] == ("-k", "watch")
    assert rows(tmp_path) == []


@pytest.mark.parametrize("cell", [Cell("7.1", "3.99"), Cell("7.2", "3.98"), Cell("7.21", "3.99")])
def test_a_pair_that_is_not_here_is_skipped_with_a_message(
    noxfile: ModuleType, interpreter: str, tmp_path: pathlib.Path, cell: Cell
) -> None:
    session = Session(tmp_path)
    with pytest.raises(Ended, match=f"NOT TESTED on {cell}: .*{interpreters.NAMED}"):
        noxfile.versions(session, cell)
    assert session.run_with == []
    assert rows(tmp_path) == []


def test_each_program_of_the_session_is_a_file_or_folder(noxfile: ModuleType) -> None:
    missing = [
        each
        for each in noxfile.PROGRAMS
        if not (noxfile.ROOT / "integration_tests" / each).exists()
    ]
    assert missing == []
