"""Results that are given twice: one tensor, as in the program.

The tensors that AOTAutograd makes after the graph, such as views of inputs, it makes for each
result.
"""

from collections.abc import Sequence
from functools import partial
from operator import itemgetter
from typing import Any

from torch import Tensor, fx

from stator_backends._backend import Compiled
from stator_backends._graph_facts import example_of, results_of


def keep_repeats(gm: fx.GraphModule) -> partial[Compiled]:
    """Contract: results that are one tensor in the program are one tensor.

    The graph returns each once; the wrapper repeats them.
    """
    distinct: dict[object, int] = {}
    order: list[int] = []
    kept: list[Any] = []
    for at, value in enumerate(results_of(gm)):
        example = example_of(value)
        key = id(example) if isinstance(example, Tensor) else (at,)
        if key not in distinct:
            distinct[key] = len(kept)
            kept.append(value)
        order.append(distinct[key])

    if len(kept) < len(order):
        gm.graph.output_node().args = (tuple(kept),)
        gm.recompile()
    return partial(_repeating, order if len(kept) < len(order) else ())


def _repeating(order: Sequence[int], compiled: Compiled) -> Compiled:
    """Wrap ``compiled``: return the results at these positions."""
    if not order:
        return compiled
    pick = itemgetter(*order)

    def call(*inputs: object) -> Sequence[Any]:
        results: Sequence[Any] = pick(compiled(*inputs))
        return results

    return call
