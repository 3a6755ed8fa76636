"""Instructions that only move values about: a step over one is an edit of the flat state, nothing
runs natively.

They never break on their own account; a Site stands on one when something else needs it, such as
a test.
"""

from collections.abc import Callable, Mapping
from typing import Any

from stator_bytecode._breaks._exit import Draft, FlatState
from stator_bytecode._breaks._layout import (
    CELL,
    NO_PREVIOUS,
    NULL_KIND,
    PREVIOUS,
    VALUE,
    FrameLayout,
)
from stator_bytecode._codec._decode import cell_slots
from stator_bytecode._codec._instruction import Instruction
from stator_bytecode._handler_table import HandlerTable

Make = Callable[[FlatState], Any]
Shuffle = Callable[[Draft, Instruction], "Make | None"]
"""Edits the draft. One that makes a value, its only result, gives the function that makes it of the
state."""

shuffles: HandlerTable[str, Shuffle] = HandlerTable("shuffle")

NO_STEP: Mapping[str, str] = {
    **dict.fromkeys(
        ("COPY_FREE_VARS", "MAKE_CELL"), "the prologue of a function does not run by itself"
    ),
    "RETURN_GENERATOR": "a generator is made by its caller's frame",
    "YIELD_VALUE": "suspending a frame is the Machine's",
    "RETURN_VALUE": "leaving a frame is the Machine's",
    **dict.fromkeys(
        """
        LOAD_NAME STORE_NAME DELETE_NAME SETUP_ANNOTATIONS LOAD_LOCALS LOAD_CLASSDEREF IMPORT_STAR
        """.split(),
        "a class body has no stub",
    ),
}
"""Instructions that no Site can stand on, with the reason."""


@shuffles.handles("NOP")
def nop(draft: Draft, instr: Instruction) -> None:
    pass


@shuffles.handles("JUMP")
def jump(draft: Draft, instr: Instruction) -> None:
    draft.go_to(instr.target)


@shuffles.handles("POP_TOP")
def pop_top(draft: Draft, instr: Instruction) -> None:
    draft.stack.pop()


@shuffles.handles("PUSH_NULL")
def push_null(draft: Draft, instr: Instruction) -> None:
    draft.stack.append((NULL_KIND, None))


@shuffles.handles("COPY")
def copy(draft: Draft, instr: Instruction) -> None:
    draft.stack.append(draft.stack[-instr.arg])


@shuffles.handles("SWAP")
def swap(draft: Draft, instr: Instruction) -> None:
    stack = draft.stack
    stack[-1], stack[-instr.arg] = stack[-instr.arg], stack[-1]


@shuffles.handles("LOAD_CONST")
def load_const(draft: Draft, instr: Instruction) -> Make:
    draft.push_result()
    return lambda state: instr.arg


@shuffles.handles("LOAD_FAST", "LOAD_CLOSURE")
def load_fast(draft: Draft, instr: Instruction) -> None:
    kind, source = draft.slots[instr.arg]
    draft.stack.append((VALUE if kind is CELL else kind, source))


@shuffles.handles("LOAD_FAST_AND_CLEAR")
def load_fast_and_clear(draft: Draft, instr: Instruction) -> None:
    load_fast(draft, instr)
    draft.slots[instr.arg] = (NULL_KIND, None)


@shuffles.handles("STORE_FAST")
def store_fast(draft: Draft, instr: Instruction) -> None:
    kind, source = draft.stack.pop()
    is_cell = kind is VALUE and instr.arg in cell_slots(draft.layout.raw, draft.layout.code.slots)
    draft.slots[instr.arg] = (CELL if is_cell else kind, source)


@shuffles.handles("DELETE_FAST")
def delete_fast(draft: Draft, instr: Instruction) -> None:
    draft.slots[instr.arg] = (NULL_KIND, None)


@shuffles.handles("PUSH_EXC_INFO")
def push_exc_info(draft: Draft, instr: Instruction) -> None:
    exception = draft.stack.pop()
    draft.stack.append((NO_PREVIOUS, None) if draft.handled is None else (PREVIOUS, draft.handled))
    draft.stack.append(exception)
    draft.handled = exception[1]


@shuffles.handles("POP_EXCEPT")
def pop_except(draft: Draft, instr: Instruction) -> None:
    _, draft.handled = draft.stack.pop()


def raises(layout: FrameLayout) -> bool:
    """Return True if its instruction does more than move values: it reads or deletes an unbound
    local."""
    instr = layout.instruction
    return (
        instr.op in ("LOAD_FAST", "DELETE_FAST", "LOAD_CLOSURE")
        and layout.slots[instr.arg] is NULL_KIND
    )
