"""The state that a capture keeps in one trace, and its effects in the entry.

    class Calls(Feature):                      t.state(Calls): one object for each trace
        made: tuple[str, ...] = ()             t.journal.assign(t.state(Calls), made=(...))

        def emit(self, e): ...                 appends lines of the entry, behind its graph

Each field is written through the journal, so that a break takes back what followed it.
"""

from enum import IntEnum, auto
from typing import Any, ClassVar, TypeVar

import attrs
from attrs import Factory, define


class Phase(IntEnum):
    """The place of effects in an entry, all of which are behind its graph."""

    BEFORE_CHANGES = auto()
    """Before existing objects are changed."""
    AFTER_CHANGES = auto()
    """After that, before global modes are set."""


@define(eq=False)
class Feature:
    """The state of one capture in one trace, made when it is first needed, without arguments."""

    phase: ClassVar[Phase] = Phase.BEFORE_CHANGES

    def emit(self, e: Any) -> None:
        """Append the lines that have the effects to an Emitter; none where there is only state."""

    def has_begun(self) -> bool:
        """Return True if effects were had while tracing, which the first run has to complete."""
        return False

    def moment(self) -> tuple[Any, ...] | None:
        """Return the part of the state that a call has to leave as it is, so that an equal call
        need not be interpreted; none of its items is true while there is no state.

        None: no call is repeated now.
        """
        return tuple(getattr(self, each.name) for each in attrs.fields(type(self)))


F = TypeVar("F", bound=Feature)


@define(eq=False)
class Features:
    """The features of one trace, by their classes."""

    made: dict[type[Feature], Feature] = Factory(dict)

    def get(self, cls: type[F]) -> F:
        """Return the one feature of a class."""
        found = self.made.get(cls)
        if found is None:
            found = self.made[cls] = cls()
        return found  # type: ignore[return-value]  # the dict has one of each class

    def emit(self, e: Any, phase: Phase) -> None:
        """Emit the effects of a phase, in the order in which the features were first needed."""
        for feature in self.made.values():
            if feature.phase is phase:
                feature.emit(e)

    def have_begun(self) -> bool:
        """Return True if effects were had while tracing."""
        return any(feature.has_begun() for feature in self.made.values())

    def moments(self) -> tuple[Any, ...] | None:
        """Return the moments of all that have a state; None where no call is repeated."""
        found = []
        for cls, feature in self.made.items():
            moment = feature.moment()
            if moment is None:
                return None
            if any(moment):
                found.append((cls, moment))
        return tuple(found)
