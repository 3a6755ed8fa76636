"""How optimisers and gradient clipping sort tensors before they call `torch._foreach_*`."""

from typing import Any

import torch
from stator_bytecode import HandlerTable

from stator_variables import _kinds as k
from stator_variables._model import _containers
from stator_variables._tracing import Tracing

handlers: HandlerTable[Any, Any] = HandlerTable("foreach")


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
