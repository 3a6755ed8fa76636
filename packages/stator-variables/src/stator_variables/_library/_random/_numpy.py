"""`numpy.random`: draws from a `Generator`, a `RandomState` or the legacy functions, each one
native call.

    rng.normal(0.0, 1.0, (n, 3))       drawn0 = normal(v0, 0.0, 1.0, (v1, 3))
                                       g = graph(x, tensor_of(drawn0))

A symbolic size stays symbolic; every other argument is a constant.
"""

import copy
from collections.abc import Sequence
from typing import Any

import torch
from stator_guards import CallSource, CapturedSource

from stator_variables import _trackers as k
from stator_variables._library._random import _streams
from stator_variables._objects import _number
from stator_variables._pure import DTYPES, NUMPY, is_number_of_numpy
from stator_variables._runtime._support import number_tensor, tensor_of
from stator_variables._space import Space
from stator_variables._tensors import _entry_values, _torch_calls
from stator_variables._trace._entry_calls import EntryCall
from stator_variables._tracker import MISSING, Args, FunctionTable, Kwargs, VariableTracker

handlers = FunctionTable("random number of NumPy")

_NOT_DRAWN = frozenset("shuffle permuted spawn get_state set_state seed bytes".split())
_BY_DIMENSIONS = ("rand", "randn")
"""Functions that take the size as separate arguments."""


def draw(t: Space, args: Args, kwargs: Kwargs, of: object) -> Any:
    """A method that draws, of a `Generator` or `RandomState`."""
    receiver, *given = args
    if receiver.cls not in _CLASSES:
        raise t.unsupported("random-stream", f"a stream of class {receiver.cls.__qualname__}")
    values = [_copy_of(receiver), *map(_entry_values.example_of, given)]
    example = _streams.tried(t, of, values, kwargs)
    size = _size_among(of, given, kwargs, getattr(example, "shape", ()))

    kept = [size, *(size if isinstance(size, list) else [])]
    fixed = [vt if _is_among(vt, kept) else _number.as_constant(t, vt) for vt in given]
    named = {
        name: vt if _is_among(vt, kept) else _number.as_constant(t, vt)
        for name, vt in kwargs.items()
    }
    step = _streams.step(t, _streams.owner(t, receiver), of, [receiver, *fixed], named)
    return _result(t, step, example, size)


def _is_among(vt: VariableTracker, kept: Sequence[Any]) -> bool:
    return any(vt is each for each in kept)


def _size_among(of: Any, given: list[Any], kwargs: Kwargs, shape: object) -> object:
    """Return the argument that is the size of the result, if it has symbols: a number, a tuple, or
    several numbers."""
    if of.__name__ in _BY_DIMENSIONS:
        return given if _number.has_numbers(given) else None
    for vt in (*kwargs.values(), *reversed(given)):
        if _number.has_numbers([vt]):
            size = _entry_values.example_of(vt)
            if shape == (size if isinstance(size, tuple) else (size,)):
                return vt
    return None


def _result(t: Space, step: EntryCall, example: Any, size: object) -> Any:
    """The tracker of an array or a number."""
    cls = type(example)
    if cls is not NUMPY.ndarray and not is_number_of_numpy(cls):
        return _entry_values.result(t, step, example)
    if example.dtype not in DTYPES or not example.flags.c_contiguous:
        raise t.unsupported("random-value", f"an array of {example.dtype}")
    parts = size if isinstance(size, list) else getattr(size, "items", [size])
    dims = example.shape
    if size is not None:
        dims = tuple(_torch_calls.argument(t, part) for part in parts)

    read = tensor_of if cls is NUMPY.ndarray else number_tensor
    source = CallSource(read, step.value)
    named = {"dtype": DTYPES[example.dtype], "device": torch.device("cpu")}
    vt = k.ArrayTracker(_entry_values.tensor(t, source, torch.empty, [dims], named), cls)
    vt.source = step.value
    return vt


def _copy_of(receiver: VariableTracker) -> object:
    if receiver.real is not MISSING:
        return copy.deepcopy(receiver.real)
    return _RANDOM.RandomState(0) if receiver.cls is _RANDOM.RandomState else _RANDOM.default_rng(0)


def make(t: Space, args: Args, kwargs: Kwargs, of: object) -> Any:
    """A stream made in the region."""
    made = _streams.tried(t, of, [*map(_entry_values.example_of, args)], kwargs)
    return _entry_values.made(_streams.step(t, _streams.NEW, of, args, kwargs), type(made))


def seed(t: Space, args: Args, kwargs: Kwargs, of: object) -> k.ConstantTracker:
    """`RandomState.seed`, and that of the stream behind the legacy functions."""
    is_method = of is not _RANDOM.seed
    given = args[1:] if is_method else args
    _streams.tried(t, _RANDOM.RandomState, [*map(_entry_values.example_of, given)], kwargs)
    legacy = CapturedSource("numpy.random", _RANDOM.mtrand._rand)
    _streams.step(t, _streams.owner(t, args[0]) if is_method else legacy, of, args, kwargs)
    return k.NONE


if NUMPY is not None:
    _RANDOM = NUMPY.random
    _CLASSES = (_RANDOM.Generator, _RANDOM.RandomState)
    handlers.handles_each(
        method
        for cls in _CLASSES
        for name, method in vars(cls).items()
        if not name.startswith("_") and callable(method) and name not in _NOT_DRAWN
    )(draw)
    handlers.handles_each([_RANDOM.default_rng, _RANDOM.RandomState])(make)
    handlers.handles_each([_RANDOM.seed, _RANDOM.RandomState.seed])(seed)
