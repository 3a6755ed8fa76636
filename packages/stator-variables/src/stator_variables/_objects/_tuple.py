"""Tuples: what is known of one, and how a new one is made."""

from typing import Any

import torch

from stator_variables._emitter import Emitter, filled
from stator_variables._kinds import ConstantTracker
from stator_variables._objects._sequence import SequenceTracker
from stator_variables._runtime._contents import has_member
from stator_variables._tracker import MISSING, is_pending


class TupleTracker(SequenceTracker):
    """A tuple, torch.Size, or named tuple."""

    def constant(self) -> Any:
        if self.cls not in (tuple, torch.Size):
            return MISSING
        values = [item.constant() for item in self.items]
        return MISSING if any(v is MISSING for v in values) else self.cls(values)

    def rebuild(self, e: Emitter) -> str:
        items = ", ".join(e.expr(item) for item in self.items)
        text = f"({items},)" if self.items else "()"
        if self.items and all(
            not is_pending(item) and isinstance(item, ConstantTracker) for item in self.items
        ):
            text = f"tuple([{items}])"  # the compiler would make one object of all that are equal
        if self.cls is not tuple:
            text = f"{e.capture(tuple.__new__, 'tuple_new')}({e.capture(self.cls)}, {text})"
            if self.cls is torch.Size or has_member(
                self.cls, "n_sequence_fields"
            ):  # made by C code that `tuple.__new__` refuses
                text = f"{e.capture(self.cls)}(({items}{',' if self.items else ''}))"
        return filled(e, self, e.bind(self, text))
