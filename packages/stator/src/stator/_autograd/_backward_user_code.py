"""Hooks and functions of the program in a backward, which are traced as the program itself is."""

from torch.fx import Graph, Node

from stator.errors import Unsupported


def user_code_in(graph: Graph) -> list[Node]:
    from stator_subgraphs import may_be_followed

    return [node for node in graph.nodes if may_be_followed(node)]


def refusal_of(node: Node) -> Unsupported:
    """Return the refusal, under `fullgraph`, of a call of the program's code between graphs."""
    hint = "remove it, or leave fullgraph out: it runs between two graphs then"
    return Unsupported("backward-hook", f"{node.name} in a backward pass", hint)
