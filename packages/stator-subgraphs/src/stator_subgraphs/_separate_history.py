"""Results of a graph that a backward of another result must not free.

    fake = generator(noise)
    loss = discriminator(fake.detach()).mean()
    loss.backward()             # here the graph ends; `fake` is differentiated later

A compiler makes one autograd function of the graph, and `backward` frees what that has saved, for
`fake` as well. Plain autograd frees the history of the loss alone.
"""

from collections.abc import Iterable

from torch import Tensor
from torch.fx import Node

from stator_subgraphs._state import GraphState


def has_separate_history(state: GraphState, outputs: Iterable[Node]) -> bool:
    """Return True if an output has a history apart from that of what is differentiated."""
    if not state.differentiated:
        return False
    present = set(state.root.graph.nodes)  # others were rolled back
    freed = _history_of(node for node in state.differentiated if node in present)
    histories = [_history_of([node]) for node in outputs] if freed else []
    return any(history and history.isdisjoint(freed) for history in histories)


def _history_of(nodes: Iterable[Node]) -> set[Node]:
    """Return the calls that gradients of these pass through."""
    found: set[Node] = set()
    pending = [*nodes]
    while pending:
        node = pending.pop()
        if node not in found and node.op.startswith("call_") and _has_gradients(node):
            found.add(node)
            pending += node.all_input_nodes
    return found


def _has_gradients(node: Node) -> bool:
    example = node.meta.get("example_value")
    parts = example if isinstance(example, tuple | list) else [example]
    return any(isinstance(part, Tensor) and part.requires_grad for part in parts)
