"""Keys that are not realized, put into dicts and sets from outside: a loop that fills a container,
with a break in each round, must not be compiled again for each key.

The write relies only on the class of such a key, whose values all can be hashed. It waits in
`undecided` for the replay, and becomes a write under a known key as soon as the entries are read.
"""

from collections.abc import Callable
from typing import Any

from stator_guards import TypeIs

from stator_variables import _trackers as k
from stator_variables._objects._keys import HashedTracker
from stator_variables._objects._wrap import ATOMS
from stator_variables._space import Space
from stator_variables._tracker import VariableTracker, is_a, is_pending, real_of, source_of


def is_undecided(t: Space, key: VariableTracker) -> bool:
    """Return True if the value of the key is not known yet, and need not be. Guards its class if
    so."""
    if not is_pending(key):
        return is_a(key, k.NumberTracker | k.TextTracker)
    if (kind := type(real_of(key))) not in ATOMS:
        return False
    t.guard(source_of(key), TypeIs(kind))
    return True


def put_undecided(
    t: Space, vt: HashedTracker, write: tuple[Any, ...], put: Callable[..., None]
) -> None:
    """Note a write; `put(t, vt, *write)` makes it with its key known."""

    def decide() -> None:
        writes = vt.undecided
        t.journal.assign(vt, undecided=[])
        for each in writes:
            put(t, vt, *each)

    t.write(vt, undecided=[*vt.undecided, write], decide=decide)
