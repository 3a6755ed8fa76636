"""Functions of torch that are spelt out: constructors older than `torch.tensor` (`torch.Tensor([1, 2])`,
`torch.LongTensor(3)`), as calls of today's; and the groups that optimisers ask for."""

from typing import Any

import torch
from stator_bytecode import HandlerTable

from stator_variables import _kinds as k
from stator_variables._model import _containers
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


# How optimisers and gradient clipping sort tensors before they call `torch._foreach_*`.


@handlers.handles(torch._C._group_tensors_by_device_and_dtype)
def group_by_device_and_dtype(t: Tracing, args: list[Any], kwargs: dict[str, Any]) -> Any:
    """`{(device, dtype): (lists, indices)}`; of several groups nobody knows the order, which is that of a C++ map."""
    lists, wanted = args[0], kwargs.get("with_indices", args[1] if len(args) > 1 else k.ConstantTracker(False))
    if not isinstance(lists, k.ListTracker) or not all(isinstance(item, k.ListTracker) for item in lists.items):
        raise t.unsupported("foreach-groups", "lists of tensors that are no lists")
    tensors = lists.items[0].items
    found = {(vt.example.device, vt.example.dtype) if isinstance(vt, k.TensorTracker) else None for vt in tensors}
    key = found.pop() if len(found) == 1 else None
    if key is None:
        raise t.unsupported("foreach-groups", "tensors of several devices or dtypes")
    copies = k.ListTracker([k.ListTracker(item.items, list) for item in lists.items], list)
    indices = range(len(tensors)) if wanted.constant() else ()
    group = k.TupleTracker([copies, k.ListTracker(map(k.ConstantTracker, indices), list)], tuple)
    return _containers.new_map(t, [k.TupleTracker(map(k.ConstantTracker, key), tuple)], [group])
