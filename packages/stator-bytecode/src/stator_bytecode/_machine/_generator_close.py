"""Return whether a suspended generator would observe its `close`: the GeneratorExit that is raised
at its `yield`.

    try:                    close() raises GeneratorExit here. `except IndexError` does not match
        yield self[i]       it, and the exception leaves the frame without a further instruction
    except IndexError:      of the program: a closed generator cannot be distinguished from one
        return              that was dropped.

A `finally`, a `with`, a bare `except` and `except BaseException` do observe it. Handlers are
followed as the interpreter would follow them, from one RERAISE to the next; whatever is not a test
against a known class counts as observing.
"""

from collections.abc import Mapping
from typing import Any

from stator_bytecode._codec._instruction import Code, ExceptionHandler, Instruction

_PASSIVE = frozenset({"NOP", "PUSH_EXC_INFO", "COPY", "POP_EXCEPT", "STOPITERATION_ERROR"})
"""Operations of a handler that neither run code of the program nor catch GeneratorExit.
STOPITERATION_ERROR replaces StopIteration only."""


def observes_close(code: Code, pc: int, names: Mapping[str, Any]) -> bool:
    """Return whether code of the program runs when a generator suspended before `pc` is closed.

    `names` has the classes that names of the module refer to.
    """
    handler = code.instructions[pc].handler
    while handler is not None:
        reraise = _reraised_at(code, handler, names)
        if reraise is None:
            return True
        handler = reraise.handler
    return False


def _reraised_at(
    code: Code, handler: ExceptionHandler, names: Mapping[str, Any]
) -> Instruction | None:
    """The RERAISE by which GeneratorExit leaves a handler, or None where it may be caught or
    seen."""
    pc = handler.target
    tested: list[Any] = []

    for _ in code.instructions:  # a bound: handlers have no loops before the first match
        instr = code.instructions[pc]
        if instr.op == "RERAISE":
            return instr

        if instr.op == "LOAD_GLOBAL":
            tested.append(names.get(instr.arg[0]))
        elif instr.op == "CHECK_EXC_MATCH":
            if not all(map(_passes, tested)):
                return None
            tested = []
        elif instr.op not in _PASSIVE and instr.op not in (
            "BUILD_TUPLE",
            "POP_JUMP_IF_FALSE",
            "JUMP",
        ):
            return None

        pc = instr.target if "JUMP" in instr.op else pc + 1

    return None


def _passes(cls: Any) -> bool:
    """Return whether `except cls` lets GeneratorExit pass. The interpreter calls no
    `__subclasscheck__` here."""
    is_exception = issubclass(type(cls), type) and issubclass(cls, BaseException)
    return is_exception and all(cls is not base for base in GeneratorExit.__mro__)


def names_in_handlers(code: Code) -> frozenset[str]:
    """Return the names of the module that the `except` clauses of `code` test exceptions
    against."""
    found: set[str] = set()
    loaded: list[str] = []
    for instr in code.instructions:
        if instr.op == "LOAD_GLOBAL" and instr.handler is not None:
            loaded.append(instr.arg[0])
        elif instr.op == "CHECK_EXC_MATCH":
            found.update(loaded)
        if instr.op not in ("LOAD_GLOBAL", "BUILD_TUPLE"):
            loaded.clear()
    return frozenset(found)
