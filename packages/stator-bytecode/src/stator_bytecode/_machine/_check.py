"""`check_frame`: the faults of a frame's state. Tests run it before each instruction.

The depth of the stack is known statically, from `stack_effect` along every way through the code; a
marker that a handler pushed must be where that handler expects it.
"""

from weakref import WeakKeyDictionary

from stator_bytecode._codec._instruction import Code
from stator_bytecode._codec._stack_effect import operands, stack_effect
from stator_bytecode._machine._frame import NULL, Frame, PreviousExc

NO_NEXT = frozenset({"JUMP", "RETURN_VALUE", "RAISE_VARARGS", "RERAISE"})
"""Instructions that never go on to the next one."""

_depths: WeakKeyDictionary[Code, list[int | None]] = WeakKeyDictionary()


def check_frame(frame: Frame) -> list[str]:
    """Return the faults of `frame`, standing before its instruction `pc`; empty when nothing is."""
    code = frame.code
    if not 0 <= frame.pc < len(code.instructions):
        return [f"pc {frame.pc} is outside the code"]
    faults = []
    instr = code.instructions[frame.pc]
    if len(frame.slots) != len(code.slots):
        faults.append(f"{len(frame.slots)} slots for {len(code.slots)} names")
    depth = stack_depths(code)[frame.pc]
    if frame.parked is None and depth is not None and len(frame.stack) != depth:
        faults.append(
            f"{instr.op} at {frame.pc} expects a stack of {depth}, not of {len(frame.stack)}"
        )

    if frame.parked is None and len(frame.stack) < operands(instr):
        faults.append(f"{instr.op} at {frame.pc} needs {operands(instr)} operands")
    if instr.op == "POP_EXCEPT" and not (frame.stack and isinstance(frame.stack[-1], PreviousExc)):
        faults.append(f"POP_EXCEPT at {frame.pc} finds no exception state")
    if any(
        frame.slots[slot] is NULL for slot in range(len(code.slots) - code.n_free, len(frame.slots))
    ):
        faults.append("a free variable without its cell")
    return faults


def stack_depths(code: Code) -> list[int | None]:
    """The depth of the stack before each instruction; None where no way leads."""
    if (known := _depths.get(code)) is None:
        known = _depths[code] = _flow(code)
    return known


def _flow(code: Code) -> list[int | None]:
    depths: list[int | None] = [None] * len(code.instructions)
    work = [(0, 0)]

    while work:
        index, depth = work.pop()
        while index < len(depths) and depths[index] is None:
            depths[index] = depth
            instr = code.instructions[index]
            if instr.handler is not None:
                work.append((instr.handler.target, instr.handler.depth + 1 + instr.handler.lasti))
            if instr.target >= 0:
                work.append((instr.target, depth + stack_effect(instr, True)))
            if instr.op in NO_NEXT:
                break
            depth += stack_effect(instr, False)
            index += 1

    return depths
