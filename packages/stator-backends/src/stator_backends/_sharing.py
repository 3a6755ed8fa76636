"""Results that share memory among them: autograd and identity see them as in an eager run.

    y = torch.zeros(3); v = y[:2]; d = y.detach()
    print(); v.copy_(w)    # y and v get a history now, d none; all have one version counter

Where nothing requires gradients, a compiler gives tensors over one memory: `y` itself for `d`, a
`v` that is no view.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

import attrs
import torch
from torch import Tensor, fx

from ._alias import has_storage
from ._backend import Compiled
from ._context import placeholders
from ._version import count_together, set_versions


@attrs.frozen
class ViewBase:
    """The result at `index`, of which others are views. It has its version counter with the root at
    `family` of its group, which may be itself."""

    index: int
    family: int
    version: int
    views: tuple[int, ...]


def give_roots(gm: fx.GraphModule) -> list[list[ViewBase]]:
    """The groups of results over one memory that is no input's. What such results are views of, and
    the graph does not give, it gives besides from here on: else a compiler may make copies of the
    parts."""
    output: Any = gm.graph.output_node()
    given = list(output.args[0])
    found = [_roots(given, group) for group in _groups(gm).values()]
    output.args = (tuple(given),)
    gm.recompile()
    return [group for group in found if group]


def sees_results_as_several_kinds(gm: fx.GraphModule) -> bool:
    """Return True if results view one memory as several kinds, complex numbers and their real parts
    for example.

    Strides do not distinguish those, and a compiler makes a memory for each.
    """
    kinds: defaultdict[int, set[Any]] = defaultdict(set)
    for node in gm.graph.nodes:
        value: Any = node.meta.get("example_value")
        if has_storage(value):
            kinds[value.untyped_storage()._cdata].add(
                (value.dtype, value.is_conj(), value.is_neg())
            )
    return any(len(kinds[memory]) > 1 for memory in _groups(gm))


def _groups(gm: fx.GraphModule) -> dict[int, dict[int, Tensor]]:
    """Return by memory the results that share it, by position.

    With gradients AOTAutograd itself determines the views.
    """
    inputs: list[Any] = [node.meta.get("example_value") for node in placeholders(gm)]
    taken = {value.untyped_storage()._cdata for value in inputs if has_storage(value)}
    groups: defaultdict[int, dict[int, Tensor]] = defaultdict(dict)
    results: Any = gm.graph.output_node().args[0]
    for i, node in enumerate(results):
        value: Any = node.meta.get("example_value") if isinstance(node, fx.Node) else None
        if has_storage(value) and value.untyped_storage()._cdata not in taken:
            groups[value.untyped_storage()._cdata][i] = value
    for memory, group in list(groups.items()):
        if len(group) == 1 or any(
            value.requires_grad or value.is_inference() for value in group.values()
        ):
            del groups[memory]
    return groups


def _roots(given: list[Any], group: Mapping[int, Tensor]) -> list[ViewBase]:
    bases = {i: value if (base := value._base) is None else base for i, value in group.items()}
    roots = [*{id(base): base for base in bases.values()}.values()]
    nodes = {id(node.meta.get("example_value")): node for node in given[min(group)].graph.nodes}
    if any(id(root) not in nodes for root in roots):  # as that of what an operator's body gives
        return []
    made = []
    for root in roots:
        index = next((i for i, value in group.items() if value is root), len(given))
        if index == len(given):
            given.append(nodes[id(root)])
        family = next(
            n for n, other in enumerate(roots) if other is root or count_together(other, root)
        )
        views = tuple(i for i, base in bases.items() if base is root and i != index)
        made.append(ViewBase(index, family, root._version, views))
    return made


def sharing_memory(
    compiled: Compiled, groups: Sequence[Sequence[ViewBase]], count: int
) -> Compiled:
    """Return `compiled` with the results of these groups as separate objects over one memory, and
    `count` results."""

    def call(*inputs: Any) -> Sequence[Any]:
        results = list(compiled(*inputs))
        with torch.no_grad():
            for group in groups:
                _separate(results, group)
        return results[:count]

    return call if groups else compiled


def _separate(results: list[Any], group: Sequence[ViewBase]) -> None:
    parts, roots = list(results), list[Tensor]()
    for root in group:
        like = parts[root.index]
        roots.append(
            like.data if root.family == len(roots) else _placed(roots[root.family], like).detach()
        )
        set_versions((roots[-1],), (root.version,))
        results[root.index] = roots[-1]
        for i in root.views:
            results[i] = _placed(roots[-1], parts[i])


def _placed(base: Tensor, like: Tensor) -> Tensor:
    return base.as_strided(like.size(), like.stride(), like.storage_offset())
