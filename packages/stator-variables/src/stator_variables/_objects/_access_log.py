"""Accesses of one call to new objects: which it looked at, and what these held before.

    log = logs.begin([cache])    trackers of what `cache` leads to get a class that notes the first
    ...                          access, `Noting...`, and are of their own class from then on
    logs.end(log)                log.before: the states of those that the call looked at

No guard is about a new object. What nobody looked at cannot have mattered to the call, so it can be
repeated where the objects that it looked at have the same states. An item that a list has under a
number which nobody looked at, as that of a layer, is `selected`: only that it is this item matters.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

from attrs import Factory, define, frozen
from stator_bytecode import Result
from stator_guards import PartSource, Source

from stator_variables._objects import _dict_entries
from stator_variables._objects._dict import DictTracker
from stator_variables._objects._list import ListTracker, replace_items
from stator_variables._objects._tuple import TupleTracker
from stator_variables._space import Space
from stator_variables._tracker import MISSING, VariableTracker, is_pending, real_of, source_of
from stator_variables._trackers import NONE, ConstantTracker, ObjectTracker, is_none

MOST = 1000
"""The number of objects up to which accesses are noted."""

PartPlace = tuple[str, Any]
"""The place of a part: ("item", index), ("key", hashed), ("member", descriptor), ("namespace", "").
"""


@frozen(eq=False)
class ObjectState:
    """The content of a new object at one time; `steps` are the places of its `parts`."""

    vt: Any
    kind: type
    cls: type
    steps: tuple[PartPlace, ...]
    parts: tuple[Any, ...]

    @property
    def is_list(self) -> bool:
        return self.kind is ListTracker


_FIELDS: dict[type, frozenset[str]] = {
    ListTracker: frozenset({"cls", "added", "structure", "namespace"}),
    ObjectTracker: frozenset({"cls", "real", "members", "namespace", "is_of_made"}),
    DictTracker: frozenset(
        {"cls", "known", "undecided", "decide", "complete", "log", "owner", "iterators"}
        | {"default_factory", "may_call_eq", "namespace"}
    ),
}
"""The fields of trackers whose states are understood."""


def is_new_object(vt: Any) -> bool:
    """Return True for a new object whose accesses can be noted."""
    is_object = not is_pending(vt) and _kind(vt) in _FIELDS
    return is_object and _fields(vt).get("source") is None and _real(vt) is MISSING


def state_of(vt: Any) -> ObjectState | None:
    """Return the state of a new object, without noting an access; None for one with more to it."""
    own, kind = _fields(vt), _kind(vt)
    if not own.keys() - {_LOGS} <= _FIELDS[kind] or own.get("is_of_made", False):
        return None
    namespace = own.get("namespace")
    found: list[tuple[PartPlace, Any]] = (
        [] if namespace is None else [(("namespace", ""), namespace)]
    )

    if kind is ListTracker:
        found += [(("item", index), item) for index, item in enumerate(own["added"])]
    elif kind is ObjectTracker:
        found += [(("member", member), part) for member, part in own["members"].items()]
    else:
        if own["undecided"] or own["iterators"] or not own["complete"]:
            return None
        if not is_none(own["default_factory"]):
            return None
        for hashed, entry in own["known"].items():
            if not _is_plain_key(hashed, entry):
                return None
            found.append((("key", hashed), entry[1]))

    steps, parts = [step for step, _ in found], [part for _, part in found]
    return ObjectState(vt, kind, own["cls"], tuple(steps), tuple(parts))


def _is_plain_key(hashed: object, entry: tuple[Any, Any]) -> bool:
    """Return True for a key that another tracker can represent."""
    key, _ = entry
    is_plain = type(hashed) in (str, int, bool, type(None)) and type(key) is ConstantTracker
    return is_plain and type(key.value) is type(hashed)


def _fields(vt: Any) -> dict[str, Any]:
    """Return the fields of a tracker, without noting an access."""
    found: dict[str, Any] = object.__getattribute__(vt, "__dict__")
    return found


def _real(vt: Any) -> Any:
    return _fields(vt).get("real", MISSING)


def _kind(vt: Any) -> type:
    """Return the class that a tracker has while no accesses are noted."""
    return _ORDINARY.get(type(vt), type(vt))


# -- the logs --------------------------------------------------------------------------------------
@define(eq=False)
class AccessLog:
    """The accesses of one call. `open` has the new objects that its arguments led to."""

    open: dict[int, Any]
    before: dict[int, ObjectState | None] = Factory(dict)
    """The states of those that were looked at, by the identities of the trackers; None for one that
    has more than a state shows."""
    selected: dict[int, dict[Source, int]] = Factory(dict)
    """The indices, by their sources, under which items of lists and dicts were read or put."""
    items: dict[tuple[int, int], Any] = Factory(dict)
    """The items that were under these, by the identities of the containers and the indices."""
    put: dict[int, dict[Source, Any]] = Factory(dict)
    """The items that were put under these, in this order."""
    after: dict[int, ObjectState | None] = Factory(dict)
    """The states at the end, of new objects that these lead to as well."""


@define(eq=False)
class AccessLogs:
    """The logs of the calls that are interpreted now, the outermost first."""

    t: Space
    active: list[AccessLog] = Factory(list)

    def begin(self, vts: Iterable[Any]) -> AccessLog | None:
        """Note the accesses to new objects, and to what they lead to; None where these are many."""
        found: dict[int, Any] = {}
        waiting = [*vts]
        while waiting:
            vt = waiting.pop()
            if type(vt) is TupleTracker and vt.source is None:
                waiting += vt.items
            elif is_new_object(vt) and id(vt) not in found:
                found[id(vt)] = vt
                waiting += _parts(vt)
            if len(found) > MOST:
                return None

        reference = weakref.ref(self)  # such a tracker, and that of its `__dict__`, are a cycle
        for vt in found.values():
            _fields(vt)[_LOGS] = reference
            object.__setattr__(vt, "__class__", _NOTING[_kind(vt)])
        log = AccessLog(found)
        self.active.append(log)
        return log

    def end(self, log: AccessLog, result: Any) -> None:
        """End the log of a call, and keep the states that its result and the objects lead to."""
        del self.active[self.active.index(log) :]  # one that raised an exception did not return
        log.before.update(dict.fromkeys(log.before.keys() & log.put.keys()))  # in which order?
        changed = [state_of(vt) for vt in map(log.open.__getitem__, log.before)]
        waiting = [result, *(part for state in changed if state for part in state.parts)]
        waiting += [item for items in log.put.values() for item in items.values()]
        log.after.update((id(state.vt), state) for state in changed if state is not None)
        while waiting:
            vt = waiting.pop()
            if type(vt) is TupleTracker and vt.source is None:
                waiting += vt.items
            elif is_new_object(vt) and id(vt) not in log.open and id(vt) not in log.after:
                state = log.after[id(vt)] = state_of(vt)
                waiting += () if state is None else state.parts

    def note(self, vt: Any) -> None:
        """Note an access to an object."""
        state = state_of(vt)
        for log in self.active:
            if id(vt) in log.open:
                log.before.setdefault(id(vt), state)

    def select(self, vt: Any, source: Source, index: int) -> Any:
        """Return the item that a container has under an index, and rely on the index alone."""
        item = item_at(vt, index)
        self.t.heap.selected[source] = index
        for log in self.active:
            if id(vt) in log.open:
                log.selected.setdefault(id(vt), {})[source] = index
                log.items.setdefault((id(vt), index), item)
        return item

    def put(self, vt: Any, source: Source, index: int, item: Any) -> None:
        """Put an item in the place of one that is there, and rely on the index alone."""
        self.select(vt, source, index)
        reference, noting = _fields(vt).pop(_LOGS, None), type(vt)
        object.__setattr__(vt, "__class__", _kind(vt))
        if type(vt) is ListTracker:
            items = [*vt.added]
            items[index] = item
            replace_items(self.t, vt, items, structural=False)
        else:
            _dict_entries.store_hashed(self.t, vt, index, ConstantTracker(index), item)

        if reference is not None:
            _fields(vt)[_LOGS] = reference
            object.__setattr__(vt, "__class__", noting)
        for log in self.active:
            if id(vt) in log.open:
                items_put = log.put.setdefault(id(vt), {})
                items_put.pop(source, None)
                items_put[source] = item


def item_at(vt: Any, index: object) -> Any:
    """Return the item of a new list or dict under an index; MISSING without one."""
    own = _fields(vt)
    if type(index) is not int or own["cls"] not in (list, dict):
        return MISSING
    if _kind(vt) is ListTracker:
        return own["added"][index] if 0 <= index < len(own["added"]) else MISSING
    is_plain = not own["undecided"] and all(map(_is_plain_key, own["known"], own["known"].values()))
    return own["known"][index][1] if is_plain and index in own["known"] else MISSING


def _parts(vt: Any) -> list[Any]:
    own, kind = _fields(vt), _kind(vt)
    parts = [] if own.get("namespace") is None else [own["namespace"]]
    if kind is ListTracker:
        return [*parts, *own["added"]]
    if kind is ObjectTracker:
        return [*parts, *own["members"].values()]
    return [*parts, *(value for _, value in own["known"].values())]


# -- trackers that note the first access -----------------------------------------------------------
_LOGS = "_access_logs"
_UNNOTED = frozenset({"__class__", "cls", "base", "real", "source", "is_symbolic", "is_known"})
"""The attributes that are the same of all new objects of a class."""


def _noted(vt: Any) -> None:
    """Give a tracker its own class back, and note the access."""
    if type(vt) not in _ORDINARY:
        return
    logs = _fields(vt).pop(_LOGS)()
    object.__setattr__(vt, "__class__", _ORDINARY[type(vt)])
    if logs is not None:
        logs.note(vt)


_UNNOTED_OF_BUILTIN = frozenset({"get_attribute", "namespace"})
"""The attributes that are the same of all new lists, and of all new dicts."""


def _get_attribute(vt: Any, name: str) -> Any:
    is_builtin = name in _UNNOTED_OF_BUILTIN and _fields(vt)["cls"] in (list, dict)
    if name not in _UNNOTED and not (is_builtin and _fields(vt).get("owner") is None):
        _noted(vt)
        return getattr(vt, name)
    return object.__getattribute__(vt, name)


def _set_attribute(vt: Any, name: str, value: object) -> None:
    _noted(vt)
    setattr(vt, name, value)


class NotingList(ListTracker):
    """A list whose first access is noted."""

    def __getattribute__(self, name: str) -> Any:
        return _get_attribute(self, name) if name not in _ITEMS else partial(_ITEMS[name], self)

    def __setattr__(self, name: str, value: object) -> None:
        _set_attribute(self, name, value)


class NotingDict(DictTracker):
    """A dict, or the `__dict__` of an object, whose first access is noted."""

    def __getattribute__(self, name: str) -> Any:
        return _get_attribute(self, name) if name not in _ITEMS else partial(_ITEMS[name], self)

    def __setattr__(self, name: str, value: object) -> None:
        _set_attribute(self, name, value)


class NotingObject(ObjectTracker):
    """An object whose first access is noted."""

    def __getattribute__(self, name: str) -> Any:
        return _get_attribute(self, name)

    def __setattr__(self, name: str, value: object) -> None:
        _set_attribute(self, name, value)


_NOTING: dict[type, Any] = {
    ListTracker: NotingList,
    DictTracker: NotingDict,
    ObjectTracker: NotingObject,
}
_ORDINARY: dict[type, type] = {noting: kind for kind, noting in _NOTING.items()}


def _selector(vt: Any, key: VariableTracker) -> tuple[AccessLogs, Source, int] | None:
    """Return the logs, the source and the value of a number that nobody looked at, if an item is
    under it."""
    if type(vt) not in _ORDINARY or not is_pending(key):
        return None
    logs, source, index = _fields(vt)[_LOGS](), source_of(key), real_of(key)
    is_there = item_at(vt, index) is not MISSING
    return (logs, source, index) if logs and is_there and isinstance(source, PartSource) else None


def selected_item(vt: Any, key: VariableTracker) -> Any:
    """Return the item under a number that nobody looked at; MISSING where the container has to be
    read."""
    found = _selector(vt, key)
    if found is None:
        return MISSING
    logs, source, index = found
    return logs.select(vt, source, index)


def _get_item(vt: Any, t: Space, key: VariableTracker) -> Result:
    if (item := selected_item(vt, key)) is not MISSING:
        return item
    _noted(vt)
    return vt.get_item(t, key)


def _set_item(vt: Any, t: Space, key: VariableTracker, new: VariableTracker) -> Result:
    found = _selector(vt, key)
    if found is None:
        _noted(vt)
        return vt.set_item(t, key, new)
    logs, source, index = found
    logs.put(vt, source, index, new)
    return NONE


_ITEMS: dict[str, Any] = {"get_item": _get_item, "set_item": _set_item}


# -- writes that are repeated ----------------------------------------------------------------------
def write_state(t: Space, vt: Any, steps: Iterable[PartPlace], parts: Iterable[Any]) -> None:
    """Set these keys of a new dict, or all items of a new list."""
    if _kind(vt) is ListTracker:
        pairs = zip(steps, parts, strict=True)
        replace_items(t, vt, [part for (kind, _), part in pairs if kind == "item"])
        return
    for (_, hashed), part in zip(steps, parts, strict=True):
        _dict_entries.store_hashed(t, vt, hashed, ConstantTracker(hashed), part)


def made_of_state(state: ObjectState, part_of: Callable[[Any], Any], keep: Any) -> Any:
    """Return a new object of the same class, with the parts that take the place of these.

    `keep` is called with the object before it has parts, which may lead to it.
    """
    vt = _made(state.kind, state.cls)
    keep(vt)
    for (kind, name), old in zip(state.steps, state.parts, strict=True):
        part = part_of(old)
        if kind == "namespace":
            vt.namespace, part.owner = part, vt
        elif kind == "item":
            vt.added.append(part)
        elif kind == "key":
            vt.known[name] = (ConstantTracker(name), part)
        else:
            vt.members[name] = part
    return vt


def _made(kind: type, cls: type) -> Any:
    if kind is ListTracker:
        return ListTracker([], cls)
    return DictTracker(cls, complete=True) if kind is DictTracker else ObjectTracker(cls)
