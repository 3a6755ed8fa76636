"""Objects that hold suspended generators, and open `with` statements, carried over a break in
parts.

A generator that only the frames can see goes on as frame state. One that an object holds, which
only the frames can see, has to go on the same way, or the break would leave a generator object that
is stepped natively from then on:

    with managed(x):      # a bound `__exit__` on the stack: its object, its `gen`, the generator
        graph_break()
    for i, batch in enumerate(batches()): ...

So such an object is taken apart into a recipe, which is static, and the trackers of what it holds;
each continuation makes a tracker of them again. Natively it is built when it is needed.

The bound `__exit__` of any open `with` goes on in this way too: nothing but the stack has it. Its
function and the flags of a new manager are part of the recipe, so a call neither makes nor guards
them.
"""

import collections
import types
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from attrs import frozen
from stator_bytecode import Virtualized
from stator_guards import CapturedSource

from stator_variables._objects._deque import DequeTracker
from stator_variables._objects._identity_number import IdTracker
from stator_variables._objects._iterators._iterator import IteratorTracker
from stator_variables._objects._iterators._sequence import SHORT
from stator_variables._objects._list import ListTracker
from stator_variables._objects._lookup import is_app_level
from stator_variables._objects._method import MethodTracker
from stator_variables._objects._tuple import TupleTracker
from stator_variables._objects._wrap import attributes_of, new_object
from stator_variables._runtime._contents import has_member
from stator_variables._runtime._support import base_of_c
from stator_variables._space import Space
from stator_variables._tracker import DELETED, Split, VariableTracker, is_a, is_pending, real_of
from stator_variables._trackers import ConstantTracker, ObjectTracker


@frozen
class ObjectRecipe:
    """The construction of an object of `cls` from its parts; `detail` is further data of its
    family."""

    family: type[Any]
    cls: type
    detail: Any = None

    def build(self, parts: Sequence[Any]) -> object:
        return _FAMILIES.get(self.family, _ITERATORS).build(self, parts)

    def tracker(self, t: Space, parts: Sequence[Any]) -> VariableTracker:
        return _FAMILIES.get(self.family, _ITERATORS).join(self, t, parts)


@frozen
class Family:
    """One sort of object: to a detail and parts (None: not this one), and back to a tracker or to a
    real object."""

    split: Callable[[Any], Split | None]
    join: Callable[[ObjectRecipe, Space, Sequence[Any]], VariableTracker]
    build: Callable[[ObjectRecipe, Sequence[Any]], Any]


def parts_of(vt: Any) -> Virtualized | None:
    """Return a new object as parts; None for any other. Realizes no value."""
    family = _ITERATORS if issubclass(type(vt), IteratorTracker) else _FAMILIES.get(type(vt))
    if family is None or vt.source is not None:
        return None
    if (split := family.split(vt)) is None:
        return None
    return Virtualized(ObjectRecipe(type(vt), vt.cls, split[0]), tuple(split[1]))


def is_opaque(vt: VariableTracker) -> bool:
    """Return True for an object whose state a real one does not expose: an iterator of itertools,
    and the object behind it."""
    is_app_level_object = is_a(vt, ObjectTracker) and vt.source is None and is_app_level(vt.cls)
    return is_app_level_object or vt.is_opaque


def has_few_parts(vt: VariableTracker) -> bool:
    """Return True for an object that has as many parts in each round of a loop, as a rule."""
    return type(vt) is ObjectTracker or (type(vt) is TupleTracker and len(vt.items) <= SHORT)


def is_identity(vt: VariableTracker) -> bool:
    """Return True for `id(thing)`: a number that no other call has, so that nothing may rely on
    it."""
    return type(vt) is IdTracker


# -- instances of classes written in Python --------------------------------------------------------
_FLAGS = (None, True, False)


def _split_object(vt: ObjectTracker) -> Split | None:
    if vt.namespace is None or vt.is_of_made or has_member(vt.cls, "__del__"):
        return None
    fields = attributes_of(vt)
    members = {member: value for member, value in vt.members.items() if value is not DELETED}
    flags = tuple((name, value.value) for name, value in fields.items() if _is_flag(value))
    others = [value for value in fields.values() if not _is_flag(value)]
    return (tuple(fields), tuple(members), flags), (*others, *members.values())


def _is_flag(vt: VariableTracker) -> bool:
    return type(vt) is ConstantTracker and any(vt.value is flag for flag in _FLAGS)


def _attributes(
    recipe: ObjectRecipe, given: Iterator[Any], flags: dict[str, Any]
) -> dict[str, Any]:
    """Return the attributes of an instance in their order, the parts among them from `given`."""
    return {name: flags[name] if name in flags else next(given) for name in recipe.detail[0]}


def _join_object(recipe: ObjectRecipe, t: Space, parts: Sequence[Any]) -> ObjectTracker:
    _, members, flags = recipe.detail
    given, known = iter(parts), {name: ConstantTracker(value) for name, value in flags}
    tracker: ObjectTracker = new_object(recipe.cls, _attributes(recipe, given, known))
    tracker.members = dict(zip(members, given, strict=True))
    return tracker


def _build_object(recipe: ObjectRecipe, parts: Sequence[Any]) -> Any:
    _, members, flags = recipe.detail
    make: Any = base_of_c(recipe.cls).__new__
    made, given = make(recipe.cls), iter(parts)
    made.__dict__.update(_attributes(recipe, given, dict(flags)))
    for member, part in zip(members, given, strict=True):
        member.__set__(made, part)
    return made


# -- methods and containers ------------------------------------------------------------------------
def _split_method(vt: MethodTracker) -> Split | None:
    """The function that a class has is as static as the class."""
    if vt.cls is not types.MethodType:
        return None
    return (
        (real_of(vt.function), (vt.receiver,))
        if is_method(vt)
        else (None, (vt.function, vt.receiver))
    )


def is_method(vt: VariableTracker) -> bool:
    """Return True for a bound method whose function is one of the class of its object."""
    if type(vt) is not MethodTracker or is_pending(vt.receiver):
        return False
    function = real_of(vt.function)
    if type(function) is not types.FunctionType:
        return False
    return any(vars(base).get(function.__name__) is function for base in vt.receiver.cls.__mro__)


def _join_method(recipe: ObjectRecipe, t: Space, parts: Sequence[Any]) -> VariableTracker:
    if (function := recipe.detail) is None:
        callee, receiver = parts
    else:
        callee = t.wrap(function, CapturedSource(function.__name__, function))
        (receiver,) = parts
    return MethodTracker(callee, receiver)


def _build_method(recipe: ObjectRecipe, parts: Sequence[Any]) -> object:
    function, receiver = parts if recipe.detail is None else (recipe.detail, *parts)
    return types.MethodType(function, receiver)


def _split_list(vt: ListTracker) -> Split | None:
    return (vt.maxlen, vt.items) if vt.cls in (list, collections.deque) else None


def _join_list(recipe: ObjectRecipe, t: Space, parts: Sequence[Any]) -> VariableTracker:
    tracker = (ListTracker if recipe.cls is list else DequeTracker)(parts, recipe.cls)
    if recipe.detail is not None:
        tracker.maxlen = recipe.detail
    return tracker


def _build_list(recipe: ObjectRecipe, parts: Sequence[Any]) -> Any:
    return list(parts) if recipe.cls is list else collections.deque(parts, recipe.detail)


# -- iterators over generators ---------------------------------------------------------------------
_ITERATORS = Family(
    lambda vt: vt.split(),
    lambda recipe, t, parts: recipe.family(*recipe.detail, *parts),
    lambda recipe, parts: recipe.family.build(*recipe.detail, *parts),
)

_FAMILIES: dict[type[VariableTracker], Family] = {
    ObjectTracker: Family(_split_object, _join_object, _build_object),
    MethodTracker: Family(_split_method, _join_method, _build_method),
    TupleTracker: Family(
        lambda vt: (None, vt.items) if vt.cls is tuple else None,
        lambda recipe, t, parts: TupleTracker(parts),
        lambda recipe, parts: tuple(parts),
    ),
    **dict.fromkeys((ListTracker, DequeTracker), Family(_split_list, _join_list, _build_list)),
    IdTracker: Family(
        lambda vt: (None, (vt.thing,)),
        lambda recipe, t, parts: IdTracker(*parts),
        lambda recipe, parts: id(*parts),
    ),
}
