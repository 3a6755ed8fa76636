"""A recorded value may only go down, and has to follow at once."""

from __future__ import annotations

import pathlib

import pytest
import ratchet

RECORDED = {"long": {"one": 3}}


def measured(value: int, package: str = "one", limit: int = 0) -> ratchet.Measure:
    return ratchet.Measure("long", package, value, limit, ("file.py:1",))


@pytest.mark.parametrize(("value", "count"), [(2, 1), (3, 0), (4, 1)])
def test_value_has_to_equal_its_record(value: int, count: int) -> None:
    assert len(ratchet.faults([measured(value)], RECORDED)) == count


@pytest.mark.parametrize(("value", "count"), [(0, 0), (15, 0), (16, 1)])
def test_value_without_a_record_has_to_keep_the_limit(value: int, count: int) -> None:
    assert len(ratchet.faults([measured(value, "two", 15)], RECORDED)) == count


def test_fault_has_the_places_to_look_at() -> None:
    (fault,) = ratchet.faults([measured(4)], RECORDED)
    assert fault == "one: long: 4, allowed are 3\n  file.py:1"


@pytest.mark.parametrize(("value", "left"), [(0, {}), (2, {"one": 2}), (4, {"one": 3})])
def test_update_lowers_a_record_and_never_raises_it(value: int, left: dict[str, int]) -> None:
    assert ratchet.lowered([measured(value)], RECORDED) == {"long": left}


def test_update_records_no_new_package() -> None:
    assert ratchet.lowered([measured(4, "two")], {}) == {}


def test_update_keeps_the_records_of_other_rules(tmp_path: pathlib.Path) -> None:
    (tmp_path / "tools").mkdir()
    ratchet.write(tmp_path, {"dense": {"one": 1}, "long": {"one": 3}})
    assert ratchet.run(tmp_path, [measured(2)], update=True) == 0
    assert ratchet.read(tmp_path) == {"dense": {"one": 1}, "long": {"one": 2}}


def test_without_a_file_nothing_is_recorded(tmp_path: pathlib.Path) -> None:
    assert ratchet.run(tmp_path, [measured(1)], update=False) == 1
    assert ratchet.run(tmp_path, [measured(0)], update=False) == 0
