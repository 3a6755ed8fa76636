"""Symbolic numbers as constants, and decisions on them: `ShapeEnv` guards both."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from stator_variables._objects._tuple import TupleTracker
from stator_variables._space import Space
from stator_variables._tracker import VariableTracker, is_a
from stator_variables._trackers import ConstantTracker, NumberTracker, SliceTracker, TextTracker


def specialised(t: Space, vt: Any) -> Any:
    """The value of a symbolic number as a constant: ShapeEnv guards that it stays so."""
    if vt.is_address:
        raise t.unsupported("tensor-attribute", "the address of a tensor, needed as a constant")
    with _meaning(
        t, "data-dependent-number", "a number that depends on data, needed as a constant"
    ):
        return vt.cls(t.graph.constant_of(vt.traced))


def decide(t: Space, vt: NumberTracker) -> bool:
    """The truth of a symbolic number: ShapeEnv keeps the guard, but for what floats decide."""
    if (found := t.graph.condition_of(vt.traced)) is not None:
        condition, holds = found
        t.rely(condition)
        return holds
    with _meaning(t, "data-dependent-branch", "a branch on a number that depends on data"):
        return t.graph.truth_of(vt.traced)


@contextmanager
def _meaning(t: Space, reason: str, detail: str) -> Iterator[None]:
    """Guard a query of ShapeEnv; it solves `0 == n * 0` for n by dividing."""
    try:
        yield
    except Exception as error:
        if type(error).__name__ == "GuardOnDataDependentSymNode":
            raise t.unsupported(reason, detail) from error
        if type(error).__name__ == "ValueRangeError":
            raise t.unsupported(
                "shape-out-of-range", "a number for which torch leaves no value"
            ) from error
        raise


def has_numbers(vts: Sequence[Any], kind: object = NumberTracker) -> bool:
    """Return True if a symbolic number, or a tracker of another kind, is among these or in a tuple
    among them."""
    return any(
        is_a(vt, kind) or (is_a(vt, TupleTracker | SliceTracker) and has_numbers(_parts(vt), kind))
        for vt in vts
    )


def has_texts(vts: Sequence[Any]) -> bool:
    """Return True if a text made of symbolic numbers is."""
    return has_numbers(vts, TextTracker)


def _parts(vt: Any) -> Sequence[Any]:
    found: Sequence[Any] = vt.parts if is_a(vt, SliceTracker) else vt.items
    return found


def as_constant(t: Space, vt: VariableTracker) -> VariableTracker:
    """Return the value with constants for symbolic numbers; `ShapeEnv` guards each, for its
    line."""
    if is_a(vt, NumberTracker):
        return ConstantTracker(specialised(t, vt))
    if is_a(vt, TupleTracker) and has_numbers(vt.items):
        return TupleTracker([as_constant(t, item) for item in vt.items], vt.cls)
    if is_a(vt, SliceTracker) and has_numbers(vt.parts):
        start, stop, step = (as_constant(t, part) for part in vt.parts)
        return SliceTracker((start, stop, step))
    return vt
