"""Trackers of existing values, made when they are first used, and what their making has in common.

`wrap` is lazy: nothing is read and nothing guarded until then. `_registry.py` has the builder of
each class of objects.
"""

import enum
import functools
import gc
import re
import threading
import types
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from stator_guards import (
    AttrSource,
    CallSource,
    CapturedSource,
    Custom,
    Equals,
    InstanceDictSource,
    ItemSource,
    Length,
    Source,
    TypeIs,
    shown_as,
)

from stator_variables._objects._builder_table import Builder
from stator_variables._objects._dict import DictTracker
from stator_variables._pure import CYTHON_FUNCTION, DTYPES, NUMBERS, PATHS, TRUTHS
from stator_variables._runtime._contents import item_owner, stored
from stator_variables._space import Space
from stator_variables._tracker import DELETED, MISSING, VariableTracker, pending, source_of
from stator_variables._trackers import ConstantTracker, ObjectTracker

ATOMS = (type(None), bool, int, float, complex, str, bytes, type(Ellipsis), type(NotImplemented))
SINGLETONS = (torch.dtype, torch.layout, torch.memory_format, re.Pattern, *map(type, DTYPES))
ENUMS_OF_C = tuple(
    cls for cls in vars(torch._C).values() if isinstance(cls, type) and hasattr(cls, "__members__")
)
"""Classes that pybind11 makes of C++ enums, such as `SDPBackend`."""

VALUES = (torch.device, range, slice, *NUMBERS, *TRUTHS, *ENUMS_OF_C)
"""Immutable values compared by equality: not objects with an identity that matters."""


BY_IDENTITY = (
    *(
        types.BuiltinFunctionType,
        types.MethodDescriptorType,
        types.WrapperDescriptorType,
        types.MethodWrapperType,
    ),
    *(types.ClassMethodDescriptorType, types.GetSetDescriptorType, types.MemberDescriptorType),
    *(types.ModuleType, types.CodeType),
    *(() if CYTHON_FUNCTION is None else (CYTHON_FUNCTION,)),
    *(torch._ops.OpOverload, torch._ops.OpOverloadPacket, torch._ops.HigherOrderOperator),
)


def wrap(t: Space, real: object, source: Source) -> VariableTracker:
    """The tracker of an existing value.

    Atoms have no identity worth tracking; objects have one tracker each.
    """
    kind = type(real)
    if id(real) in t.heap.made:
        return t.heap.made[id(real)]
    plain = id(kind) in _PLAIN
    if (
        plain
        and kind in ATOMS
        and (type(source) is CapturedSource or (t.heap.made and t.heap.is_of_made(source)))
    ):
        return ConstantTracker(real)  # of a class, whose attribute may be written later
    # `isinstance` would read `__class__` of the object
    if plain or issubclass(kind, type | enum.Enum):
        return pending(source, real, lambda: t.build(real, source))
    return t.heap.track(real, source, lambda: t.build(real, source))


def equal_to(expected: object) -> Custom:
    """Equality for values of a C class that compares by value; the exact class is part of it."""
    cls = type(expected)
    return Custom(
        "{fn}({value})",
        lambda value: type(value) is cls and value == expected,
        f"equal to {expected!r}",
    )


def wrap_items(t: Space, items: Sequence[Any], source: Source) -> list[VariableTracker]:
    """All items of a list or tuple, and that there are no others."""
    t.guard(source, Length(len(items)))
    return [wrap(t, item, ItemSource(source, i)) for i, item in enumerate(items)]


def read_items(t: Space, base: Any, real: object, source: Source) -> list[VariableTracker]:
    """All items of an instance of a builtin class of sequences, without overrides of a subclass."""
    t.allow_length(base.__len__(real), type(real))
    items = stored(base, real)  # in one step: other threads may change it
    if (owner := item_owner(type(real), base)) is None:
        return wrap_items(t, items, source)
    t.guard(CallSource(base.__len__, source), Equals(len(items)))
    return [t.wrap(item, ItemSource(source, i, owner)) for i, item in enumerate(items)]


@shown_as("what {0} is a view of")
def behind_proxy(proxy: object) -> object:
    """The mapping that a mappingproxy shows: the one thing it refers to."""
    return gc.get_referents(proxy)[0]


_IS_THERE = Custom("{fn}({value})", lambda value: value is not MISSING, "there")
"""A guard that a source can be read: without, every guard fails."""


def wrap_present(t: Space, real: object, source: Source) -> VariableTracker:
    """Return the tracker of a value that another call may lack, and that the entry may only pass
    on."""
    tracker = wrap(t, real, source)
    t.needs_item(source, _IS_THERE, tracker)
    return tracker


def with_namespace(
    t: Space, tracker: VariableTracker, real: object, source: Source
) -> VariableTracker:
    """Give the tracker the instance `__dict__` of its object, if it has one; it may have been met
    before."""
    if (namespace := instance_dict(real)) is None:
        return tracker
    if (known := t.heap.trackers.get(id(namespace))) is None:
        known = DictTracker(dict, complete=False)
        of_thread = issubclass(type(real), threading.local)
        known.real = namespace
        known.source = AttrSource(source, "__dict__") if of_thread else InstanceDictSource(source)
        t.heap.trackers[id(namespace)] = known
        t.heap.alive.append(namespace)
    tracker.namespace = known
    tracker.namespace.owner = tracker
    return tracker


def instance_dict(real: object) -> dict[str, Any] | None:
    """Return the instance dictionary itself, whatever the class defines as `__dict__`."""
    if (
        issubclass(type(real), functools.partial)
        and functools.partial.__reduce__(real)[2][3] is None
    ):
        return {}  # it gets its own when that is read, and C distinguishes the two
    # which finds that of this thread by a way of its own
    of_thread = issubclass(type(real), threading.local)
    try:
        found = vars(real) if of_thread else object.__getattribute__(real, "__dict__")
    except AttributeError:
        return None
    return found if type(found) is dict else None


def globals_tracker(t: Space, globals_: dict[str, Any]) -> VariableTracker:
    """The tracker of a module's globals. The dict itself is captured, so it needs no guard."""
    name = f"globals of {globals_.get('__name__', '?')}"
    return captured_dict(t, globals_, name, is_scope=True)


def builtins_of(t: Space, globals_vt: VariableTracker) -> VariableTracker:
    found = globals_vt.real.get("__builtins__", __builtins__)
    return globals_tracker(t, found if isinstance(found, dict) else found.__dict__)


def captured_dict(
    t: Space, namespace: dict[str, Any], name: str, *, is_scope: bool = False
) -> VariableTracker:
    """The tracker of a dict that the entry refers to itself."""
    found = t.heap.trackers.get(id(namespace))
    # A captured one has no second path to compare.
    if found is not None and type(source_of(found)) is CapturedSource:
        return found
    return wrap(t, namespace, CapturedSource(name, namespace, is_scope=is_scope))


def new_namespace(tracker: VariableTracker) -> None:
    """An empty `__dict__` for a new object."""
    tracker.namespace = DictTracker(dict, complete=True, owner=tracker)


def with_new_namespace(tracker: VariableTracker) -> VariableTracker:
    """Give a new object an empty `__dict__`, if its class has one."""
    if tracker.cls.__dictoffset__:
        new_namespace(tracker)
    return tracker


def new_object(cls: type, attributes: Mapping[str, Any]) -> ObjectTracker:
    """A new instance of a Python class; `__init__` is not run."""
    vt = ObjectTracker(cls)
    new_namespace(vt)
    vt.namespace.entries = {
        name: (ConstantTracker(name), value) for name, value in attributes.items()
    }
    return vt


def attributes_of(vt: VariableTracker) -> dict[str, Any]:
    """Return what a new object has in its `__dict__` by now."""
    return {
        name: value for name, (_, value) in vt.namespace.entries.items() if value is not DELETED
    }


_PLAIN = frozenset(map(id, (*ATOMS, *VALUES, *SINGLETONS, *PATHS, *BY_IDENTITY)))


def of_instances(build: Builder) -> Builder:
    """Return a builder that guards the class first, and gives the tracker its `__dict__` last."""

    @functools.wraps(build)
    def build_instance(t: Space, real: object, source: Source) -> VariableTracker:
        t.guard(source, TypeIs(type(real)))
        return with_namespace(t, build(t, real, source), real, source)

    return build_instance


@of_instances
def build_object(t: Space, real: object, source: Source) -> VariableTracker:
    return ObjectTracker(type(real), real)
