"""The state that a capture keeps in one trace, and its effects in the entry.

    @attrs.define(eq=False)
    class Calls(CaptureState):                 t.state(Calls): one object for each trace
        made: tuple[str, ...] = ()             t.journal.assign(t.state(Calls), made=(...))

        def emit(self, e): ...                 appends lines of the entry, behind its graph

Each field is written through the journal, so that a break takes back what followed it.
"""

from collections.abc import Iterator
from enum import IntEnum, auto
from typing import Any, ClassVar, TypeVar

import attrs
from attrs import Factory, define
from stator_guards import Source


class Phase(IntEnum):
    """The places of effects in an entry, in their order."""

    AROUND_GRAPH = auto()
    """Ahead of the graph and right behind it; all others follow."""
    BEFORE_CHANGES = auto()
    """Before existing objects are changed."""
    DEFERRED_CALLS = auto()
    """Then the calls that wait for the end of the graph, which may make objects."""
    AFTER_CHANGES = auto()
    """After that, before global modes are set."""


@define(eq=False)
class CaptureState:
    """The state of one capture in one trace, made when it is first needed, without arguments."""

    phase: ClassVar[Phase] = Phase.BEFORE_CHANGES
    may_repeat: ClassVar[bool] = False
    """The body of an operator may change it, however often the operator runs it."""

    def emit(self, e: Any) -> None:
        """Append the lines that have the effects to an Emitter; none where there is only state."""

    def has_begun(self) -> bool:
        """Return True if effects were had while tracing, which the first run has to complete."""
        return False

    def needs_guard(self, t: Any, source: Source) -> bool:
        """Return False for a path to a value that is new in each call."""
        return True

    def check_operator(self, t: Any, traced: Any) -> None:
        """Raise Unsupported for an operator that was recorded and may not follow what there is."""

    def bound_to_process(self) -> str:
        """Return why no later process can take the trace, or an empty text."""
        return EFFECTS if self.has_begun() or is_changed(self) else ""

    def moment(self) -> tuple[Any, ...] | None:
        """Return the part of the state that a call has to leave as it is, so that an equal call
        need not be interpreted; none of its items is true while there is no state.

        None: no call is repeated now.
        """
        return tuple(getattr(self, each.name) for each in attrs.fields(type(self)))


def is_changed(state: CaptureState) -> bool:
    """Return True if there is something that no body of an operator may change."""
    moment = () if state.may_repeat else state.moment()
    return moment is None or any(moment)


S = TypeVar("S", bound=CaptureState)
EFFECTS = "a capture has effects, such as warnings and calls of cached functions"


@define(eq=False)
class CaptureStates:
    """The states of all captures in one trace, by their classes."""

    made: dict[type[CaptureState], CaptureState] = Factory(dict)
    of_sources: list[CaptureState] = Factory(list)
    """Those for which some paths need no guard."""
    of_operators: list[CaptureState] = Factory(list)
    """Those that operators may not follow."""

    def make(self, cls: type[S]) -> S:
        """Make the one state of a class."""
        state = self.made[cls] = cls()
        if cls.needs_guard is not CaptureState.needs_guard:
            self.of_sources.append(state)
        if cls.check_operator is not CaptureState.check_operator:
            self.of_operators.append(state)
        return state

    def emit(self, e: Any, phase: Phase) -> None:
        """Emit the effects of a phase, in the order in which the states were first needed."""
        for state in self.made.values():
            if state.phase is phase:
                state.emit(e)

    def have_begun(self) -> bool:
        """Return True if effects were had while tracing."""
        return any(state.has_begun() for state in self.made.values())

    def effects(self) -> dict[type[CaptureState], tuple[Any, ...] | None]:
        """Return the moments of all that no body of an operator may change."""
        return {cls: state.moment() for cls, state in self.made.items() if is_changed(state)}

    def bound_to_process(self) -> Iterator[str]:
        """Yield why no later process can take the trace."""
        return filter(None, (state.bound_to_process() for state in self.made.values()))

    def moments(self) -> tuple[Any, ...] | None:
        """Return the moments of all captures that have a state; None where no call is repeated."""
        found = []
        for cls, state in self.made.items():
            moment = state.moment()
            if moment is None:
                return None
            if any(moment):
                found.append((cls, moment))
        return tuple(found)
