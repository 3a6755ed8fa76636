"""The transforms of torch.func that are under way, and places that have a way of their own with
tensors: the bodies of operators, transforms, and modes for every function of torch."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import attrs

from stator_variables._space import Space
from stator_variables._trace._capture_state import CaptureState
from stator_variables._trace._overrides import Overrides


@attrs.define(eq=False)
class Transforms(CaptureState):
    """The names of the transforms that are under way, outermost first."""

    names: list[str] = attrs.Factory(list)

    def moment(self) -> tuple[Any, ...] | None:
        return None if self.names else ()


@contextmanager
def in_transform(t: Space, name: str) -> Iterator[None]:
    """Interpret the block in a transform."""
    names = t.state(Transforms).names
    names.append(name)
    try:
        yield
    finally:
        names.pop()


def is_surrounded(t: Space) -> bool:
    """Return True in one of these places."""
    return bool(t.touched or t.state(Transforms).names or t.state(Overrides).modes)
