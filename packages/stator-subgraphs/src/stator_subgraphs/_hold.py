"""Values that a graph holds itself, under a name of its own."""

import re
from typing import Any

import torch
from stator_bytecode.errors import InvalidUse
from stator_variables import Traced

from stator_subgraphs._state import GraphState


def hold(state: GraphState, hint: str, value: Any) -> Traced:
    """A `get_attr` node of the current graph; one object keeps one name."""
    if not isinstance(value, torch.nn.Module | torch.Tensor):
        raise InvalidUse(f"a graph holds modules and tensors, not a {type(value).__name__}")
    name = next((name for name, held in state.held.items() if held is value), None)
    if name is None:
        name = _free_name(state, hint)
        state.journal.put(state.held, name, value)
    example = state.mode.from_tensor(value, static_shapes=True) if isinstance(value, torch.Tensor) else value
    node = state.current.node("get_attr", name, (), {})
    state.annotate(node, example)
    return state.issue(node, example)


def _free_name(state: GraphState, hint: str) -> str:
    stem = re.sub(r"\W", "_", hint) or "held"
    number = 0
    while f"{stem}_{number}" in state.held:
        number += 1
    return f"{stem}_{number}"
