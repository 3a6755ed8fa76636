"""Calls of functions that `torch.jit.script` compiled: the Python function that they were made from
is interpreted.

It does the same where TorchScript converts neither arguments nor results, and where
`torch.jit.is_scripting()` is true in it. A break inside of it is one at the call, which runs the
scripted function.
"""

import re
from typing import Any

import attrs
import torch
from stator_bytecode import Frame, Invoke, OperationSteps, Result, operation
from stator_guards import AttrSource, Is

from stator_variables._protocols import _calls
from stator_variables._space import Space
from stator_variables._trace._capture_state import CaptureState
from stator_variables._tracker import Args, FunctionTable, Kwargs, VariableTracker, is_a, source_of
from stator_variables._trackers import ConstantTracker, TensorTracker, is_none

handlers = FunctionTable("scripted function")
_ScriptFunction: Any = torch.jit.ScriptFunction
_jit: Any = torch.jit
_PYTHON_TYPES = {"int": int, "float": float, "bool": bool, "str": str, "NoneType": type(None)}
_PLAIN_RESULT = re.compile(rf"[(), \[\]]|Tensor|Tuple|{'|'.join(_PYTHON_TYPES)}")


# torch's own test utilities replace the method by a plain function.
_CALL = vars(_ScriptFunction)["__call__"]


@handlers.handles(getattr(_CALL, "__func__", _CALL))
def call(t: Space, args: Args, kwargs: Kwargs) -> Result:
    scripted, *given = args
    real = scripted.real
    original = getattr(real, "_torchdynamo_inline", None)
    if original is None or not _converts_nothing(real.schema, given, kwargs):
        raise t.unsupported("builtin", f"a call of the scripted function {real.name}")
    source = source_of(scripted)
    t.guard(source, Is(real))
    function = t.wrap(original, AttrSource(source, "_torchdynamo_inline"))
    return _run(t, _calls.frame_for(t, function, given, kwargs))


@attrs.define(eq=False)
class ScriptedCalls(CaptureState):
    """Calls of scripted functions that are under way, by their number."""

    depth: int = 0

    def moment(self) -> tuple[Any, ...] | None:
        return None if self.depth else ()


@operation
def _run(t: Space, frame: Frame) -> OperationSteps:
    calls = t.state(ScriptedCalls)
    t.journal.assign(calls, depth=calls.depth + 1)
    try:
        return (yield Invoke(frame))
    finally:
        t.journal.assign(calls, depth=calls.depth - 1)


@handlers.handles(_jit.is_scripting, torch._jit_internal.is_scripting)
def is_scripting(t: Space, args: Args, kwargs: Kwargs) -> ConstantTracker:
    return ConstantTracker(t.state(ScriptedCalls).depth > 0)


def _converts_nothing(schema: Any, given: list[Any], kwargs: Kwargs) -> bool:
    """Return True if TorchScript takes and gives the very objects that Python would."""
    if _PLAIN_RESULT.sub("", "".join(str(result.type) for result in schema.returns)):
        return False
    names = [argument.name for argument in schema.arguments]
    named = {**dict(zip(names, given, strict=False)), **kwargs}
    types = {argument.name: str(argument.type) for argument in schema.arguments}
    return len(given) <= len(names) and all(
        name in types and _is_of(vt, types[name]) for name, vt in named.items()
    )


def _is_of(vt: VariableTracker, wanted: str) -> bool:
    if optional := re.fullmatch(r"Optional\[(.*)\]", wanted):
        return is_none(vt) or _is_of(vt, optional[1])
    if wanted == "Tensor":
        return is_a(vt, TensorTracker)
    return wanted in _PYTHON_TYPES and vt.cls is _PYTHON_TYPES[wanted]
