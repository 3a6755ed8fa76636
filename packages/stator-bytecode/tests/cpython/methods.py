"""CPython's own test modules, method by method: run natively, and through a Machine that checks
every frame it steps in.

`natively` and `interpreted` run one and say how it ended ("passed", "skipped", or the exception);
two equal endings are a pass. What is left out, and why, is data in `selection.py`.
"""

from __future__ import annotations

import builtins
import doctest
import sys
from collections.abc import Callable
from types import FunctionType
from typing import Any

from cpython_methods import Method, ending, methods
from stator_bytecode import (
    DEFAULT,
    Code,
    ConcreteDomain,
    Frame,
    Instruction,
    InternalError,
    Machine,
    check_frame,
    new_frame,
    stack_depths,
)
from stator_bytecode._concrete._generators import value_of
from stator_bytecode._concrete._interpreter import interpret_in

INTERPRETED = (
    "test",
    "unittest.case",
    "contextlib",
    "functools",
    "types",
    "collections",
    "inspect",
)
"""Functions of these modules become frames; what else tests call runs natively."""

__all__ = ["Method", "interpreted", "methods", "natively"]


def natively(case: Method) -> str:
    return ending(case)


def interpreted(case: Method) -> str:
    domain = ConcreteDomain(interprets, _checking_machine)
    if isinstance(case, doctest.DocTestCase):
        return _interpreted_doctest(case, domain)
    name = case._testMethodName
    method = getattr(case, name)
    setattr(case, name, lambda: interpret_in(domain, method, (), {}))
    try:
        return ending(case)
    finally:
        delattr(case, name)


def interprets(function: FunctionType) -> bool:
    module = str(function.__globals__.get("__name__"))
    return module.startswith(INTERPRETED) or module == "__main__"


# interpreting


def _checking_machine(domain: ConcreteDomain) -> Machine:
    handlers = {op: _checked(handler) for op, handler in DEFAULT.items()}
    prints = {op: _checked(_print_expression) for op in ("PRINT_EXPR", "INTRINSIC_PRINT")}
    return Machine(domain, {**handlers, **prints}, depth_limit=1500)


_depths: dict[Code, list[int | None]] = {}


def _checked(handler: Any) -> Callable[[Machine, Frame, Instruction], int | None]:
    """`check_frame` before each instruction; its most telling check alone, unless that finds
    something."""

    def check_and_run(machine: Machine, frame: Frame, instr: Instruction) -> int | None:
        depths = _depths.get(frame.code) or _depths.setdefault(frame.code, stack_depths(frame.code))
        if len(frame.stack) != depths[frame.pc] or frame.pc == 0:
            _report(frame)
        return handler(machine, frame, instr)

    return check_and_run


def _report(frame: Frame) -> None:
    faults = check_frame(frame)
    if faults:
        raise InternalError("; ".join(faults))


def _print_expression(machine: Machine, frame: Frame, instr: Instruction) -> None:
    """The echo of a doctest's expression: refused in programs, but doctests are made of it."""
    sys.displayhook(frame.stack.pop())
    if instr.op == "INTRINSIC_PRINT":
        frame.stack.append(None)


def _interpreted_doctest(case: doctest.DocTestCase, domain: ConcreteDomain) -> str:
    def execute(code: Any, names: dict[str, Any]) -> None:
        names.setdefault("__builtins__", builtins)
        frame = new_frame(code, (), (), names, vars(builtins), names=names)
        value_of(domain.run([frame]))

    module: Any = doctest
    module.exec = execute  # the doctest runner's own call finds this global first
    try:
        return ending(case)
    finally:
        del module.exec
