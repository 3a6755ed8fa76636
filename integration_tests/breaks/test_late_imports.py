"""Modules that are loaded by the first call: before the trace that uses them, where the program
cannot tell, else at a break."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import stator
import torch
from torch import Tensor

from integration_tests.support.counting import Counting

X = torch.arange(3.0)
PACKAGE = {
    "__init__.py": "from .core import run\n",
    "core.py": """
import functools

_backends = {}


class Backend:
    def __init__(self):
        import torch

        self.torch = torch
        from . import _part  # which is loaded by the first call

    def scaled(self, x, factor):
        return self.torch.mul(x, factor)


def backend_of(x):
    found = _backends.get(type(x))
    if found is None:
        found = _backends[type(x)] = Backend()
    return found


@functools.lru_cache(256)
def factor_of(pattern):
    return len(pattern.split())


def run(x, pattern):
    return backend_of(x).scaled(x, factor_of(pattern))
""",
    "_part.py": "FACTOR = 3\n",
    "_broken.py": "raise ValueError('broken')\n",
}


@pytest.fixture
def late_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    folder = tmp_path / "late_package"
    folder.mkdir()
    for name, text in PACKAGE.items():
        (folder / name).write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    yield "late_package"
    for name in [name for name in sys.modules if name.startswith("late_package")]:
        del sys.modules[name]


def captured(fn: Callable[..., Any], **options: Any) -> tuple[Any, int]:
    """Return the result of the first compiled call, without a break, and the number of graphs."""
    compiled = stator.compile(fn, backend=(counting := Counting()), **options)
    result = compiled(X)
    assert torch.equal(compiled(X), result)
    assert compiled.report.breaks == []
    return result, counting.count


@pytest.mark.parametrize("fullgraph", [False, True])
def test_import_of_a_module_is_captured(late_package: str, fullgraph: bool) -> None:
    def fn(x: Tensor) -> Any:
        y = x + 1
        import late_package._part as part  # type: ignore[import-not-found]

        return y * part.FACTOR

    result, count = captured(fn, fullgraph=fullgraph)
    assert torch.equal(result, (X + 1) * 3)
    assert count == 1


def test_import_by_name_is_captured(late_package: str) -> None:
    def fn(x: Tensor) -> Any:
        import importlib

        return x * importlib.import_module("late_package._part").FACTOR

    result, count = captured(fn, fullgraph=True)
    assert torch.equal(result, X * 3)
    assert count == 1


def test_first_call_of_a_package_that_loads_a_part_and_caches_is_captured(
    late_package: str,
) -> None:
    import late_package as package

    calls: list[int] = []

    def fn(x: Tensor) -> Any:
        calls.append(1)
        return package.run(x, "a b c")

    compiled = stator.compile(fn, backend=Counting(), fullgraph=True)
    for _ in range(3):
        assert torch.equal(compiled(X), X * 3)
    assert len(calls) == 3
    assert "late_package._part" in sys.modules
    assert [*package.core._backends] == [Tensor]
    assert package.core.factor_of.cache_info()[:2] == (2, 1)


def test_import_behind_a_change_of_an_object_breaks_once(late_package: str) -> None:
    seen: list[bool] = []

    def fn(x: Tensor) -> Any:
        seen.append("late_package._part" in sys.modules)
        import late_package._part as part

        return x * part.FACTOR

    compiled = stator.compile(fn, backend=Counting())
    for _ in range(2):
        assert torch.equal(compiled(X), X * 3)
    assert seen == [False, True]


def test_module_that_raises_raises_in_the_program(late_package: str) -> None:
    def fn(x: Tensor) -> Any:
        try:
            import late_package._broken  # type: ignore[import-not-found]
        except ValueError as error:
            return x * len(str(error))
        return late_package

    compiled = stator.compile(fn, backend=Counting())
    for _ in range(2):
        assert torch.equal(compiled(X), X * 6)
    assert "late_package._broken" not in sys.modules
