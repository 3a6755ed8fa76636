"""Which objects of a continuation's state die when its frames let go of them, and whose end may be noticed.

An entry holds its arguments to its end, plain Python lets go of a local at once:

    reference = weakref.ref(box)    # a break; `box` is an argument of what follows
    box = [box]                     # let go of, but held by the list
    box = None                      # the list dies, and the box with it
    reference()                     # None
"""

import gc
import sys
from collections import Counter
from collections.abc import Iterable
from types import CellType, MethodType

from stator_variables import are_noticed, dying_with, is_noticed

WHILE_TRACED = 2
"""How often each value of a state is held while it is traced: by `Region.enter`, and by name."""


_CARRIERS = frozenset(map(id, (tuple, CellType, MethodType)))
"""Classes, by identity, of what holds an object besides: as the `__exit__` of a `with` statement."""


def mortal(state: tuple[object, ...], places: Iterable[int], holders: int = 1) -> tuple[int, ...]:
    """Those of the places in the state of a continuation where an object is whose end somebody may notice, and that
    nothing but the state holds, which has so many holders itself."""
    count, places = Counter(map(id, state * holders)), [*places]
    if _die_unnoticed({id(state[place]): state[place] for place in places}, count):
        return ()
    for place in {id(value): place for place, value in enumerate(state) if id(type(value)) in _CARRIERS}.values():
        if sys.getrefcount(state[place]) <= count[id(state[place])] + 1:
            count.update(map(id, gc.get_referents(state[place])))
    return tuple(place for place in places if _is_mortal(state, place, count))


def _die_unnoticed(values: dict[int, object], count: Counter[int]) -> bool:
    """Whether that is sure of all of them, and what dies with them; what others hold as well lives on."""
    dying = dying_with(values, count)
    return dying is not None and not are_noticed(dying)


def _is_mortal(state: tuple[object, ...], place: int, count: Counter[int]) -> bool:
    return sys.getrefcount(state[place]) <= count[id(state[place])] + 1 and is_noticed(state[place])
