"""Trackers of existing numbers: constants, inputs of the graph, and numbers of NumPy.

`Policy.number_is_symbolic` decides by their sources which numbers are inputs.
"""

import math
from typing import Any

from stator_guards import Custom, Equals, Is, Source, TypeIs

from stator_variables._pure import TRUTHS
from stator_variables._space import Space
from stator_variables._tracker import VariableTracker
from stator_variables._trackers import ConstantTracker, NumberTracker, ScalarTracker


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
    at_once = at_once or source in t.cached.varying
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
