"""The walk: all guards checked by reading everything they are about.

It asks the guards one by one at first: many are soon watched, and text that would run two or three times takes far
longer to compile than it saves. What is walked often is written out as Python in the end.
"""

import linecache
import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import attrs

from stator_guards._kind import CANNOT_READ, Guard, Kind
from stator_guards._part import PartSource
from stator_guards._source import Source, State
from stator_guards._writer import Names, Writer, uses

Predicate = Callable[..., bool]
Step = tuple[Callable[[Any], Any] | None, Kind | None, int]
"""Read a part of the value at a place and append it to the values; or ask a kind about it; or evaluate a source."""

CALLS_BEFORE_WRITING = 16


@attrs.define(eq=False)
class Walk:
    """Call it with a state. `guards` are in the order they are tested in, `implied` come after them."""

    guards: list[Guard]
    implied: list[Guard]
    parameters: tuple[str, ...]
    names: Names
    filename: str
    on_written: Callable[[Predicate], None] = lambda written: None
    calls: int = 0
    text: str = ""
    _steps: list[Step] = attrs.field(factory=list)
    _written: Predicate | None = None

    def __call__(self, *state: object) -> bool:
        if self._written is not None:
            return self._written(*state)
        self.calls += 1
        if self.calls > CALLS_BEFORE_WRITING:
            return self.written()(*state)
        return self.asked(self.state(state))

    def state(self, values: Sequence[object]) -> State:
        return dict(zip(self.parameters, values, strict=True))

    def asked(self, state: State) -> bool:
        """Ask one guard after the other; each value is read once, right before the first guard that needs it."""
        if not self._steps:
            self._steps = _steps([*self.guards, *self.implied])
        values: list[Any] = [state]
        try:
            for read, kind, place in self._steps:
                if read is not None:
                    values.append(read(values[place]))
                elif kind is not None and not kind.holds(values[place] if place else None, state):
                    return False
        except CANNOT_READ:
            return False
        return True

    def written(self) -> Predicate:
        """The walk as a generated function."""
        if self._written is None:
            self._written = _run(self.source(), self.filename, self.names.objects)["check"]
            self.on_written(self._written)
        return self._written

    def source(self) -> str:
        """The text of that function."""
        if not self.text:
            writer = Writer(self.names, uses(self.guards))
            writer.write(self.guards)
            self.text = function("check", self.parameters, writer.lines, self.names)
            _show(self.text, self.filename, self)
        return self.text


def _steps(guards: Sequence[Guard]) -> list[Step]:
    """Place 0 is no value: the state for a source at the start of a chain, None for a guard without a source."""
    steps: list[Step] = []
    places: dict[Source, int] = {}
    for guard in guards:
        if guard.source is not None:
            steps += reading_steps((guard.source,), places)
        steps.append((None, guard.kind, 0 if guard.source is None else places[guard.source]))
    return steps


def reading_steps(sources: Sequence[Source], places: dict[Source, int]) -> list[Step]:
    """How to read what has no place yet; it gets one, counted from 1."""
    steps: list[Step] = []
    for source in (step for each in sources for step in _unread(each, places)):
        places[source] = len(places) + 1
        if isinstance(source, PartSource):
            steps.append((source.read, None, places[source.whole]))
        else:
            steps.append((source.evaluate, None, 0))
    return steps


def _unread(source: Source, places: dict[Source, int]) -> list[Source]:
    """The source and what it is a part of, wholes first, as far as they have no place yet."""
    found: list[Source] = []
    step: Source | None = source
    while step is not None and step not in places:
        found.append(step)
        step = step.whole if isinstance(step, PartSource) else None
    return found[::-1]


def function(name: str, parameters: Sequence[str], lines: Sequence[str], names: Names) -> str:
    """The text of a predicate with these lines."""
    body = "".join(f"        {line}\n" for line in lines)
    return (
        f"def {name}({', '.join(parameters)}):\n"
        f"    try:\n{body}        return True\n"
        f"    except {names.capture(CANNOT_READ, 'CANNOT_READ')}:\n        return False\n"
    )


def load_source(source: str, filename: str, objects: Mapping[str, object], owner: object) -> dict[str, Any]:
    """Run generated source whose lines debuggers and tracebacks can show, as long as `owner` lives."""
    _show(source, filename, owner)
    return _run(source, filename, objects)


def _show(source: str, filename: str, owner: object) -> None:
    linecache.cache[filename] = (len(source), None, source.splitlines(keepends=True), filename)
    weakref.finalize(owner, linecache.cache.pop, filename, None).atexit = False


def _run(source: str, filename: str, objects: Mapping[str, object]) -> dict[str, Any]:
    made: dict[str, Any] = {}
    # Apart from their globals: a function that can be found in its own globals dies only when the collector comes by.
    exec(compile(source, filename, "exec"), {**objects}, made)
    return made
