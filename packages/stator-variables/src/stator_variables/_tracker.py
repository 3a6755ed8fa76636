"""VariableTracker: one Python value while it is being traced; LazyTracker: an existing one nobody has looked at yet.

A tracker gives storage and identity; what operations mean is in the data model (`_attributes`, `_operators`,
`_calls`, …). An existing object (one that lived before the traced code ran) has `real` and `source`; reading a fact
of it installs a guard. A lazy tracker turns into the tracker of its object the first time any attribute of it is
touched, so an argument that is only handed on is never guarded.
"""

from collections.abc import Callable
from typing import Any

from stator_guards import Source


class _Missing:
    def __repr__(self) -> str:
        return "MISSING"

    def __bool__(self) -> bool:
        return False


MISSING: Any = _Missing()
"""No such thing: no real object, no attribute, no default."""

DELETED: Any = type("_Deleted", (), {"__repr__": lambda self: "DELETED"})()
"""An attribute or item that existed and was deleted while tracing."""


class VariableTracker:
    """One Python value. `cls` is its exact class; `real` the object itself when it existed before, else MISSING."""

    cls: type
    real: Any = MISSING
    source: Source | None = None
    namespace: Any = None  # a DictTracker: the instance `__dict__` as far as it was read or written; None: has none

    has_own_number = (
        False  # its `id` attribute is a number that stands for it, and `id()` gives another
    )
    is_of_made = False  # an instance of a class that was made while tracing: each call has its own

    def __repr__(self) -> str:
        where = f" from {self.source.name}" if self.source is not None else ""
        return f"<{type(self).__name__} {self.describe()}{where}>"

    def describe(self) -> str:
        return getattr(self.cls, "__name__", "?") if "cls" in self.__dict__ else ""

    def constant(self) -> Any:
        """The value as a Python constant, or MISSING when it is not one (or not only made of constants)."""
        return MISSING

    # -- slots for the entry: `e` is an `Emitter` ------------------------------------------------------
    def rebuild(self, e: Any) -> str:
        """Write the lines that make a new object, and return an expression for it."""
        raise e.refuse(self)

    def replay(self, e: Any) -> None:
        """Write the lines that do to an existing object what the traced code did to it."""
        raise e.refuse(self)


_set_class = object.__dict__["__class__"].__set__


class LazyTracker:
    """Becomes the tracker that `build` makes, in place, on the first look at it (`isinstance` included).

    `isinstance` compares `__class__` with the type it started from, so that one look only builds; the next one of any
    other kind turns the object into what was built.
    """

    def __init__(self, source: Source, real: Any, build: Callable[[], VariableTracker]) -> None:
        self.__dict__["_pending"] = (source, real, build)

    @property  # type: ignore[misc]  # stricter than what `isinstance` asks: reading it is all there is
    def __class__(self) -> Any:
        return type(_built(self))

    def __getattr__(self, name: str) -> Any:
        return getattr(_realise(self), name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(_realise(self), name, value)

    def __repr__(self) -> str:
        return f"<lazy {self.__dict__['_pending'][0].name}>"


def _built(lazy: Any) -> VariableTracker:
    own = lazy.__dict__
    if "_tracker" not in own:
        tracker = own["_pending"][2]()
        own.setdefault(
            "_tracker", tracker
        )  # building may have looked at it already: an object that contains itself
    found: VariableTracker = own["_tracker"]
    return found


def _realise(lazy: Any) -> Any:
    tracker = _built(lazy)
    if type(lazy) is LazyTracker:
        lazy.__dict__.clear()
        lazy.__dict__.update(tracker.__dict__)
        if tracker.namespace is not None and tracker.namespace.owner is tracker:
            tracker.namespace.owner = lazy
        _set_class(lazy, type(tracker))
    return lazy


def is_pending(value: Any) -> bool:
    """Whether nobody has looked at `value` yet."""
    return type(value) is LazyTracker and "_tracker" not in value.__dict__
