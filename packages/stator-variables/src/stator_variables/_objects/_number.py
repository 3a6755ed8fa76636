"""Numbers: constants, inputs of the graph, and numbers of NumPy.

In this order: how existing ones are built, where `Policy.number_is_symbolic` decides by their
sources which are inputs; symbolic ones as constants, and decisions on them, both of which
`ShapeEnv` guards. `_number_methods` has the methods, `_number_of_numpy` what the entry computes.
"""

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, ClassVar

import attrs
from stator_guards import Custom, Equals, Is, Source, TypeIs

from stator_variables._objects._tuple import TupleTracker
from stator_variables._pure import TRUTHS
from stator_variables._space import Space
from stator_variables._trace._capture_state import CaptureState
from stator_variables._tracker import VariableTracker, is_a
from stator_variables._trackers import (
    ConstantTracker,
    NumberTracker,
    ScalarTracker,
    SliceTracker,
    TextTracker,
)


@attrs.define(eq=False)
class VaryingNumbers(CaptureState):
    """The sources of numbers that are others for other symbolic arguments, in the result of a
    cached function: they are inputs at once."""

    may_repeat: ClassVar[bool] = True

    sources: set[Source] = attrs.Factory(set)

    def moment(self) -> tuple[Any, ...]:
        return (len(self.sources),)


def build_number(
    t: Space, real: object, source: Source, *, at_once: bool = False
) -> VariableTracker:
    """The tracker of an atom that the entry reads or computes.

    A number that was passed in is an input `at_once`, or else from its second value on.
    """
    tracker = build_atom(t, real, source, at_once=at_once)
    tracker.source, tracker.real = source, real
    return tracker


def build_atom(t: Space, real: object, source: Source, *, at_once: bool = False) -> VariableTracker:
    at_once = at_once or source in t.state(VaryingNumbers).sources
    if type(real) in (int, float) and t.policy.number_is_symbolic(source, real, at_once):
        t.guard(source, TypeIs(type(real)))
        return symbolic_number(t, real, source)
    if type(real) in (str, bytes, int) and not t.policy.may_recur(source, real):
        raise t.unsupported(
            "changing-value",
            f"a {type(real).__name__} that was another in each of many calls",
            "compute what depends on it outside of the compiled function",
        )
    t.guard(source, Is(real) if real is None or type(real) is bool else Equals(real))
    return ConstantTracker(real)


def symbolic_number(t: Space, real: Any, source: Source) -> VariableTracker:
    """The tracker of a number that is an input of the graph, and whose class is known."""
    if type(real) is float:
        t.guard(source, _IS_FINITE if real else _IS_NO_NEGATIVE_ZERO)
    tracker = NumberTracker(t.graph.number_input(source, real, source.name), type(real))
    tracker.source, tracker.real = source, real
    return tracker


def _has_no_negative_zero(value: float) -> bool:
    return math.isfinite(value) and (value != 0 or math.copysign(1, value) > 0)


_IS_FINITE = Custom("{fn}({value})", math.isfinite, "a finite float")
_IS_NO_NEGATIVE_ZERO = Custom("{fn}({value})", _has_no_negative_zero, "a finite float and not -0.0")
"""Guard of an entry that was made for 0.0: no comparison distinguishes the two zeros."""


def build_scalar(t: Space, real: Any, source: Source) -> VariableTracker:
    """A number of NumPy, its class guarded, and its value where that is needed as a constant."""
    t.guard(source, TypeIs(type(real)))
    bits = real.tobytes()
    same = Custom("{fn}({value})", lambda value: value.tobytes() == bits, f"{real!r}")
    scalar = ScalarTracker(real, lambda: t.guard(source, same))
    return ConstantTracker(scalar.value) if type(real) in TRUTHS else scalar


# -- symbolic numbers ----------------------------------------------------------------------------
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
