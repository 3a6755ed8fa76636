"""Every test module lies in a folder by subject, which the README names."""

from __future__ import annotations

import pathlib
import re

FOLDER = pathlib.Path(__file__).resolve().parents[1]
SHARED = {"support", "benchmarks"}


def test_no_test_module_lies_beside_the_folders() -> None:
    assert not list(FOLDER.glob("test_*.py"))


def test_readme_names_the_folder_of_every_test_module() -> None:
    lines = (FOLDER / "README.md").read_text().splitlines()
    rows = [line for line in lines if line.startswith("|")]
    listed = set(re.findall(r"`(\w+)/`", "\n".join(rows)))
    folders = {path.relative_to(FOLDER).parts[0] for path in FOLDER.glob("*/**/test_*.py")}
    assert folders - SHARED == listed
