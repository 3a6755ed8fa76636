"""A cache of torch's that a compilation would leave fakes in.

DTensors keep, for each operator and placements of its operands, the placements of its result, with
the mesh that was met first. An equal mesh finds it, so that a plain operation after a compilation
would give a DTensor on the fake of a mesh. One before gives a compiler meshes that are no inputs of
its graph.
"""

import sys
from typing import Any

import torch

_clear: Any = getattr(torch._C, "_clear_DTensor_sharding_propagator_cache", None)


def clear_placement_caches() -> None:
    """Clear the caches of operators on DTensors; they fill themselves again."""
    module: Any = sys.modules.get("torch.distributed.tensor")
    if module is None:
        return
    propagator = module.DTensor._op_dispatcher.sharding_propagator
    propagator.propagate_op_sharding.cache_clear()
    if _clear is not None:
        _clear()
