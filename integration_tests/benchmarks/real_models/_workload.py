"""A workload: a program to compile, the arguments of its calls, and which figure of it is of
interest."""

from __future__ import annotations

import enum
import importlib
import importlib.util
from collections.abc import Callable
from typing import Any, TypeAlias

import attrs

Arguments: TypeAlias = tuple[tuple[Any, ...], dict[str, Any]]


class Figure(enum.Enum):
    """The time that is compared between the compilers.

    ``OVERHEAD``: time of a call less that of its graphs, whose outputs are cached. ``OVER_EAGER``:
    time of a call, with graphs that run, less that of the plain function.
    """

    OVERHEAD = "overhead"
    OVER_EAGER = "over eager"


def call_directly(compiled: Callable[..., Any]) -> Callable[..., Any]:
    return compiled


@attrs.frozen
class Program:
    """One program, ready to be compiled.

    ``fn`` is compiled; ``arguments(i)`` makes those of call i, outside the measured time.
    ``driver`` turns the compiled ``fn`` into the callable that is measured, where one call of it is
    not one call of ``fn``.
    """

    fn: Callable[..., Any]
    arguments: Callable[[int], Arguments]
    driver: Callable[[Callable[..., Any]], Callable[..., Any]] = call_directly


@attrs.frozen
class Workload:
    """A program and how it is measured.

    ``libraries`` must be importable. ``gradients`` is the gradient mode of all calls.
    ``first_calls`` is the number of calls that count as the beginning of an entry. ``breaks`` is
    the number of graph breaks that a call crosses, by which ``OVER_EAGER`` is divided. ``target``
    is the accepted maximum, as printed.
    """

    name: str
    make: Callable[[], Program]
    libraries: tuple[str, ...] = ()
    gradients: bool = False
    figure: Figure = Figure.OVERHEAD
    first_calls: int = 100
    recompile_limit: int = 8
    breaks: int = 0
    target: str = ""

    @property
    def missing(self) -> list[str]:
        """The libraries that are not installed."""
        return [name for name in self.libraries if importlib.util.find_spec(name) is None]


def always(*args: Any, **kwargs: Any) -> Callable[[int], Arguments]:
    """Return the ``arguments`` of a program that gets the same objects in every call."""
    return lambda _: (args, kwargs)


def library(name: str) -> Any:
    """Import a module of an optional library."""
    return importlib.import_module(name)
