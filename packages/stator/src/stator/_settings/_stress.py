"""The stress modes: the program breaks at every place of a kind, so that breaks are met everywhere.

`break_everywhere` is True or "calls" (every call), "operations" (all that is no call: called
functions are entered, and break inside), "instructions" (everything), or a number n (every n-th
instruction of each function).
"""

from collections.abc import Callable, Mapping

from stator_bytecode import (
    DEFAULT,
    NO_STEP,
    Frame,
    Instruction,
    Machine,
    OpcodeHandler,
    Unsupported,
)

CALLS = frozenset({"CALL", "CALL_FUNCTION_EX"})
Picks = Callable[[Instruction], bool]

MODES: Mapping[str, Picks] = {
    "calls": lambda instr: instr.op in CALLS,
    "operations": lambda instr: instr.op not in CALLS,
    "instructions": lambda instr: True,
}


def is_mode(value: object) -> bool:
    """Return True if `value` is valid for `break_everywhere`."""
    return value in MODES if isinstance(value, str) else isinstance(value, int) and value >= 0


def stressed(mode: bool | str | int) -> dict[str, OpcodeHandler]:
    """The handlers of all opcodes, those that `mode` picks refusing."""
    picks = _picks(mode)
    return {
        op: handler if op in NO_STEP else _refusing(handler, picks)
        for op, handler in DEFAULT.items()
    }


def _picks(mode: bool | str | int) -> Picks:
    if mode is True:
        return MODES["calls"]
    return MODES[mode] if isinstance(mode, str) else lambda instr: instr.index % mode == 0


def _refusing(handler: OpcodeHandler, picks: Picks) -> OpcodeHandler:
    def refuse(machine: Machine, frame: Frame, instr: Instruction) -> int | None:
        """Code of ours, and class bodies, break at the instruction of the program that runs
        them."""
        if not frame.hidden and frame.names is None and picks(instr):
            raise Unsupported("stress", f"{instr.op} breaks in stress mode")
        return handler(machine, frame, instr)

    return refuse
