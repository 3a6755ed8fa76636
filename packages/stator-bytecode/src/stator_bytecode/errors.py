"""The errors of every layer, data first.

`Unsupported` is a fine program that cannot be captured (it becomes a graph break); `InvalidUse` a
mistake of the caller; `InternalError` a fault of ours. Layers that call foreign code add their own
under `StatorError`.
"""

from types import CodeType
from typing import TypeAlias

from attrs import define, frozen

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

    def __str__(self) -> str:
        return f'File "{self.filename}", line {self.line}, in {self.function}'


NOWHERE = SourceSpan("<unknown>", "<unknown>", None)


class StatorError(Exception):
    """The base of every error that stator raises on its own account."""


@define(eq=False)
class Unsupported(StatorError):
    """A program that is fine, but has an operation that cannot be captured.

    `reason` is a slug of docs/reference/unsupported; `detail` describes what was met; `hint` what
    to try. `once`: running the operation natively removes the cause, so the next trace will not
    meet it.
    """

    reason: str
    detail: str = ""
    hint: str = ""
    where: SourceSpan = NOWHERE
    once: bool = False

    def __str__(self) -> str:
        lines = [
            f"cannot capture: {self.detail or self.reason}",
            f"  at {self.where}",
            f"  reason: {self.reason}",
        ]
        return "\n".join([*lines, f"  try: {self.hint}"] if self.hint else lines)


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
