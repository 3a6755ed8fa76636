"""heapq and bisect: the C functions, on lists and tuples, run `_applevel._ordered`."""

import bisect
import heapq
from typing import Any

from stator_bytecode import HandlerTable, Result

from stator_variables import _trackers as k
from stator_variables._applevel import _ordered_list as app
from stator_variables._objects._list import ListTracker
from stator_variables._objects._method_table import app_level
from stator_variables._objects._tuple import TupleTracker
from stator_variables._space import Space
from stator_variables._tracker import Args, Kwargs, VariableTracker, is_a

handlers: HandlerTable[Any, Any] = HandlerTable("function of heapq or bisect")
_OF_HEAPS = (
    "heappush heappop heapreplace heappushpop heapify _heappop_max _heapreplace_max _heapify_max"
)
_OF_SORTED = "bisect_left bisect_right insort_left insort_right"
_LARGE = 2500  # items: C goes through a larger heap in another order


@handlers.handles_each([getattr(heapq, name) for name in _OF_HEAPS.split() if hasattr(heapq, name)])
def of_heap(t: Space, args: Args, kwargs: Kwargs, of: Any) -> Result:
    if args[0].cls is not list or len(args[0].items) > _LARGE:
        raise t.unsupported(
            "bad-arguments", f"a call of heapq.{of.__name__} with no list, or with a long one"
        )
    greatest = [k.ConstantTracker(True)] if of.__name__.endswith("_max") else []
    function = getattr(app, of.__name__.removeprefix("_").removesuffix("_max"))
    return app_level(t, function, [*args, *greatest], kwargs)


@handlers.handles_each([getattr(bisect, name) for name in _OF_SORTED.split()])
def of_sorted(t: Space, args: Args, kwargs: Kwargs, of: Any) -> Result:
    given = dict(zip(("a", "x", "lo", "hi"), args, strict=False)) | kwargs
    bounds = [given[name] for name in ("lo", "hi") if name in given]
    if not is_a(given["a"], ListTracker | TupleTracker) or not all(map(_is_bound, bounds)):
        raise t.unsupported(
            "bad-arguments",
            f"a call of bisect.{of.__name__} with no list or tuple, or with odd bounds",
        )
    return app_level(t, getattr(app, of.__name__), args, kwargs)


def _is_bound(vt: VariableTracker) -> bool:
    return vt.cls is int or vt is k.NONE or (is_a(vt, k.ConstantTracker) and vt.value is None)
