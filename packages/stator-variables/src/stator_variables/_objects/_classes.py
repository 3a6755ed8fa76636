"""Classes that are made while tracing, and changes of these and of existing classes."""

from typing import Any

from stator_bytecode import (
    Result,
)
from stator_guards import CapturedSource

from stator_variables._objects import (
    _class_dicts,
    _lookup,
)
from stator_variables._objects._lookup import (
    GuardedLookups,
    defines,
    guarded_lookup,
    rely_on_presence,
)
from stator_variables._objects._substitutes import UNKNOWN, substitute
from stator_variables._objects._wrap import ATOMS, behind_proxy
from stator_variables._runtime._contents import may_override
from stator_variables._space import Space
from stator_variables._tracker import MISSING, Args, is_a
from stator_variables._trackers import (
    ConstantTracker,
    NewClassTracker,
    WrittenClass,
)


def here(t: Space) -> Result:
    assert t.frame is not None
    return t.lookup(t.frame.globals, "__name__")


def make(t: Space, function: object, recipe: Args) -> Any:
    return track_class(t, run(t, function, recipe), function, recipe)


def track_class(t: Space, value: type, function: Any, recipe: Args) -> NewClassTracker:
    made = t.heap.made[id(value)] = NewClassTracker(value, function, recipe)
    t.heap.alive.append(value)
    return made


# -- writes ----------------------------------------------------------------------------------------
def set_attribute(t: Space, made: Any, name: str, value: Any) -> None:
    """`type.__setattr__`; `value` MISSING deletes."""
    if not is_a(made, NewClassTracker):
        return _set_of_existing(t, made.value, name, value)
    known = vars(made.value).get(name, MISSING)
    if known is not MISSING and type(known) not in ATOMS and id(known) not in t.heap.trackers:
        raise _refusal(t, made.value, name)
    function, given = (type.__delattr__, []) if value is MISSING else (type.__setattr__, [value])
    real = [substitute(t, vt) for vt in given]
    try:
        function(made.value, name, *real)
    except Exception as error:
        raise t.unsupported(
            "global-attribute-write", f"setting {name} of a class: {error}"
        ) from None
    step(t, made, function, [ConstantTracker(name), *given])


def _set_of_existing(t: Space, cls: type, name: str, value: Any) -> None:
    """Set an attribute of an existing class: look-ups find it from here on (`_lookup`), the class
    has it when the graph has run.

    Attributes that C or the data model itself reads from a class keep their values.
    """
    is_intercepted = _lookup.is_data_descriptor(t, guarded_lookup(t, cls, name)) or defines(
        t, type(cls), name
    )
    is_shown = _class_dicts.key_of(cls) in t.shared  # by a view, which the class itself is behind
    if not may_override(cls) or name.startswith("__") or is_intercepted or is_shown:
        raise _refusal(t, cls, name)
    if (written := t.shared.get(("written class", id(cls)))) is None:
        written = t.shared["written class", id(cls)] = WrittenClass(cls)
        written.source = CapturedSource(cls.__qualname__, cls)
        t.heap.trackers[id(written)] = written  # by which is found what only the class holds

    names = dict(written.names)
    if names.get(name):
        t.lifetimes.note_release(names[name][0], written)
    else:
        t.lifetimes.note_release_unread(_named, written, name)
    if value is not MISSING:
        names[name] = value, substitute(t, value)
    else:
        was_there = rely_on_presence(t, cls, name)
        if names.pop(name, True if was_there else None) is None:
            raise _refusal(t, cls, name)
        names |= {name: None} if was_there else {}

    t.journal.record(t.state(GuardedLookups).found.clear)
    t.write(written, names=names)
    t.state(GuardedLookups).found.clear()


def _named(cls: type, name: str) -> object:
    return vars(cls).get(name)


def _refusal(t: Space, cls: type, name: str) -> Exception:
    return t.unsupported("global-attribute-write", f"setting {name} of class {cls.__qualname__}")


def step(t: Space, made: Any, function: object, args: Args) -> None:
    made.steps.append((function, args))
    t.journal.record(made.steps.pop)
    t.heap.trackers.pop(id(behind_proxy(vars(made.value))), None)
    t.mark_mutated(made)
    t.state(GuardedLookups).found.clear()


def run(t: Space, function: Any, args: Args) -> Any:
    """A call that makes a class, or changes one, made over substitutes; the entry makes it
    again."""
    try:
        result = function(*[substitute(t, vt) for vt in args])
    except Exception as error:  # natively it raises in its own words
        raise t.unsupported("class-definition", f"{function.__qualname__}(): {error}") from None
    text = vars(result).get("__doc__") if isinstance(result, type) else None
    # the text of a dataclass has its defaults
    if isinstance(text, str) and " object at 0x" in text:
        type.__setattr__(result, "__doc__", UNKNOWN)
    return result
