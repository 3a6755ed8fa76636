"""States of streams of random numbers, saved so that they can be put back."""

import random
import sys
from collections.abc import Callable
from functools import partial
from typing import Any

import torch

Restore = Callable[[], object]


def _of_python(stream: random.Random) -> Restore:
    return partial(random.Random.setstate, stream, random.Random.getstate(stream))


def _of_torch(stream: torch.Generator) -> Restore:
    return partial(stream.set_state, stream.get_state())


def _of_numpy(stream: Any) -> Restore:
    bits = stream.bit_generator
    return partial(setattr, bits, "state", bits.state)


def _of_numpy_legacy(stream: Any) -> Restore:
    return partial(stream.set_state, stream.get_state(legacy=False))


def saved_stream(stream: object) -> Restore:
    """Return a function that puts the state of a stream back as it is now."""
    if isinstance(stream, random.Random):
        return _of_python(stream)
    if isinstance(stream, torch.Generator):
        return _of_torch(stream)
    numpy: Any = sys.modules["numpy.random"]
    is_legacy = isinstance(stream, numpy.RandomState)
    return _of_numpy_legacy(stream) if is_legacy else _of_numpy(stream)
