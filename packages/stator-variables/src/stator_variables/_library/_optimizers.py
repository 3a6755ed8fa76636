"""Steps of `torch.optim` as a compiler takes them.

torch.optim branches on `torch.compiler.is_compiling()` in many places. Two things it leaves to the
compiler:

    adam(..., capturable=False)    capturable=True: nothing on the way to the parameters is read
                                   from a tensor
    torch._dynamo.graph_break()    no break: nothing before it belongs to the graph of the step
"""

from collections.abc import Sequence
from typing import Any

from stator_bytecode import Invoke
from torch.optim.adam import adam
from torch.optim.optimizer import Optimizer

from stator_variables import _trackers as k
from stator_variables._objects import _inlining
from stator_variables._protocols import _calls
from stator_variables._space import Space
from stator_variables._tracker import MISSING

_FUNCTIONAL_CODE = adam.__code__
"""The wrapper that the functional form of each optimizer has; under `is_compiling()` it requires
`capturable` of tensors on accelerators."""


def functional(t: Space, function: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    """Call the functional form of an optimizer with `capturable`, as torch.compile does
    (torch.optim.optimizer, Note [torch.compile x capturable])."""
    if function.code is not _FUNCTIONAL_CODE or "capturable" not in kwargs:
        return MISSING
    given = {**kwargs, "capturable": k.ConstantTracker(True)}
    return Invoke(_calls.frame_for(t, function, args, given))


def separation(t: Space, function: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    """Ignore the breaks of torch.optim around a step, which are there for the benefit of
    AOTAutograd."""
    if not _inlining.is_graph_break(function.real):
        return MISSING
    caller = None if t.frame is None else t.frame.globals.real.get("__name__")
    return k.NONE if caller == Optimizer.__module__ else MISSING
