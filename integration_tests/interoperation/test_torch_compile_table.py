"""The table of names of torch.compile is complete and true."""

from __future__ import annotations

import warnings
from typing import Any

import pytest
import stator
from stator._settings import _options, _torch_settings

from integration_tests.interoperation import torch_compile_table
from integration_tests.interoperation.effects_of_settings import EFFECTS
from integration_tests.interoperation.torch_compile_table import PAGE, TABLES, Row, page

ROWS = [
    pytest.param(row, id=f"{title}: {row.name}")
    for title, (rows, _) in TABLES.items()
    for row in rows
]


@pytest.mark.parametrize("title", TABLES)
def test_every_name_has_a_row(title: str) -> None:
    rows, names = TABLES[title]
    listed = [row.name for row in rows]
    assert sorted(listed) == sorted(names())


@pytest.mark.parametrize("row", ROWS)
def test_row_is_true(row: Row) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        row.check()


class Recording:
    """A module whose attributes are recorded when they are read."""

    def __init__(self, module: Any) -> None:
        self.module = module
        self.read: set[str] = set()

    def __getattr__(self, name: str) -> Any:
        self.read.add(name)
        return getattr(self.module, name)


def without_use(module: str, rows: list[Row], monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the names of the rows whose checks do not read the name from the module."""
    found = []
    for row in rows:
        recording = Recording(getattr(torch_compile_table, module))
        with monkeypatch.context() as patch, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            patch.setattr(torch_compile_table, module, recording)
            row.check()
        if row.name not in recording.read:
            found.append(row.name)
    return found


@pytest.mark.parametrize("module", ["compiler", "dynamo", "decorators"])
def test_checks_use_the_names_of_their_rows(module: str, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = getattr(torch_compile_table, module.upper())
    assert without_use(module, rows, monkeypatch) == []


def test_check_without_a_use_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    planted = Row("allow_in_graph", torch_compile_table.SUPPORTED)
    assert without_use("compiler", [planted], monkeypatch) == ["allow_in_graph"]


@pytest.mark.parametrize("name", EFFECTS)
def test_check_of_a_setting_fails_where_it_is_ignored(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    is_changed = _torch_settings.is_changed
    monkeypatch.setattr(
        _torch_settings, "is_changed", lambda each: each != name and is_changed(each)
    )
    if name == "disable":  # also a variable of the environment
        monkeypatch.setattr(_options, "disabled_by_environment", lambda: False)
    with pytest.raises((AssertionError, pytest.fail.Exception, OSError, stator.StatorError)):
        EFFECTS[name]()


def test_page_is_up_to_date() -> None:
    assert PAGE.read_text() == page()
