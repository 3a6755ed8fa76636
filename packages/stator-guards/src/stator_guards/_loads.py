"""Values that an entry needs and its guards have just read: handed over where the guards watch
them, read otherwise.

    g = graph(v0, *loads(self, args))     # the parameters of a model, in one step

Called right after the guards held, so that what they found is what the entry works with.
"""

import itertools
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import attrs

from stator_guards._source import Source, State
from stator_guards._walk import WalkStep, load_source, reading_steps
from stator_guards._writer import Names, Writer, with_wholes

CALLS_BEFORE_WRITING = 2
"""Many are called once, or are served from the second call on."""

_numbers = itertools.count()


@attrs.define(eq=False)
class Loads:
    """`loads(*state)` gives the values of `sources`. `served`, set by a guard set, gives them, or
    None if it cannot."""

    sources: tuple[Source, ...]
    parameters: tuple[str, ...]
    served: Callable[..., tuple[Any, ...] | None] | None = None
    calls: int = 0
    _steps: list[WalkStep] = attrs.field(factory=list)
    _places: list[int] = attrs.field(factory=list)
    _written: Callable[..., Any] | None = None

    def __call__(self, *state: object) -> Sequence[Any]:
        if (served := self.served) is not None and (found := served(*state)) is not None:
            return found
        if self._written is not None:
            return self._written(*state)  # type: ignore[no-any-return]
        self.calls += 1
        if self.calls >= CALLS_BEFORE_WRITING:
            self._written = self._write()
        return self.read(dict(zip(self.parameters, state, strict=True)))

    def __reduce__(self) -> tuple[Any, ...]:
        return Loads, (self.sources, self.parameters)

    def read(self, state: State) -> list[Any]:
        """Read each value, what several are parts of only once."""
        if not self._places:
            places: dict[Source, int] = {}
            self._steps = reading_steps(self.sources, places)
            self._places = [places[source] for source in self.sources]
        values: list[Any] = [state]
        for step, _, place in self._steps:
            if step is not None:
                values.append(step(values[place]))
        return [values[place] for place in self._places]

    def text(self, names: Names | None = None) -> str:
        """The same as Python."""
        writer = Writer(
            names or Names([*self.parameters, "loads"]), with_wholes(Counter(self.sources))
        )
        values = [writer.value(source) for source in self.sources]
        lines = "".join(
            f"    {line}\n" for line in [*writer.lines, f"return ({', '.join(values)},)"]
        )
        return f"def loads({', '.join(self.parameters)}):\n{lines}"

    def serving(
        self,
        pinned: Sequence[Source],
        bindings: Mapping[int, Any],
        place: int,
        root: Source | None,
    ) -> Callable[..., tuple[Any, ...] | None]:
        """Write a function that takes `pinned` values out of the binding of a root object, and
        reads parts of them."""
        names = Names([*self.parameters, "served", "binding"])
        writer = Writer(names, with_wholes(Counter(self.sources)))
        key = "0" if root is None else f"id({writer.value(root)})"
        taken = writer.take(pinned)
        lines = [
            f"binding = {names.capture(bindings, 'bindings')}.get({key})",
            "if binding is None: return None",
            f"{taken}, = binding.loads[{place}]",
        ]
        writer.lines += lines
        values = ", ".join([writer.value(source) for source in self.sources])
        text = "".join(f"    {line}\n" for line in [*writer.lines, f"return ({values},)"])
        text = f"def served({', '.join(self.parameters)}):\n{text}"
        filename = f"<stator loads {next(_numbers)}, served>"
        return load_source(text, filename, names.objects, self)["served"]  # type: ignore[no-any-return]

    def _write(self) -> Callable[..., Any]:
        names, filename = Names([*self.parameters, "loads"]), f"<stator loads {next(_numbers)}>"
        return load_source(self.text(names), filename, names.objects, self)["loads"]  # type: ignore[no-any-return]
