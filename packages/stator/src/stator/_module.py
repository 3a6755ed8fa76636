"""A compiled module is the same module to its owner: it shares the attributes of the original, only its call differs."""

from __future__ import annotations

import copy
import types
from typing import Any

import torch

_CLASSES: dict[type, type] = {}


def compiled_module(model: torch.nn.Module, call: Any) -> torch.nn.Module:
    """An object of a subclass of the module's own class, with the very `__dict__` of `model`."""
    cls = _CLASSES.get(type(model))
    if cls is None:
        cls = _CLASSES[type(model)] = _subclass(type(model))
    made: Any = object.__new__(cls)
    object.__setattr__(made, "__dict__", model.__dict__)
    _STATE[id(made)] = (made, model, call)
    return made  # type: ignore[no-any-return]


_STATE: dict[int, Any] = {}


def _subclass(base: type) -> type:
    body = {
        "__call__": _call,
        "__reduce_ex__": _reduce,
        "__deepcopy__": _deepcopy,
        "__module__": base.__module__,
        "__qualname__": base.__qualname__,
        "__doc__": base.__doc__,
        "report": property(lambda self: _STATE[id(self)][2].report),
        "__stator_region__": property(lambda self: _STATE[id(self)][2].__stator_region__),
    }
    return types.new_class(base.__name__, (base,), {}, lambda namespace: namespace.update(body))


def _call(self: Any, *args: Any, **kwargs: Any) -> Any:
    _, model, call = _STATE[id(self)]
    return call(model, *args, **kwargs)


def _reduce(self: Any, protocol: int) -> Any:
    """Pickled as the module it was made from: compiled code does not travel."""
    return _STATE[id(self)][1].__reduce_ex__(protocol)


def _deepcopy(self: Any, memo: dict[int, Any]) -> Any:
    _, model, call = _STATE[id(self)]
    return compiled_module(copy.deepcopy(model, memo), call)
