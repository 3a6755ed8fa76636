"""Constructors of the operations of SymbolicDomain."""

from __future__ import annotations

import functools
import types
from collections.abc import Callable
from typing import Any

import stator_bytecode as bytecode
from stator_bytecode import OperationSteps, Result

from stator_variables._lifetime import _finalization
from stator_variables._objects._hash_results import hashing
from stator_variables._objects._method import MethodTracker
from stator_variables._tracker import VariableTracker


def with_hashes(method: Callable[..., Any]) -> Callable[..., Any]:
    """Return an operation that may need the hash or the equality of objects of the program."""

    @functools.wraps(method)
    def run(self: Any, *args: Any) -> Result:
        return hashing(self.t, functools.partial(method, self, *args))

    return run


def delegated(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the method that calls a function of the data model."""

    def delegate(self: Any, *args: Any) -> Any:
        return function(self.t, *args)

    return delegate


def delegated_with_hashes(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return such a method for a function that may need hashes: see `with_hashes`."""

    def delegate_with_hashes(self: Any, *args: Any) -> Result:
        return hashing(self.t, functools.partial(function, self.t, *args))

    return delegate_with_hashes


def refused(reason: str, detail: str) -> Callable[..., Any]:
    def refuse(self: Any, *args: object) -> Any:
        raise self.t.unsupported(reason, detail)

    return refuse


def emptying(
    operate: Callable[..., Any], holder_in: Callable[[Any], Any] | None = None
) -> Callable[..., Any]:
    """Return an operation that may finalize what its first operand held, or the holder in it."""

    def operate_and_release(self: Any, operand: Any, *args: Any) -> Result:
        holder = operand if holder_in is None else holder_in(operand)
        held = _finalization.cleaning_up(self.t, holder, stays=True)
        result = operate(self, operand, *args)
        return (
            _waited(self, held, result)
            if type(result) is bytecode.Pending
            else _finalization.emptied(self.t, held, result)
        )

    return operate_and_release


@bytecode.operation
def _waited(
    domain: Any, held: list[bytecode.GeneratorState], result: bytecode.Pending
) -> OperationSteps:
    """A frame that the operation ends with is no part of it: it may break like any other."""
    return _finalization.emptied(domain.t, held, (yield from result.coroutine))


def receiver_in_c(called: VariableTracker) -> VariableTracker | None:
    """Return the receiver that a method of C may empty; one in Python does so in steps of its
    own."""
    return (
        called.receiver
        if type(called) is MethodTracker and called.cls is not types.MethodType
        else None
    )
