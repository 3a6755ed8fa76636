"""Reconstruction: from trackers back to Python source, with loads before the graph runs, rebuilt
values and effects after it.

    v0 = self._parameters["weight"]    loads: every needed existing value, before any is written
    g = graph(x, v0)
    v1 = [g[0], x]                     values: new objects, each made once
    self.__dict__["last"] = v1         effects: phase by phase, each in program order
    v2[key] = v1                       keys of the program, whose `__hash__` reads the effects
    return v1
"""

import keyword
import re
import types
import weakref
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Any

from attrs import Factory, define
from stator_bytecode import GeneratorState
from stator_bytecode.errors import Unsupported
from stator_guards import CallSource, CapturedSource, LiteralSource, ParameterSource, Source

from stator_variables._runtime._contents import plain_lookup
from stator_variables._runtime._support import base_of_c, living
from stator_variables._space import Space
from stator_variables._trace._capture_state import Phase
from stator_variables._trace._entry_calls import is_entry_value
from stator_variables._tracker import DELETED, VariableTracker, is_pending, real_of, source_of


@define(eq=False)
class Later:
    """Lines that wait for the effects of a phase, which may need nothing of what they make."""

    lines: list[str] = Factory(list)
    made: list[tuple[str, Any]] = Factory(list)


@define(eq=False)
class Emitter:
    """Collects the source of one entry. `captured` are the constants its namespace needs."""

    t: Space
    makes_tracebacks: bool = False  # the frames that exceptions were raised in have ended
    loads: list[str] = Factory(list)
    ahead: list[str] = Factory(list)  # ahead of what the graph takes
    early: list[str] = Factory(list)  # ahead of the graph, behind what it takes
    behind: list[str] = Factory(list)  # right behind the graph
    # give the lines after these, once all outputs of the graph are known
    marking: list[Callable[[], list[str]]] = Factory(list)
    lines: list[str] = Factory(list)
    effects_start: int = 0  # the lines from here on change existing objects
    later: dict[Phase, Later] = Factory(lambda: {phase: Later() for phase in Phase})
    captured: dict[str, Any] = Factory(dict)
    outputs: list[Any] = Factory(list)  # GraphValue values the graph has to give
    gradients: list[Source | None] = Factory(list)  # the tensors whose `.grad` the lines assign
    fleeting: bool = False  # something that is loaded may die between the guards and the loads
    # states of the generators that were rebuilt as objects
    generators: list[Any] = Factory(list)
    unfilled: list[Any] = Factory(list)  # dicts that do not have all their keys yet
    loaded: dict[Source, str] = Factory(dict)  # the local that holds each source
    _made: dict[int, str] = Factory(dict)
    _kept: list[Any] = Factory(list)
    _names: dict[int, str] = Factory(dict)
    _output_index: dict[int, int] = Factory(dict)
    _shared: dict[Hashable, Any] = Factory(dict)

    @classmethod
    def written_before(cls, t: Space, **parts: Any) -> "Emitter":
        """Return an emitter with the lines and constants of one of another process, to go on with
        them."""
        made = cls(t, **parts)
        made._names.update((id(value), name) for name, value in made.captured.items())
        return made

    def capture(self, value: object, hint: str = "") -> str:
        """A name for a constant object in the entry's namespace; what is of a class that was made
        here, from there. One that has a name keeps it, unless there is a hint."""
        if id(value) in self.t.heap.made:
            return self.expr(self.t.heap.made[id(value)])
        if type(value) is types.MemberDescriptorType and id(value.__objclass__) in self.t.heap.made:
            return f"{self.capture(value.__objclass__)}.__dict__[{value.__name__!r}]"
        if (known := self._names.get(id(value))) is None:
            text = _identifier(hint or getattr(value, "__name__", "c"))
            known = self._names[id(value)] = f"{text}_{len(self.captured)}"
            self.captured[known] = value
        return known

    def load(self, source: Source) -> str:
        """A name that holds what `source` held when the entry started."""
        if isinstance(source, ParameterSource):
            return source.parameter
        if type(source) is LiteralSource:
            return source.expression(self)
        if type(source) is CapturedSource:
            return self.capture(source.held.get(), source.text)
        if is_entry_value(source):  # there when the calls were made
            return source.expression(self)

        if (known := self.loaded.get(source)) is None:
            text = source.expression(self)
            self.fleeting |= type(source) is CallSource and source.fn is living
            known = self.loaded[source] = f"v{len(self.loaded)}"
            (self.lines if self.t.heap.is_of_made(source) else self.loads).append(
                f"{known} = {text}"
            )
        return known

    # the Renderer protocol of stator_guards: how a source writes its parts
    def value(self, source: Source) -> str:
        return self.load(source)

    def arguments(self, sources: Sequence[Source]) -> str:
        return ", ".join(map(self.load, sources))

    @property
    def kinds(self) -> frozenset[type]:
        return frozenset()  # an entry tests no guards

    def once(self, key: Hashable, make: Callable[[], Any]) -> Any:
        if key not in self._shared:
            self._shared[key] = make()
        return self._shared[key]

    def output(self, traced: Any) -> str:
        key = id(traced.node)
        if key not in self._output_index:
            self._output_index[key] = len(self.outputs)
            self.outputs.append(traced)
        return f"g[{self._output_index[key]}]"

    def marks(self) -> list[str]:
        """Return the lines that mark the outputs of the graph."""
        return [line for mark in self.marking for line in mark()]

    def expr(self, vt: Any) -> str:
        """An expression for a value, made at most once however often it is used."""
        if is_pending(vt):
            self.t.heap.escaped.add(id(vt))
        if is_pending(vt) or vt.source is not None:
            # of a container that drops it
            self.fleeting |= issubclass(type(real_of(vt)), weakref.ref)
            return self.load(source_of(vt))
        if (known := self._made.get(id(vt))) is not None:
            return known
        self._kept.append(vt)
        text: str = vt.rebuild(self)
        return text

    def listed(self, vts: Iterable[Any]) -> str:
        """Expressions for several values, separated by commas."""
        return ", ".join(map(self.expr, vts))

    def keywords(self, kwargs: Mapping[str, Any]) -> list[str]:
        """Arguments by name, in their order; `**{"from": 1}` for a name that cannot be written
        before a `=`."""
        return [
            f"{name}={self.expr(value)}" if is_name(name) else f"**{{{name!r}: {self.expr(value)}}}"
            for name, value in kwargs.items()
        ]

    def call(self, function: object, args: Iterable[Any], kwargs: Mapping[str, Any]) -> str:
        """A call of a constant object."""
        given = ", ".join([*map(self.expr, args), *self.keywords(kwargs)])
        return f"{self.capture(function)}({given})"

    def has_made(self, vt: VariableTracker) -> bool:
        return id(vt) in self._made

    def bind(self, vt: VariableTracker, text: str) -> str:
        """Give a new object a name before its contents are known, so that it may contain itself.

        An object that can only be made of its contents, such as a tuple, was made with them if they
        contain it.
        """
        if self.has_made(vt):
            return self._made[id(vt)]
        name = self.reserve(vt)
        self.lines.append(f"{name} = {text}")
        return name

    def bind_early(self, vt: VariableTracker, text: str) -> str:
        """A new object that is made of what existed before, and before anything is written."""
        name = self.reserve(vt)
        self.loads.append(f"{name} = {text}")
        return name

    def reserve(self, vt: VariableTracker) -> str:
        """The name of a new object that is still to be made."""
        name = self._made[id(vt)] = f"r{len(self._made)}_{len(self.lines)}"
        return name

    def bind_ahead(
        self, vt: VariableTracker, text: str, start: int, parts: tuple[str, ...] = ()
    ) -> None:
        """Make `vt`, whose name is reserved, ahead of the lines since `start` that need it.

        Refused where it needs what one of these makes, or where one writes to its `parts`, given as
        targets begin.
        """
        name = self._made[id(vt)]
        needed = [name]
        kept: list[str] = []
        waiting: list[str] = []
        for line in self.lines[start:]:
            if not any(refers_to(line, other) for other in needed):
                kept.append(line)
                continue

            waiting.append(line)
            target = line.partition(" = ")[0]
            if target.isidentifier():
                needed.append(target)
            if target.startswith(parts) or any(refers_to(text, other) for other in needed[1:]):
                raise self.refuse(vt)
        self.lines[start:] = [*kept, f"{name} = {text}", *waiting]

    def bind_later(self, phase: Phase, vt: VariableTracker, text: str) -> str:
        """A new object that can be made only then, so that no other object may need it before."""
        name, later = self.reserve(vt), self.later[phase]
        later.lines.append(f"{name} = {text}")
        later.made.append((name, vt))
        return name

    def release(self, phase: Phase) -> None:
        """Append the lines that waited for a phase; nothing has to wait for it from here on."""
        later = self.later[phase]
        for name, vt in later.made:
            if any(refers_to(line, name) for line in self.lines):
                raise self.refuse(vt)
        self.lines += later.lines
        later.lines = self.lines

    def refuse(self, vt: VariableTracker) -> Unsupported:
        return self.t.unsupported(
            "reconstruction", f"rebuilding a {vt.cls.__name__} that was made while tracing"
        )


def is_name(text: str) -> bool:
    """Return True if Python reads `text` as this name: no keyword, nor one that is normalized."""
    return text.isidentifier() and text.isascii() and not keyword.iskeyword(text)


def refers_to(line: str, name: str) -> bool:
    return re.search(rf"\b{name}\b", line) is not None


def _identifier(hint: str) -> str:
    text = "".join(ch if ch.isalnum() else "_" for ch in hint).strip("_")
    return text if text and not text[0].isdigit() else f"c_{text}"


@define(eq=False)
class RaisedBefore(Exception):
    """An exception raised while tracing has to become an object: it must be raised natively, to
    have a traceback."""

    tracker: Any


@define(eq=False)
class StillRunning(Exception):
    """A generator whose frame runs has to become an object: then it must be resumed natively."""

    state: GeneratorState
    refusal: Unsupported


@define(eq=False)
class StaysInGraph(Exception):
    """A function of the graph has to become an object: then the operator that gave it runs
    natively."""

    begun: Any
    refusal: Unsupported


def made_empty(e: Emitter, cls: type, arguments: str = "") -> str:
    """A new object by the `__new__` of C: what the program's own did was interpreted already."""
    base = base_of_c(cls)
    maker = "object" if base is object else e.capture(base)
    return f"{maker}.__new__({e.capture(cls)}{arguments})"


def filled(e: Emitter, vt: VariableTracker, name: str) -> str:
    """A new object, its instance `__dict__` with what it holds by now."""
    entries = {} if vt.namespace is None else vt.namespace.entries
    for key, (_, value) in entries.items():
        if value is not DELETED:
            e.lines.append(f"{namespace_of(e, vt, name)}[{key!r}] = {e.expr(value)}")
    return name


def namespace_of(e: Emitter, vt: VariableTracker, name: str) -> str:
    """Return the instance `__dict__`, without overrides of the class."""
    own = not isinstance(plain_lookup(vt.cls, "__getattribute__"), types.WrapperDescriptorType)
    own = own or not isinstance(plain_lookup(vt.cls, "__dict__"), types.GetSetDescriptorType)
    return (
        f"{e.capture(object.__getattribute__, 'getattribute')}({name}, '__dict__')"
        if own
        else f"{name}.__dict__"
    )
