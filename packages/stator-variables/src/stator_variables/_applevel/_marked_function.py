"""A call of a function that is marked to be one node: inputs and outputs are flattened, by torch's
rules."""

from __future__ import annotations

from typing import Any

from torch.nn import Module
from torch.utils._pytree import is_constant_class, tree_flatten, tree_unflatten

__app_level__ = True


def call_marked(function: object, args: object, kwargs: object) -> object:
    leaves, spec = tree_flatten((args, kwargs), is_whole)
    states = [state(leaf) for leaf in leaves if isinstance(leaf, Module)]
    results, made = record(function, leaves, outline(spec), states)
    return tree_unflatten(results, made)


def is_whole(part: object) -> bool:
    return isinstance(part, Module) or is_constant_class(type(part))


def state(module: Any) -> object:
    """Return every tensor, by the number of its module and its name; `training` is read, and so
    guarded."""
    parts = list(module.modules())
    [bool(part.training) for part in parts]
    named = [(index, {**part._parameters, **part._buffers}) for index, part in enumerate(parts)]
    return {
        (index, name): value
        for index, own in named
        for name, value in own.items()
        if value is not None
    }


def outline(spec: Any) -> object:
    return spec.type, spec._context, [outline(child) for child in spec._children]


def record(function: object, leaves: object, spec: object, states: object) -> Any:
    """Return the outputs of the node, flat, and their structure. The interpreter's handler records
    the node."""
    raise NotImplementedError
