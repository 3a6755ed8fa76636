"""The memory of a tensor as a NumPy array."""

import torch

from stator_variables._pure import NUMPY
from stator_variables._space import Space
from stator_variables._tensors import _tensor_attributes
from stator_variables._tensors._array_sample import NAMES
from stator_variables._trackers import (
    ArrayTracker,
    TensorTracker,
)


def array_of(t: Space, vt: TensorTracker) -> ArrayTracker:
    """`tensor.numpy()`: memory that autograd does not watch, so it counts no writes of the
    array's."""
    example = vt.example
    plain = not (vt.before.example.requires_grad or example.is_conj() or example.is_neg())
    if (
        not plain
        or example.dtype not in NAMES
        or example.device.type != "cpu"
        or example.layout != torch.strided
    ):
        raise t.unsupported(
            "numpy", "the memory of a tensor that cannot be seen as an array, or not so simply"
        )
    return ArrayTracker(_tensor_attributes.read(t, vt, "data"), NUMPY.ndarray)
