"""Bodies of operators that may run more than once, or later: what such a body does is refused where
it has to happen once."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from attrs import define

from stator_variables._trace._capture_state import Notes


@define(eq=False)
class RepeatedBodies(Notes):
    """The number of such bodies that are open."""

    count: int = 0


@contextmanager
def repeated(t: Any, is_so: bool = True) -> Iterator[None]:
    """Interpret the block as such a body, if it is one."""
    bodies = t.state(RepeatedBodies)
    bodies.count += is_so
    try:
        yield
    finally:
        bodies.count -= is_so


def is_repeated(t: Any) -> bool:
    """Return True in such a body."""
    return bool(t.state(RepeatedBodies).count)
