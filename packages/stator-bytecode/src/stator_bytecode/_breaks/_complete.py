"""Native code for what a callee's result does to the instruction that waits: the twin of
`_machine/_completion.py`.

`write_completion` emits the call of the inner function, then the completion by `Then` kind and by
instruction, and states at each way out how to go on (`Leave`). Where CPython checks a result in C
(`__bool__`, `__len__`, `__iter__`, `__next__`), so does this code: the state is made an object
whose method is the inner function, and the checking instruction runs on that.

    parked at POP_JUMP_IF_TRUE, then "truth":  Value(state); UNARY_NOT; UNARY_NOT; POP_JUMP_IF_TRUE
"""

from collections.abc import Callable
from typing import Any, Protocol

import attrs

from stator_bytecode._breaks._glue import Glue
from stator_bytecode._breaks._layout import FrameLayout
from stator_bytecode._breaks._native_frame import NativeFrame
from stator_bytecode._breaks._shape import null_of
from stator_bytecode._breaks._traceback import hide
from stator_bytecode._codec._instruction import Instruction
from stator_bytecode._handler_table import HandlerTable
from stator_bytecode._machine import _completion
from stator_bytecode.errors import Unsupported

Inner = Callable[[Any], Any]


class Leave(Protocol):
    def __call__(self, jump: bool, popped: int = 0, made: int = 0, null: str | None = None) -> None:
        """Emit the way on: to the jump target or the next instruction, with `popped` positions gone
        from the stack that the frame waited with, `made` values on top of it (at most one), and a
        NULL `before` or `after` that one."""


@attrs.define(eq=False)
class FrameCompletion:
    """One frame that waits, being written."""

    frame: NativeFrame
    inner: Inner
    leave: Leave

    @property
    def glue(self) -> Glue:
        return self.frame.glue

    @property
    def layout(self) -> FrameLayout:
        return self.frame.layout

    @property
    def instruction(self) -> Instruction:
        return self.layout.instruction

    def call(self) -> None:
        self.glue.call(self.inner, self.frame.hand_on)

    def return_from(self, method: str) -> None:
        """An object that is the state, and whose `method` is the inner function."""
        self.glue.call(
            type("Value", (list,), {method: self.inner, "__hash__": None}), self.frame.hand_on
        )


def write_completion(completion: FrameCompletion) -> None:
    kind = completion.layout.waits_with
    if completion.instruction.op == "FOR_ITER" and kind == "next":
        return _write_next(completion)
    if kind not in then_writers:
        raise Unsupported(
            "native-continuation", f"a frame that waits with {kind!r} cannot go on natively"
        )
    then_writers[kind](completion)
    (_finish_truth if kind in TRUTHS else _finish_value)(completion)


ThenWriter = Callable[[FrameCompletion], None]
"""Emits the call and what the Then does to its result: a value, or a bool for the instruction to
test."""

then_writers: HandlerTable[str, ThenWriter] = HandlerTable("then")


@then_writers.handles("value")
def write_value(completion: FrameCompletion) -> None:
    completion.call()


@then_writers.handles("attribute")
def write_attribute(completion: FrameCompletion) -> None:
    then = completion.layout.then
    assert then is not None
    completion.inner = _noting(completion.inner, completion.frame.places.then[0], then.name)
    completion.call()


def _noting(inner: Inner, place: int, name: str) -> Inner:
    def noting(state: Any) -> Any:
        obj = state[place]
        try:
            return inner(state)
        except AttributeError as error:
            hide(error, (noting.__code__,))
            note(error, obj, name)
            raise
        finally:
            del obj, state

    return noting


def note(error: BaseException, obj: object, name: str) -> None:
    """Note object and name on an AttributeError as `PyObject_GetAttr` does, for suggestions."""
    if isinstance(error, AttributeError) and error.name is None and error.obj is None:
        error.name, error.obj = name, obj


def forget_note(error: BaseException, obj: object, name: str) -> None:
    """Undo `note` where the LOAD_METHOD of 3.11 makes none: a descriptor raised."""
    if isinstance(error, AttributeError) and error.obj is obj and error.name == name:
        spaces = [vars(base) for base in type.__dict__["__mro__"].__get__(type(obj))]
        first = next(space for space in spaces if "__getattribute__" in space)
        is_generic = first is spaces[-1] and not any("__getattr__" in space for space in spaces)
        if is_generic and any(name in space for space in spaces):
            error.name = error.obj = None


@then_writers.handles("instance")
def write_instance(completion: FrameCompletion) -> None:
    glue, frame = completion.glue, completion.frame
    frame.load(frame.places.then[0])  # before the state is passed to the callee
    completion.call()
    glue.emit("COPY", 1)
    fine = glue.jump_if("NONE")
    glue.call_on_top(_init_returned)
    glue.emit("RAISE_VARARGS", 1)
    glue.bind(fine)
    glue.emit("POP_TOP")


def _init_returned(value: object) -> TypeError:
    return TypeError(f"__init__() should return None, not '{type(value).__name__}'")


TRUTHS = {"truth": "__bool__", "length": "__len__"}


@then_writers.handles_each(TRUTHS)
def write_truth(completion: FrameCompletion, of: str) -> None:
    completion.return_from(of)
    completion.glue.to_bool()


@then_writers.handles("iter")
def write_iter(completion: FrameCompletion) -> None:
    completion.return_from("__iter__")
    completion.glue.get_iterator()


def _write_next(completion: FrameCompletion) -> None:
    """FOR_ITER over an iterator whose `__next__` is a frame: StopIteration ends the loop, as
    always."""
    glue = completion.glue
    completion.return_from("__next__")
    slots = completion.instruction.arg
    glue.push_second_slot()
    loop = glue.emit("FOR_ITER")
    glue.emit("SWAP", 1 + slots)
    for _ in range(slots):
        glue.emit("POP_TOP")
    completion.leave(False, made=1)
    glue.end_loop(loop)
    completion.leave(True, popped=slots)


# the instruction, once the result is there


def _finish_truth(completion: FrameCompletion) -> None:
    """The top of the stack is a bool."""
    glue, instr = completion.glue, completion.instruction
    if "JUMP" in instr.op:
        jump = glue.jump_if("TRUE" if "TRUE" in instr.op else "FALSE")
        completion.leave(False, popped=int(instr.op.endswith("_OR_POP")))
        glue.bind(jump)
        completion.leave(True)
    else:
        if instr.op == "UNARY_OP":
            glue.emit("UNARY_NOT")
        completion.leave(False, made=1)


def _finish_value(completion: FrameCompletion) -> None:
    glue, instr = completion.glue, completion.instruction

    if _completion.COMPLETIONS.get(instr.op) is _completion.discard:
        glue.emit("POP_TOP")
        completion.leave(False)
    elif (null := null_of(completion.layout)) in ("before", "after"):
        completion.leave(False, made=1, null=null)
    elif instr.op == "RAISE_VARARGS":
        glue.emit("RAISE_VARARGS", 1)
    elif instr.op in _NEEDS_MORE:
        raise Unsupported(
            "native-continuation", f"a frame that waits at {instr.op} cannot go on natively"
        )
    else:
        if instr.op == "COMPARE_OP" and instr.arg[1]:
            glue.to_bool()
        completion.leave(False, made=1)


_NEEDS_MORE = frozenset({"UNPACK_SEQUENCE", "UNPACK_EX", "CHECK_EG_MATCH", "SEND", "YIELD_VALUE"})
"""Their result is no single value."""
