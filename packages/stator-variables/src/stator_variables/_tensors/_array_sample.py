"""Arrays of the sizes and strides of a fake tensor, with arbitrary contents."""

from typing import Any

import torch

from stator_variables._pure import DTYPES, NUMPY


def hint_of(size: Any) -> int:
    return size.node.hint if isinstance(size, torch.SymInt) else size  # type: ignore[no-any-return]


def sizes_of(sizes: Any) -> tuple[int, ...]:
    return tuple(map(hint_of, sizes))


def sample_of(example: torch.Tensor) -> Any:
    """An array of these sizes that most functions accept: near to the identity, or of integers that
    are an index."""
    sizes, steps = sizes_of(example.shape), sizes_of(example.stride())
    extent = (
        1 + sum((size - 1) * step for size, step in zip(sizes, steps, strict=True))
        if 0 not in sizes
        else 0
    )
    dtype = NAMES[example.dtype]
    memory = NUMPY.full(extent, 0.001).astype(dtype)
    made = NUMPY.ndarray(sizes, dtype, memory, 0, [step * dtype.itemsize for step in steps])
    if dtype.kind in "fc":
        for i in range(min(sizes, default=0)):
            made[(i,) * len(sizes)] = 1
    return made


NAMES = {tensor: array for array, tensor in DTYPES.items()}
