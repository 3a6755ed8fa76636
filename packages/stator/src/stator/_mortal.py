"""Which objects of a continuation's state die when its frames let go of them, and whose end may be noticed.

An entry holds its arguments to its end, plain Python lets go of a local at once:

    reference = weakref.ref(box)    # a break; `box` is an argument of what follows
    box = [box]                     # let go of, but held by the list
    box = None                      # the list dies, and the box with it
    reference()                     # None
"""

import sys
from collections import Counter
from collections.abc import Iterable
from types import MethodType

from stator_variables import is_noticed

WHILE_TRACED = 2
"""How often each value of a state is held while it is traced: by `Region.enter`, and by name."""


def mortal(state: tuple[object, ...], places: Iterable[int], holders: int = 1) -> tuple[int, ...]:
    """Those of the places in the state of a continuation where an object is whose end somebody may notice, and that
    nothing but the state holds, which has so many holders itself."""
    count = Counter(map(id, state))
    return tuple(place for place in places if _is_mortal(state, place, holders * count[id(state[place])]))


def _is_mortal(state: tuple[object, ...], place: int, holders: int) -> bool:
    return sys.getrefcount(state[place]) <= holders + 1 and _is_noticed(state[place])


def _is_noticed(value: object) -> bool:
    """A bound method may be the last to hold its object, as that of a `with` statement."""
    if type(value) is MethodType:
        return sys.getrefcount(value.__self__) == 2 and _is_noticed(value.__self__)
    return is_noticed(value)
