"""Private names of torch that are gone or changed are reported with the place that uses them."""

from __future__ import annotations

import importlib
import pathlib
import sys
from collections.abc import Callable, Iterator

import inventory
import pytest

USER = """
import planted_torch as torch
from planted_torch._impl import made
from planted_torch.scan import scan

_C = torch._C

def use(value):
    made(1, second=2)
    _C._flag = value._tensor_meta
    getattr(torch._C, "_switch")
    torch.public(1)
    return value._ours, torch._C._flag

class Ours:
    def __init__(self):
        self._ours = torch._impl.made(*[1, 2])
"""
PLACE = "packages/one/src/one.py"
SOURCES = {
    "__init__": "from planted_torch import _C, _impl\nfrom planted_torch._scans import scan\n"
    "__version__ = '7.1.0'\ndef public(x): ...",
    "_C": "_flag = 1\ndef _switch(): ...",
    "_impl": "def made(first, second=None): ...\nclass Node:\n    _tensor_meta = 0",
    "_scans": "def scan(): ...",
    "scan": "def scan(): ...",
}

Report = Callable[..., list[str]]


@pytest.fixture
def report(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Iterator[Report]:
    """Runs the command with changed sources of a package that stands for torch."""
    source = tmp_path / PLACE
    source.parent.mkdir(parents=True)
    source.write_text(USER)
    torch = tmp_path / "planted_torch"
    torch.mkdir()
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(inventory, "TOP", "planted_torch")
    monkeypatch.setattr("sys.dont_write_bytecode", True)

    def run(*arguments: str, status: int = 0, **changed: str) -> list[str]:
        for name, text in (SOURCES | changed).items():
            (torch / f"{name}.py").write_text(text)
        _forget()
        record = tmp_path / "names.json"
        assert inventory.main([*arguments], tmp_path, record) == status
        return capsys.readouterr().out.splitlines()[:-1]

    yield run
    _forget()


def _forget() -> None:
    for name in [each for each in sys.modules if each.partition(".")[0] == "planted_torch"]:
        del sys.modules[name]
    importlib.invalidate_caches()


def line_of(text: str) -> int:
    return USER[: USER.index(text)].count("\n") + 1


def test_nothing_is_reported_of_the_recorded_release(report: Report) -> None:
    assert report("--record") == []
    assert report() == []


def test_a_renamed_function_is_reported_at_each_place(report: Report) -> None:
    report("--record")
    renamed = "def built(first, second=None): ...\nclass Node:\n    _tensor_meta = 0"
    lines = [line_of(each) for each in ("from planted_torch._impl", "made(1", "self._ours =")]
    names = ["planted_torch._impl.made"] * 3
    found = report(status=1, _impl=renamed)
    assert sorted(found) == sorted(
        f"{PLACE}:{line}: {name} is gone" for line, name in zip(lines, names, strict=True)
    )


@pytest.mark.parametrize(("name", "place"), [("_flag", "return value"), ("_switch", "getattr(")])
def test_a_renamed_attribute_is_reported(report: Report, name: str, place: str) -> None:
    report("--record")
    found = report(status=1, _C=SOURCES["_C"].replace(name, f"{name}s"))
    assert f"{PLACE}:{line_of(place)}: planted_torch._C.{name} is gone" in found


def test_a_renamed_attribute_of_values_is_reported(report: Report) -> None:
    report("--record")
    renamed = SOURCES["_impl"].replace("_tensor_meta", "_metadata")
    place = f"{PLACE}:{line_of('_tensor_meta')}"
    expected = f"{place}: no source of torch has the attribute _tensor_meta"
    assert report(status=1, _impl=renamed) == [expected]


def test_a_call_that_no_longer_fits_is_reported_at_the_call(report: Report) -> None:
    report("--record")
    changed = SOURCES["_impl"].replace("second=None", "other=None")
    name = "planted_torch._impl.made"
    call = f"{PLACE}:{line_of('made(1')}: {name}(first, other=) does not take this call"
    found = report(status=1, _impl=changed)
    assert call in found
    assert all("made(first, other=)" in line for line in found)


def test_an_added_parameter_is_reported_as_a_change(report: Report) -> None:
    report("--record")
    changed = SOURCES["_impl"].replace("second=None", "second=None, *, third=0")
    found = report(status=1, _impl=changed)
    assert len(found) == 3
    assert all(line.endswith("(first, second=, *, third=) was (first, second=)") for line in found)


def test_a_recorded_release_is_compared_with_its_own_record(report: Report) -> None:
    changed = {
        "__init__": SOURCES["__init__"].replace("7.1", "7.2"),
        "_impl": SOURCES["_impl"].replace("second=None", "second=None, third=0"),
    }
    report("--record")
    assert report(status=1, **changed) != []
    assert report("--record", **changed) == []
    assert report(**changed) == []
    assert report() == []


def test_public_names_and_our_own_are_not_listed(report: Report) -> None:
    listed = " ".join(report("--list"))
    assert "planted_torch._C._flag" in listed
    assert "public" not in listed
    assert "_ours" not in listed


@pytest.mark.slow
def test_the_packages_use_what_the_installed_torch_has() -> None:
    assert inventory.main([]) == 0
