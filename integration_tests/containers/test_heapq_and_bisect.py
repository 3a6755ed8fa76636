"""heapq and bisect in a region: queues of beams, thresholds in sorted lists, and what C refuses."""

from __future__ import annotations

import bisect
import collections
import functools
import heapq
from collections.abc import Callable
from typing import Any

import pytest
import stator
import torch
from torch import Tensor

from integration_tests.support.oracle import assert_same


@functools.total_ordering
class Beam:
    def __init__(self, score: float, tokens: list[int]) -> None:
        self.score, self.tokens = score, tokens

    def __lt__(self, other: Beam) -> bool:
        return self.score < other.score

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Beam) and self.score == other.score

    __hash__ = None  # type: ignore[assignment]


def a_queue_of_tensors(x: Tensor, queue: list[Any], n: int) -> Any:
    for i in (3, 1, 2):
        heapq.heappush(queue, (i * n, x * i))
    return [heapq.heappop(queue) for _ in range(len(queue) - 1)]


def the_best_beams(x: Tensor, queue: list[Any], n: int) -> Any:
    beams = [Beam(0.0, [])]
    for step in range(3):
        for beam in list(beams):
            made = [Beam(beam.score + s, [*beam.tokens, step]) for s in (0.5, 0.25 * n)]
            for one in made:
                heapq.heappushpop(beams, one) if len(beams) > 3 else heapq.heappush(beams, one)
    return x * beams[0].score, [(beam.score, beam.tokens) for beam in heapq.nlargest(2, beams)]


def merged_and_smallest(x: Tensor, queue: list[Any], n: int) -> Any:
    numbers = [5, 1, n, 2]
    heapq.heapify(numbers)
    smallest = heapq.nsmallest(2, numbers, key=lambda i: -i)
    return x * heapq.heapreplace(numbers, 7), numbers, smallest, list(heapq.merge([1, n], [0, 5]))


def a_bucket(x: Tensor, queue: list[Any], n: int) -> Any:
    edges = [0.1, 0.5, 2.0]
    found = (
        bisect.bisect(edges, 0.3 * n),
        bisect.bisect_left(edges, 0.5),
        bisect.bisect_right(edges, 0.5, 1, hi=2),
    )
    bisect.insort(edges, 0.5 * n)
    bisect.insort_left(queue, (n, None), key=lambda item: item[0])
    return x * edges[found[0]], found, edges, bisect.bisect(x.shape, 1)


PROGRAMS = [a_queue_of_tensors, the_best_beams, merged_and_smallest, a_bucket]


@pytest.mark.parametrize("fn", PROGRAMS)
def test_they_are_no_break(fn: Callable[..., Any]) -> None:
    sizes = iter((1, 2, 3, 4))
    compiled = stator.compile(fn, backend="eager", fullgraph=True)

    def call() -> Any:
        queue: list[Any] = [(0, None), (50, None)]
        return torch.ones(2), queue, next(sizes)

    assert_same(fn, compiled, call, calls=4)
    assert compiled.report.entry_count <= 4


class Row(list[Any]):
    pass


@pytest.mark.parametrize("text", ["heapq.heappop([])", "heapq.heapreplace([], 1)", "heapq.heappush((), 1)",
    "heapq.heappop(Row([2, 1]))", "heapq.heappush(1)", "heapq.heapify([1, 'a', None])", "heapq.heappop([x, x])",
    "bisect.bisect([1, 2], 'a')", "bisect.bisect([1, 2], 1, -1)", "bisect.bisect([1, 2], 1, 0, 5)",
    "bisect.bisect([1])",
    "bisect.bisect(Row([1, 3]), 2)", "bisect.bisect({0: 1, 1: 5}, 2, 0, 2)", "bisect.bisect(range(5), 2.5)",
    "bisect.bisect(collections.deque([1, 2]), 1)", "bisect.insort((1, 2), 1)", "bisect.bisect([1, 2], 1, True)",
    "bisect.bisect([1, 2], 1, 1.0)", "bisect.bisect(a=[1, 2], x=1, key=lambda i: -i)", "bisect.bisect([1, 2], x[0])",
])  # fmt: skip
def test_what_c_refuses_or_does_by_itself(text: str) -> None:
    names = {"heapq": heapq, "bisect": bisect, "collections": collections, "Row": Row}
    fn = eval(f"lambda x: (x + 1, {text})", names)
    assert_same(fn, stator.compile(fn, backend="eager"), lambda: (torch.ones(2),), calls=2)
