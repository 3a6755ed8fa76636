"""What must hold of tensors, modules and modes, as small programs: one module for each behaviour.

A program is a function of a tensor, of a number that changes from call to call, and of a `Box` that it may change. A
module is loaded twice, so that its constants (written in capitals) are each side's own.
"""

from __future__ import annotations

import functools
import importlib.util
import pathlib
import types
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch
from torch import Tensor

HERE = pathlib.Path(__file__).parent
MODULES = sorted(path.stem for path in HERE.glob("*.py") if path.stem != "__init__")


class Box:
    """What a program may read and change besides its tensor."""

    def __init__(self) -> None:
        self.tensor = torch.arange(6.0).reshape(2, 3)
        self.log: list[Any] = []


Program = Callable[[Tensor, int, Box], Any]


def arguments(number: int) -> tuple[Tensor, int, Box]:
    """Those of call `number`: the tensor's shape and requires_grad, and the int change."""
    rows = 3 if number % 4 == 2 else 2
    x = torch.linspace(-1, 1, rows * 3).reshape(rows, 3).requires_grad_(number % 2 == 0)
    return x, [2, 3, 5, 3][number % 4], Box()


def program(fn: Program) -> Program:
    """Mark a function as a program of the module that is being loaded."""
    known = fn.__globals__.setdefault("_programs", {})
    assert fn.__name__ not in known, f"{fn.__name__} stands twice in {fn.__module__}"
    known[fn.__name__] = fn
    return fn


def programs(module: types.ModuleType) -> dict[str, Program]:
    return module._programs  # type: ignore[no-any-return]


def load(name: str) -> types.ModuleType:
    """A new copy of a module of programs, with classes and globals of its own."""
    spec = importlib.util.spec_from_file_location(f"{__name__}.{name}", HERE / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Constants(Mapping[str, Any]):
    """The constants of a copy of a module, as they are when they are looked at."""

    __slots__ = ("__module",)  # private: not described

    def __init__(self, module: types.ModuleType) -> None:
        self.__module = module

    def __getitem__(self, name: str) -> Any:
        return vars(self.__module)[name]

    def __iter__(self) -> Iterator[str]:
        return iter([name for name in vars(self.__module) if name.isupper()])

    def __len__(self) -> int:
        return len(list(iter(self)))


@functools.cache
def catalogue() -> tuple[tuple[str, str], ...]:
    """Every program as (module, name)."""
    return tuple((name, title) for name in MODULES for title in programs(load(name)))
