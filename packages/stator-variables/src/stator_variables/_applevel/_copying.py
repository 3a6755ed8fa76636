"""`copy.deepcopy` of what has its own way to be copied, as plain Python."""

from __future__ import annotations

from copy import _keep_alive  # type: ignore[attr-defined]  # typeshed lacks it
from typing import Any

__app_level__ = True

# Implemented by handlers.


def cloned(tensor: object, memo: object) -> object:
    """Return `tensor.clone()`, over a copy of its storage."""
    raise NotImplementedError


def storage_of(tensor: object) -> object:
    """Return `tensor.untyped_storage()`."""
    raise NotImplementedError


def address_of(storage: object) -> object:
    """Return `storage._cdata`."""
    raise NotImplementedError


def attributes_of(tensor: object) -> object:
    """Return `tensor.__dict__`."""
    raise NotImplementedError


def deep_copied(tensor: object, memo: Any) -> object:
    """`torch.Tensor.__deepcopy__` of a tensor that covers its storage and requires no gradients."""
    if id(tensor) in memo:
        return memo[id(tensor)]
    copied = cloned(tensor, memo)

    storage, copied_storage = storage_of(tensor), storage_of(copied)
    memo.setdefault("torch", {})[address_of(storage)] = copied_storage
    memo[id(storage)] = copied_storage
    _keep_alive(storage, memo)

    attributes = attributes_of(tensor)
    memo[id(attributes)] = attributes_of(copied)
    _keep_alive(attributes, memo)

    memo[id(tensor)] = copied
    return copied


# Queries of `object.__reduce_ex__`.


def list_items(thing: Any) -> object:
    return iter(thing)


def dict_items(thing: Any) -> object:
    return iter(thing.items())


def slots_of(thing: object, names: Any) -> object:
    """The slots that are set, by name."""
    found = {}
    for name in names:
        if hasattr(thing, name):
            found[name] = getattr(thing, name)
    return found
