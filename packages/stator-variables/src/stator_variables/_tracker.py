"""VariableTracker: one Python value while it is being traced; LazyTracker: an existing one that is
not realized yet.

A tracker gives storage and identity; operations are defined in the data model (`_attributes`,
`_operators`, `_calls`, …). An existing object (one that lived before the traced code ran) has
`real` and `source`; reading a fact of it installs a guard. A lazy tracker turns into the tracker of
its object the first time any attribute of it is read, so an argument that is only passed on is
never guarded.
"""

from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any, ClassVar, TypeGuard, cast

from stator_bytecode import HandlerTable, Result
from stator_guards import Source

Args = Sequence[Any]
"""The positional arguments of a call, as trackers."""
Kwargs = dict[str, Any]
"""The named arguments of a call, as trackers."""
Split = tuple[Hashable, Sequence[Any]]
"""The detail of a recipe, which is static, and the parts of which it makes an object."""
FunctionTable = HandlerTable[Any, Any]
"""Handlers of functions in C: each gets the space, `Args` and `Kwargs`."""


class _Missing:
    def __repr__(self) -> str:
        return "MISSING"

    def __bool__(self) -> bool:
        return False


MISSING: Any = _Missing()
"""No such thing: no real object, no attribute, no default."""

DELETED: Any = type("_Deleted", (), {"__repr__": lambda self: "DELETED"})()
"""An attribute or item that existed and was deleted while tracing."""


def made_of(make: Callable[[list[Any]], Any], parts: Iterable[Any]) -> Any:
    """Return `make(parts)`; MISSING if one of the parts is."""
    found = [*parts]
    return MISSING if any(part is MISSING for part in found) else make(found)


class VariableTracker:
    """One Python value.

    `cls` is its exact class; `real` the object itself when it existed before, else MISSING.

    `base` is the builtin class whose representation in C it has, as `PyList_Check` and its like
    test it: instances of subclasses have the same. Slots are named after those of CPython's type
    objects. They give MISSING where the class has no such slot, and leave it to the methods that
    the class of the value defines.
    """

    cls: type
    real: Any = MISSING
    source: Source | None = None
    # a DictTracker: the instance `__dict__` as far as it was read or written; None: has none
    namespace: Any = None

    base: type = object
    is_known = False  # the value is known while tracing, in `value`
    is_symbolic = False  # a number that the graph computes
    # its `id` attribute is a number that represents it, and `id()` gives another
    has_own_number = False
    is_of_made = False  # an instance of a class that was made while tracing: each call has its own
    is_opaque = False  # an iterator whose state a real one does not expose

    references: ClassVar[tuple[str, ...]] = ()
    weak_references: ClassVar[tuple[str, ...]] = ()
    may_hold = True  # something new, that is not held by all others like it

    def __init_subclass__(
        cls, references: tuple[str, ...] = (), weak_references: tuple[str, ...] = ()
    ) -> None:
        """Add the names of fields with trackers, or lists, tuples, dicts and suspended frames of
        them.

        An object keeps its `references` alive, and its `namespace`. It is only made of its
        `weak_references`: a value that was written and has to be replayed may be gone, and so may
        the target of a weak reference.
        """
        cls.references = (*cls.references, *references)
        cls.weak_references = (*cls.weak_references, *weak_references)

    def traverse(self) -> list[Any]:
        """Return what the object keeps alive (`tp_traverse`)."""
        own = self.__dict__
        return [*(own[name] for name in self.references if name in own), self.namespace]

    def components(self) -> list[Any]:
        """Return what the object is made of, whether it keeps that alive or not."""
        own, names = self.__dict__, self.references + self.weak_references
        return [*(own[name] for name in names if name in own), self.namespace]

    def __repr__(self) -> str:
        where = f" from {self.source.name}" if self.source is not None else ""
        return f"<{type(self).__name__} {self.describe()}{where}>"

    def describe(self) -> str:
        return getattr(self.cls, "__name__", "?") if "cls" in self.__dict__ else ""

    # -- slots -------------------------------------------------------------------------------------
    steps_to_null = False  # `next` gives NULL at the end, instead of raising StopIteration

    def call(self, t: Any, args: Args, kwargs: Kwargs) -> Result:
        """`self(*args, **kwargs)` (`tp_call`)"""
        complaint = "'{}' object is not callable"
        return t.call_slot(self, "__call__", args, complaint, kwargs)

    def get_attribute(self, t: Any, name: str) -> Result:
        """`self.name`, where that is not found as `object.__getattribute__` finds it
        (`tp_getattro`)."""
        return MISSING

    def iter(self, t: Any) -> Result:
        """`iter(self)` (`tp_iter`)"""
        return MISSING

    def next(self, t: Any) -> Result:
        """`next(self)` (`tp_iternext`)"""
        return t.call_slot(self, "__next__", [], "'{}' object is not an iterator")

    def counted(self) -> "VariableTracker":
        """Return the value whose `__len__` counts the items ahead (`PyObject_LengthHint`)."""
        return self

    def length(self, t: Any) -> Result:
        """`len(self)` (`sq_length`)"""
        return MISSING

    def get_item(self, t: Any, key: "VariableTracker") -> Result:
        """`self[key]` (`mp_subscript`)"""
        return MISSING

    def set_item(self, t: Any, key: "VariableTracker", new: "VariableTracker") -> Result:
        """`self[key] = new` (`mp_ass_subscript`)"""
        return MISSING

    def operate(self, t: Any, function: Callable[..., Any], *operands: "VariableTracker") -> Result:
        """`function(*operands)`, a function of `operator`, with this value among them (`nb_add` and
        its like)."""
        return MISSING

    def constant(self) -> Any:
        """The value as a Python constant, or MISSING when it is not one (or not only made of
        constants)."""
        return MISSING

    def hash_key(self, t: Any, part: "KeyOf") -> object:
        """The key of the value in dicts and sets while tracing (`tp_hash`); MISSING where its class
        decides. `part` gives that of an item."""
        return MISSING

    def in_graph(self, t: Any, part: "ArgumentOf") -> Any:
        """The form in which operators take the value, as an argument of a node; MISSING if they
        take none. `part` gives that of an item."""
        return MISSING

    def substitute(self, t: Any, part: "SubstituteOf") -> object:
        """A real object in the place of the value, for code in C that makes classes; MISSING where
        the class of the value decides. `part` gives that of an item."""
        return MISSING

    # -- slots for iterators over this one ---------------------------------------------------------
    def is_replayable(self) -> bool:
        """Return True for an existing iterator whose steps the entry can repeat: none runs code of
        the program."""
        return False

    def has_ended(self) -> bool:
        """Return True for an iterator that has no more items."""
        return False

    def is_in_step(self, steps: int, ended: bool, below: set[int]) -> bool:
        """Return True for an iterator that stands where so many steps of its consumer lead.

        `below` collects the identities of those that advance with the consumer.
        """
        return False

    # -- slots for the entry: `e` is an `Emitter` --------------------------------------------------
    def advance(self, e: Any, below: set[int]) -> None:
        """Write the lines that move an existing iterator as far as the traced code did.

        They come before what it goes through is changed: it took no step after that. Consumers come
        first; they move the iterators `below` them.
        """

    def rebuild(self, e: Any) -> str:
        """Write the lines that make a new object, and return an expression for it."""
        raise e.refuse(self)

    def replay(self, e: Any) -> None:
        """Write the lines that do to an existing object what the traced code did to it."""
        raise e.refuse(self)


KeyOf = Callable[[VariableTracker], object]
ArgumentOf = Callable[[VariableTracker], Any]
SubstituteOf = Callable[[VariableTracker], object]


class LazyTracker:
    """An existing value that has not been looked at, and is not guarded.

    `realize` turns it into the tracker that `build` makes, in place, and so does access to any
    attribute of it. `isinstance` and `type` do not: `is_a` tests for classes of trackers.
    """

    def __init__(self, source: Source, real: object, build: Callable[[], VariableTracker]) -> None:
        self.__dict__["_pending"] = (source, real, build)

    def __getattr__(self, name: str) -> Any:
        return getattr(realize(self), name)

    def __setattr__(self, name: str, value: object) -> None:
        setattr(realize(self), name, value)

    def __repr__(self) -> str:
        return f"<lazy {self.__dict__['_pending'][0].name}>"


def pending(source: Source, real: object, build: Callable[[], VariableTracker]) -> VariableTracker:
    """Return a LazyTracker, which turns into the tracker that `build` makes."""
    return cast(VariableTracker, LazyTracker(source, real, build))


def realize(value: Any) -> Any:
    """Build the tracker of an existing value, which guards what it relies on, if that was not done
    before.

    Returns `value`, which is that tracker from then on. Anything but a LazyTracker stays as it is.
    """
    if type(value) is not LazyTracker:
        return value
    own = value.__dict__
    tracker = own["_pending"][2]()
    if type(value) is LazyTracker:  # else its building realized it: an object that contains itself
        own.clear()
        own.update(tracker.__dict__)
        if tracker.namespace is not None and tracker.namespace.owner is tracker:
            tracker.namespace.owner = value
        object.__setattr__(value, "__class__", type(tracker))
    return value


def is_a(value: Any, classes: Any) -> TypeGuard[Any]:
    """Realize a value, and return True if it has a tracker of one of these classes."""
    if type(value) is LazyTracker:
        realize(value)
    return isinstance(value, classes)


def is_pending(value: Any) -> bool:
    """Return True for an existing value that has not been realized."""
    return type(value) is LazyTracker


def source_of(tracker: Any) -> Source:
    """Return the source of an existing value, realized or not."""
    found: Source = tracker.__dict__["_pending"][0] if is_pending(tracker) else tracker.source
    return found


def real_of(tracker: Any) -> Any:
    """Return the object behind an existing value, realized or not; MISSING for a new one.

    Installs no guard, so rely on nothing but identity.
    """
    if is_pending(tracker):
        return tracker.__dict__["_pending"][1]
    return getattr(tracker, "real", MISSING)
