"""A captured backward: its graph, and that graph as a function of a list that it empties."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import attrs
import torch
from torch import Tensor
from torch.fx import Graph, GraphModule
from torch.fx.graph import _BoxedCodeGen

from stator_subgraphs._compiled_autograd._aot import is_aot_call
from stator_subgraphs._compiled_autograd._operator import runs_user_code, without_history


@attrs.frozen(cache_hash=True)
class BackwardKey:
    """Equal for backward passes that do the same; hashed once, as it is looked up in each."""

    code: str
    targets: tuple[Any, ...]


@attrs.frozen(eq=False)
class CapturedBackward:
    """The graph of every backward with one structure; `used` has the inputs of each kind it takes.

    `code` is the text of the function, and `key` equal for those that do the same. `user_code`
    names the calls that run code of the program.
    """

    graph: Graph
    used: Mapping[str, Sequence[int]]
    code: str
    function: Callable[[list[Any]], Sequence[Tensor | None]]
    key: BackwardKey = attrs.field(repr=False)
    user_code: tuple[str, ...]

    @classmethod
    def of(cls, graph: Graph, used: Mapping[str, Sequence[int]]) -> "CapturedBackward":
        graph.set_codegen(_BoxedCodeGen())
        module = GraphModule(torch.nn.Module(), graph, "backward")
        key = BackwardKey(module.code, tuple(node.target for node in graph.nodes))
        called = tuple(
            node.name for node in graph.nodes if runs_user_code(node) and not is_aot_call(node)
        )
        return cls(graph, used, module.code, module.forward, key, called)

    def arguments(self, saved: list[Any], *others: Sequence[Any]) -> list[Any]:
        """Return the arguments of the function as one list, and empty the list of saved tensors."""
        if self.used["packed"] and torch.is_grad_enabled():
            raise without_history()
        groups = zip((saved, *others), self.used.values(), strict=True)
        arguments = [values[i] for values, used in groups for i in used]
        saved.clear()
        return arguments
