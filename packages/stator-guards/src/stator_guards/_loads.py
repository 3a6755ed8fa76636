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

from stator_guards._source import Source
from stator_guards._walk import function_text, load_source
from stator_guards._writer import Names, Writer, with_wholes

_numbers = itertools.count()


@attrs.define(eq=False)
class Loads:
    """`loads(*state)` gives the values of `sources`. `served`, set by a guard set, gives them, or
    None if it cannot."""

    sources: tuple[Source, ...]
    parameters: tuple[str, ...]
    served: Callable[..., tuple[Any, ...] | None] | None = None
    _written: Callable[..., Any] | None = None

    def __call__(self, *state: object) -> Sequence[Any]:
        if (served := self.served) is not None and (found := served(*state)) is not None:
            return found
        if self._written is None:
            self._written = self._write()
        return self._written(*state)  # type: ignore[no-any-return]

    def __reduce__(self) -> tuple[Any, ...]:
        return Loads, (self.sources, self.parameters)

    def text(self, names: Names | None = None) -> str:
        """The same as Python."""
        writer = Writer(
            names or Names([*self.parameters, "loads"]), with_wholes(Counter(self.sources))
        )
        return self._text("loads", writer)

    def _text(self, name: str, writer: Writer) -> str:
        values = [writer.value(source) for source in self.sources]
        lines = [*writer.lines, f"return ({', '.join(values)},)"]
        return function_text(name, self.parameters, lines)

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
        writer.lines += [
            f"binding = {names.capture(bindings, 'bindings')}.get({key})",
            "if binding is None: return None",
            f"{taken}, = binding.loads[{place}]",
        ]
        text = self._text("served", writer)
        filename = f"<stator loads {next(_numbers)}, served>"
        return load_source(text, filename, names.objects, self)["served"]  # type: ignore[no-any-return]

    def _write(self) -> Callable[..., Any]:
        names, filename = Names([*self.parameters, "loads"]), f"<stator loads {next(_numbers)}>"
        return load_source(self.text(names), filename, names.objects, self)["loads"]  # type: ignore[no-any-return]
