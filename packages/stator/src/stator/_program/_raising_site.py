"""The site of a trace that ends because the program raises there.

Nothing follows the instruction but a handler that raises again (`finally`). If the instruction
completes without an exception, stator predicted one wrongly. Without a report this fault of stator
would remain undetected, as the program continues correctly.
"""

from typing import Any

from stator_bytecode import Point, Site, Unsupported, passed_over

from stator._program._traceback import OWN_CODES


class RaisingSite(Site):
    """`missed` gets a record of an exception that did not come; under `fullgraph` that is an
    error."""

    def __init__(
        self, point: Point, expected: str, missed: list[Unsupported], *, fullgraph: bool
    ) -> None:
        super().__init__(point)
        self.expected = expected
        self.missed = missed
        self.fullgraph = fullgraph

    def step(self, *state: Any) -> Any:
        try:
            made = [super().step(*state)]
        finally:
            # like what was made, it may hold an exception whose traceback holds this frame
            del state
        if not _is_handler(made[0][0], self.point):
            self._miss()
        return made.pop()

    def _miss(self) -> None:
        innermost = self.point.frames[-1]
        where = innermost.code.span(innermost.pc)
        missed = Unsupported("no-exception", f"no {self.expected} was raised", _HINT, where)
        if self.fullgraph:
            raise missed
        if all(other.where != where for other in self.missed):
            self.missed.append(missed)


def _is_handler(after: Point, before: Point) -> bool:
    """Return True if an exception at `before` leads to `after`."""
    innermost = len(after.frames) - 1
    handler = (
        before.frames[innermost].instruction.handler if innermost < len(before.frames) else None
    )
    return handler is not None and after.frames[innermost].pc == handler.target


_HINT = "this is a fault of stator: please report it with the line"
OWN_CODES.update(passed_over(RaisingSite.step, RaisingSite._miss))
