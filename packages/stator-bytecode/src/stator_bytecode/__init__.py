"""CPython bytecode as a neutral instruction stream, an abstract interpreter over it, and
continuations."""

from stator_bytecode._breaks._exit import FlatState
from stator_bytecode._breaks._hooked_calls import COMPREHENSIONS, with_hooked_calls
from stator_bytecode._breaks._innermost_frames import InnermostFrames
from stator_bytecode._breaks._layout import FrameLayout, Virtualized, VirtualizedRecipe
from stator_bytecode._breaks._plain import NativeContinuation, plain
from stator_bytecode._breaks._point import Point, layout_of, layout_of_generator
from stator_bytecode._breaks._raised_traceback import TracebackEntry, TracebackFactory
from stator_bytecode._breaks._rebuild import GeneratorFactory
from stator_bytecode._breaks._shuffle import NO_STEP
from stator_bytecode._breaks._site import Dispatch, Goto, Site, StepRunner, drive
from stator_bytecode._breaks._traceback import (
    PASSED_OVER,
    hide_own_modules,
    passed_over,
    shows_own_frames,
)
from stator_bytecode._codec._decode import decode
from stator_bytecode._codec._instruction import Code, ExceptionHandler, Instruction
from stator_bytecode._codec._raw import assemble, disassemble
from stator_bytecode._codec._raw_instruction import Raw, RawHandler
from stator_bytecode._codec._rules import OPERATOR_NAMES
from stator_bytecode._codec._stack_effect import operands, results, stack_effect
from stator_bytecode._concrete._interpreter import ConcreteDomain, interpret
from stator_bytecode._fields import exception_field, set_exception_field
from stator_bytecode._handler_table import HandlerConflict, HandlerTable
from stator_bytecode._handlers._all import DEFAULT
from stator_bytecode._machine._binding import BindingError, bind_arguments, new_frame
from stator_bytecode._machine._call_site import CallSite, call_sites
from stator_bytecode._machine._check import check_frame, stack_depths
from stator_bytecode._machine._domain import (
    Domain,
    Invoke,
    OperationSteps,
    Pending,
    Raised,
    Result,
    Resume,
    after,
    is_suspended,
    operation,
    settle,
)
from stator_bytecode._machine._frame import (
    NULL,
    VALUE,
    Frame,
    GeneratorState,
    GeneratorStatus,
    LastInstruction,
    Parked,
    PreviousExc,
    Snapshot,
    Then,
)
from stator_bytecode._machine._generator_close import names_in_handlers, observes_close
from stator_bytecode._machine._machine import Machine, OpcodeHandler
from stator_bytecode._machine._outcome import Broke, Escaped, Outcome, Returned, Yielded
from stator_bytecode._machine._refusal import REFUSED
from stator_bytecode._machine._snapshot import SAFE, frame_values, restore_frames
from stator_bytecode._machine._state import SWITCHED
from stator_bytecode._own_module import is_own_module
from stator_bytecode.errors import (
    InternalError,
    InvalidUse,
    Positions,
    SourceSpan,
    StatorError,
    Unsupported,
)

# the interpreter
__version__ = "0.1.0"

__all__ = ["DEFAULT", "SAFE", "SWITCHED", "Machine", "OpcodeHandler"]
__all__ += ["Broke", "Escaped", "Outcome", "Returned", "Snapshot", "Yielded"]
__all__ += ["NULL", "Frame", "GeneratorState", "GeneratorStatus", "LastInstruction", "PreviousExc"]
__all__ += ["BindingError", "bind_arguments", "check_frame", "frame_values", "new_frame"]
__all__ += ["CallSite", "call_sites", "names_in_handlers", "observes_close"]
# what a Domain is, and what its operations give
__all__ += ["OPERATOR_NAMES", "ConcreteDomain", "Domain", "interpret"]
__all__ += ["VALUE", "Invoke", "OperationSteps", "Parked", "Pending", "Raised", "Result"]
__all__ += ["Resume", "Then"]
__all__ += [
    "HandlerConflict",
    "HandlerTable",
    "after",
    "is_own_module",
    "is_suspended",
    "operation",
    "settle",
]
# the codec
__all__ += [
    "REFUSED",
    "Code",
    "ExceptionHandler",
    "Instruction",
    "Positions",
    "assemble",
    "decode",
    "disassemble",
]
__all__ += ["Raw", "RawHandler", "operands", "results", "stack_depths", "stack_effect"]
# breaks and continuations
__all__ += [
    "NO_STEP",
    "Dispatch",
    "FlatState",
    "FrameLayout",
    "Goto",
    "InnermostFrames",
    "NativeContinuation",
    "Point",
    "Site",
    "StepRunner",
    "Virtualized",
    "VirtualizedRecipe",
    "drive",
    "plain",
]
__all__ += ["PASSED_OVER", "exception_field", "passed_over", "set_exception_field"]
__all__ += ["hide_own_modules", "shows_own_frames"]
__all__ += ["COMPREHENSIONS", "TracebackEntry", "TracebackFactory", "with_hooked_calls"]
__all__ += ["GeneratorFactory", "layout_of", "layout_of_generator", "restore_frames"]
# errors
__all__ += ["InternalError", "InvalidUse", "SourceSpan", "StatorError", "Unsupported"]
