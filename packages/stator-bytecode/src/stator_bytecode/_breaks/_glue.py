"""Writing new raw instructions around copied ones: the few that stubs and continuations are joined
with.

`Glue` collects raw instructions at one source position, and the constants they need. It is the only
place with the way a version spells a call, a truth test, or what follows a loop.
"""

import dis
from collections.abc import Callable
from types import CodeType
from typing import Any

from stator_bytecode._codec._raw_instruction import Raw, RawHandler
from stator_bytecode._codec._rules import SUBSCRIPT
from stator_bytecode._codec._tables import OPCODES
from stator_bytecode.errors import Positions

_PRECALL = "PRECALL" in dis.opmap
_NULL_AFTER = "CALL_KW" in dis.opmap  # the call layout [fn, NULL, args] came with it
_TO_BOOL = ["TO_BOOL"] if "TO_BOOL" in dis.opmap else ["UNARY_NOT", "UNARY_NOT"]
_POP_ITER = "POP_ITER" if "POP_ITER" in dis.opmap else "POP_TOP"
_END_FOR = ["END_FOR", _POP_ITER] if _NULL_AFTER else ["END_FOR"] if "END_FOR" in dis.opmap else []
_SUBSCRIPT = ("BINARY_SUBSCR", 0) if "BINARY_SUBSCR" in dis.opmap else ("BINARY_OP", SUBSCRIPT)


def has_two_slots() -> bool:
    """Return True if an iterator on the stack has a second slot (3.15)."""
    return OPCODES.dialect.iterator_slots == 2


class Glue:
    """`positions` and `handler` go to every instruction that is emitted from then on."""

    def __init__(self, like: CodeType, positions: Positions) -> None:
        self.raws: list[Raw] = []
        self.consts: list[Any] = list(like.co_consts)
        self.names: list[str] = list(like.co_names)
        self.positions = positions
        self.handler: RawHandler | None = None
        self._unplaced: list[Raw] = []

    def emit(self, name: str, arg: int = 0, target: Raw | None = None) -> Raw:
        return self.add(Raw(dis.opmap[name], arg, target, self.positions, self.handler))

    def add(self, raw: Raw) -> Raw:
        self.raws.append(raw)
        for jump in self._unplaced:
            jump.target = raw
        self._unplaced = []
        return raw

    def bind(self, *jumps: Raw) -> None:
        """The next instruction is the target of `jumps`."""
        self._unplaced.extend(jumps)

    def constant(self, value: Any) -> None:
        self.consts.append(value)
        self.emit("LOAD_CONST", len(self.consts) - 1)

    def call(self, function: Callable[..., Any], *arguments: Callable[[], object]) -> None:
        """`arguments` emit what leaves one value each on the stack."""
        if not _NULL_AFTER:
            self.emit("PUSH_NULL")
        self.constant(function)
        if _NULL_AFTER:
            self.emit("PUSH_NULL")
        for argument in arguments:
            argument()
        self._call(len(arguments))

    def _call(self, count: int) -> None:
        if _PRECALL:
            self.emit("PRECALL", count)
        self.emit("CALL", count)

    def call_on_top(self, function: Callable[..., Any]) -> None:
        """Call with the value on top of the stack as the only argument."""
        self.emit("PUSH_NULL")
        self.constant(function)
        if not _NULL_AFTER:
            self.emit("SWAP", 2)
        self.emit("SWAP", 3)
        self._call(1)

    def subscript(self) -> None:
        name, arg = _SUBSCRIPT
        self.emit(name, arg)

    def to_bool(self) -> None:
        for name in _TO_BOOL:
            self.emit(name)

    def jump_if(self, condition: str) -> Raw:
        """A forward jump that pops a bool ("TRUE", "FALSE") or any value ("NONE", "NOT_NONE");
        `bind` it later."""
        name = f"POP_JUMP_IF_{condition}"
        return self.emit(name if name in dis.opmap else f"POP_JUMP_FORWARD_IF_{condition}")

    def get_iterator(self) -> None:
        """Leave one iterator. Since 3.15 the instruction gives a list itself, and a position."""
        if has_two_slots():
            self.call_on_top(iter)
        else:
            self.emit("GET_ITER")

    def push_second_slot(self) -> None:
        """Complete an iterator for FOR_ITER."""
        if has_two_slots():
            self.emit("PUSH_NULL")

    def end_loop(self, loop: Raw) -> None:
        """Comes before the code that an exhausted FOR_ITER goes on with."""
        self.bind(loop)
        for name in _END_FOR:
            self.emit(name)
