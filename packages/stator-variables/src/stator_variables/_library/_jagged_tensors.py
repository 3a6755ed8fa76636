"""Functions that make jagged nested tensors: see `_tensors/_jagged_tensor.py`."""

from typing import Any

from torch.nested._internal import nested_tensor

from stator_variables._space import Space
from stator_variables._tensors import _torch_calls
from stator_variables._tensors._jagged_tensor import make_of_lengths, make_of_offsets
from stator_variables._tracker import Args, FunctionTable, Kwargs

handlers = FunctionTable("jagged tensor")
MAKERS = (make_of_offsets, make_of_lengths, nested_tensor.nested_from_padded)
"""The functions that every way of making one ends with."""


@handlers.handles_each({maker: maker for maker in MAKERS})
def make(t: Space, args: Args, kwargs: Kwargs, of: object) -> Any:
    """A jagged tensor that the program puts together."""
    return _torch_calls.record_without_modes(t, of, args, kwargs)
