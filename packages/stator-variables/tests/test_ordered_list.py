"""heapq and bisect as plain Python: what they leave, give, raise and compare is what C does."""

import bisect
import heapq
import random
from collections.abc import Callable
from typing import Any

import pytest
from stator_variables._applevel import _ordered_list as app

HEAPS = (
    "heappush heappop heapreplace heappushpop heapify _heappop_max _heapreplace_max _heapify_max"
)
SORTED = "bisect_left bisect_right insort_left insort_right"


class Noted:
    """A number that writes down what it is compared with, and may do something then."""

    log: list[Any] = []
    then: Callable[[], None] | None = None

    def __init__(self, number: int) -> None:
        self.number = number

    def __lt__(self, other: "Noted") -> bool:
        Noted.log.append((self.number, other.number))
        if Noted.then is not None:
            Noted.then()
        return self.number < other.number


def ended(function: Any, *args: Any, then: Any = None, **kwargs: Any) -> Any:
    """What it gave or raised, what it compared, and how its first argument is then."""
    Noted.log, Noted.then = [], then and (lambda: then(args[0]))
    try:
        given = function(*args, **kwargs)
    except Exception as error:
        given = (type(error), str(error))
    return getattr(given, "number", given), Noted.log, [item.number for item in args[0]]


@pytest.mark.parametrize(
    "then", [None, list.pop, lambda heap: heap.append(Noted(0))], ids=["plain", "pops", "appends"]
)
@pytest.mark.parametrize("name", [name for name in HEAPS.split() if hasattr(heapq, name)])
def test_heaps(name: str, then: Any) -> None:
    numbers = random.Random(1)
    for size in [*range(12), 100]:
        for _ in range(10):
            drawn = [numbers.randrange(size or 1) for _ in range(size)]
            heap = [Noted(number) for number in drawn]
            Noted.then = None
            if "heapify" not in name:
                (heapq._heapify_max if "max" in name else heapq.heapify)(heap)  # type: ignore[attr-defined]
            item = [Noted(numbers.randrange(20))] if "push" in name or "replace" in name else []
            expected = ended(getattr(heapq, name), [*heap], *item, then=then)
            greatest = [True] if "max" in name else []
            ours = getattr(app, name.removeprefix("_").removesuffix("_max"))
            assert ended(ours, [*heap], *item, *greatest, then=then) == expected


@pytest.mark.parametrize("key", [None, lambda noted: Noted(-noted.number)])
@pytest.mark.parametrize("name", SORTED.split())
def test_sorted(name: str, key: Any) -> None:
    numbers = random.Random(1)
    for size in range(10):
        for bounds in [(), (1,), (0, size // 2), (2, 1), (-1,), (0, None), (0, size + 2)]:
            items = [Noted(n) for n in sorted(numbers.randrange(6) for _ in range(size))]
            item = Noted(numbers.randrange(6))
            if key is not None:
                items.reverse()
                item = Noted(-item.number) if "bisect" in name else item
            expected = ended(getattr(bisect, name), [*items], item, *bounds, key=key)
            assert ended(getattr(app, name), [*items], item, *bounds, key=key) == expected
