"""The errors of every layer, data first.

`Unsupported` is a fine program that cannot be captured (it becomes a graph break); `InvalidUse` a
mistake of the caller; `InternalError` a fault of ours. Layers that call foreign code add their own
under `StatorError`.
"""

import linecache
from types import CodeType
from typing import TypeAlias

from attrs import define, field, frozen

__all__ = ["NOWHERE", "InternalError", "InvalidUse", "Positions", "SourceSpan"]
__all__ += ["StatorError", "Unsupported"]

Positions: TypeAlias = tuple[int | None, int | None, int | None, int | None]
"""Line, end line, column, end column, as `co_positions` gives them."""


@frozen
class SourceSpan:
    """A location in the user's program: file name, function name, line (from 1), its end and
    columns if known."""

    filename: str
    function: str
    line: int | None
    end_line: int | None = None
    column: int | None = None
    end_column: int | None = None

    @classmethod
    def of(cls, code: CodeType, positions: Positions = (None, None, None, None)) -> "SourceSpan":
        """The place of an instruction of `code` with these positions; without a line of its own,
        the first line."""
        line, *rest = positions
        return cls(code.co_filename, code.co_qualname, line or code.co_firstlineno, *rest)

    def excerpt(self) -> list[str]:
        """Return the line of source, and carets under the expression unless it is the whole line;
        nothing if the source cannot be found."""
        source = linecache.getline(self.filename, self.line or 0).rstrip()
        text = source.lstrip()
        if not text or self.column is None or self.end_column is None:
            return [text] if text else []

        indent = len(source) - len(text)
        begin = _characters(source, self.column) - indent
        end = _characters(source, self.end_column) - indent if self._is_one_line else len(text)
        if (begin, end) == (0, len(text)):
            return [text]
        return [text, " " * begin + "^" * max(end - begin, 1)]

    @property
    def _is_one_line(self) -> bool:
        return self.end_line in (None, self.line)

    def __str__(self) -> str:
        return f'File "{self.filename}", line {self.line}, in {self.function}'


def _characters(source: str, offset: int) -> int:
    """Return the number of characters in the first `offset` bytes, in which positions count."""
    return len(source.encode()[:offset].decode(errors="replace"))


NOWHERE = SourceSpan("<unknown>", "<unknown>", None)


class StatorError(RuntimeError):
    """The base of every error that stator raises on its own account; a RuntimeError, as errors of
    `torch.compile` are."""


_CALLS_OF_MODULES = ("Module._call_impl", "Module._wrapped_call_impl")
"""Frames between the call of a module and its `forward`, which a reader does not need."""


@define(eq=False)
class Unsupported(StatorError):
    """A program that is fine, but has an operation that cannot be captured.

    `reason` is a slug of docs/reference/unsupported; `detail` describes what was met; `hint` what
    to try. `once`: running the operation natively removes the cause, so the next trace will not
    meet it. `stack`: the program's frames from the compiled function to `where`, if known.
    """

    reason: str
    detail: str = ""
    hint: str = ""
    where: SourceSpan = NOWHERE
    once: bool = False
    stack: tuple[SourceSpan, ...] = field(default=(), repr=False)

    def brief(self) -> str:
        """Return the text without the frames that lead to the place."""
        return self._text([f"at {self.where}"])

    def __str__(self) -> str:
        lines = []
        for span in self._places():
            lines += [str(span), *(f"  {line}" for line in span.excerpt())]
        return self._text(lines)

    def _places(self) -> list[SourceSpan]:
        """Return the frames to show: the innermost is that of `where`, whose position is exact."""
        outer = [span for span in self.stack if not span.function.endswith(_CALLS_OF_MODULES)]
        while outer and (outer[-1].filename, outer[-1].function) == self._function():
            outer.pop()
        return [*outer, self.where]

    def _function(self) -> tuple[str, str]:
        return self.where.filename, self.where.function

    def _text(self, places: list[str]) -> str:
        lines = [*places, f"reason: {self.reason}"]
        if self.hint:
            lines.append(f"try: {self.hint}")
        found = [f"  {line}" for line in lines]
        return "\n".join([f"cannot capture: {self.detail or self.reason}", *found])


@define(eq=False)
class InvalidUse(StatorError):
    """A mistake of the caller: what was wrong, and what is accepted."""

    problem: str
    hint: str = ""

    def __str__(self) -> str:
        return f"{self.problem}\n  try: {self.hint}" if self.hint else self.problem


@define(eq=False)
class InternalError(StatorError):
    """A fault of stator itself. `where` is the user's line that was being interpreted."""

    problem: str
    where: SourceSpan = NOWHERE

    def __str__(self) -> str:
        return (
            f"stator met a fault of its own: {self.problem}\n  at {self.where}\n"
            "  this is our bug: please report it with the function and its inputs"
        )
