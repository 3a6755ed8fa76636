"""Texts that are made while tracing.

One made of symbolic numbers is not made (`TextTracker`) until it is read:

    name = f"layer_{n}"      entry: 'layer_{}'.format(n)
    name == "layer_4"        n is a constant, which is guarded

`_text_methods` has the methods of `str`.
"""

import functools
import re
from collections.abc import Iterable
from typing import Any

from stator_variables._objects._number import specialised
from stator_variables._objects._program_error import throw
from stator_variables._space import Space
from stator_variables._tracker import VariableTracker, is_a
from stator_variables._trackers import ConstantTracker, TextTracker


def text_of(t: Space, parts: Iterable[Any]) -> ConstantTracker:
    """The string that these make: strings, trackers of strings, and numbers with how to format
    them."""
    found: list[Any] = []
    for part in parts:
        if is_a(part, TextTracker):
            found += part.parts
        else:
            found.append(part if isinstance(part, str | tuple) else known_text(t, part))
    if all(isinstance(part, str) for part in found):
        return ConstantTracker("".join(found))
    return TextTracker(found, functools.partial(specialised, t))


def text_of_number(t: Space, vt: Any, spec: str = "") -> VariableTracker:
    """`format(number, spec)`.

    Of a float that the graph computes the last digit may differ.
    """
    stays = vt.cls is not float or vt.example.node.expr.is_symbol
    is_exact = stays or t.graph.text_of(vt.traced, lambda source: source.name) is not None
    if not is_exact or re.search(r"[{}]|c$", spec):  # a character code may be too large
        return ConstantTracker(_formatted(vt.cls(specialised(t, vt)), spec))
    _formatted(vt.cls(1), spec)
    return text_of(t, [(vt, spec)])


def _formatted(value: object, spec: str) -> str:
    try:
        return format(value, spec)
    except (ValueError, OverflowError) as error:
        throw(type(error), *error.args)


def known_text(t: Space, vt: VariableTracker) -> str:
    if not isinstance(value := vt.constant(), str):
        raise t.unsupported(
            "string-of-unknown", "a string made of parts that are not known while tracing"
        )
    return value
