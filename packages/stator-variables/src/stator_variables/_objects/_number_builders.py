"""Trackers of existing numbers: constants, inputs of the graph, and numbers of NumPy.

`Policy.number_is_symbolic` decides by their sources which numbers are inputs.
"""

import math
from typing import Any

import stator_guards as guards

from stator_variables import _trackers as k
from stator_variables._pure import TRUTHS
from stator_variables._space import Space
from stator_variables._tracker import VariableTracker


def build_number(
    t: Space, real: object, source: guards.Source, *, at_once: bool = False
) -> VariableTracker:
    """The tracker of an atom that the entry reads or computes.

    A number that was passed in is an input `at_once`, or else from its second value on.
    """
    tracker = build_atom(t, real, source, at_once=at_once)
    tracker.source, tracker.real = source, real
    return tracker


def build_atom(
    t: Space, real: object, source: guards.Source, *, at_once: bool = False
) -> VariableTracker:
    at_once = at_once or source in t.cached.varying
    if type(real) in (int, float) and t.policy.number_is_symbolic(source, real, at_once):
        t.guard(source, guards.TypeIs(type(real)))
        return symbolic_number(t, real, source)
    if type(real) in (str, bytes, int) and not t.policy.may_recur(source, real):
        raise t.unsupported(
            "changing-value",
            f"a {type(real).__name__} that was another in each of many calls",
            "compute what depends on it outside of the compiled function",
        )
    t.guard(source, guards.Is(real) if real is None or type(real) is bool else guards.Equals(real))
    return k.ConstantTracker(real)


def symbolic_number(t: Space, real: Any, source: guards.Source) -> VariableTracker:
    """The tracker of a number that is an input of the graph, and whose class is known."""
    if type(real) is float:
        t.guard(source, _IS_FINITE if real else _IS_NO_NEGATIVE_ZERO)
    tracker = k.NumberTracker(t.graph.number_input(source, real, source.name), type(real))
    tracker.source, tracker.real = source, real
    return tracker


def _has_no_negative_zero(value: float) -> bool:
    return math.isfinite(value) and (value != 0 or math.copysign(1, value) > 0)


_IS_FINITE = guards.Custom("{fn}({value})", math.isfinite, "a finite float")
_IS_NO_NEGATIVE_ZERO = guards.Custom(
    "{fn}({value})", _has_no_negative_zero, "a finite float and not -0.0"
)
"""Guard of an entry that was made for 0.0: no comparison distinguishes the two zeros."""


def build_scalar(t: Space, real: Any, source: guards.Source) -> VariableTracker:
    """A number of NumPy, its class guarded, and its value where that is needed as a constant."""
    t.guard(source, guards.TypeIs(type(real)))
    bits = real.tobytes()
    same = guards.Custom("{fn}({value})", lambda value: value.tobytes() == bits, f"{real!r}")
    scalar = k.ScalarTracker(real, lambda: t.guard(source, same))
    return k.ConstantTracker(scalar.value) if type(real) in TRUTHS else scalar
