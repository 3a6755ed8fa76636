"""Substitutes: real objects in the place of values that exist only while tracing, for code in C
that makes classes; and the real objects behind trackers.

The heap has the tracker of each, so that the data model reads trackers from a substitute class.
"""

import types
from functools import partial
from typing import Any

from stator_guards import CapturedSource, Is

from stator_variables._objects._dict import DictTracker
from stator_variables._objects._partial import PartialTracker
from stator_variables._objects._recipe import KEY_WRAPPER, RecipeTracker
from stator_variables._objects._set import SetTracker
from stator_variables._objects._tuple import SequenceTracker
from stator_variables._objects._wrap import ATOMS, attributes_of
from stator_variables._runtime._contents import has_member, plain_lookup
from stator_variables._runtime._support import base_of_c
from stator_variables._space import Space
from stator_variables._tracker import DELETED, MISSING, VariableTracker, is_a, real_of, source_of
from stator_variables._trackers import (
    NONE,
    BuiltinTracker,
    ClassTracker,
    ConstantTracker,
    FunctionTracker,
    ObjectTracker,
)


class Substitute:
    """A substitute for a value that code in C does not read."""


UNKNOWN = Substitute()
"""The substitute for a value that is unknown while tracing."""


def substitute(t: Space, vt: VariableTracker) -> object:
    """A real object in the place of a value; `wrap` gives the tracker for it."""
    if (real := real_of(vt)) is not MISSING and type(real) not in ATOMS:
        # what has many trackers is known from this look on
        return real if id(real) in t.heap.trackers or vt.cls else None
    if (known := t.shared.get(("substitute", id(vt)))) is None:
        known = (vt, _made_substitute(t, vt))  # the tracker is kept: its identity is the key
        t.shared["substitute", id(vt)] = known
        if not is_a(vt, ConstantTracker):
            t.heap.trackers[id(known[1])] = vt
    return known[1]


def _made_substitute(t: Space, vt: VariableTracker) -> object:
    made = vt.substitute(t, partial(substitute, t))
    if made is not MISSING:
        return made
    if is_a(vt, FunctionTracker):
        return _function(t, vt)
    if type(vt) is ObjectTracker and plain_lookup(vt.cls, "__new__") is object.__new__:
        return _object(t, vt)
    if issubclass(vt.cls, property):
        raise t.unsupported(
            "class-definition", f"a {vt.cls.__qualname__}, which is a property, in a class"
        )

    if is_a(vt, SequenceTracker | SetTracker | DictTracker):  # of another class
        cls: Any = vt.cls
        make: Any = base_of_c(cls).__new__
        if has_member(cls, "n_sequence_fields"):  # made by C code that takes the items
            return make(cls, range(cls.n_sequence_fields))
        return make(cls)
    if plain_lookup(vt.cls, "__hash__") is None:  # dataclasses read it
        raise t.unsupported(
            "class-definition", f"a {vt.cls.__qualname__}, which cannot be hashed, in a class"
        )
    return Substitute()


def _function(t: Space, vt: FunctionTracker) -> object:
    closure = tuple(types.CellType() for _ in vt.closure)
    made = types.FunctionType(vt.code, vt.globals.real, vt.name, None, closure)
    made.__qualname__ = vt.qualname
    for name, value in (*vt.fields.items(), *attributes_of(vt).items()):
        if is_a(value, ConstantTracker):  # `__isabstractmethod__`
            setattr(made, name, value.value)
        elif name == "__isabstractmethod__":  # C evaluates its truth
            raise t.unsupported(
                "class-definition", "a function that is abstract if an object is true"
            )
    return made


def _object(t: Space, vt: Any) -> object:
    made = object.__new__(vt.cls)
    for member, value in vt.members.items():
        if value is not DELETED:
            member.__set__(made, substitute(t, value))
    if vt.namespace is not None:
        values = {name: substitute(t, value) for name, value in attributes_of(vt).items()}
        object.__getattribute__(made, "__dict__").update(values)
    return made


def field_of(t: Space, vt: RecipeTracker, name: str) -> Any:
    """Return an argument of a property, `classmethod` or `staticmethod`, by name; the object of a
    key; else MISSING."""
    if vt.cls is KEY_WRAPPER and name == "obj":
        return vt.args[1] if len(vt.args) > 1 else NONE
    if vt.cls not in (property, classmethod, staticmethod):
        return MISSING
    value = getattr(substitute(t, vt), name, MISSING)
    if type(value) not in ATOMS and id(value) not in t.heap.trackers:
        return MISSING
    return t.wrap(value, CapturedSource(name, value))


# The real object behind a tracker, for what is called natively while the graph runs: a policy, a
# configuration.


def known_value(t: Space, vt: VariableTracker) -> Any:
    """An existing object itself, whose identity is guarded; a new one is made of such: constants,
    functions, partials, lists. Raises Unsupported for what exists only while the graph runs, and
    what was changed and is not written yet."""
    if (real := real_of(vt)) is MISSING:
        return _made(t, vt)
    if id(vt) in t.heap.changed or id(real) in t.heap.made:
        raise t.unsupported("graph-argument", f"a {type(real).__qualname__} that was changed here")
    if vt.constant() is MISSING:
        t.guard(source_of(vt), Is(real))
    return real


def _made(t: Space, vt: VariableTracker) -> Any:
    if vt.constant() is not MISSING:
        return vt.constant()
    if is_a(vt, PartialTracker):
        named = {name: known_value(t, value) for name, value in vt.kwargs.items()}
        return vt.cls(
            known_value(t, vt.function), *(known_value(t, arg) for arg in vt.args), **named
        )

    if is_a(vt, SequenceTracker) and vt.cls in (list, tuple):
        return vt.cls([known_value(t, item) for item in vt.items])
    if is_a(vt, BuiltinTracker | ClassTracker):
        return vt.value
    if is_a(vt, FunctionTracker) and not vt.fields:
        return _new_function(t, vt)
    raise t.unsupported(
        "graph-argument", f"a {vt.cls.__qualname__} that is made here, where the object is needed"
    )


def _new_function(t: Space, vt: FunctionTracker) -> Any:
    cells = tuple(types.CellType(known_value(t, cell.content)) for cell in vt.closure)
    made = types.FunctionType(vt.code, vt.globals.real, vt.name, None, cells)
    made.__defaults__ = (
        None if vt.defaults is None else tuple(known_value(t, value) for value in vt.defaults)
    )
    named = {name: known_value(t, value) for name, value in (vt.kwdefaults or {}).items()}
    made.__kwdefaults__ = named or None
    return made
