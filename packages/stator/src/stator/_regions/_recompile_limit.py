"""Errors for functions that were compiled too often, or again where that is an error."""

from collections.abc import Hashable

from stator_bytecode import FlatState
from stator_guards import Cache

from stator.errors import InvalidUse, Unsupported


def recompiled(cache: Cache, key: Hashable, state: FlatState) -> InvalidUse:
    """The error of a call that is to be compiled while the stance or a setting of torch forbids
    it."""
    reasons = [str(reason) for reason in cache.reasons(state, key)]
    text = f"{cache.name} has no entry for this call, and must not be compiled again"
    hint = "call it with the same kinds of arguments before, or change the stance"
    return InvalidUse("\n".join([text, *reasons]), hint)


def past_limit(cache: Cache, key: Hashable, state: FlatState) -> Unsupported:
    """`fullgraph` promises one graph or an error, so nothing may run plainly past the limit."""
    failure = next(
        (failure for reason in cache.reasons(state, key) for failure in reason.failures), None
    )
    detail = f"another version of {cache.name}: it has its {cache.limit} already"
    if failure is None:
        return Unsupported("recompile-limit", detail, "raise recompile_limit")
    changed = f"{detail}, and {failure.source} was {failure.needed}, is now {failure.found}"
    return Unsupported(
        "recompile-limit", changed, f"{failure.fix}, or raise recompile_limit", failure.where
    )
