"""The level of forward-mode derivatives (`torch.autograd.forward_ad.dual_level`).

    with dual_level():                     _enter_dual_level()
        dual = make_dual(x, t)             dual = _make_dual(x, t, level = 0)
        y = dual.sin()                     y = dual.sin()
        return unpack_dual(y).tangent      tangent = _unpack_dual(y, level = 0)[1]
                                           _exit_dual_level(level = 0)

While tracing the level is entered for real, so that examples have tangents. The functions of torch
are interpreted down to these. A level that was there before the region is not left in it: tangents
of real tensors would end while tracing.
"""

from typing import Any

import torch
from stator_bytecode import Result
from torch.autograd import forward_ad

from stator_variables._objects._tuple import TupleTracker
from stator_variables._space import Space
from stator_variables._tensors._tangent import ENTER, EXIT, is_level_open, is_under_level
from stator_variables._tensors._torch_calls import record
from stator_variables._tracker import MISSING, Args, FunctionTable, Kwargs
from stator_variables._trackers import ConstantTracker

handlers = FunctionTable("dual level")
_make_dual: Any = torch._VF._make_dual
_unpack_dual: Any = torch._VF._unpack_dual
_FUNCTIONS = (forward_ad.enter_dual_level, forward_ad.make_dual, forward_ad.unpack_dual)


@handlers.handles(*_FUNCTIONS)
def refuse_in_operator(t: Space, args: Args, kwargs: Kwargs) -> Result:
    """Refuse them in the body of an operator, whose own level is none of the trace's."""
    if t.touched:
        raise t.unsupported("forward-derivatives", "dual tensors inside an operator with a body")
    return MISSING


@handlers.handles(ENTER)
def enter(t: Space, args: Args, kwargs: Kwargs) -> ConstantTracker:
    if is_level_open():
        raise t.unsupported("forward-derivatives", "a level inside of another one")
    return ConstantTracker(t.graph.call(ENTER, (), {}).example)


@handlers.handles(EXIT)
def leave(t: Space, args: Args, kwargs: Kwargs) -> None:
    if is_under_level() or not is_level_open():
        raise t.unsupported("forward-derivatives", "leaving a level that was entered before")
    t.graph.call(EXIT, (), {"level": kwargs["level"].constant()})


@handlers.handles(_make_dual)
def make_dual(t: Space, args: Args, kwargs: Kwargs) -> Any:
    made: Any = record(t, _make_dual, args, kwargs)
    made.tangent = args[1]
    return made


@handlers.handles(_unpack_dual)
def unpack_dual(t: Space, args: Args, kwargs: Kwargs) -> Any:
    """Return primal and tangent; the tangent is the tensor that `make_dual` was given, unless it
    had to be copied."""
    found: Any = record(t, _unpack_dual, args, kwargs)
    given = getattr(args[0], "tangent", None)
    if given is None or given.example is not getattr(found.items[1], "example", None):
        return found
    return TupleTracker([found.items[0], given], found.cls)
