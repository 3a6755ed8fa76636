"""Numbers in the result of a cached function that change with its symbolic arguments.

The cache holds a result for the sizes of this call; that for other sizes has other numbers in some
places. To find those, the function is interpreted on the symbolic arguments, and undone.

    split(8, 2)   the cache has [4, 2]   split(n, 2) is [n // 2, 2]  so the first is an input
"""

from collections.abc import Iterator
from typing import Any

from stator_bytecode import Raised, Returned
from stator_guards import CapturedSource, DictItemSource, ItemSource, Source

from stator_variables import _trackers as k
from stator_variables._library._cached_calls import CachedCalls
from stator_variables._objects._number import VaryingNumbers
from stator_variables._protocols._calls import frame_for
from stator_variables._space import Space
from stator_variables._tracker import Args, Kwargs, is_a


def note_varying_numbers(
    t: Space, cached: Any, args: Args, kwargs: Kwargs, result: object, source: Source
) -> None:
    """Let the numbers of `result`, at `source`, that depend on symbolic arguments be symbolic.

    A function that cannot be interpreted, or raises, gives no evidence.
    """
    function = t.wrap(inside := cached.__wrapped__, CapturedSource("cached", inside))
    if not is_a(function, k.FunctionTracker):
        return
    outer, at, cached_calls = t.machine, (t.frame, t.instruction), t.state(CachedCalls)
    trial = cached_calls.trial
    mark = outer.domain.mark()
    t.machine = outer.nested()
    cached_calls.trial = {}

    try:
        outcome = t.machine.run([frame_for(t, function, args, kwargs)])
        if isinstance(outcome, Returned):
            varying = _symbolic_parts(t, outcome.value, result, source)
            t.state(VaryingNumbers).sources.update(varying)
    except Raised:
        pass  # arguments that do not fit
    finally:
        t.machine = outer
        t.frame, t.instruction = at
        cached_calls.trial = trial
        outer.domain.rollback(mark)


def _symbolic_parts(t: Space, vt: Any, real: Any, source: Source) -> Iterator[Source]:
    """The places of a result at which another structure of the same kind has symbolic numbers."""
    if vt.is_symbolic:
        yield source
    elif vt.cls is not type(real):
        return
    elif vt.cls in (list, tuple):
        for index, (part, item) in enumerate(zip(vt.items, real, strict=False)):
            yield from _symbolic_parts(t, part, item, ItemSource(source, index))
    elif vt.cls is dict:
        for key, part in t.items(vt):
            if (known := key.constant()) in real:
                yield from _symbolic_parts(t, part, real[known], DictItemSource(source, known))
