"""What lists, tuples and deques have in common."""

from collections.abc import Iterable
from typing import Any

from stator_variables._tracker import VariableTracker


class SequenceTracker(VariableTracker):
    """The items of a list or a tuple (or of an instance of a subclass of either)."""

    items: list[Any]

    def __init__(self, items: Iterable[Any], cls: type) -> None:
        self.items = list(items)
        self.cls = cls
