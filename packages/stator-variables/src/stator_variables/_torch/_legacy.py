"""Constructors older than `torch.tensor`: `torch.Tensor([1, 2])`, `torch.LongTensor(3)`. Calls of today's functions."""

from typing import Any

import torch
from stator_bytecode import HandlerTable

from stator_variables import _kinds as k
from stator_variables._torch import _torch_calls
from stator_variables._tracing import Tracing

handlers: HandlerTable[Any, Any] = HandlerTable("older constructor")
_KINDS = "BFloat16 Bool Byte Char Double Float Half Int Long Short".split()
_DTYPES = {cls: cls.dtype for cls in (getattr(torch, f"{kind}Tensor") for kind in _KINDS)}


@handlers.handles_each({torch.Tensor: None, **_DTYPES})
def construct(t: Tracing, args: list[Any], kwargs: dict[str, Any], of: Any) -> Any:
    """Of sizes, memory as it was found; of a list or tuple, its numbers. On the CPU, whatever the default device is."""
    dtype = of or torch.get_default_dtype()
    named = {"dtype": k.ConstantTracker(dtype), "device": k.ConstantTracker(torch.device("cpu"))}
    first: Any = args[0] if args else None
    if kwargs or torch.Tensor().device.type != "cpu":
        raise t.unsupported("construction", "a constructor of tensors with options, or not on the CPU")
    if len(args) == 1 and isinstance(first, k.SequenceTracker) and first.cls in (list, tuple):
        return _torch_calls.record(t, torch.tensor, [first], named)
    sizes = first.items if len(args) == 1 and getattr(first, "cls", None) is torch.Size else args
    if any(vt.cls is not int for vt in sizes):
        raise t.unsupported("construction", "a tensor of a number, of another tensor, or of what is no number")
    return _torch_calls.record(t, torch.empty, [k.TupleTracker(list(sizes) or [k.ConstantTracker(0)], tuple)], named)
