"""What must hold of the language, tensors, modules and modes, as small programs: one module for
each behaviour, whose docstring says which.

A program is a function of a tensor, of a number that changes from call to call, and of a `Box` of
things that it may change. Modules are loaded twice, so that what outlives a call (globals, class
attributes, default arguments, closures) is each side's own. A program whose operations cannot all
be captured says so: `@program(breaks="set-order")` names the reason that `fullgraph=True` gives
(two, where calls differ), and no other program may break.
"""

from __future__ import annotations

import collections
import functools
import importlib.util
import pathlib
import sys
import types
from array import array
from collections.abc import Callable, Mapping
from typing import Any

import attrs
import torch
from torch import Tensor

HERE = pathlib.Path(__file__).parent
MODULES = sorted(path.stem for path in HERE.glob("[!_]*.py") if not path.stem.startswith("test_"))


class Box:
    """What a program may read and change besides its tensor; contents differ from call to call."""

    def __init__(self, number: int) -> None:
        self.items: list[Any] = [3, 1, 2, 5][: 3 + number % 2]
        self.table: dict[str, Any] = {"a": 1, "b": 2.5 if number % 2 else 2}
        self.members = {1, 5, 7 + number}
        self.ring = collections.deque([1, 2, 3], maxlen=3 + number % 2)
        self.ordered = collections.OrderedDict([("x", 1), ("y", 2), ("z", number)])
        self.groups = collections.defaultdict(list, {"k": [number]})
        self.counts = collections.Counter({"a": 2, "b": number})
        self.chain = collections.ChainMap({"a": number}, {"a": 0, "b": 1})
        self.raw = array("i", [1, 2, number])
        self.nested = {"deep": [1, [2, number]]}
        self.text = ["ab", "xyz", "", "ab"][number % 4]
        self.value = [1, 1.0, True, None][number % 4]
        self.flag = number % 2 == 0
        self.tensor = torch.arange(6.0).reshape(2, 3)
        self.log: list[Any] = []


Program = Callable[[Tensor, int, Box], Any]


def arguments(number: int) -> tuple[Tensor, int, Box]:
    """Those of call `number`: the tensor's shape and requires_grad, the int and the box change."""
    rows = 3 if number % 4 == 2 else 2
    x = torch.linspace(-1, 1, rows * 3).reshape(rows, 3).requires_grad_(number % 2 == 0)
    return x, [2, 3, 5, 3][number % 4], Box(number)


@attrs.frozen
class Marked:
    """A program as its module declares it."""

    fn: Program
    breaks: str | None


def program(fn: Program | None = None, *, breaks: str | None = None) -> Any:
    """Mark a function as a program of the module that is being loaded."""
    if fn is None:
        return functools.partial(program, breaks=breaks)
    known = fn.__globals__.setdefault("PROGRAMS", {})
    assert fn.__name__ not in known, f"{fn.__name__} stands twice in {fn.__module__}"
    known[fn.__name__] = Marked(fn, breaks)
    return fn


def load(name: str) -> types.ModuleType:
    """A new copy of a module of programs, with classes and globals of its own."""
    spec = importlib.util.spec_from_file_location(f"{__name__}.{name}", HERE / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # where `dataclass` looks up the names of annotations
    spec.loader.exec_module(module)
    return module


class Kept(Mapping[str, Any]):
    """What a copy of a module keeps between calls, as it is when it is looked at: its constants,
    defaults, classes."""

    __slots__ = ("__module",)  # private: not described

    def __init__(self, module: types.ModuleType) -> None:
        self.__module = module

    def _visible(self) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for name, value in vars(self.__module).items():
            if name.isupper() and name != "PROGRAMS":
                found[name] = value
            elif (
                isinstance(value, types.FunctionType) and value.__module__ == self.__module.__name__
            ):
                found[name] = (value.__defaults__, value.__kwdefaults__, dict(vars(value)))
        return found

    def items(self) -> Any:
        return self._visible().items()  # once, not for each name

    def __getitem__(self, name: str) -> Any:
        return self._visible()[name]

    def __iter__(self) -> Any:
        return iter(self._visible())

    def __len__(self) -> int:
        return len(self._visible())


@functools.cache
def catalogue() -> dict[str, dict[str, Marked]]:
    """Every program by module, read from a copy that never runs."""
    return {name: load(name).PROGRAMS for name in MODULES}


def promise(name: str) -> str:
    """The behaviour that a module is about: its docstring."""
    return " ".join(str(load(name).__doc__).split())
