"""The journal: undo records of changes of tracked state."""

from collections.abc import Callable, Iterable
from typing import Any

import attrs


@attrs.define(eq=False)
class Journal:
    """Undo records of every change to tracked state, in order; a mark is their number so far.

    A graph under construction has one of its own, which its tracers share.
    """

    undo: list[Callable[[], object]] = attrs.field(factory=list)

    def record(self, undo: Callable[[], object]) -> None:
        self.undo.append(undo)

    def put(self, table: dict[Any, Any], key: object, value: Any) -> None:
        """Add an item to `table`, which a rollback takes out."""
        table[key] = value
        self.undo.append(lambda: table.pop(key))

    def assign(self, thing: Any, **fields: Any) -> None:
        """Set attributes of `thing`, which a rollback sets back."""
        before = [(name, getattr(thing, name)) for name in fields]
        self.undo.append(lambda: _set(thing, before))
        _set(thing, fields.items())

    def mark(self) -> int:
        return len(self.undo)

    def rollback(self, mark: int) -> None:
        """Undo the newest first, so that each record meets the state it was written in."""
        while len(self.undo) > mark:
            self.undo.pop()()


def _set(thing: Any, fields: Iterable[tuple[str, Any]]) -> None:
    for name, value in fields:
        setattr(thing, name, value)
