"""What random programs find in their globals: classes with behaviour of their own, and what stator
cannot capture."""

from __future__ import annotations

import contextlib
import dataclasses
import enum
from collections.abc import Iterator
from typing import Any, NamedTuple

import stator
import torch
from torch import Tensor


class Box:
    """An object with state, a property, operators, items, and a default for what is missing."""

    kind = "box"

    def __init__(self, value: Any = 1, items: list[Any] | None = None) -> None:
        self.value = value
        self.items = [1, 2] if items is None else items
        self.other: Any = None

    @property
    def double(self) -> Any:
        return self.value * 2

    @double.setter
    def double(self, value: Any) -> None:
        self.value = value

    def bump(self, by: int = 1) -> Box:
        self.value = self.value + by
        return self

    def scale(self, x: Tensor) -> Tensor:
        scaled: Tensor = x * self.value
        return scaled

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return len(name)

    def __iadd__(self, by: Any) -> Box:
        self.items.append(by)
        return self

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Box) and other.items == self.items

    __hash__ = None  # type: ignore[assignment]

    def __len__(self) -> int:
        return len(self.items)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.items[:3])

    def __getitem__(self, index: int) -> Any:
        return self.items[index]

    def __contains__(self, item: Any) -> bool:
        return item in self.items

    def __call__(self, x: Tensor, times: int = 1) -> Tensor:
        self.value = times
        return x + times


class SmallBox(Box):
    """Overrides some of it, with slots of its own and through ``super``."""

    kind = "small"
    __slots__ = ("extra",)

    def bump(self, by: int = 2) -> Box:
        self.extra = by
        return super().bump(by)

    def __bool__(self) -> bool:
        return bool(self.items)


@dataclasses.dataclass(order=True)
class Point:
    a: Any
    b: Any = None


@dataclasses.dataclass(frozen=True)
class Frozen:
    """Can be a key, and is of the value of its fields."""

    a: Any
    b: Any = ()


class Pair(NamedTuple):
    a: Any
    b: Any = 0


class Color(enum.Enum):
    RED = 1
    BLUE = 2


class Level(enum.IntEnum):
    LOW = 0
    MIDDLE = 1
    HIGH = 2


class Meter:
    """A number of its own: operators, both ways, order, a hash, an index and a format."""

    def __init__(self, value: Any) -> None:
        self.a = value

    def __add__(self, other: Any) -> Any:
        if isinstance(other, Meter):
            return Meter(self.a + other.a)
        return Meter(self.a + other) if isinstance(other, int) else NotImplemented

    __radd__ = __add__

    def __mul__(self, by: Any) -> Meter:
        return Meter(self.a * by)

    def __neg__(self) -> Any:
        return -self.a

    def __eq__(self, other: object) -> Any:
        return self.a == other.a if isinstance(other, Meter) else NotImplemented

    def __lt__(self, other: Any) -> Any:
        return self.a < other.a if isinstance(other, Meter) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.a)

    def __index__(self) -> Any:
        return self.a

    def __bool__(self) -> bool:
        return bool(self.a)

    def __format__(self, spec: str) -> str:
        return f"{self.a}m{spec}"

    def __repr__(self) -> str:
        return f"Meter({self.a})"


class Failure(Exception):
    """An exception with state."""

    def __init__(self, code: Any, note: Any = None) -> None:
        super().__init__(code)
        self.note = note


class Net(torch.nn.Module):
    """A module with parameters, buffers that its forward writes to, and state that is none of
    both."""

    mean: Tensor
    steps: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.gain = torch.nn.Parameter(torch.tensor(1.5))
        self.weights = torch.nn.ParameterList([torch.nn.Parameter(torch.ones(()))])
        self.register_buffer("mean", torch.zeros(()))
        self.register_buffer("steps", torch.zeros((), dtype=torch.int64))
        self.level = 1

    def scale(self, x: Tensor) -> Tensor:
        return x * self.gain + self.level

    def forward(self, x: Tensor) -> Tensor:
        self.level += 1
        self.steps += 1
        if self.training:
            self.mean = 0.5 * self.mean + x.detach().mean()
        return self.scale(x) * self.weights[0] - self.mean  # type: ignore[no-any-return]


class Guarded:
    """A context manager that writes down what happens to it, and swallows ``ValueError``."""

    def __init__(self, log: list[Any]) -> None:
        self.log = log

    def __enter__(self) -> int:
        self.log.append("in")
        return 2

    def __exit__(self, *error: Any) -> bool:
        self.log.append("out" if error[0] is None else error[0].__name__)
        return error[0] is ValueError


@contextlib.contextmanager
def logged(log: list[Any]) -> Iterator[int]:
    log.append("enter")
    try:
        yield 3
    finally:
        log.append("exit")


@contextlib.contextmanager
def catching(log: list[Any], value: Any) -> Iterator[str]:
    """Turns one exception into another, and swallows a third."""
    try:
        yield f"v{value}"
    except KeyError as error:
        log.append(error.args)
    except IndexError as error:
        raise Failure(value) from error


def talking(value: Any) -> Iterator[Any]:
    """Yields what it was sent, and what was thrown in."""
    got = yield value
    while True:
        try:
            if got is None:
                return
            got = yield got
        except ValueError as error:
            got = yield error.args


def locals_of(a: Any, b: Any) -> dict[str, Any]:
    c = [a]
    return locals()


def hooked(x: Any, hook: Any) -> Any:
    """Registers a hook. On a view that another name of its memory was written by, torch 2.13 does
    that for a node which is gone, and the process dies, unless somebody asks before."""
    return x.is_leaf, x.register_hook(hook)


def opaque(value: Any) -> Any:
    """The value itself, across a break."""
    stator.graph_break()
    return value


def failing(value: Any) -> Any:
    """Breaks, then raises for every second value."""
    stator.graph_break()
    if value % 2:
        raise ValueError("odd", value)
    return value
