"""Tests for classes of trackers are counted outside their homes, and have to realize."""

from __future__ import annotations

import pathlib

import check_trackers
import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]

TRACKERS = """
class VariableTracker: ...
class ListTracker(VariableTracker): ...
class DequeTracker(tracker.ListTracker): ...
BOTH = (ListTracker, DequeTracker)
"""


def repository(root: pathlib.Path, test: str, count: int, folder: str = "") -> pathlib.Path:
    """Write a package of trackers, with so many equal tests in a module."""
    source = root / "packages" / "stator-variables" / "src" / "stator_variables"
    (source / folder).mkdir(parents=True)
    (source / "_kinds.py").write_text(TRACKERS)
    (source / folder / "_module.py").write_text(f"{test}\n" * count)
    return root


@pytest.mark.parametrize(("count", "status"), [(39, 0), (40, 1)])
@pytest.mark.parametrize("cls", ["ListTracker", "k.DequeTracker", "int | ListTracker", "BOTH"])
def test_too_many_tests_of_a_class_fail(
    cls: str, count: int, status: int, tmp_path: pathlib.Path
) -> None:
    assert check_trackers.main(repository(tmp_path, f"is_a(vt, {cls})", count)) == status


@pytest.mark.parametrize("folder", ["_objects", "_tensors", "_library", "_distributed"])
def test_homes_of_types_may_test_classes(folder: str, tmp_path: pathlib.Path) -> None:
    assert check_trackers.main(repository(tmp_path, "is_a(vt, ListTracker)", 40, folder)) == 0


def test_a_test_that_does_not_realize_fails(
    tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    planted = "isinstance(vt, k.DequeTracker)"
    assert check_trackers.main(repository(tmp_path, planted, 1, "_objects")) == 1
    assert planted in capsys.readouterr().out


def test_tests_of_other_classes_do_not_count(tmp_path: pathlib.Path) -> None:
    assert check_trackers.main(repository(tmp_path, "isinstance(vt, list)", 40)) == 0


def test_packages_keep_the_limit() -> None:
    assert check_trackers.main(ROOT) == 0
