"""Gradient history of results: a result has one exactly where it has one when the program runs
uncompiled."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import attrs
import torch
from torch import Tensor
from torch.fx import GraphModule

from stator_backends import _session
from stator_backends._alias import is_leaf
from stator_backends._backend import Compiled
from stator_backends._graph_facts import example_of, results_of

_Creation: Any = torch._C._autograd.CreationMeta
_creation_of: Any = torch._C._autograd._get_creation_meta
_set_creation: Any = torch._C._autograd._set_creation_meta


def keep_history(gm: GraphModule) -> partial[Compiled]:
    """Contract: views made under `no_grad` have no history, and other views are written to as in
    the program.

    A compiler makes views of inputs after the graph, in the grad mode that it is called in, and
    other views under `no_grad`. Autograd reads the mode in which a view was made (`CreationMeta`)
    when the view is written to.
    """
    values = [example_of(node) for node in results_of(gm)]
    views = {
        i: value for i, value in enumerate(values) if isinstance(value, Tensor) and value._is_view()
    }
    apart = [i for i, view in views.items() if view.requires_grad and is_leaf(view)]
    creations = {i: _creation_of(view) for i, view in views.items() if not view.requires_grad}
    with_gradients = {
        i: creation for i, creation in creations.items() if creation != _Creation.NO_GRAD_MODE
    }
    return partial(_keeping, apart, with_gradients)


def _keeping(
    without_history: Sequence[int], creations: Mapping[int, Any], compiled: Compiled
) -> Compiled:
    """Wrap ``compiled``: cut the history of some results, and set the creation mode of others."""

    def call(*inputs: object) -> Sequence[Any]:
        results = list(compiled(*inputs))
        with torch.no_grad():
            for i in without_history:
                if results[i].grad_fn is not None:
                    results[i] = results[i].view_as(results[i])
        for i, creation in creations.items():
            if results[i]._is_view():
                _set_creation(results[i], creation)
        return results

    return call if without_history or creations else compiled


def begin_with_gradients(gm: GraphModule, modes: _session.AmbientState) -> _session.AmbientState:
    """Return the modes to compile and call the graph in: with gradients, if it turns them on
    somewhere.

    AOTAutograd expects that of such a graph. If the program begins without gradients, the graph
    turns them off first.
    """
    nodes = [node for node in gm.graph.nodes if node.op != "placeholder"]
    turns_on = [
        node for node in nodes if node.target is torch._C._set_grad_enabled and node.args[0] is True
    ]
    if modes.grad or not turns_on:
        return modes

    with gm.graph.inserting_before(nodes[0]):
        gm.graph.call_function(torch._C._set_grad_enabled, (False,))
    gm.recompile()
    return attrs.evolve(modes, grad=True)


def with_gradients_on(compiled: Compiled) -> Compiled:
    """Wrap ``compiled`` so that gradients are on when it begins: the graph turns them off
    itself."""

    def call(*inputs: object) -> Sequence[Any]:
        with torch.enable_grad():
            return compiled(*inputs)

    return call
