"""`repr` of builtin containers over trackers, and `str`, `repr`, `format`, `hash` as `object`
defines them."""

import collections
import sys
import types
from typing import Any

import torch
from stator_bytecode import OperationSteps, Result, after, operation, settle

from stator_variables._builtin._strings import convert, text_of
from stator_variables._objects import _symbolic_numbers
from stator_variables._objects._dict import DictTracker
from stator_variables._objects._dict_view import VIEW_CLASSES, ViewTracker, elements
from stator_variables._objects._hashing import is_known
from stator_variables._objects._identity_number import IdTracker
from stator_variables._objects._list import ListTracker
from stator_variables._objects._lookup import guarded_lookup, refuse_overridden
from stator_variables._objects._method_table import MethodTable, settle_all
from stator_variables._objects._program_error import complain, name_of, throw
from stator_variables._objects._set import SetTracker, in_order
from stator_variables._objects._tuple import TupleTracker
from stator_variables._protocols import _attributes
from stator_variables._space import Space
from stator_variables._tracker import MISSING, VariableTracker, is_a
from stator_variables._trackers import ClassTracker, ConstantTracker

methods = MethodTable("representation")


@methods.handles(object.__repr__)
def object_repr(t: Space, vt: VariableTracker) -> Result:
    raise t.unsupported(
        "identity-number", f"repr() of a {vt.cls.__name__}, which shows where it is in memory"
    )


@methods.handles(object.__str__)
def object_str(t: Space, vt: VariableTracker) -> Result:
    raw = guarded_lookup(t, vt.cls, "__repr__")
    if isinstance(raw, types.WrapperDescriptorType) or _attributes.may_refuse(t, raw):
        return convert(t, vt, "r")
    return t.call(t.special(vt, "__repr__"), [])  # the caller checks the result


@methods.handles(object.__format__)
def object_format(t: Space, vt: VariableTracker, format_spec: VariableTracker) -> Result:
    spec = format_spec.constant()
    if spec == "":
        return convert(t, vt, "s")
    if isinstance(spec, str):
        complain(t, TypeError, "unsupported format string passed to ", vt.cls, ".__format__")
    raise t.unsupported("bad-arguments", "a format that is no string")


# -- containers ------------------------------------------------------------------------------------
@methods.handles(list.__repr__)
def list_repr(t: Space, vt: ListTracker) -> Result:
    return _in_turn(t, vt, "[...]", _joined(t, list(vt.items), "[", "]"))


@methods.handles(tuple.__repr__)
def tuple_repr(t: Space, vt: TupleTracker) -> Result:
    return _in_turn(
        t, vt, "(...)", _joined(t, list(vt.items), "(", ",)" if len(vt.items) == 1 else ")")
    )


@methods.handles(torch.Size.__repr__)
def size_repr(t: Space, vt: TupleTracker) -> Result:
    known = t.fold(torch.Size.__repr__, [vt], {})  # C writes no number of more than 64 bits
    return _joined(t, list(vt.items), "torch.Size([", "])") if known is MISSING else known


@methods.handles(collections.deque.__repr__)
def deque_repr(t: Space, vt: ListTracker) -> Result:
    refuse_overridden(t, vt, "__iter__", "__len__")
    end = "])" if vt.maxlen is None else f"], maxlen={vt.maxlen})"
    return _in_turn(t, vt, "[...]", _joined(t, list(vt.items), f"{name_of(t, vt.cls)}([", end))


@methods.handles(dict.__repr__)
def dict_repr(t: Space, vt: VariableTracker) -> Result:
    return _in_turn(t, vt, "{...}", _dict_text(t, vt))


@methods.handles(collections.defaultdict.__repr__)
@operation
def defaultdict_repr(t: Space, vt: DictTracker) -> OperationSteps:
    shown = yield from settle(convert(t, vt.default_factory, "r"))
    inside = yield from settle(dict_repr(t, vt))
    return text_of(t, [f"{name_of(t, vt.cls)}(", shown, ", ", inside, ")"])


@methods.handles(collections.OrderedDict.__repr__)
def ordered_repr(t: Space, vt: VariableTracker) -> Result:
    refuse_overridden(t, vt, *_READ_BY_C)
    pairs = [TupleTracker(pair) for pair in t.items(vt)]
    start = f"{name_of(t, vt.cls)}("
    if not pairs:
        return ConstantTracker(f"{start})")
    if sys.version_info >= (3, 12):
        return _in_turn(t, vt, "...", _dict_text(t, vt, f"{start}{{", "})"))
    return _in_turn(t, vt, "...", _joined(t, pairs, f"{start}[", "])"))


_READ_BY_C = ("keys", "__getitem__") if sys.version_info >= (3, 12) else ("items",)


@methods.handles(set.__repr__, frozenset.__repr__)
def set_repr(t: Space, vt: SetTracker) -> Result:
    refuse_overridden(t, vt, "__iter__", "__len__")
    items = in_order(t, vt) if len(vt.entries) > 1 else list(vt.entries.values())
    if not vt.entries:
        return ConstantTracker(f"{name_of(t, vt.cls)}()")
    start, end = ("{", "}") if vt.cls is set else (f"{name_of(t, vt.cls)}({{", "})")
    return _in_turn(t, vt, f"{name_of(t, vt.cls)}(...)", _joined(t, items, start, end))


@methods.handles(
    *dict.fromkeys(cls.__repr__ for classes in VIEW_CLASSES.values() for cls in classes)
)
def view_repr(t: Space, vt: ViewTracker) -> Result:
    return _in_turn(t, vt, "...", _joined(t, elements(t, vt), f"{name_of(t, vt.cls)}([", "])"))


@operation
def _in_turn(t: Space, vt: VariableTracker, again: str, text: Result) -> OperationSteps:
    """A container that contains itself is shown as `again` (`Py_ReprEnter`)."""
    if any(shown is vt for shown in t.representing):
        return ConstantTracker(again)
    depth = len(t.representing)
    t.representing.append(vt)
    t.journal.record(lambda: t.representing.__delitem__(slice(depth, None)))
    try:
        return (yield from settle(text))
    finally:
        del t.representing[depth:]


@operation
def _joined(t: Space, items: list[Any], start: str, end: str) -> OperationSteps:
    texts = yield from settle_all(convert(t, item, "r") for item in items)
    return text_of(t, [start, *[part for text in texts for part in (", ", text)][1:], end])


@operation
def _dict_text(t: Space, vt: VariableTracker, start: str = "{", end: str = "}") -> OperationSteps:
    texts: list[Any] = []
    for key, value in t.items(vt):
        texts += [", "] if texts else []
        key_text = yield from settle(convert(t, key, "r"))
        texts += key_text, ": ", (yield from settle(convert(t, value, "r")))
    return text_of(t, [start, *texts, end])


# -- hash ------------------------------------------------------------------------------------------
@methods.handles(hash)
def handle_hash(t: Space, obj: VariableTracker) -> Result:
    """Known for constants; a number that depends on where an object lies is for nobody to see."""
    vt = _symbolic_numbers.as_constant(t, obj)
    if isinstance(guarded_lookup(t, vt.cls, "__hash__"), types.FunctionType):
        number = t.call(t.special(vt, "__hash__"), [])
        return after(number, lambda found: _checked_hash(t, vt, found.constant()))
    if not is_a(vt, ClassTracker | IdTracker):
        hashed = t.key_of(vt)  # raises TypeError for what has no hash
        if (folded := t.fold(hash, [vt], {})) is not MISSING:
            return folded
        if vt.base in (tuple, set) and is_known(hashed):
            return ConstantTracker(hash(hashed))
    raise t.unsupported("identity-number", f"hash() of a {vt.cls.__name__}")


def _checked_hash(t: Space, vt: VariableTracker, value: object) -> ConstantTracker:
    """Return the result of a `__hash__` of the program, checked."""
    # one that is too large is hashed itself, and -1 is C's sign of an error
    if isinstance(value, int):
        fits = -sys.maxsize - 1 <= value <= sys.maxsize and value != -1
        return ConstantTracker(int(value) if fits else hash(value))
    if value is MISSING:
        raise t.unsupported("identity-number", f"hash() of a {vt.cls.__name__}")
    throw(TypeError, "__hash__ method should return an integer")
