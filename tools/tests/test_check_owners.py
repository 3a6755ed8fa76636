"""The files and packages of a feature are counted by the names in their code."""

from __future__ import annotations

import pathlib

import check_owners
import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]


def repository(root: pathlib.Path, code: str, packages: int, files: int) -> pathlib.Path:
    """Write so many files with equal code to each of so many packages."""
    for package in range(packages):
        source = root / "packages" / f"stator-{package}" / "src" / f"stator_{package}"
        source.mkdir(parents=True)
        (source / "__init__.py").write_text("def call_user_hash(): ...\n")
        for file in range(files):
            (source / f"_module_{file}.py").write_text(f"{code}\n")
    return root


@pytest.mark.parametrize(
    ("packages", "files", "status"), [(1, 5, 0), (1, 6, 1), (2, 2, 0), (3, 1, 1), (2, 3, 1)]
)
def test_more_than_five_files_or_two_packages_fail(
    packages: int, files: int, status: int, tmp_path: pathlib.Path
) -> None:
    root = repository(tmp_path, "class UserHashResults: ...", packages, files)
    assert check_owners.main(root) == status


@pytest.mark.parametrize(
    "code",
    [
        "def user_hash(): ...",
        "x.user_hash = 1",
        "f(user_hash=1)",
        "from a import call_user_hash as c",
        "import a.user_hashes",
        "from user_hashes import a",
        "def f(user_hash): ...",
    ],
)
def test_each_kind_of_name_counts(code: str, tmp_path: pathlib.Path) -> None:
    assert check_owners.main(repository(tmp_path, code, 1, 6)) == 1


@pytest.mark.parametrize("code", ["# user_hash", "'user_hash'", "x.user", "hash(user)"])
def test_texts_and_other_names_do_not_count(code: str, tmp_path: pathlib.Path) -> None:
    assert check_owners.main(repository(tmp_path, code, 1, 6)) == 0


def test_packages_keep_the_limits() -> None:
    assert check_owners.main(ROOT) == 0
