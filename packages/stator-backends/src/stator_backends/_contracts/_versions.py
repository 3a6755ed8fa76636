"""Version counters, with which backward detects writes to what it saved: the same counts as in the
program.

Writes past autograd (`x.data`, an array of NumPy) do not increase the counter of `x`, and `x.data`
has a counter of its own. A compiler copies the outcome of either to `x`, which does increase it.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from operator import add, attrgetter, itemgetter, sub
from typing import Any

import attrs
import torch
from torch import Tensor
from torch.fx import GraphModule

from stator_backends._backend import Compiled
from stator_backends._graph_facts import (
    example_of,
    has_version,
    memory_of,
    results_of,
    tensors_returned,
    written_inputs,
)

set_versions: Any = torch._C._autograd._unsafe_set_version_counter
increment_versions: Any = torch._C._increment_version


def keep_versions(gm: GraphModule) -> partial[Compiled]:
    """Contract: version counters of written inputs and of results such as `x.data` are those of the
    program."""
    writes = _writes_per_input(gm)
    memory = {memory_of(value) for _, value, _ in written_inputs(gm)}
    return partial(_keeping, writes, _results_with_own_counter(gm), len(memory) == len(writes))


def _writes_per_input(gm: GraphModule) -> dict[int, int]:
    """Return the number of counted writes to each input that is written to, by position.

    Empty if the graph gives gradients: a compiler may save the input itself for backward, and its
    own count turns a wrong gradient into an error. Views share a counter with their base, so the
    highest count comes last.
    """
    if any(value.requires_grad for value in tensors_returned(gm)):
        return {}
    counts = {position: count for position, _, count in written_inputs(gm)}
    return dict(sorted(counts.items(), key=itemgetter(1)))


def _results_with_own_counter(gm: GraphModule) -> dict[int, int]:
    """Return the versions of the results that are, as `x.data`, over the memory of another tensor
    with another counter.

    Only those of which the graph uses and returns nothing but views.
    """
    results = results_of(gm)
    examples = [(node, example_of(node)) for node in gm.graph.nodes]
    counting = [(node, value) for node, value in examples if has_version(value)]

    found: dict[int, int] = {}
    for node, value in counting:
        if node not in results or value.requires_grad:
            continue

        sharing = [pair for pair in counting if memory_of(pair[1]) == memory_of(value)]
        relatives = {one for one, held in sharing if have_one_counter(held, value)}
        users = {user for one in relatives for user in one.users}
        is_returned_alone = all(user in relatives or user.op == "output" for user in users)
        if (
            len(relatives) < len(sharing)
            and is_returned_alone
            and len(relatives.intersection(results)) == 1
        ):
            found[results.index(node)] = value._version

    return found


def have_one_counter(one: Tensor, other: Tensor) -> bool:
    """Return True if two tensors have one version counter, as a view and its base have."""
    before, count = one._version, other._version
    set_versions((other,), (before + count + 1,))
    together = one._version != before
    set_versions((other,), (count,))
    return together


def _keeping(
    writes: Mapping[int, int], versions: Mapping[int, int], are_apart: bool, compiled: Compiled
) -> Compiled:
    """Wrap ``compiled``: set the counters of written inputs, and give some results a counter of
    their own."""
    counting = WriteCounts(compiled, writes, are_apart) if writes else compiled
    if not versions:
        return counting
    return lambda *inputs: _with_own_counters(counting(*inputs), versions)


STEADY_CALLS = 3
"""The number of calls after which a compiled function has recorded what it replays later."""


@attrs.define(eq=False)
class WriteCounts:
    """``compiled``, with the counters of the inputs at the positions ``writes`` increased as in the
    program.

    The function increases them too, and by the same numbers in each call. The first calls find out
    what is missing; later ones add that, and read one counter instead of all. If it differs, they
    find out again. That requires counters that ``are_apart``: no two inputs share one.
    """

    compiled: Compiled
    writes: Mapping[int, int]
    are_apart: bool
    steady: int = 0
    missing: list[int] = attrs.field(factory=list)
    """The position of an input for each increment that the function does not make."""
    sample: int = 0
    increment: int = 0
    """The position of the input whose counter is read, and what the function adds to it."""

    def __call__(self, *inputs: Any) -> Sequence[Any]:
        if self.steady < STEADY_CALLS:
            return self._find_out(inputs)
        one = inputs[self.sample]
        before = one._version
        results = self.compiled(*inputs)
        if one._version != before + self.increment:
            self.steady = 0
            if one._version == before:  # a replay, which passes all counters
                self.missing = [i for i, writes in self.writes.items() for _ in range(writes)]

        if self.missing:
            increment_versions([inputs[i] for i in self.missing])
        return results

    def _find_out(self, inputs: Sequence[Any]) -> Sequence[Any]:
        """Set all counters, and compare what the function left out with the call before."""
        tensors = tuple([inputs[i] for i in self.writes])
        after = tuple(map(add, map(_version_of, tensors), self.writes.values()))
        results = self.compiled(*inputs)
        left = [*map(sub, after, map(_version_of, tensors))]
        set_versions(tensors, after)

        before = self.missing
        self.missing = [i for i, count in zip(self.writes, left, strict=True) for _ in range(count)]
        is_same = self.are_apart and self.missing == before and min(left) >= 0
        self.steady = self.steady + 1 if is_same else 0
        self.sample, count = next(iter(self.writes.items()))
        self.increment = count - left[0]
        return results


_version_of = attrgetter("_version")


def _with_own_counters(results: Sequence[Any], versions: Mapping[int, int]) -> list[Any]:
    """Replace results by tensors over the same memory that count from the given versions."""
    replaced = list(results)
    for i, version in versions.items():
        replaced[i] = replaced[i].data
        set_versions((replaced[i],), (version,))
    return replaced
