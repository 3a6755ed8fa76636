"""Draws from a `torch.Generator` that an operator is given.

Nodes of the graph draw from torch's own generators alone; compilers take no other. So what an
operator draws from a generator that it is given is drawn ahead of the graph, natively, and is an
input of the graph:

    torch.randn(n, generator=g)     drawn0 = randn(n, dtype=torch.float32, device=cpu, generator=g)
    x.normal_(generator=g)          drawn0 = filled('normal_', x.shape, ..., generator=g)
                                    x.copy_(drawn0)
"""

from __future__ import annotations

from typing import Any

import torch
from stator_bytecode import Result
from stator_guards import Custom, Is

from stator_variables._handler_keys import DRAW_AHEAD
from stator_variables._runtime._support import filled
from stator_variables._space import Space
from stator_variables._tensors import _streams, _torch_calls
from stator_variables._tensors._surroundings import Transforms
from stator_variables._tracker import MISSING, Args, FunctionTable, Kwargs, VariableTracker
from stator_variables._trackers import NONE, ConstantTracker

handlers = FunctionTable("draw from a generator")


def is_own(t: Space, vt: VariableTracker) -> bool:
    """Return True for one of torch's own generators, which is guarded; another is guarded to be
    none of them."""
    if vt.real is MISSING:
        return False
    if not _is_other(vt.real):
        t.guard(vt.source, Is(vt.real))
        return True
    t.guard(vt.source, Custom("{fn}({value})", _is_other, "none of torch's own generators"))
    return False


def _is_other(generator: object) -> bool:
    own = (torch.default_generator, *torch.cuda.default_generators)
    return all(generator is not each for each in own)


# -- operators that are given a generator ----------------------------------------------------------
@handlers.handles(DRAW_AHEAD)
def draw_ahead(t: Space, args: Args, kwargs: Kwargs) -> Any:
    """Draw what an operator gives ahead of the graph, or take one of torch's own generators out."""
    target, *rest = args
    vt = kwargs["generator"]
    if vt.cls is torch.Generator and not is_own(t, vt):
        return _drawn(t, target, rest, kwargs)
    kwargs["generator"] = NONE
    return MISSING


def _drawn(t: Space, target: object, args: Args, kwargs: Kwargs) -> Any:
    if t.state(Transforms).names:
        raise t.unsupported("random-stream", "a generator inside of a transform")
    if "out" in kwargs or any(state.refuses_draws_ahead() for state in t.states.made.values()):
        raise t.unsupported("random-stream", "a generator in inference mode, or under a mode")
    if isinstance(target, str) and target.endswith("_"):
        return _filled(t, target, args, kwargs)
    function = getattr(torch.Tensor, target) if isinstance(target, str) else target
    if target in (torch.rand, torch.randn):
        kwargs = {"dtype": ConstantTracker(torch.get_default_dtype()), **kwargs}
    step = _streams.step(t, _streams.owner(t, kwargs["generator"]), function, args, kwargs)
    plain = [_torch_calls.argument(t, arg) for arg in args]
    named = {
        name: _torch_calls.argument(t, arg) for name, arg in kwargs.items() if name != "generator"
    }
    return _streams.tensor(t, step.drawn, target, plain, named)


def _filled(t: Space, target: str, args: Args, kwargs: Kwargs) -> Result:
    """A tensor filled in place: another one, of the same layout, is filled ahead of the graph, and
    copied."""
    tensor, *rest = args
    example = tensor.example
    layout = [
        _torch_calls.metadata_value(t, example.size(), "size", [tensor], {}),
        _torch_calls.metadata_value(t, example.stride(), "stride", [tensor], {}),
        ConstantTracker(example.dtype),
        ConstantTracker(example.device),
    ]
    given = [ConstantTracker(target), *layout, *rest]
    step = _streams.step(t, _streams.owner(t, kwargs["generator"]), filled, given, kwargs)
    size, stride = (_torch_calls.argument(t, vt) for vt in layout[:2])
    named = {"dtype": example.dtype, "device": example.device}
    source = _streams.tensor(t, step.drawn, torch.empty_strided, [size, stride], named)
    return _torch_calls.record(t, "copy_", [tensor, source])
