"""Signatures of what `stator.compile` returns, for type checkers, with the attribute `report`.

A function whose first parameter is a module keeps its own type, as nothing else may override
`forward` of `torch.nn.Module`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar, final, overload

import torch

from stator._report import Report

P = ParamSpec("P")
Q = ParamSpec("Q")
R_co = TypeVar("R_co", covariant=True)
M = TypeVar("M", bound=torch.nn.Module)
C = TypeVar("C", bound=type)
S = TypeVar("S")


@final
class _Nothing:
    """Nothing that a program has: only parameters of type `Any` or `object` take it."""


class Unannotated(Protocol[P, R_co]):
    """A function whose first parameter takes anything, such as one without annotations."""

    @overload
    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R_co: ...

    @overload
    def __call__(self, first: _Nothing, /, *args: Any, **kwargs: Any) -> Any: ...


class CompiledCallable(Protocol[P, R_co]):
    """A compiled function; in a class it is a method, as a function is."""

    @property
    def report(self) -> Report:
        """The report of what was compiled so far."""

    @property
    def __name__(self) -> str: ...

    @property
    def __wrapped__(self) -> Callable[P, R_co]: ...

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R_co: ...

    @overload
    def __get__(self, instance: None, owner: type) -> CompiledCallable[P, R_co]: ...

    @overload
    def __get__(
        self: CompiledCallable[Concatenate[Any, Q], R_co],
        instance: object,
        owner: type | None = None,
    ) -> CompiledCallable[Q, R_co]: ...


class Decorator(Protocol):
    """`stator.compile(...)` without a subject."""

    @overload
    def __call__(self, subject: M) -> M: ...  # type: ignore[overload-overlap]

    @overload
    def __call__(self, subject: C) -> C: ...  # type: ignore[overload-overlap]

    @overload
    def __call__(self, subject: Unannotated[P, S]) -> CompiledCallable[P, S]: ...

    @overload
    def __call__(
        self, subject: Callable[Concatenate[M, P], S]
    ) -> Callable[Concatenate[M, P], S]: ...

    @overload
    def __call__(self, subject: Callable[P, S]) -> CompiledCallable[P, S]: ...
