"""The real objects that die when references are released, and whether the program can observe it.

An end is observable through a `__del__`, a weak reference, or a generator that is suspended in a
`try`. There are two queries. `has_observable_end` walks everything that an object refers to: it is
used while tracing only. `are_released_unobserved` is a guard: it inspects the dying objects, of
which nearly every call has none, or plain values.
"""

import gc
import sys
import weakref
from collections import deque
from collections.abc import Collection, Iterable, Mapping, Sequence
from types import (
    AsyncGeneratorType,
    BuiltinFunctionType,
    CellType,
    CodeType,
    CoroutineType,
    FrameType,
    FunctionType,
    GeneratorType,
    MethodType,
    ModuleType,
    NoneType,
)
from typing import Any

import torch
from stator_bytecode import is_own_module
from stator_guards import identity, shown_as

from stator_variables._defining_module import module_of

_HOLDS_OR_CHANGES = 1 << 14 | 1 << 9  # Py_TPFLAGS_HAVE_GC, Py_TPFLAGS_HEAPTYPE
LIMIT = 2000
"""The number of objects after which a walk is abandoned."""

_LONG_LIVED = (type, ModuleType, BuiltinFunctionType, CodeType, torch.Tensor)
"""Classes of objects that are not inspected: they outlive a call, or hold memory. Compared with
`type(…)`: `isinstance` may run code of the program."""

_PLAIN_CLASSES = (
    bool,
    int,
    float,
    complex,
    str,
    bytes,
    NoneType,
    type(...),
    type(NotImplemented),
    type,
)
_PLAIN = frozenset(
    map(
        identity,
        (*_PLAIN_CLASSES, torch.Tensor, torch.nn.Parameter, torch.dtype, torch.device, torch.Size),
    )
)
"""Classes, by identity, of objects whose end nobody can observe, whatever they are: a class of the
program's may have a hash of its own."""

_ITERABLE = frozenset(map(identity, (list, set, frozenset, deque)))
"""Containers whose iteration gives all that they refer to. Not tuples: inside iterators of C they
may have holes, which only the collector bears."""

_OWNERS = frozenset(identity(cls) for cls in (list, tuple, dict, CellType))
_UNOBSERVABLE = _PLAIN | _OWNERS
"""Classes, by identity, of objects that have no finalizer and take no weak references."""

_STARTED: tuple[object, ...] = (
    iter([]),
    reversed([]),
    iter(()),
    iter({}),
    iter({}.values()),
    iter({}.items()),
)
_ITERATORS = frozenset(identity(type(each)) for each in _STARTED) | {
    identity(enumerate),
    identity(zip),
}
"""Classes, by identity, of iterators that take no weak references, and that have no holes in their
tuples."""

_WITH_CODE = frozenset(map(identity, (GeneratorType, CoroutineType, AsyncGeneratorType)))
_WITH_GLOBALS = frozenset(map(identity, (FunctionType, FrameType)))


# -- while tracing ---------------------------------------------------------------------------------
def has_observable_end(value: object) -> bool:
    """Return whether the program can observe that an object, or something that it refers to,
    dies."""
    return may_have_observable_end(type(value)) and is_end_observable(
        [value, *reachable_from(value)]
    )


def may_have_observable_end(cls: type) -> bool:
    """Return whether that may be so of an instance: plain values hold nothing, and stay as they
    are."""
    if identity(cls) in _PLAIN or issubclass(cls, _LONG_LIVED):
        return False
    return bool(cls.__flags__ & _HOLDS_OR_CHANGES or cls.__weakrefoffset__)


def reachable_from(value: object) -> list[object]:
    """Return what a value refers to, and so on, each once; hardly more than LIMIT objects."""
    if issubclass(type(value), _LONG_LIVED):
        return []
    found, latest = {identity(value): value}, [value]
    while latest and len(found) <= LIMIT:
        held = _referents(latest)
        long_lived = {
            number for number, cls in _classes(held).items() if issubclass(cls, _LONG_LIVED)
        }
        new: dict[int, object] = {}
        for each in held[:LIMIT]:
            if identity(type(each)) not in long_lived and identity(each) not in found:
                new[identity(each)] = each
        found |= new
        latest = [*new.values()]
    return [*found.values()][1:]


def may_hold_real(holder: object, target: object) -> bool:
    found = reachable_from(holder)
    return len(found) >= LIMIT or any(held is target for held in found)


def stores(holder: object, value: object) -> bool:
    """Return whether `holder` itself, or its instance dictionary, refers to `value`."""
    return any(each is value for each in gc.get_referents(holder))


# -- on each call ----------------------------------------------------------------------------------
def are_plain(values: Iterable[object]) -> bool:
    """Return whether nobody can observe the end of any of these, by their classes alone."""
    return _PLAIN.issuperset(map(identity, map(type, values)))


_REFERENCES = 5
"""The number of references to an argument of the guard below from the released objects and the
guard itself.

These are the container, the tuple of the arguments, that of the caller, a local, and one more. With
a lower number, an object with one other reference would be inspected in vain.
"""


@shown_as("whether nothing observes the end of {all}")
def are_released_unobserved(*values: object) -> bool:
    """Return whether containers may release these values later than the program does.

    Objects with other references live on. Dying ones are inspected, with all that dies with them.
    """
    if are_plain(values) or hold_plain_values(values, _REFERENCES):
        return True
    waiting = {identity(value): value for value in values if identity(type(value)) not in _PLAIN}
    released: dict[int, int] = {}
    for number in map(identity, values):
        released[number] = released.get(number, 0) + _REFERENCES
    dying = dying_with(waiting, released)
    return dying is not None and not is_end_observable(dying)


_FEW = 64
"""The number of values up to which the short check below is faster."""


def hold_plain_values(
    values: Iterable[object], holders: int, kept: Collection[int] = frozenset()
) -> bool:
    """Return True only if `values`, as far as they die, are containers of plain values and of
    objects that something else refers to as well, or that are `kept`, by identity.

    Each value is referred to `holders` times for each time that it is among `values`. All are
    values that the program has: a tuple that only C has may have holes.
    """
    found = _inspected(values, kept)
    count = len(found)
    others: dict[int, object] = {}
    iterated: set[int] = set()
    seen: set[int] = set()

    for value in found:
        cls = type(value)
        if cls is tuple or cls is CellType:
            held: Any = value if cls is tuple else _content(value)
        else:
            held = _held_by_container(value, cls, iterated)
        if held is None and sys.getrefcount(value) > _FEWEST:
            others[identity(value)] = value
            continue

        if held is None and (held := _held_by_simple_object(value, cls)) is None:
            return False
        if not held or (number := identity(value)) in seen:
            continue
        seen.add(number)
        for each in held:  # as a rule few: a comprehension would be called for each container
            if type(each) is torch.Tensor or identity(type(each)) in _PLAIN:
                continue
            if not (kept and identity(each) in kept):
                found.append(each)
        if len(found) > _FEW:
            return False

    value = held = each = None  # references of our own are not counted
    return not others or _are_held_elsewhere(others, [*map(identity, found)], count, holders)


def _inspected(values: Iterable[object], kept: Collection[int]) -> list[object]:
    """Return the values that are neither plain nor `kept`; the most common classes come first."""
    return [
        each
        for each in values
        if type(each) is not torch.Tensor
        and type(each) is not NoneType
        and identity(type(each)) not in _PLAIN
        and not (kept and identity(each) in kept)
    ]


def _held_by_container(value: Any, cls: type, iterated: set[int]) -> Sequence[object] | None:
    """Return what a builtin container or iterator refers to, None for anything else.

    What an iterator goes through is added to `iterated`, by identity: as a rule something else
    holds it, so that it is not gone through here.
    """
    if cls is list or cls is dict:
        if not value:
            return ()
        held: Sequence[object] = value if cls is list else [*value, *value.values()]
        return None if identity(value) in iterated and not are_plain(held) else held
    if cls is MethodType and not weakref.getweakrefcount(value):
        return value.__self__, value.__func__
    if identity(cls) in _ITERATORS:
        held = gc.get_referents(value)
        iterated.update(identity(each) for each in held if type(each) in (list, dict))
        return held
    return None


class _Simple:
    """A class whose instances consist of their `__dict__`."""


def _held_by_simple_object(value: Any, cls: type) -> Sequence[object] | None:
    """Return what an object refers to that consists of its `__dict__`, or is a tuple besides, and
    runs nothing when it dies; else None."""
    if type(cls) is not type or hasattr(cls, "__del__") or weakref.getweakrefcount(value):
        return None
    if issubclass(cls, tuple) and not hasattr(cls, _OF_STRUCTURES):
        own = object.__getattribute__(value, "__dict__").values() if cls.__dictoffset__ else ()
        return [*tuple.__iter__(value), *own]
    like = (
        cls.__basicsize__ == _Simple.__basicsize__ and cls.__dictoffset__ == _Simple.__dictoffset__
    )
    if cls.__itemsize__ or not like:
        return None
    return [*object.__getattribute__(value, "__dict__").values()]


def holds_plain_values_alone(value: object) -> bool:
    """Return whether an object that dies holds plain values only, and runs nothing."""
    return are_plain(_held_by_simple_object(value, type(value)) or (value,))


_OF_STRUCTURES = "n_sequence_fields"
"""An attribute of classes whose tuples have more items than they show."""


_FEWEST = 4
"""The number of references to an object that only a state holds: from it, the list, a local and the
query."""


def _are_held_elsewhere(
    others: dict[int, object], found: list[int], count: int, holders: int
) -> bool:
    """Return whether something refers to each of `others` beside a state and the containers that
    were gone through.

    Of `found`, the identities of all values, the first `count` are in the state.
    """
    of_state = found[:count]
    for number in [*others]:
        times, given = found.count(number), of_state.count(number)
        ours = times + 2  # the list of values, `others`, and the caller
        if sys.getrefcount(others[number]) <= ours + times - given + given * holders:
            return False
    return True


@shown_as("whether nothing observes the end of {all}")
def have_unobservable_ends(*values: object) -> bool:
    """Return the same for values that something else may release as well: all their referents are
    inspected."""
    return are_plain(values) or not any(map(has_observable_end, values))


def dying_with(waiting: dict[int, object], released: Mapping[int, int]) -> list[object] | None:
    """Return the objects that die of some values, and with them, when so many references to objects
    are released, all by identity.

    Objects with other references, and their referents, live on. None: LIMIT was exceeded.
    """
    gone, dying = dict(released), dict[int, object]()

    while len(waiting) + len(dying) <= LIMIT:
        # The table and the caller refer to each besides.
        fallen = [i for i in waiting if sys.getrefcount(waiting[i]) <= gone.get(i, 0) + 2]
        if not fallen:
            return [*dying.values()]

        latest = [waiting.pop(i) for i in fallen]
        dying.update(zip(fallen, latest, strict=True))
        each: object = None
        for each in _referents(latest):
            number = identity(each)
            gone[number] = gone.get(number, 0) + 1
            if number not in dying and (
                identity(type(each)) in _OWNERS or not issubclass(type(each), _LONG_LIVED)
            ):
                waiting[number] = each
        each = None  # references of our own are not counted

    return None


def is_end_observable(found: list[object]) -> bool:
    """Return whether the program can observe the end of one of these, apart from what they refer
    to."""
    found = [each for each in found if identity(type(each)) not in _UNOBSERVABLE]
    if not found:
        return False
    classes = _classes(found)
    if not _WITH_CODE.isdisjoint(classes) and any(map(_has_clean_up, found)):
        return True
    is_watched = any(map(weakref.getweakrefcount, found)) and any(map(_is_watched, found))
    return is_watched or any(
        "__del__" in vars(base) for cls in classes.values() for base in cls.__mro__
    )


@shown_as("whether {0} ends without releasing an object whose end is observable")
def exhausts_unobserved(iterator: object) -> bool:
    """Return whether nobody can observe what an existing iterator, at its end, releases of what it
    goes through."""
    return not any(map(_is_observed_end, gc.get_referents(iterator)))


def _is_observed_end(held: object) -> bool:
    """Return whether the end of `held` is observable, and comes when its one holder releases it; a
    list, `map` and this function refer to it too."""
    # in which an iterator over a dict has the item that it gave last: others hold that, too
    if type(held) is tuple:
        return any(sys.getrefcount(item) <= 3 and has_observable_end(item) for item in held)
    return sys.getrefcount(held) <= 5 and has_observable_end(held)


def _classes(values: list[object]) -> dict[int, type]:
    return {identity(type(each)): type(each) for each in values}


def _has_clean_up(value: object) -> bool:
    if type(value) is GeneratorType:
        return value.gi_suspended and bool(value.gi_code.co_exceptiontable)
    return identity(type(value)) in _WITH_CODE


def _is_watched(value: object) -> bool:
    """Return whether a weak reference of the program's leads to `value`. Those to tensors are
    mostly torch's own, those to classes and functions libraries'."""
    if issubclass(type(value), type | FunctionType | BuiltinFunctionType | torch.Tensor):
        return False
    return not all(map(_is_of_machinery, weakref.getweakrefs(value)))


def _is_of_machinery(reference: weakref.ref[object]) -> bool:
    """Return whether a weak reference has a callback of torch's, which makes one for each module
    once its compiler is imported, or of a guard. An attribute of a proxy would be looked up on its
    referent."""
    called = reference.__callback__ if issubclass(type(reference), weakref.ref) else None
    if type(called) is not FunctionType:
        return False
    module = module_of(called)
    return module.startswith("torch.") or is_own_module(module)


# -- references ------------------------------------------------------------------------------------
def _referents(holders: list[object]) -> list[object]:
    """Return what these refer to, apart from plain values."""
    found: list[object] = []
    rest: list[object] = []

    for holder in holders:
        cls = type(holder)

        if identity(cls) in _ITERABLE:
            found += holder  # type: ignore[arg-type]
        elif cls is dict:
            found += [*holder, *holder.values()]  # type: ignore[misc, attr-defined]
        elif cls is CellType:
            found += _content(holder)
        elif cls is MethodType:
            found += (holder.__self__, holder.__func__)  # type: ignore[attr-defined]
        elif identity(cls) in _WITH_GLOBALS:
            found += _parts(holder)
        else:
            rest.append(holder)

    if rest:
        found += gc.get_referents(*rest)
    return [each for each in found if identity(type(each)) not in _PLAIN]


_EMPTY_CELL = CellType()


def _content(cell: Any) -> tuple[object, ...]:
    if cell == _EMPTY_CELL:  # an exception takes longer; contents are compared with none
        return ()
    try:
        return (cell.cell_contents,)
    except ValueError:  # another thread has emptied it
        return ()


def _parts(holder: object) -> list[object]:
    """Return what it holds but for the globals, which outlive a call; a frame that is done holds
    half of the process, of which only that matters which nothing else holds: but for this list, the
    name here and the frame."""
    if type(holder) is FunctionType:
        return [holder.__closure__, holder.__defaults__, holder.__kwdefaults__, holder.__dict__]
    return [each for each in gc.get_referents(holder) if sys.getrefcount(each) <= 4]
