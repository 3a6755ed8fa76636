"""Autograd histories of results: a result of a compiler has one where that of an eager run has."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import attrs
import torch
from torch import Tensor, fx

from . import _session
from ._alias import is_leaf
from ._backend import Compiled

_Creation: Any = torch._C._autograd.CreationMeta
_creation: Any = torch._C._autograd._get_creation_meta
_set_creation: Any = torch._C._autograd._set_creation_meta


def keeping_history(
    compiled: Compiled, begins: bool, apart: Sequence[int], creations: Mapping[int, Any]
) -> Compiled:
    """Return `compiled` with the histories that the program gives its results.

    A compiler makes views and written inputs anew after the graph, in the grad mode of the call. So
    gradients are enabled if the graph `begins` with them; the results `apart`, which it made under
    `no_grad`, are detached; and the metadata by which autograd judges a write to a view is set as
    in `creations`.
    """

    def call(*inputs: Any) -> Sequence[Any]:
        with torch.set_grad_enabled(begins or torch.is_grad_enabled()):
            results = list(compiled(*inputs))
        with torch.no_grad():
            for i in apart:
                results[i] = (
                    results[i] if results[i].grad_fn is None else results[i].view_as(results[i])
                )
        for i, creation in creations.items():
            if results[i]._is_view():
                _set_creation(results[i], creation)
        return results

    return call if begins or apart or creations else compiled


def beginning_with_gradients(
    gm: fx.GraphModule, modes: _session.AmbientState
) -> _session.AmbientState:
    """Return the modes with gradients enabled, as AOTAutograd requires of a graph that enables
    them.

    A graph that began without them disables them in a first node.
    """
    nodes = [node for node in gm.graph.nodes if node.op != "placeholder"]
    if modes.grad or not any(
        node.target is torch._C._set_grad_enabled and node.args[0] is True for node in nodes
    ):
        return modes
    with gm.graph.inserting_before(nodes[0]):
        gm.graph.call_function(torch._C._set_grad_enabled, (False,))
    gm.recompile()
    return attrs.evolve(modes, grad=True)


def without_history(gm: fx.GraphModule) -> list[int]:
    """The results that are views made under `no_grad`: of what requires gradients, and leaves all
    the same."""
    given: Any = gm.graph.output_node().args[0]
    values = [
        node.meta.get("example_value") if isinstance(node, fx.Node) else None for node in given
    ]
    return [
        i for i, value in enumerate(values) if isinstance(value, Tensor) and _is_view_apart(value)
    ]


def creations_of(gm: fx.GraphModule) -> dict[int, Any]:
    """The results that are views of what has no gradients, made with gradients on."""
    given: Any = gm.graph.output_node().args[0]
    values = [
        node.meta.get("example_value") if isinstance(node, fx.Node) else None for node in given
    ]
    views = {
        i: value for i, value in enumerate(values) if isinstance(value, Tensor) and value._is_view()
    }
    found = {i: _creation(view) for i, view in views.items() if not view.requires_grad}
    return {i: creation for i, creation in found.items() if creation != _Creation.NO_GRAD_MODE}


def _is_view_apart(value: Tensor) -> bool:
    return value._is_view() and value.requires_grad and is_leaf(value)
