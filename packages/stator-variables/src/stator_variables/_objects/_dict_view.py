"""Views of dicts: what is known of one, how an existing one is read, and how a new one is made."""

import collections
import gc
from collections import OrderedDict
from typing import Any

from stator_guards import CallSource, Source, TypeIs, shown_as

from stator_variables._emitter import Emitter
from stator_variables._objects._builder_table import BuilderTable
from stator_variables._objects._tuple import TupleTracker
from stator_variables._runtime._contents import may_override
from stator_variables._space import Space
from stator_variables._tracker import VariableTracker

builders = BuilderTable()

DICT_VIEW: type = type({}.keys())
"""The class of the keys of a dict; views of its values and items have the same representation in
C."""


class ViewTracker(VariableTracker, references=("mapping",)):
    """dict.keys(), .values() or .items() of a dict tracker; `part` is "keys", "values" or
    "items"."""

    base = DICT_VIEW

    def __init__(self, cls: type, part: str, mapping: VariableTracker) -> None:
        self.cls = cls
        self.part = part
        self.mapping = mapping

    def rebuild(self, e: Emitter) -> str:
        return e.bind(self, of_base(e, self.mapping, self.part, f"{{}}.{self.part}()"))


def elements(t: Space, vt: ViewTracker) -> list[Any]:
    pairs = t.items(vt.mapping)
    if vt.part == "items":
        return [TupleTracker(pair) for pair in pairs]
    return [pair[vt.part == "values"] for pair in pairs]


VIEW_CLASSES: dict[str, tuple[Any, Any]] = {
    part: (type(getattr({}, part)()), type(getattr(OrderedDict(), part)()))
    for part in ("keys", "values", "items")
}
"""The classes of the views of a dict, and of an OrderedDict."""


BASES = (list, tuple, set, frozenset, collections.deque, collections.OrderedDict, dict)


def of_base(e: Emitter, of: VariableTracker, method: str, otherwise: str) -> str:
    """The iterator, or view, that the builtin base of a class gives: the class may have a method of
    its own."""
    base = next((base for base in BASES if issubclass(of.cls, base)), of.cls)
    name = e.expr(of)
    # a tuple is reversed by C itself
    if base is of.cls or not may_override(of.cls) or not hasattr(base, method):
        return otherwise.format(name)
    return f"{e.capture(getattr(base, method), base.__name__ + method)}({name})"


@shown_as("what {0} goes through")
def viewed(of: object) -> object:
    """Return the dict or set behind a view or an iterator; None behind an iterator at its end."""
    found = [obj for obj in gc.get_referents(of) if isinstance(obj, dict | set | frozenset)]
    return found[0] if found else None


@builders.by_class.handles_each(
    {cls: part for part, classes in VIEW_CLASSES.items() for cls in classes}
)
def build_view(t: Space, real: object, source: Source, of: str) -> VariableTracker:
    t.guard(source, TypeIs(type(real)))
    return ViewTracker(type(real), of, t.wrap(viewed(real), CallSource(viewed, source)))
