"""Count the operators that a compiler is given, and those of its graphs that run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import attrs
import torch

from integration_tests.benchmarks.compiled_share._profile import marked


def operators_in(graph: torch.fx.GraphModule) -> int:
    """Return the number of operators of a graph and of the bodies of its operators."""
    parts = [part for part in graph.modules() if isinstance(part, torch.fx.GraphModule)]
    targets = [node.target for part in parts for node in part.graph.nodes]
    return sum(isinstance(target, torch._ops.OperatorBase) for target in targets)


@attrs.define(eq=False)
class CountingCompiler:
    """AOTAutograd around a compiler that runs graphs as they are.

    ``compiled`` counts the operators of all graphs that it was given, ``run`` those of the graphs
    that ran since it was last set to 0.
    """

    compiled: int = 0
    graphs: int = 0
    run: int = 0

    def backend(self) -> Callable[..., Any]:
        from torch._dynamo.backends.common import aot_autograd
        from torch._functorch._aot_autograd.utils import make_boxed_func

        def compile(graph: torch.fx.GraphModule, inputs: Sequence[Any]) -> Any:
            return make_boxed_func(self._counted(graph))

        found: Callable[..., Any] = aot_autograd(fw_compiler=compile, bw_compiler=compile)
        return found

    def _counted(self, graph: torch.fx.GraphModule) -> Callable[..., Any]:
        number = operators_in(graph)
        self.compiled += number
        self.graphs += 1

        def run(*args: Any) -> Any:
            self.run += number
            return graph.forward(*args)

        return marked(run)
