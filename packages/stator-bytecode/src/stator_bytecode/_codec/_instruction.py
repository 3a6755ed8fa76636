"""The neutral instruction: the form of CPython bytecode above the codec.

`Code` is one decoded code object, `Instruction` one neutral operation, `ExceptionHandler` where an
exception raised by it goes. The vocabulary of `Instruction.op` and the meaning of its `arg` are in
docs/explanation/architecture.md, section 1; start with `decode` in `_decode.py`.

    x = a + 1     =>     LOAD_FAST 0, LOAD_CONST 1, BINARY_OP "+", STORE_FAST 1
"""

from types import CodeType
from typing import Any

from attrs import field, frozen

from stator_bytecode.errors import Positions, SourceSpan


@frozen(eq=False)
class ExceptionHandler:
    """The target of an exception: the stack is cut to `depth`, then the raising instruction (if
    `lasti`) and the exception are pushed, and execution goes on at the neutral index `target`."""

    target: int
    depth: int
    lasti: bool


@frozen(eq=False)
class Instruction:
    """One neutral operation. `arg` is resolved; `target` and `handler.target` are neutral
    indices."""

    op: str
    arg: Any
    index: int
    target: int
    handler: ExceptionHandler | None
    positions: Positions
    raw: tuple[int, int]
    """[start, stop) in `disassemble(code)`. Ranges go up, and leave gaps where raw instructions
    vanish (`RESUME`); the two halves of a superinstruction have the same range."""


@frozen(eq=False)
class Code:
    """One decoded code object. There is one per real code object while anything holds it."""

    raw: CodeType
    instructions: tuple[Instruction, ...]
    slots: tuple[str, ...]
    """Unified local names: variables, then cells that are not variables too, then free
    variables."""
    n_free: int
    null_first: bool
    """Call layout: `[NULL|method, fn|self, args]` when true, else `[fn, NULL|self, args]`."""
    _spans: dict[int, SourceSpan] = field(factory=dict, init=False, repr=False)

    def span(self, index: int) -> SourceSpan:
        """The place in the user's program of the instruction at `index`. Cached for nodes and
        guards."""
        if (found := self._spans.get(index)) is None:
            found = self._spans[index] = SourceSpan.of(self.raw, self.instructions[index].positions)
        return found
