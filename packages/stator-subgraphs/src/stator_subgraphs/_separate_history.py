"""Results of a graph that a backward of another result must not free.

    fake = generator(noise)
    loss = discriminator(fake.detach()).mean()
    loss.backward()             # here the graph ends; `fake` is differentiated later

A compiler makes one autograd function of a graph, and `backward` frees what that has saved, for
`fake` as well. Plain autograd frees the history of the loss alone. So the graph is divided where
operators of the one history follow operators of the other.
"""

from collections.abc import Iterable

from torch import Tensor
from torch.fx import Node

from stator_subgraphs._state import GraphState


def separate_histories(state: GraphState, outputs: Iterable[Node]) -> None:
    """Mark where pieces begin, if an output has a history apart from that of what is
    differentiated."""
    graph = state.root.graph
    present = set(graph.nodes)  # others were rolled back
    differentiated = [node for node in state.differentiated if node in present]
    for node in graph.nodes:
        if "frees_history" in node.meta and "native" in node.meta:
            differentiated += node.all_input_nodes
    freed = _history_of(differentiated)
    if not freed:
        return

    histories = [_history_of([node]) for node in outputs]
    separate = set[Node]().union(*(each for each in histories if each.isdisjoint(freed)))
    if not separate:
        return
    last = None
    for node in graph.nodes:
        if node not in freed and node not in separate:
            continue
        is_freed = node in freed
        if last is not None and is_freed is not last:
            node.meta["starts"] = True
        last = is_freed


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
