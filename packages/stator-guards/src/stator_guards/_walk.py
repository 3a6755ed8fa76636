"""The walk: all guards checked by reading everything they are about.

It is evaluated guard by guard until it has held once: text that is never used again, or only where
a watch has to be renewed, takes far longer to compile than it saves. A predicate without watches is
written as Python when it first holds, which is in the call that made the entry.
"""

import linecache
import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from attrs import define

from stator_guards._guard import CANNOT_READ, Guard, Kind
from stator_guards._part_source import PartSource
from stator_guards._source import Source, State
from stator_guards._writer import Names, Writer, uses

Predicate = Callable[..., bool]
WalkStep = tuple[Callable[[Any], Any] | None, Kind | None, int]
"""Read a part of the value at a place and append it to the values; or check a kind; or evaluate a
source."""

LARGE = 1500
HITS_BEFORE_WRITING_LARGE = 8
"""Compiling a guard takes as long as evaluating it ten times or more: where that is much,
repetition has to pay."""


@define(eq=False)
class Steps:
    """Guards in the order they are tested in, and the values they read, each once and right before
    it is needed."""

    places: dict[Source, int]
    steps: list[WalkStep]

    @classmethod
    def of(
        cls, guards: Iterable[Guard], known: Iterable[Source] = (), also: Iterable[Source] = ()
    ) -> "Steps":
        """Place 0 is the state, for sources at the start of a chain and guards without one; `known`
        follow."""
        places = {source: place for place, source in enumerate(known, 1)}
        steps: list[WalkStep] = []
        for guard in guards:
            source, place = guard.source, None
            if source is not None:
                place = places.get(source)
                if place is None:
                    _add_reading(source, places, steps)
                    place = places[source]
            steps.append((None, guard.kind, place or 0))
        steps += reading_steps(also, places)
        return cls(places, steps)

    def read(self, state: State, *known: object) -> list[Any] | None:
        """The values by place, if all guards hold."""
        values: list[Any] = [state, *known]
        append = values.append
        try:
            for read, kind, place in self.steps:
                if read is not None:
                    append(read(values[place]))
                elif kind is not None and not kind.holds(values[place] if place else None, state):
                    return None
        except CANNOT_READ:
            return None
        return values

    def values(self, state: State, *known: object) -> list[Any]:
        """The values by place, without checking anything."""
        values: list[Any] = [state, *known]
        append = values.append
        for read, _, place in self.steps:
            if read is not None:
                append(read(values[place]))
        return values


@define(eq=False)
class Walk:
    """Call it with a state. `guards` are in the order they are tested in, `implied` come after
    them."""

    guards: list[Guard]
    implied: list[Guard]
    parameters: tuple[str, ...]
    names: Names
    filename: str
    on_written: Callable[[Predicate], None] = lambda written: None
    hits: int = 0
    _module: tuple[str, dict[str, object]] | None = None
    _steps: Steps | None = None
    _written: Predicate | None = None

    def __call__(self, *state: object) -> bool:
        """Evaluate the guards, and write the text once they hold."""
        if self._written is not None:
            return self._written(*state)
        holds = self.evaluate(self.state(state))
        if holds:
            self.settled()
        return holds

    def release(self) -> None:
        """Discard how guards are evaluated; it is worked out again where that is needed."""
        self._steps = None

    def settled(self) -> Predicate:
        """The predicate from the next call on, after one in which it held."""
        self.hits += 1
        if len(self.guards) < LARGE or self.hits >= HITS_BEFORE_WRITING_LARGE:
            return self.written()
        return self

    def state(self, values: Sequence[object]) -> State:
        return dict(zip(self.parameters, values, strict=True))

    @property
    def steps(self) -> Steps:
        if self._steps is None:
            self._steps = Steps.of([*self.guards, *self.implied])
        return self._steps

    def evaluate(self, state: State) -> bool:
        """Check one guard after the other, without generated code."""
        return self.steps.read(state) is not None

    def written(self) -> Predicate:
        """The walk as a generated function."""
        if self._written is None:
            text, objects = self.module()
            written: Predicate = _run(text, self.filename, objects)["check"]
            self._written = written
            self.release()
            self.on_written(written)
        return self._written

    def source(self) -> str:
        """The text of that function."""
        return self.module()[0]

    def module(self) -> tuple[str, dict[str, object]]:
        """Return the text with the objects that it names.

        Threads whose first calls come at one moment each write their own, with names of their own;
        one is kept.
        """
        if self._module is None:
            names = self.names.copy()
            writer = Writer(names, uses(self.guards))
            writer.write(self.guards)
            text = predicate_text("check", self.parameters, writer.lines, names)
            self._module = text, names.objects
            _show(text, self.filename, self)
        return self._module


def reading_steps(sources: Iterable[Source], places: dict[Source, int]) -> list[WalkStep]:
    """Give the steps that read what has no place yet; each gets the next one."""
    steps: list[WalkStep] = []
    for source in sources:
        if source not in places:
            _add_reading(source, places, steps)
    return steps


def _add_reading(source: Source, places: dict[Source, int], steps: list[WalkStep]) -> None:
    """Add the steps that read a source, after those of what it is a part of."""
    chain: list[Source] = []
    step: Source | None = source
    while step is not None and step not in places:
        chain.append(step)
        step = step.whole if isinstance(step, PartSource) else None

    place = 0 if step is None else places[step]
    for each in reversed(chain):
        read = each.read if isinstance(each, PartSource) else each.evaluate
        steps.append((read, None, place))
        place = places[each] = len(places) + 1


def predicate_text(name: str, parameters: Sequence[str], lines: Sequence[str], names: Names) -> str:
    """Return the text of a predicate with these lines."""
    tests = [f"    {line}" for line in [*lines, "return True"]]
    unreadable = f"except {names.capture(CANNOT_READ, 'CANNOT_READ')}:"
    return function_text(name, parameters, ["try:", *tests, unreadable, "    return False"])


def function_text(name: str, parameters: Sequence[str], lines: Iterable[str]) -> str:
    """Return the text of a function with these lines."""
    body = "".join(f"    {line}\n" for line in lines)
    return f"def {name}({', '.join(parameters)}):\n{body}"


def tuple_text(items: Iterable[str]) -> str:
    """Return the text of a tuple of these expressions, whatever their number."""
    return f"({''.join(f'{item}, ' for item in items)})"


def load_source(
    source: str, filename: str, objects: Mapping[str, object], owner: object
) -> dict[str, Any]:
    """Run generated source whose lines debuggers and tracebacks can show, as long as `owner`
    lives."""
    _show(source, filename, owner)
    return _run(source, filename, objects)


def _show(source: str, filename: str, owner: object) -> None:
    linecache.cache[filename] = (len(source), None, source.splitlines(keepends=True), filename)
    weakref.finalize(owner, linecache.cache.pop, filename, None).atexit = False


def _run(source: str, filename: str, objects: Mapping[str, object]) -> dict[str, Any]:
    made: dict[str, Any] = {}
    # Apart from their globals: a function that can be found in its own globals dies only when the
    # collector comes by.
    exec(compile(source, filename, "exec"), {**objects}, made)
    return made
