"""Effects of a result: per instruction (`COMPLETIONS`), and per `Then` kind of a callee's return
value (`THENS`).

An operation's result and a callee's return value complete an instruction through the same
functions, so that a frame that was saved while it waited goes on as if it had never stopped. An
instruction without an entry pushes its result.

A `Then` may be met by a result that needs further frames ("length": the `__index__` of one): it
gives any `Result`.
"""

from typing import Any

from stator_bytecode._codec._instruction import Instruction
from stator_bytecode._machine._domain import Raised, Result, V
from stator_bytecode._machine._frame import NULL, Frame, Parked
from stator_bytecode._machine._state import Completion, Continue, MachineState


def discard(machine: MachineState, frame: Frame, instr: Instruction, result: Any) -> None:
    return None


def push_all_reversed(
    machine: MachineState, frame: Frame, instr: Instruction, result: list[V]
) -> None:
    frame.stack.extend(reversed(result))


def jump_if(wanted: bool, or_pop: bool = False) -> Completion:
    """`or_pop`: the value tested, which is still on the stack, stays there only when it jumps."""

    def jump(machine: MachineState, frame: Frame, instr: Instruction, result: bool) -> int | None:
        if result is wanted:
            return instr.target
        if or_pop:
            frame.stack.pop()
        return None

    return jump


def push_bool(machine: MachineState, frame: Frame, instr: Instruction, result: bool) -> None:
    frame.stack.append(machine.domain.from_bool(result))


def unary(machine: MachineState, frame: Frame, instr: Instruction, result: Any) -> None:
    """Push a bool for `not`, the value for the others."""
    frame.stack.append(machine.domain.from_bool(not result) if instr.arg == "not" else result)


def compare(machine: MachineState, frame: Frame, instr: Instruction, result: Any) -> int | None:
    """Push the result of a comparison.

    If the instruction's flag is set, the truth of the result is determined first, which returns
    here as a Python bool.
    """
    if not instr.arg[1]:
        frame.stack.append(result)
    elif result is True or result is False:
        frame.stack.append(machine.domain.from_bool(result))
    else:
        return machine.finish(frame, instr, machine.domain.truth(result))
    return None


def next_or_leave(machine: MachineState, frame: Frame, instr: Instruction, result: V) -> int | None:
    if result is NULL:
        del frame.stack[-instr.arg :]
        return instr.target
    frame.stack.append(result)
    return None


def push_iterator(machine: MachineState, frame: Frame, instr: Instruction, result: V) -> None:
    """Push the iterator; CPython 3.15 has a second slot, which is empty for one that is no
    container."""
    frame.stack += [result, NULL][: instr.arg]


def sent(
    machine: MachineState, frame: Frame, instr: Instruction, result: tuple[V, V]
) -> int | None:
    """`(yielded, NULL)` or `(NULL, returned)`; the receiver stays, or leaves when it is done
    (3.11)."""
    yielded, returned = result
    if yielded is not NULL:
        frame.stack.append(yielded)
        return None
    if not instr.arg:
        frame.stack.pop()
    frame.stack.append(returned)
    return instr.target


def load_global(machine: MachineState, frame: Frame, instr: Instruction, result: V) -> None:
    null = instr.arg[1]
    frame.stack.extend(
        (result,) if null is None else (NULL, result) if null == "before" else (result, NULL)
    )


def push_method(machine: MachineState, frame: Frame, instr: Instruction, result: Any) -> None:
    """`(function, receiver or NULL)` as a Python tuple; what comes of a callee is a plain
    attribute."""
    function, receiver = result if type(result) is tuple else (result, NULL)
    push_callable(frame, function, receiver)


def push_callable(frame: Frame, function: V, receiver: V) -> None:
    first = frame.code.null_first and receiver is NULL
    frame.stack.extend((NULL, function) if first else (function, receiver))


def super_attribute(machine: MachineState, frame: Frame, instr: Instruction, result: V) -> None:
    if instr.arg[1]:
        push_callable(frame, result, NULL)
    else:
        frame.stack.append(result)


def class_deref(machine: MachineState, frame: Frame, instr: Instruction, result: V) -> None:
    """The mapping's item, or NULL: then the cell's content."""
    frame.stack.append(cell_content(machine, frame, instr.arg) if result is NULL else result)


def dict_or_global(
    machine: MachineState, frame: Frame, instr: Instruction, result: V
) -> int | None:
    if result is NULL:
        return machine.finish(frame, instr, machine.domain.load_global(frame, instr.arg))
    frame.stack.append(result)
    return None


def setup_annotations(
    machine: MachineState, frame: Frame, instr: Instruction, result: V
) -> int | None:
    if result is not NULL:
        return None
    domain = machine.domain
    return machine.finish(
        frame, instr, domain.store_name(frame, "__annotations__", domain.build_map([], []))
    )


def raise_result(machine: MachineState, frame: Frame, instr: Instruction, result: V) -> None:
    raise Raised(result)


def group_matched(
    machine: MachineState, frame: Frame, instr: Instruction, result: tuple[V, V]
) -> None:
    """`(rest, match)`: a match becomes the exception being handled."""
    rest, match = result
    frame.stack.extend((rest, match))
    if not machine.domain.is_none(match):
        frame.handled = match


def cell_content(machine: MachineState, frame: Frame, slot: int) -> V:
    if (content := machine.domain.cell_get(frame.slots[slot])) is not NULL:
        return content
    name = frame.code.slots[slot]
    if slot < len(frame.code.slots) - frame.code.n_free:
        raise Raised(machine.domain.python_error(UnboundLocalError, UNBOUND_LOCAL.format(name)))
    raise Raised(machine.domain.python_error(NameError, UNBOUND_FREE.format(name)))


UNBOUND_LOCAL = "cannot access local variable '{}' where it is not associated with a value"
UNBOUND_FREE = (
    "cannot access free variable '{}' where it is not associated with a value in enclosing scope"
)

COMPLETIONS: dict[str, Completion] = {
    **dict.fromkeys(
        """
        STORE_GLOBAL DELETE_GLOBAL STORE_NAME DELETE_NAME STORE_ATTR DELETE_ATTR
        STORE_SUBSCR DELETE_SUBSCR STORE_SLICE LIST_APPEND LIST_EXTEND SET_ADD SET_UPDATE
        MAP_ADD DICT_UPDATE DICT_MERGE IMPORT_STAR
        """.split(),
        discard,
    ),
    **dict.fromkeys(("UNPACK_SEQUENCE", "UNPACK_EX"), push_all_reversed),
    **dict.fromkeys(("TO_BOOL", "CHECK_EXC_MATCH"), push_bool),
    **dict.fromkeys(("LOAD_CLASSDEREF", "LOAD_FROM_DICT_OR_DEREF"), class_deref),
    "UNARY_OP": unary,
    "COMPARE_OP": compare,
    "POP_JUMP_IF_TRUE": jump_if(True),
    "POP_JUMP_IF_FALSE": jump_if(False),
    "JUMP_IF_TRUE_OR_POP": jump_if(True, or_pop=True),
    "JUMP_IF_FALSE_OR_POP": jump_if(False, or_pop=True),
    **dict.fromkeys(("GET_ITER", "GET_YIELD_FROM_ITER"), push_iterator),
    "FOR_ITER": next_or_leave,
    "SEND": sent,
    "LOAD_GLOBAL": load_global,
    "LOAD_METHOD": push_method,
    "LOAD_SUPER_ATTR": super_attribute,
    "LOAD_FROM_DICT_OR_GLOBALS": dict_or_global,
    "SETUP_ANNOTATIONS": setup_annotations,
    "RAISE_VARARGS": raise_result,
    "CHECK_EG_MATCH": group_matched,
}


# what a callee's return value is to the frame that waits for it; other kinds are the Domain's


def complete_in_domain(machine: MachineState, parked: Parked, value: V) -> Result:
    return machine.domain.complete(parked.then, value)


THENS: dict[str, Continue] = {
    **dict.fromkeys(("value", "attribute", "next"), lambda machine, parked, value: value),
    "send": lambda machine, parked, value: (value, NULL),
}
"""The kinds that are about frames. ALL_THENS of `_generator.py` has those that suspend again."""
