"""Results that share memory: the same views, identities and version counters as in the program.

    y = torch.zeros(3); v = y[:2]; d = y.detach()
    print(); v.copy_(w)   # `y` and `v` have a history, `d` has none; all have one version counter

Where nothing requires gradients, a compiler returns separate tensors over one memory: `y` itself
for `d`, and for `v` a tensor that is no view of it.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import attrs
import torch
from torch import Tensor
from torch.fx import GraphModule

from stator_backends._alias import has_storage
from stator_backends._backend import Compiled
from stator_backends._contracts._versions import have_one_counter, set_versions
from stator_backends._graph_facts import example_of, memory_of, placeholders, results_of


def share_memory(gm: GraphModule) -> partial[Compiled]:
    """Contract: results over one memory are views of one root, as in the program.

    A root that the graph does not return is appended to its results; a compiler may copy the parts
    otherwise.
    """
    results = results_of(gm)
    count = len(results)
    groups = [_roots(results, group) for group in _groups(gm).values()]

    gm.graph.output_node().args = (tuple(results),)
    gm.recompile()
    return partial(_sharing, [group for group in groups if group], count)


@attrs.frozen
class ViewBase:
    """The result at `index`, and the positions of the results that are views of it.

    `family` is the index, within its group, of the root with which it has one version counter:
    itself, if none.
    """

    index: int
    family: int
    version: int
    views: tuple[int, ...]


def memory_seen_as_several_kinds(gm: GraphModule) -> set[int]:
    """Return the memory of results that are, e.g., complex numbers and their real parts.

    Strides cannot express the relation of the two, and a compiler allocates a memory for each.
    """
    kinds: defaultdict[int, set[Any]] = defaultdict(set)
    for node in gm.graph.nodes:
        value = example_of(node)
        if has_storage(value):
            kinds[memory_of(value)].add((value.dtype, value.is_conj(), value.is_neg()))
    return {memory for memory in _groups(gm) if len(kinds[memory]) > 1}


def _groups(gm: GraphModule) -> dict[int, dict[int, Tensor]]:
    """Return the results over one memory that belongs to no input, by memory and position.

    Groups with gradients are left out: AOTAutograd restores views itself there.
    """
    inputs = [example_of(node) for node in placeholders(gm)]
    taken = {memory_of(value) for value in inputs if has_storage(value)}
    groups: defaultdict[int, dict[int, Tensor]] = defaultdict(dict)
    for i, node in enumerate(results_of(gm)):
        value = example_of(node)
        if has_storage(value) and memory_of(value) not in taken:
            groups[memory_of(value)][i] = value
    return {memory: group for memory, group in groups.items() if _is_to_be_shared(group)}


def _is_to_be_shared(group: Mapping[int, Tensor]) -> bool:
    plain = not any(value.requires_grad or value.is_inference() for value in group.values())
    return len(group) > 1 and plain


def _roots(results: list[Any], group: Mapping[int, Tensor]) -> list[ViewBase]:
    """Return the roots of a group, and append those that are not among ``results``."""
    bases = {i: value if (base := value._base) is None else base for i, value in group.items()}
    roots = [*{id(base): base for base in bases.values()}.values()]
    nodes = {id(example_of(node)): node for node in results[min(group)].graph.nodes}
    if any(id(root) not in nodes for root in roots):
        return []  # the base of a result of an operator's body has no node here

    made = []
    for root in roots:
        index = next((i for i, value in group.items() if value is root), len(results))
        if index == len(results):
            results.append(nodes[id(root)])

        family = next(
            n for n, other in enumerate(roots) if other is root or have_one_counter(other, root)
        )
        views = tuple(i for i, base in bases.items() if base is root and i != index)
        made.append(ViewBase(index, family, root._version, views))
    return made


def _sharing(groups: Sequence[Sequence[ViewBase]], count: int, compiled: Compiled) -> Compiled:
    """Wrap ``compiled``: rebuild the groups, and return the first ``count`` results."""

    def call(*inputs: object) -> Sequence[Any]:
        results = list(compiled(*inputs))
        with torch.no_grad():
            for group in groups:
                _rebuild_views(results, group)
        return results[:count]

    return call if groups else compiled


def _rebuild_views(results: list[Any], group: Sequence[ViewBase]) -> None:
    """Replace the results of a group by roots and views of them."""
    parts, roots = list(results), list[Tensor]()
    for root in group:
        like = parts[root.index]
        is_first = root.family == len(roots)
        roots.append(like.data if is_first else _placed(roots[root.family], like).detach())
        set_versions((roots[-1],), (root.version,))

        results[root.index] = roots[-1]
        for i in root.views:
            results[i] = _placed(roots[-1], parts[i])


def _placed(base: Tensor, like: Tensor) -> Tensor:
    """Return a view of ``base`` with the size, strides and offset of ``like``."""
    return base.as_strided(like.size(), like.stride(), like.storage_offset())
