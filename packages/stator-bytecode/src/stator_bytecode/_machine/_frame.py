"""Frames as data: what one activation of a function holds, and what a callee's result will do to
it.

A frame's slots and stack mirror the interpreter's own layout, NULLs included, so any state of it
can be turned into a native frame (`_stub.py`) or saved as data and continued later (`_point.py`).
"""

from __future__ import annotations

import enum
from collections.abc import Callable
from typing import Any

from attrs import Factory, define, frozen

from stator_bytecode._codec._instruction import Code, Instruction


class _Null:
    __slots__ = ()

    def __repr__(self) -> str:
        return "NULL"

    def __bool__(self) -> bool:
        raise TypeError("NULL is no value; test `is NULL`")


NULL = _Null()
"""An empty stack slot, or an unbound local."""


@frozen(eq=False)
class PreviousExc:
    """Pushed by PUSH_EXC_INFO: the exception that was being handled before (None: none)."""

    value: Any


@frozen
class LastInstruction:
    """Pushed for handlers with `lasti`: the neutral index of the instruction that raised."""

    index: int


class GeneratorStatus(enum.Enum):
    CREATED = "created"
    SUSPENDED = "suspended"
    RUNNING = "running"
    CLOSED = "closed"


@define(eq=False)
class GeneratorState:
    """A generator: its one frame, and whether that frame is running. `value` is the object that
    Domain made for it."""

    frame: Frame
    status: GeneratorStatus = GeneratorStatus.CREATED
    value: Any = None


@frozen(eq=False)
class Then:
    """The effect of a callee's result on the instruction that called. Data, so that it survives a
    break.

    Kinds: "value" (the instruction's result is the frame's), "instance" (the result must be None,
    the instruction's result is `values[0]`), "truth" (the result of `__bool__`), "length" (the
    result of `__len__`, tested for truth), "next" (StopIteration ends the iteration), "iter" (must
    be an iterator), "attribute" (the same as "value", and an AttributeError that leaves the frame
    notes that `name` of `values[0]` was looked for). Of a generator, besides: "close" (a call of
    `close`), "send" (SEND), "delegated" and "closing" (a YIELD_VALUE of `yield from`, while
    something is thrown into the inner generator).
    """

    kind: str
    values: tuple[Any, ...] = ()
    name: str = ""


VALUE = Then("value")


@define(eq=False)
class Parked:
    """The reason why a frame waits: the call's continuation as data, or the coroutine that awaits a
    frame."""

    instruction: Instruction
    then: Then
    coroutine: Any = None  # a live Pending generator; None when `then` suffices
    # (stack, mark) at the start of the instruction: where a barrier rolls back to
    before: Any = None


@define(eq=False, repr=False)
class Frame:
    """One activation. `pc` is the neutral index of the next instruction to run (of the running one
    while parked)."""

    code: Code
    globals: Any
    builtins: Any
    slots: list[Any]
    stack: list[Any] = Factory(list)
    pc: int = 0
    names: Any = None  # the mapping of a class body
    function: Any = None
    hidden: bool = False  # app-level code: no native frame of its own
    generator: GeneratorState | None = None
    handled: Any = None  # the exception being handled here, None when none is
    parked: Parked | None = None
    # called with its result, should it return in this run: no copy has it
    returned: Callable[[Any], None] | None = None

    @property
    def then(self) -> Then | None:
        """The `Then` it waits with; None for the innermost frame."""
        return None if self.parked is None else self.parked.then

    def __repr__(self) -> str:
        return f"<frame of {self.code.raw.co_qualname} at {self.pc}>"

    def wait(self, then: Then | None) -> None:
        """Park it as if its instruction had just called."""
        self.parked = None if then is None else Parked(self.code.instructions[self.pc], then)

    def copy(self) -> Frame:
        """The frame as it is now. A coroutine that it waits for is not in the copy."""
        copied = Frame(
            self.code,
            self.globals,
            self.builtins,
            self.slots[:],
            self.stack[:],
            self.pc,
            self.names,
            self.function,
            self.hidden,
            self.generator,
            self.handled,
        )
        copied.wait(self.then)
        return copied

    def popn(self, count: int) -> list[Any]:
        if not count:
            return []
        taken = self.stack[-count:]
        del self.stack[-count:]
        return taken


@frozen(eq=False, repr=False)
class Snapshot:
    """A whole frame stack, outermost first; the innermost stands before the instruction
    `frames[-1].pc`.

    The frames are copies that nobody runs or changes; their values are the domain's.
    """

    frames: tuple[Frame, ...]
    mark: Any

    def __repr__(self) -> str:
        return f"<{len(self.frames)} frames, the innermost {self.frames[-1:]}>"
