"""Equal fragments of a graph, such as the blocks of a stack: where the pieces begin that are
compiled once.

A stack of equal blocks makes the sequence of operators periodic. The period is found by the
distances between equal operators; the blocks are cut where the fewest values pass from one to the
next, which is where a block begins and ends in the program.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator, Sequence
from typing import Any

import attrs
from torch import Tensor
from torch.fx import GraphModule, Node

from stator_backends._graph_facts import example_of
from stator_backends._pieces._division import calls_of, computes

FEWEST = 3
"""The number of equal fragments from which on each is a piece."""
OPERATORS = 8
"""The number of operators in a fragment from which on a piece is worth the call of its code."""
ELEMENTS = 1 << 18
"""The number of elements that a fragment computes from which on `auto` takes it: below, the calls
of pieces, 20 to 60 us each, show in a steady call."""
PERIODS = 6
"""The number of likely periods that are tried."""


@attrs.frozen
class EqualBlocks:
    """`count` fragments of `period` nodes each, from position `start` on."""

    start: int
    period: int
    count: int

    @property
    def end(self) -> int:
        return self.start + self.period * self.count

    def cuts(self) -> Iterator[int]:
        """Yield the positions at which fragments begin, and that behind the last one."""
        yield from range(self.start, self.end + 1, self.period)


def starts_of_fragments(gm: GraphModule, takes_small: bool) -> set[Node]:
    """Return the nodes at which pieces are to begin, so that equal fragments are pieces; empty if
    there are none. Small fragments are taken as well if `takes_small` is set."""
    nodes = calls_of(gm)
    tokens = [_token(node) for node in nodes]
    passing = _passing(nodes)
    found: set[Node] = set()
    for stack in _stacks(tokens, passing, 0, len(nodes)):
        fragment = nodes[stack.start : stack.start + stack.period]
        if takes_small or _is_worth_it(fragment):
            found |= {nodes[cut] for cut in stack.cuts() if cut < len(nodes)}
    return found


def _is_worth_it(fragment: Sequence[Node]) -> bool:
    return sum(_elements(example_of(node)) for node in fragment if computes(node)) >= ELEMENTS


def _elements(example: object) -> int:
    if isinstance(example, tuple | list):
        return sum(map(_elements, example))
    if not isinstance(example, Tensor):
        return 0
    count: Any = example.numel()
    return count if type(count) is int else 0


def _token(node: Node) -> Hashable:
    """Return what equal operators of equal fragments have in common; the rest is compared later."""
    example = example_of(node)
    parts = example if isinstance(example, tuple | list) else (example,)
    shapes = tuple(str(part.shape) for part in parts if isinstance(part, Tensor))
    kinds = tuple(given.op == "placeholder" for given in node.all_input_nodes)
    return str(node.target), shapes, kinds


def _passing(nodes: Sequence[Node]) -> list[int]:
    """Return the number of values, for each position, that are computed before and used from it
    on."""
    positions = {node: index for index, node in enumerate(nodes)}
    changes = [0] * (len(nodes) + 2)
    for index, node in enumerate(nodes):
        last = max((positions.get(user, len(nodes)) for user in node.users), default=index)
        changes[index + 1] += 1
        changes[last + 1] -= 1

    found, count = [], 0
    for change in changes[: len(nodes) + 1]:
        count += change
        found.append(count)
    return found


def _stacks(
    tokens: Sequence[Hashable], passing: Sequence[int], begin: int, end: int
) -> Iterator[EqualBlocks]:
    """Yield the stacks between two positions: the longest, then those on both sides of it."""
    if end - begin < FEWEST * OPERATORS:
        return
    stack = _longest(tokens, passing, begin, end)
    if stack is None:
        return
    yield from _stacks(tokens, passing, begin, stack.start)
    yield stack
    yield from _stacks(tokens, passing, stack.end, end)


def _longest(
    tokens: Sequence[Hashable], passing: Sequence[int], begin: int, end: int
) -> EqualBlocks | None:
    best: tuple[int, int, int] | None = None  # the length, the period negated, the start
    for period in _periods(tokens[begin:end]):
        start, stop = _longest_match(tokens, period, begin, end)
        length = stop - start
        if length >= FEWEST * period and (best is None or (length, -period) > best[:2]):
            best = length, -period, start
    if best is None:
        return None
    length, period, start = best[0], -best[1], best[2]
    return _aligned(passing, start, start + length, period)


def _periods(tokens: Sequence[Hashable]) -> list[int]:
    """Return the likely periods: frequent distances between consecutive equal operators."""
    last: dict[Hashable, int] = {}
    distances: Counter[int] = Counter()
    for index, token in enumerate(tokens):
        if token in last:
            distances[index - last[token]] += 1
        last[token] = index
    likely = [each for each, _ in distances.most_common() if each >= OPERATORS]
    return likely[:PERIODS]


def _longest_match(
    tokens: Sequence[Hashable], period: int, begin: int, end: int
) -> tuple[int, int]:
    """Return the longest stretch in which each operator is equal to that one period later."""
    best = begin, begin
    start = begin
    for index in range(begin, end - period + 1):
        if index < end - period and tokens[index] == tokens[index + period]:
            continue
        if index > start and index + period - start > best[1] - best[0]:
            best = start, index + period
        start = index + 1
    return best


def _aligned(passing: Sequence[int], start: int, stop: int, period: int) -> EqualBlocks | None:
    """Cut a stretch where the fewest values pass; of equal places, at the first."""
    offsets = range(min(period, stop - start - FEWEST * period + 1))
    found = [
        EqualBlocks(start + offset, period, (stop - start - offset) // period) for offset in offsets
    ]
    if not found:
        return None

    def cost(stack: EqualBlocks) -> float:
        inner = [*stack.cuts()][1:-1]
        return sum(passing[cut] for cut in inner) / len(inner)

    return min(found, key=cost)
