"""The mode under which torch calls functions of positions, as in flex attention."""

import sys
from typing import Any

import torch


def depth_of_indexing() -> int:
    """Return the number of active modes under which torch calls functions of positions."""
    active = map(torch._C._get_function_stack_at, range(torch._C._len_torch_function_stack()))
    return sum(type(mode) is indexing_mode() for mode in active)


def indexing_mode() -> Any:
    return getattr(
        sys.modules.get("torch._dynamo._trace_wrapped_higher_order_op"),
        "TransformGetItemToIndex",
        None,
    )
