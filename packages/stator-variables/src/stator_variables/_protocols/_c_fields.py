"""Fields of existing objects that are implemented in C, and empty slots."""

from types import MemberDescriptorType
from typing import Any, NoReturn

from stator_guards import (
    AttrAbsent,
    CapturedSource,
    SlotSource,
)

from stator_variables._objects._program_error import complain, name_in_slots, throw
from stator_variables._objects._wrap import wrap_present
from stator_variables._space import Space
from stator_variables._tracker import VariableTracker


def complain_of_empty_slot(t: Space, vt: VariableTracker, name: str) -> NoReturn:
    """Raise what a member descriptor raises whose slot has no value."""
    message = f"' object has no attribute '{name}'"
    complain(t, AttributeError, "'", vt.cls, message, naming=name_in_slots)


def read_existing_field(t: Space, raw: Any, vt: VariableTracker, name: str) -> VariableTracker:
    """A field of an existing C object, or a slot: read it, and rely on it through its source.

    A field of an object that was changed is read natively, after the change. A slot that was set is
    in the tracker, and the others are as they were.
    """
    if id(vt) in t.heap.changed and not is_slot(raw):
        raise t.unsupported("c-attribute", f"attribute {name} of a changed {vt.cls.__qualname__}")
    whole = vt.source if vt.source is not None else CapturedSource(vt.describe(), vt.real)
    source = SlotSource(whole, raw.__objclass__, name)
    try:
        value = raw.__get__(vt.real)
    except AttributeError as error:
        t.guard(whole, AttrAbsent(name, raw))
        name_in_slots(t, vt.cls)  # the text may contain it
        throw(AttributeError, *error.args)
    except Exception as error:  # C's own check; natively it raises the same
        raise t.unsupported(
            "c-attribute", f"attribute {name} of a {vt.cls.__qualname__}: {error}"
        ) from None
    return wrap_present(t, value, source)


def is_slot(raw: Any) -> bool:
    """Return True for the descriptor of a name in `__slots__`."""
    return type(raw) is MemberDescriptorType and "__slots__" in vars(raw.__objclass__)
