"""The state that a capture keeps in one trace, and its effects in the entry.

    @attrs.define(eq=False)
    class Calls(CaptureState):                 t.state(Calls): one object for each trace
        made: tuple[str, ...] = ()             t.journal.assign(t.state(Calls), made=(...))

        def emit(self, e): ...                 appends lines of the entry, behind its graph

Each field is written through the journal, so that a break takes back what followed it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext
from enum import IntEnum, auto
from typing import Any, ClassVar, TypeVar

import attrs
from attrs import Factory, define, frozen
from stator_bytecode.errors import Unsupported
from stator_guards import Kind, Source


@frozen(eq=False)
class EarlierBreak:
    """A break before the end of a trace, which the end turns out to need: the state of the Machine
    there, and the reason."""

    begun: Any
    reason: Unsupported


class Phase(IntEnum):
    """The places of effects in an entry, in their order."""

    AROUND_GRAPH = auto()
    """Ahead of the graph and right behind it; all others follow."""
    BEFORE_CHANGES = auto()
    """Before existing objects are changed."""
    DEFERRED_CALLS = auto()
    """The calls that wait for the end of the graph, which may make objects."""
    CHANGES = auto()
    """The changes of existing objects; then what hashes keys of the program."""
    AFTER_CHANGES = auto()
    """The effects that wait for them; global modes are not set yet."""
    OUTER_MODES = auto()
    """Modes that keep others, and put them back when they are left."""
    MODES = auto()
    """All other global modes."""
    FUNCTION_MODES = auto()
    """Modes for functions of torch, which call them from here on."""


@define(eq=False)
class CaptureState:
    """The state of one capture in one trace, made when it is first needed, without arguments."""

    phase: ClassVar[Phase] = Phase.BEFORE_CHANGES
    may_repeat: ClassVar[bool] = False
    """The body of an operator may change it, however often the operator runs it."""
    surrounds: ClassVar[bool] = False
    """Calls are alike only where its moments are equal."""

    def emit(self, e: Any) -> None:
        """Append the lines that have the effects to an Emitter; none where there is only state."""

    def has_begun(self) -> bool:
        """Return True if effects were had while tracing, which the first run has to complete."""
        return False

    def facts(self, t: Any) -> Iterable[tuple[Source, Kind]]:
        """Yield what the entry relies on at the end, besides its guards."""
        return ()

    def refuses_calls_ahead(self) -> bool:
        """Return True if calls of the entry ahead of the graph would be made outside of a mode."""
        return False

    def rewrites(self, e: Any) -> bool:
        """Return True if the entry has to be written again, as emitting it has shown."""
        return False

    def complete_graph(self, e: Any) -> None:
        """Add to the graph what the entry leaves to it, once that is final."""

    def outdated(self, e: Any) -> EarlierBreak | None:
        """Return the break where a fact was used that does not hold at the end, once all effects
        are emitted; None if all hold."""
        return None

    def release(self) -> None:
        """Release trackers and tensors, which an entry does not need."""

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

    def kept_by_body(self) -> tuple[Any, ...]:
        """Return the part that each body of an operator has to leave as it is."""
        return ()


@define(eq=False)
class Notes(CaptureState):
    """State without effects, which no call depends on."""

    may_repeat: ClassVar[bool] = True

    def moment(self) -> tuple[Any, ...]:
        return ()


@define(eq=False)
class ModeState(CaptureState):
    """The state of global modes, which are really set while tracing."""

    may_repeat: ClassVar[bool] = True
    surrounds: ClassVar[bool] = True

    def outside(self) -> AbstractContextManager[None]:
        """Have the modes as the caller has them, inside of a block."""
        return nullcontext()

    def restore(self) -> None:
        """Put the modes back as they were when tracing started."""


def is_changed(state: CaptureState) -> bool:
    """Return True if there is something that no body of an operator may change."""
    moment = () if state.may_repeat else state.moment()
    return moment is None or any(moment)


S = TypeVar("S", bound=CaptureState)
Moments = tuple[tuple[type[CaptureState], tuple[Any, ...]], ...]
EFFECTS = "a capture has effects, such as warnings and calls of cached functions"


@define(eq=False)
class CaptureStates:
    """The states of all captures in one trace, by their classes."""

    made: dict[type[CaptureState], CaptureState] = Factory(dict)
    of_sources: list[CaptureState] = Factory(list)
    """The states for which some paths need no guard."""
    of_operators: list[CaptureState] = Factory(list)
    """The states that operators may not follow."""
    of_modes: list[ModeState] = Factory(list)
    """The states of global modes, in the order of their phases."""

    def make(self, cls: type[S]) -> S:
        """Make the one state of a class."""
        state = self.made[cls] = cls()
        if cls.needs_guard is not CaptureState.needs_guard:
            self.of_sources.append(state)
        if cls.check_operator is not CaptureState.check_operator:
            self.of_operators.append(state)
        if isinstance(state, ModeState):
            self.of_modes.append(state)
            self.of_modes.sort(key=lambda each: each.phase)
        return state

    def emit(self, e: Any, phase: Phase) -> None:
        """Emit the effects of a phase, in the order in which the states were first needed."""
        for state in [*self.made.values()]:  # one may need others
            if state.phase is phase:
                state.emit(e)

    def facts(self, t: Any) -> Iterator[tuple[Source, Kind]]:
        """Yield the facts of all states."""
        for state in [*self.made.values()]:
            yield from state.facts(t)

    def rewrite(self, e: Any) -> bool:
        """Return True if the entry has to be written again."""
        found = [state.rewrites(e) for state in [*self.made.values()]]  # each does its part
        return any(found)

    def complete_graph(self, e: Any) -> None:
        """Add to the graph what the entry leaves to it."""
        for state in [*self.made.values()]:
            state.complete_graph(e)

    def outdated(self, e: Any) -> EarlierBreak | None:
        """Return the break that the first of the states needs."""
        found = (state.outdated(e) for state in [*self.made.values()])
        return next((earlier for earlier in found if earlier is not None), None)

    def release(self) -> None:
        """Release what refers to trackers and tensors, which an entry does not need."""
        for state in self.made.values():
            state.release()

    def have_begun(self) -> bool:
        """Return True if effects were had while tracing."""
        return any(state.has_begun() for state in self.made.values())

    def effects(self) -> dict[type[CaptureState], tuple[Any, ...] | None]:
        """Return the moments of all that no body of an operator may change."""
        return {cls: state.moment() for cls, state in self.made.items() if is_changed(state)}

    def bound_to_process(self) -> Iterator[str]:
        """Yield why no later process can take the trace."""
        return filter(None, (state.bound_to_process() for state in self.made.values()))

    def kept_by_body(self) -> dict[type[CaptureState], tuple[Any, ...]]:
        """Return the parts that each body of an operator has to leave as they are."""
        found = {cls: state.kept_by_body() for cls, state in self.made.items()}
        return {cls: kept for cls, kept in found.items() if kept}

    def moments(self) -> tuple[Moments, Moments] | None:
        """Return the moments of all captures that have a state, those that surround calls apart;
        None where no call is repeated."""
        around: list[Any] = []
        others: list[Any] = []
        for cls, state in self.made.items():
            moment = state.moment()
            if moment is None:
                return None
            if any(moment):
                (around if cls.surrounds else others).append((cls, moment))
        return tuple(around), tuple(others)
