"""Version counters, by which backward refuses what it saved once that is written to: those that the program has.

What a program writes past autograd (`x.data`, an array of NumPy) moves none, and `x.data` has its own. To a compiler
both are views of `x`, to which it copies the outcome: that counts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import add, attrgetter, itemgetter
from typing import Any

import torch
from torch import Tensor, fx

from ._alias import has_storage, is_leaf
from ._backend import Compiled
from ._context import placeholders

set_versions: Any = torch._C._autograd._unsafe_set_version_counter


def all_nodes(gm: fx.GraphModule) -> list[fx.Node]:
    return [
        node
        for part in gm.modules()
        if isinstance(part, fx.GraphModule)
        for node in part.graph.nodes
    ]


def given(gm: fx.GraphModule) -> list[Tensor]:
    results = [node.meta.get("example_value") for node in gm.graph.output_node().all_input_nodes]
    return [value for value in results if isinstance(value, Tensor)]


def written(gm: fx.GraphModule) -> set[int]:
    """The storages that the trace wrote to."""
    return set[int]().union(*(node.meta.get("writes", ()) for node in all_nodes(gm)))


def writes_to_what_has_gradients(gm: fx.GraphModule) -> bool:
    """As `y.mul_(x)` of what the program computed before a break, and `w.data.clamp_(0, 1)`. AOTAutograd copies the
    outcome to the input, which it may have saved for backward itself: that refuses it then. Where it saved a copy, that
    does not see what is written past autograd later."""
    gives_gradients = any(value.requires_grad for value in given(gm))
    return any(
        value.requires_grad and (gives_gradients or not is_leaf(value))
        for _, value, _ in _written_inputs(gm)
    )


def counts_of(gm: fx.GraphModule) -> dict[int, int]:
    """The inputs whose memory is written to, and how often so that they count it. None where a backward comes of it: to
    that a compiler may give the input itself, and relies on its own count for an error in place of a wrong gradient."""
    if any(value.requires_grad for value in given(gm)):
        return {}
    counts = {position: count for position, _, count in _written_inputs(gm)}
    return dict(
        sorted(counts.items(), key=itemgetter(1))
    )  # views have one counter between them: the last one has it


def _written_inputs(gm: fx.GraphModule) -> list[tuple[int, Tensor, int]]:
    """With position and number of writes. A fake that does not begin with its memory has a version from the start."""
    storages, found = written(gm), []
    for position, node in enumerate(placeholders(gm)):
        value: Any = node.meta.get("example_value")
        if storages and _counts(value) and value.untyped_storage()._cdata in storages:
            found.append((position, value, value._version - node.meta.get("version", 0)))
    return found


def counted_apart_in(gm: fx.GraphModule) -> dict[int, int]:
    """The results with a counter of their own (`x.data`), of which the graph keeps nothing but views; and what they
    count. Their memory belongs to something else, too."""
    output: Any = gm.graph.output_node().args[0]
    examples: list[tuple[fx.Node, Any]] = [
        (node, node.meta.get("example_value")) for node in gm.graph.nodes
    ]
    holding = [(node, value) for node, value in examples if _counts(value)]
    storages = {node: value.untyped_storage()._cdata for node, value in holding}
    found: dict[int, int] = {}
    for node, value in holding:
        if node not in output or value.requires_grad:
            continue
        same = [held for held in holding if storages[held[0]] == storages[node]]
        kin = {one for one, held in same if count_together(held, value)}
        is_given_alone = all(
            user in kin or user.op == "output" for one in kin for user in one.users
        )
        if len(kin) < len(same) and is_given_alone and len(kin.intersection(output)) == 1:
            found[output.index(node)] = value._version
    return found


def _counts(value: Any) -> bool:
    return has_storage(value) and not value.is_inference()


def count_together(one: Tensor, other: Tensor) -> bool:
    """Whether they have one counter, as a view and its base."""
    before, count = one._version, other._version
    set_versions((other,), (before + count + 1,))
    together = one._version != before
    set_versions((other,), (count,))
    return together


def keeping_versions(
    compiled: Compiled, counts: Mapping[int, int], apart: Mapping[int, int]
) -> Compiled:
    if not (counts or apart):
        return compiled
    writes = tuple(counts.values())

    def call(*inputs: Any) -> Sequence[Any]:
        tensors = tuple(map(inputs.__getitem__, counts))
        versions = tuple(map(add, map(_version_of, tensors), writes))
        results = compiled(*inputs)
        set_versions(tensors, versions)
        if not apart:
            return results
        return [
            _apart(result, apart[i]) if i in apart else result for i, result in enumerate(results)
        ]

    return call


_version_of = attrgetter("_version")


def _apart(result: Tensor, count: int) -> Tensor:
    result = result.data
    set_versions((result,), (count,))
    return result
