"""Functions of torch that read values while they run, with the value known without running them."""

import inspect
from typing import Any

import torch
from stator_bytecode import Result

from stator_variables._applevel import _statistics as app
from stator_variables._objects._method_table import app_level
from stator_variables._space import Space
from stator_variables._tensors import _torch_calls
from stator_variables._tracker import Args, FunctionTable, Kwargs, is_a
from stator_variables._trackers import ConstantTracker, TensorTracker

handlers = FunctionTable("statistics of tensors")
_COV = inspect.signature(lambda input, *, correction=1: None)
_CORRCOEF = inspect.signature(lambda input: None)
_COMBINATIONS = inspect.signature(lambda input, r=2, with_replacement=False: None)


def _bound(signature: inspect.Signature, args: Args, kwargs: Kwargs) -> Any:
    """The arguments by name, if they are a tensor and constants; None for a call of another
    form."""
    try:
        given = signature.bind(*args, **kwargs).arguments
    except TypeError:
        return None
    tensor, *rest = given.values()
    known = all(is_a(vt, ConstantTracker) and type(vt.value) in (int, bool) for vt in rest)
    return given if known and _is_plain(tensor) else None


def _is_plain(vt: TensorTracker) -> bool:
    is_tensor = is_a(vt, TensorTracker) and vt.cls in _PLAIN
    return is_tensor and vt.example.layout is torch.strided


_PLAIN = (torch.Tensor, torch.nn.Parameter)


@handlers.handles_each({of: of for of in (torch.cov, torch._C.TensorBase.cov)})
def covariance(t: Space, args: Args, kwargs: Kwargs, of: object) -> Result:
    given = _bound(_COV, args, kwargs)
    if given is None or not _has_rows(given["input"].example):
        return _torch_calls.call_recorded(t, of, args, kwargs)
    correction = given.get("correction", ConstantTracker(1))
    return app_level(t, app.cov, [given["input"], correction])


@handlers.handles_each({of: of for of in (torch.corrcoef, torch._C.TensorBase.corrcoef)})
def correlation(t: Space, args: Args, kwargs: Kwargs, of: object) -> Result:
    given = _bound(_CORRCOEF, args, kwargs)
    if given is None or not _has_rows(given["input"].example):
        return _torch_calls.call_recorded(t, of, args, kwargs)
    return app_level(t, app.corrcoef, [given["input"]])


def _has_rows(example: torch.Tensor) -> bool:
    """Return True for a matrix or vector that torch accepts."""
    return example.dim() in (1, 2) and example.dtype is not torch.bool


@handlers.handles(torch.combinations)
def combinations(t: Space, args: Args, kwargs: Kwargs) -> Result:
    given = _bound(_COMBINATIONS, args, kwargs)
    size = None if given is None else given.get("r", ConstantTracker(2)).value
    if size != 2 or given["input"].example.dim() != 1:
        return _torch_calls.call_recorded(t, torch.combinations, args, kwargs)
    repeated = given.get("with_replacement", ConstantTracker(False))
    return app_level(t, app.pairs, [given["input"], repeated])


@handlers.handles_each({of: of for of in (torch.allclose, torch._C.TensorBase.allclose)})
def closeness(t: Space, args: Args, kwargs: Kwargs, of: object) -> Result:
    """Compute the result in the graph; only reading it is a break."""
    pair = [*args, *(kwargs[name] for name in ("input", "other") if name in kwargs)][:2]
    if len(pair) == 2 and all(map(_is_plain, pair)) and _agree(*pair):
        return app_level(t, app.all_close, args, kwargs)
    return _torch_calls.call_recorded(t, of, args, kwargs)


def _agree(one: TensorTracker, other: TensorTracker) -> bool:
    """Return True if two tensors can be compared."""
    left, right = one.example, other.example
    return left.dtype is right.dtype and left.device == right.device
