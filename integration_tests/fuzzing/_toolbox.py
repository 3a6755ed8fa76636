"""What random programs find in their globals: classes with behaviour of their own, and what stator cannot capture."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import stator
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
