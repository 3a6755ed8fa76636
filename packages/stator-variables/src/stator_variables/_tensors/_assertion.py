"""Conditions that hold at run time only: `assert` and its like on values that data decides become
checks in the graph.

A check that fails makes the graph raise, and then the program itself runs and raises. So a branch
on unknown data needs no break when its other side does nothing but raise:
`if x.max() > 9: raise ValueError(...)` too.

    assert (x > 0).all(), "message"        torch._assert_async(all_, FAILED)    a tensor on the CPU
    assert n < 5        # n = x.item()     torch._check(lt)                     a symbolic bool
"""

import operator

import torch
from stator_bytecode import Frame

from stator_variables._space import Space
from stator_variables._tensors import _torch_calls
from stator_variables._tracker import VariableTracker, is_a
from stator_variables._trackers import ConstantTracker, TensorTracker

FAILED = "Expected Tensor with single nonzero value, but got zero"
"""The text of the check without a message as well; but AOTAutograd leaves that one out."""
LONGEST = 200
"""Instructions that are looked through for a `raise`."""


def expected_truth(t: Space) -> bool | None:
    """Return the truth that the program expects at a branch: with the other it raises. None if it
    may continue."""
    if t.frame is None or t.instruction is None:
        return None
    code, jump = t.frame.code.instructions, t.instruction
    if jump.op == "TO_BOOL":
        jump = code[jump.index + 1]
    if jump.op not in ("POP_JUMP_IF_TRUE", "POP_JUMP_IF_FALSE"):
        return None
    jumps_if = jump.op == "POP_JUMP_IF_TRUE"
    if _only_raises(t.frame, jump.index + 1):
        return jumps_if
    return not jumps_if if _only_raises(t.frame, jump.target) else None


def _only_raises(frame: Frame, start: int) -> bool:
    """Return True if continuing there leads to nothing but an exception: without branch and loop.

    A handler of this frame may be the program's way to continue, and happen often, unless the
    exception is that of a failed `assert`.
    """
    code = frame.code.instructions
    may_be_handled = code[start].arg is AssertionError
    for instruction in code[start : start + LONGEST]:
        if instruction.target != -1 or instruction.op in _ELSEWHERE:
            return False
        if instruction.handler is not None and not may_be_handled:
            return False
        if instruction.op == "RAISE_VARARGS":
            return True
    return False


_ELSEWHERE = frozenset({"RETURN_VALUE", "YIELD_VALUE", "RERAISE", "JUMP", "SEND"})


def check(t: Space, vt: VariableTracker, expected: bool) -> bool:
    """Record that the truth of a tensor or a symbolic number is `expected`.

    False when the graph cannot check it.
    """
    if is_a(vt, TensorTracker):
        # a check that fails on a device takes the whole process with it
        if vt.example.device.type != "cpu":
            if not t.policy.capture_data:
                return False
            return check(t, _torch_calls.record(t, "item", [vt]), expected)
        wanted = vt if expected else _torch_calls.record(t, torch.logical_not, [vt])
        _torch_calls.record(t, torch._assert_async, [wanted, ConstantTracker(FAILED)])
        return True
    if vt.cls is not bool:
        vt = _torch_calls.record(t, operator.ne, [vt, ConstantTracker(0)])
    wanted = vt if expected else _torch_calls.record(t, torch.sym_not, [vt])
    _torch_calls.record(t, torch._check, [wanted])
    return True
