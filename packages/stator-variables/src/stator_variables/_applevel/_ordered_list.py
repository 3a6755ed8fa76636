"""heapq and bisect as plain Python, comparison by comparison as in Modules/_heapqmodule.c and
_bisectmodule.c."""

from __future__ import annotations

import sys
from typing import Any

__app_level__ = True

_NEGATIVE = f"lo {'cannot be negative' if sys.version_info >= (3, 15) else 'must be non-negative'}"


def heappush(heap: list[Any], item: object, /) -> None:
    heap.append(item)
    _sift_down(heap, 0, len(heap) - 1, False)


def heappop(heap: list[Any], /, greatest: bool = False) -> object:
    """Pop from a heap with its `greatest` first: `_heappop_max`, and so on."""
    if not heap:
        raise IndexError("index out of range")
    last = heap.pop()
    return heapreplace(heap, last, greatest) if heap else last


def heapreplace(heap: list[Any], item: object, /, greatest: bool = False) -> object:
    if not heap:
        raise IndexError("index out of range")
    first = heap[0]
    heap[0] = item
    _sift_up(heap, 0, greatest)
    return first


def heappushpop(heap: list[Any], item: object, /) -> object:
    return heapreplace(heap, item) if heap and heap[0] < item else item


def heapify(heap: list[Any], /, greatest: bool = False) -> None:
    for place in range(len(heap) // 2 - 1, -1, -1):
        _sift_up(heap, place, greatest)


def _sift_down(heap: list[Any], start: int, place: int, greatest: bool) -> None:
    size = len(heap)
    while place > start:
        parent = (place - 1) >> 1
        moves = heap[parent] < heap[place] if greatest else heap[place] < heap[parent]
        sinks = not moves
        _check_size(heap, size)
        if sinks:
            return
        heap[parent], heap[place] = heap[place], heap[parent]
        place = parent


def _sift_up(heap: list[Any], place: int, greatest: bool) -> None:
    size, start = len(heap), place
    while place < size >> 1:
        child = 2 * place + 1
        if child + 1 < size:
            stays = heap[child + 1] < heap[child] if greatest else heap[child] < heap[child + 1]
            child += 0 if stays else 1
            _check_size(heap, size)
        heap[child], heap[place] = heap[place], heap[child]
        place = child
    _sift_down(heap, start, place, greatest)


def _check_size(heap: list[Any], size: int) -> None:
    if len(heap) != size:
        raise RuntimeError("list changed size during iteration")


def bisect_left(a: Any, x: object, lo: int = 0, hi: object = None, *, key: Any = None) -> int:
    lo, hi = _bounds(a, lo, hi)
    while lo < hi:
        middle = (lo + hi) // 2
        if (a[middle] if key is None else key(a[middle])) < x:
            lo = middle + 1
        else:
            hi = middle
    return lo


def bisect_right(a: Any, x: object, lo: int = 0, hi: object = None, *, key: Any = None) -> int:
    lo, hi = _bounds(a, lo, hi)
    while lo < hi:
        middle = (lo + hi) // 2
        if x < (a[middle] if key is None else key(a[middle])):
            hi = middle
        else:
            lo = middle + 1
    return lo


def _bounds(a: Any, lo: int, hi: Any) -> tuple[int, int]:
    if lo < 0:
        raise ValueError(_NEGATIVE)
    return lo, len(a) if hi is None else hi


def insort_left(a: Any, x: object, lo: int = 0, hi: object = None, *, key: Any = None) -> None:
    place = bisect_left(a, x if key is None else key(x), lo, hi, key=key)
    a.insert(place, x)  # looked up when the place is known


def insort_right(a: Any, x: object, lo: int = 0, hi: object = None, *, key: Any = None) -> None:
    place = bisect_right(a, x if key is None else key(x), lo, hi, key=key)
    a.insert(place, x)  # looked up when the place is known
