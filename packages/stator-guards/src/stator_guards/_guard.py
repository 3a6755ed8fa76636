"""Facts that a guard relies on: the base of all guard kinds, the guard itself, and the report of a
failed one.

A kind is one small class with everything about one sort of fact: its Python text (`test`), its slow
evaluation (`holds`), its place in the order (`rank`) and its explanation. The text and `holds` must
agree on every value; the conformance kit checks it.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any, ClassVar

from attrs import field, frozen
from stator_bytecode.errors import NOWHERE, SourceSpan

from stator_guards._cells import Cells
from stator_guards._object_ref import short
from stator_guards._source import GuardRenderer, Once, Source, State

CANNOT_READ = (
    *(
        KeyError,
        AttributeError,
        TypeError,
        IndexError,
        ValueError,
        NotImplementedError,
        ArithmeticError,
    ),
    ReferenceError,
)
"""Exceptions of reading a source when the program's state no longer has its shape, or a formula
divides by zero: the guard does not hold."""

CaseFunction = Callable[[Any], Hashable]
"""Part of a discriminant, see `Kind.discriminants`. Runs no user code; raises `Undecided` where it
would have to."""


class Undecided(Exception):
    """The case of a value is not known without running user code."""


class Kind:
    """A sort of fact about one value. Ranks order the checks: cheap and selective ones run
    first."""

    __slots__ = ()

    rank: ClassVar[int] = 50
    reads: ClassVar[int] = 1
    """The number of times that `test` mentions its value; more than one binds it to a local."""
    of_contents: ClassVar[bool] = True
    """The fact may change while the object stays the same one. Facts of which this is not so need
    no guard where the object itself is captured."""
    batched: ClassVar[bool] = False
    """Set for a kind whose guards are all checked at once, by `test_all`."""

    @property
    def merge_key(self) -> Hashable:
        """A key that facts about one source share if one of them implies the others.

        By default these are equal facts whose fields have the same types, so none is lost. A kind
        of which only one fact can hold of a value sets it to None.
        """
        fields = getattr(type(self), "__match_args__", ())
        return (self, *(type(getattr(self, name)) for name in fields))

    @property
    def others(self) -> tuple[Source, ...]:
        """Further sources the fact is about."""
        return ()

    @property
    def is_gone(self) -> bool:
        """Return True if the fact can never hold again, because an object it is about died."""
        return False

    def test(self, value: str, render: GuardRenderer) -> str:
        """A Python expression, true when the fact holds of the expression `value`."""
        raise NotImplementedError

    @classmethod
    def test_all(cls, guards: Sequence[Guard], render: GuardRenderer) -> str:
        """One expression for all guards of a batched kind."""
        raise NotImplementedError

    @classmethod
    def implied(cls, guards: Sequence[Guard], once: Once) -> tuple[Guard, ...]:
        """Return the facts that `test_all` checks beyond the guards themselves, as guards that can
        explain a failure.

        Makes, through `once`, copies of data about objects that may be dead by then.
        """
        raise NotImplementedError

    @classmethod
    def left(cls, covered: Sequence[Guard], rest: Sequence[Guard]) -> tuple[Guard, ...]:
        """Return what no test of `rest`, guards of any kind, checks, and words that prove `covered`
        do not prove either."""
        return ()

    def holds(self, value: object, state: State) -> bool:
        raise NotImplementedError

    def watch(self, value: object, cells: Cells) -> bool:
        """Watch the fact, which holds of `value` now; False when it must be tested on every
        call."""
        return False

    @property
    def loop(self) -> tuple[Source, Sequence[Source], Sequence[Guard]] | None:
        """Return a source, the objects that are put in its place one after the other, and the
        guards that hold for each; None for a fact that is not about several objects alike."""
        return None

    def discriminants(self) -> Sequence[tuple[CaseFunction, Hashable]]:
        """Functions from the value to a case, each with the one case in which the fact can hold."""
        return ()

    @property
    def turn(self) -> int | None:
        """Return the order, within its set, in which a fact that does not hold may be established;
        None if it may not."""
        return None

    def mend(self, state: State) -> bool:
        """Do ahead what the program does itself in a moment, and what makes the fact hold; False if
        it cannot be."""
        raise NotImplementedError

    needs: ClassVar[str]
    """The description of the value when the guard was made; `{0}` is replaced by the kind."""
    finds: ClassVar[str] = "{1}"
    """The description of the present value, in the same terms; `{1}` is replaced by a line about
    it."""

    @property
    def needed(self) -> str:
        return self.needs.format(self)

    def found(self, value: object, state: State) -> str:
        return self.finds.format(self, short(value))

    @property
    def fix(self) -> str:
        """The cheapest change of the program that avoids the failure; `{0}` is the kind."""
        raise NotImplementedError


@frozen
class Failure:
    """Why a guard does not hold: old value, new value, the user line that needed it and what to
    change."""

    guard: Guard
    needed: str
    found: str
    fix: str

    @property
    def source(self) -> str:
        return self.guard.name

    @property
    def where(self) -> SourceSpan:
        return self.guard.where

    def __str__(self) -> str:
        line = "" if self.where is NOWHERE else f", needed at {self.where}"
        return f"{self.source} was {self.needed}, is now {self.found}{line}\n  try: {self.fix}"


@frozen
class Guard:
    """One fact relied on. `source` is None for facts about the process (global state, relations of
    shapes)."""

    source: Source | None
    kind: Kind
    where: SourceSpan = field(default=NOWHERE, eq=False)

    @property
    def name(self) -> str:
        """The source in the words of the program; of a fact about the process, its kind."""
        if self.source is None:
            return type(self.kind).__name__
        return self.source.description

    def __str__(self) -> str:
        line = "" if self.where is NOWHERE else f", needed at {self.where}"
        return f"{self.name} is {self.kind.needed}{line}"

    @property
    def sources(self) -> tuple[Source, ...]:
        return (*(() if self.source is None else (self.source,)), *self.kind.others)

    def holds(self, state: State) -> bool:
        try:
            return self.kind.holds(self._value(state), state)
        except CANNOT_READ:
            return False

    def mend(self, state: State) -> bool:
        """See `Kind.mend`; of what cannot be read nothing is done ahead."""
        try:
            self._value(state)
        except CANNOT_READ:
            return False
        return self.kind.mend(state)

    def explain(self, state: State) -> Failure:
        """The failure report of a guard that does not hold."""
        try:
            found = self.kind.found(self._value(state), state)
        except CANNOT_READ as error:
            found = f"unreadable ({type(error).__name__}: {error})"
        return Failure(self, self.kind.needed, found, self.kind.fix.format(self.kind))

    def _value(self, state: State) -> object:
        return None if self.source is None else self.source.evaluate(state)
