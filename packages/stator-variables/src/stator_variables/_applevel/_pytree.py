"""The functions of a class that is registered as a pytree, called as torch calls them."""

from __future__ import annotations

from typing import Any

from torch.utils import _pytree as pytree

__app_level__ = True


def open_node(node: object) -> object:
    """Return the children and the context of a node, and the function that builds such nodes."""
    registered = pytree.SUPPORTED_NODES[type(node)]
    children, context = registered.flatten_fn(node)
    return list(children), context, registered.unflatten_fn


def close_node(unflatten: Any, children: object, context: object) -> object:
    return unflatten(children, context)
