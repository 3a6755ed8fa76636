"""The cyclic garbage collector while an entry is made: rare collections of the young generation.

The trace of a large model makes some hundred thousand objects, most of which are released by their
reference counts when it ends. Collections meanwhile move them to the oldest generation, and soon
the collector visits every object of the process for their sake: a quarter of the time of a first
call, for nothing.
"""

import gc
from collections.abc import Iterator
from contextlib import contextmanager

_YOUNG_OBJECTS = 200_000
"""Number of new container objects after which there is a collection even then."""


@contextmanager
def rare_collections() -> Iterator[None]:
    """Raise the threshold of the youngest generation for a block.

    A threshold that the program has raised further, or set to 0 (never collect), stays, and so does
    one that another thread sets meanwhile.
    """
    before = gc.get_threshold()
    _, middle, old = before
    if not 0 < before[0] < _YOUNG_OBJECTS:
        yield
        return

    gc.set_threshold(_YOUNG_OBJECTS, middle, old)
    try:
        yield
    finally:
        if gc.get_threshold() == (_YOUNG_OBJECTS, middle, old):
            gc.set_threshold(*before)
