"""Undo records of a graph under construction, in order: what makes `mark` free and `rollback` exact."""

from collections.abc import Callable

import attrs


@attrs.define(eq=False)
class Journal:
    """Owned by one `OutputGraph` and shared with its tracers. A mark is the number of records so far."""

    records: list[Callable[[], object]] = attrs.field(factory=list)

    def record(self, undo: Callable[[], object]) -> None:
        self.records.append(undo)

    def mark(self) -> int:
        return len(self.records)

    def rollback(self, mark: int) -> None:
        """Undo the newest first, so that each record meets the state it was written in."""
        while len(self.records) > mark:
            self.records.pop()()
