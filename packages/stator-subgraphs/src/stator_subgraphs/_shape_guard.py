"""The facts about sizes and numbers that a graph relies on, as Python text over our sources.

They are computed after the backend ran. Inputs that a rollback dropped take part only where a fact
is about one of their symbols.
"""

import re
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import attrs
import torch
from stator_bytecode.errors import NOWHERE, SourceSpan
from stator_guards import ShapeExpression, SizeSource, Source
from torch.fx.experimental.symbolic_shapes import SYMPY_INTERP, ConstraintViolationError

from stator_subgraphs._boundary import violated
from stator_subgraphs._captured_graph import ShapeFact
from stator_subgraphs._fake import fake_input, new_fake_mode
from stator_subgraphs._input import Record
from stator_subgraphs._state import GraphState
from stator_subgraphs._symbol import sizes_of, symbols_of
from stator_subgraphs._torch_source import ours

TOKEN = re.compile(r"\bsource_\d+_\b")


class HasRecords(Protocol):
    """The inputs of a graph."""

    @property
    def records(self) -> Sequence[Record]: ...


@attrs.frozen(eq=False)
class KeptRecords:
    """The records of inputs that were released."""

    records: Sequence[Record]


@attrs.define(eq=False)
class ShapeGuards:
    state: GraphState
    inputs: HasRecords
    _numbers: dict[Source, int] = attrs.Factory(dict)  # token of each source

    def produce(self, dropped: bool = False) -> list[ShapeFact]:
        """Facts that are not implied by the static sizes of tensors, which tensor guards check
        anyway. With `dropped`, also those about dropped inputs alone: what was taken back decided
        how the trace ends."""
        records = [record for record in self.inputs.records if not record.static]
        if not records:
            return []
        bound = [record for record in records if record.live or dropped]
        needed = self._needed({symbol for record in bound for symbol in self._symbols_of(record)})
        records = [
            record for record in records if record in bound or needed & self._symbols_of(record)
        ]
        if not records:
            return []
        fakes = [self._fake(record) for record in records]
        known = self._constant(records, fakes)
        plain, located = self._produce(records, fakes, needed)
        facts = zip(plain, located, strict=True)
        return [self._fact(text, comment) for text, comment in facts if text not in known]

    def later(self) -> Callable[..., list[ShapeFact]]:
        """Return `produce` for a time when the inputs are released, with fakes in their place."""
        kept = [
            attrs.evolve(record, real=None, first=self._fake(record))
            for record in self.inputs.records
            if not record.static
        ]
        return ShapeGuards(self.state, KeptRecords(kept)).produce

    def _needed(self, symbols: set[Any]) -> set[Any]:
        """Return these symbols and all that facts relate to them; facts about other inputs alone
        are irrelevant."""
        related = [set(guard.expr.free_symbols) for guard in self.state.env.guards]
        related += [
            {symbol, *expression.free_symbols}
            for symbol, expression in self.state.env.replacements.items()
        ]
        before = 0
        while len(symbols) > before:
            before = len(symbols)
            symbols = symbols.union(*(some for some in related if some & symbols))
        return symbols

    def _symbols_of(self, record: Record) -> set[Any]:
        if record.context is None:
            return set(symbols_of(record.traced.example))
        cache = record.context.shape_env_to_source_to_symbol_cache.get(id(self.state.env), {})
        return {symbol for expression in cache.values() for symbol in expression.free_symbols}

    def _fake(self, record: Record) -> Any:
        """Return an example with the first shape of an input: its first one, or a new fake."""
        if record.context is None or record.first is not None:
            return record.first or record.traced.example
        return fake_input(
            new_fake_mode(self.state.env), record.real, record.origin, record.context, False
        )

    def _produce(
        self, records: list[Record], fakes: list[Any], needed: set[Any]
    ) -> tuple[list[str], list[str]]:
        contexts: list[Any] = [record.context for record in records]

        try:
            helpers = self.state.env.produce_guards_verbose(
                fakes,
                [record.origin for record in records],
                self._token,
                guards=[
                    guard for guard in self.state.env.guards if guard.expr.free_symbols & needed
                ],
                input_contexts=contexts,
                ignore_static=False,
                langs=("python", "verbose_python"),
            )
        except ConstraintViolationError as error:
            raise violated(error) from None

        return helpers[0].exprs, helpers[1].exprs

    def _constant(self, records: list[Record], fakes: list[Any]) -> set[str]:
        """The texts about sizes that were constant from the start, and that floats are numbers: who
        reads one guards that it is finite."""
        floats = [record for record in records if isinstance(record.traced.example, torch.SymFloat)]
        return {f"not math.isnan({self._token_of(record.origin.source)})" for record in floats} | {
            f"{self._token_of(SizeSource(record.origin.source, kind, dim))} == {part}"
            for record, fake in zip(records, fakes, strict=True)
            if record.constant
            for part, kind, dim in sizes_of(fake)
            if (kind, dim) in record.constant
        }

    def _token(self, torch_source: object) -> str:
        return self._token_of(ours(torch_source))

    def _token_of(self, source: Source) -> str:
        if source not in self._numbers:
            self._numbers[source] = len(self._numbers)
        return f"source_{self._numbers[source]}_"

    def _fact(self, text: str, comment: str) -> ShapeFact:
        sources = list(self._numbers)
        names: dict[str, str] = {}
        for token in TOKEN.findall(text):
            names.setdefault(token, f"n{len(names)}")
        named = {name: sources[int(token.split("_")[1])] for token, name in names.items()}
        plain = TOKEN.sub(lambda match: names[match.group()], text)
        scope = {
            name: value for name, value in SYMPY_INTERP.items() if re.search(rf"\b{name}\b", plain)
        }
        return ShapeFact(ShapeExpression(plain, named, scope), self._span(comment))

    def _span(self, comment: str) -> SourceSpan:
        _, _, location = comment.partition("  # ")
        spans = self.state.location.stack.spans
        return next(
            (span for wording, span in spans.items() if location.startswith(wording)), NOWHERE
        )
