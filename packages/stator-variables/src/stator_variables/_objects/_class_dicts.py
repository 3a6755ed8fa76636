"""The `__dict__` of a class: what the class itself defines, read item by item like any other
existing dict."""

from typing import Any

from stator_guards import KeysAre

from stator_variables._objects._dict import DictTracker
from stator_variables._objects._lookup import mro_of, namespace_source
from stator_variables._objects._mapping_proxy import ProxyTracker
from stator_variables._objects._wrap import behind_proxy
from stator_variables._runtime._contents import may_override
from stator_variables._space import Space


def view_of(t: Space, cls: type) -> ProxyTracker:
    """`cls.__dict__`, which is a new view each time."""
    view = ProxyTracker(namespace_of(t, cls))
    view.owner = cls
    return view


def namespace_of(t: Space, cls: type) -> Any:
    """The dict behind the view.

    Raises Unsupported where the region has set attributes of the class.
    """
    if getattr(t.shared.get(("written class", id(cls))), "names", None):
        raise t.unsupported("class-dict", f"the __dict__ of class {cls.__qualname__}, changed here")
    if (known := t.shared.get(key_of(cls))) is None:
        known = DictTracker(dict, complete=False)
        known.real, known.source = (
            behind_proxy(vars(type)["__dict__"].__get__(cls)),
            namespace_source(t, cls),
        )
        t.shared[key_of(cls)] = known
        t.heap.alive.append(cls)
    return known


def key_of(cls: type) -> tuple[str, int]:
    """The key of the dict in `Space.shared`."""
    return "class dict", id(cls)


def names_in(t: Space, d: Any) -> list[Any]:
    """The keys of a dict in their order, relied on; the values are not read."""
    if (
        d.complete
        or d.log
        or d.undecided
        or not all(type(key) is str for key in [*dict.keys(d.real)])
    ):
        return [key.constant() for key, _ in t.items(d)]
    names = [*dict.keys(d.real)]
    t.guard(d.source, KeysAre(tuple(names)))
    return names


def names_of_class(t: Space, cls: type) -> dict[Any, None]:
    """Return the names that a class and its bases define (`merge_class_dict` in
    Objects/typeobject.c)."""
    mro_of(t, cls)
    names = [*vars(cls)] if _is_fixed(t, cls) else names_in(t, namespace_of(t, cls))
    found = dict.fromkeys(names)
    for base in cls.__bases__:
        found |= names_of_class(t, base)
    return found


def _is_fixed(t: Space, cls: type) -> bool:
    return not may_override(cls) or id(cls) in t.heap.made
