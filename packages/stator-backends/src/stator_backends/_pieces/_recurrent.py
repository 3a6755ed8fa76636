"""Recurrent operators of several layers with dropout between them: one operator for each layer.

    torch.gru(x, h, weights, True, 2, 0.5, ...)      y, h0 = torch.gru(x, h[:1], weights[:4], ...)
                                                     y = torch.dropout(y, 0.5, True)
                                                     y, h1 = torch.gru(y, h[1:], weights[4:], ...)

AOTAutograd takes recurrent operators apart, and the decompositions of torch 2.13 leave the dropout
out. The graph calls `by_layers` instead, which computes the same in more operators; AOTAutograd
traces these. That is exact on the CPU, whose kernels draw the same numbers; those of other devices
draw their own, and run natively.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.fx import GraphModule, Node
from torch.utils._pytree import tree_map

from stator_backends._graph_facts import example_of
from stator_backends._pieces._division import calls_of

_STATE, _WEIGHTS, _LAYERS, _DROPOUT, _TRAINS, _BATCH_FIRST = 1, 2, 4, 5, 6, 8
"""Positions of arguments. Packed data have their batch sizes ahead of the state, and no order of
dimensions at the end."""
_OPERATORS = ("lstm", "gru", "rnn_tanh", "rnn_relu")


def run_layers_apart(gm: GraphModule) -> None:
    """Replace the recurrent operators of a graph that have dropout between their layers."""
    nodes = [node for node in recurrent_with_dropout(gm) if _is_divisible(node)]
    for node in nodes:
        node.args = (_name_of(node), *node.args)
        node.target = by_layers
    if nodes:
        gm.recompile()


def recurrent_with_dropout(gm: GraphModule) -> list[Node]:
    """Return the recurrent operators of several layers that train with dropout between them."""
    return [node for node in calls_of(gm) if _name_of(node) in _OPERATORS and _has_dropout(node)]


def _name_of(node: Node) -> str:
    """Return the name of an operator, without that of its overload."""
    return str(getattr(node.target, "__name__", "")).partition(".")[0]


def _has_dropout(node: Node) -> bool:
    given: Any = node.args
    if node.kwargs:
        return bool(node.kwargs.get("dropout"))
    shift = _shift(given)
    layers, dropout, trains = (given[at + shift] for at in (_LAYERS, _DROPOUT, _TRAINS))
    return bool(layers > 1 and dropout and trains)


def _shift(given: Sequence[Any]) -> int:
    """Return 1 if batch sizes of packed data are among the arguments: weights follow the state."""
    return 0 if isinstance(given[_WEIGHTS], list | tuple) else 1


def _is_divisible(node: Node) -> bool:
    """Return True on the CPU, if arguments have positions. Dropout of all elements draws
    no numbers."""
    example: Any = example_of(node.all_input_nodes[0])
    given: Any = node.args
    is_on_cpu = example.device.type == "cpu"
    return is_on_cpu and not node.kwargs and bool(given[_DROPOUT + _shift(given)] != 1)


# -- what graphs call -----------------------------------------------------------------------------
def by_layers(name: str, *given: Any) -> tuple[Tensor, ...]:
    """Call a recurrent operator once for each layer, and draw the dropout between them."""
    operator = getattr(torch, name)
    shift = _shift(given)
    count, dropout = given[_LAYERS + shift], given[_DROPOUT + shift]
    is_turned = not shift and given[_BATCH_FIRST]
    values = given[0].transpose(0, 1) if is_turned else given[0]

    states = []
    for layer in range(count):
        if layer:
            values = torch.dropout(values, dropout, True)
        values, *state = operator(values, *_arguments_of_layer(given, layer))
        states.append(state)

    values = values.transpose(0, 1) if is_turned else values
    kinds = range(len(states[0]))  # of states: hidden ones, and those of the cells
    return (values, *(torch.cat([state[kind] for state in states]) for kind in kinds))


def _arguments_of_layer(given: Sequence[Any], layer: int) -> list[Any]:
    """Return the arguments behind the first one for one layer of its own, whose first dimension is
    that of time."""
    shift = _shift(given)
    count, weights = given[_LAYERS + shift], given[_WEIGHTS + shift]
    size = len(weights) // count
    arguments = list(given)
    arguments[_STATE + shift] = tree_map(
        lambda each: each.chunk(count)[layer], given[_STATE + shift]
    )
    arguments[_WEIGHTS + shift] = weights[layer * size : (layer + 1) * size]
    arguments[_LAYERS + shift] = 1
    arguments[_DROPOUT + shift] = 0.0
    if not shift:
        arguments[_BATCH_FIRST] = False
    return arguments[1:]
