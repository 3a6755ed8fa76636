"""Functions that ask whether code is being compiled.

While stator interprets a function, `torch.compiler.is_compiling()` and its kin are true, as under `torch.compile`.
"""

from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.compiler
from stator_bytecode import HandlerTable
from torch.fx._symbolic_trace import is_fx_symbolic_tracing, is_fx_tracing

from stator_variables import _kinds as k
from stator_variables._tracing import Tracing
from stator_variables._tracker import MISSING

handlers: HandlerTable[Any, Any] = HandlerTable("compile state")


@handlers.handles(torch.compiler.is_compiling, torch.compiler.is_dynamo_compiling, torch._utils.is_compiling)
def is_compiling(t: Tracing, args: list[Any], kwargs: dict[str, Any]) -> Any:
    """Not to `Module.__call__`, which would leave out hooks that are to run even after an error."""
    return k.ConstantTracker(t.frame is None or t.frame.code.raw is not torch.nn.Module._call_impl.__code__)


_jit: Any = torch.jit  # its functions are public, and imported there without `as`
_FALSE = (
    *(_jit.is_scripting, _jit.is_tracing, torch._jit_internal.is_scripting, torch._C._is_tracing),
    *(torch.compiler.is_exporting, is_fx_tracing, is_fx_symbolic_tracing),
)
_NONE = (torch._C._get_tracing_state, torch._C._log_api_usage_once)


@handlers.handles_each({**dict.fromkeys(_FALSE, False), **dict.fromkeys(_NONE)})
def answer(t: Tracing, args: list[Any], kwargs: dict[str, Any], of: Any) -> Any:
    return k.ConstantTracker(of)


# -- levels of torch.func ---------------------------------------------------------------------------------------------
def _of_levels(function: Any, answer: Callable[[int], Any]) -> None:
    """Answered from the depth of the region's own transforms: none is entered while tracing, and a region called inside
    one runs plainly. MISSING: only a real level can tell. `linearize` calls its function at two depths."""

    @handlers.handles(function)
    def run(t: Tracing, args: list[Any], kwargs: dict[str, Any]) -> Any:
        value = MISSING if "linearize" in t.levels else answer(len(t.levels))
        if value is MISSING:
            raise t.unsupported("transform", f"{function.__name__}() under {', '.join(t.levels) or 'no transform'}")
        return k.ConstantTracker(value)


_LEVELS: Any = torch._C._functorch
_of_levels(torch._C._are_functorch_transforms_active, bool)
_of_levels(_LEVELS.get_dynamic_layer_stack_depth, int)
_of_levels(_LEVELS.maybe_current_level, lambda depth: depth or None)
_of_levels(_LEVELS.current_level, lambda depth: depth or MISSING)
for _function in (_LEVELS.peek_interpreter_stack, _LEVELS.get_interpreter_stack):
    _of_levels(_function, lambda depth: MISSING if depth else None)
for _function in (_LEVELS.is_batchedtensor, _LEVELS.is_gradtrackingtensor, _LEVELS.is_functorch_wrapped_tensor):
    _of_levels(_function, lambda depth: MISSING if depth else False)
for _function in (_LEVELS.maybe_get_level, _LEVELS.maybe_get_bdim):
    _of_levels(_function, lambda depth: MISSING if depth else -1)


def answer_by_name(t: Tracing, function: Any, args: Sequence[Any]) -> Any:
    """What is known by name, so that its module need not be imported: `torch.onnx.is_in_onnx_export`, and `mark_static`
    of a size, which makes it a constant from here on; None for all others."""
    if function.__name__ == "mark_static" and function.__module__ == "torch._dynamo.decorators" and len(args) == 2:
        int(args[0].example.size(args[1].constant()))  # ShapeEnv guards what a symbol is asked for
        return k.ConstantTracker(None)
    is_export_query = function.__name__ == "is_in_onnx_export" and function.__module__.startswith("torch.onnx")
    return k.ConstantTracker(False) if is_export_query else None
