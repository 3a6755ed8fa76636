"""The identity of the parts that jagged tensors share: `nested_tensor_from_jagged(values,
offsets).offsets()` is `offsets`."""

from collections.abc import Sequence
from typing import Any, ClassVar

import attrs
from torch.nested._internal.nested_tensor import NestedTensor

from stator_variables._space import Space
from stator_variables._trace._capture_state import CaptureState
from stator_variables._tracker import is_a
from stator_variables._trackers import TensorTracker

PARTS = frozenset({"_offsets", "_lengths", "_min_seqlen_tensor", "_max_seqlen_tensor"})


@attrs.define(eq=False)
class JaggedParts(CaptureState):
    """The trackers of the parts that jagged tensors share, by the identity of the fake."""

    may_repeat: ClassVar[bool] = True

    known: dict[int, Any] = attrs.Factory(dict)

    def moment(self) -> tuple[Any, ...]:
        return (len(self.known),)


def note_parts(t: Space, example: object, operands: Sequence[Any]) -> None:
    """Note which operands are parts of a jagged tensor that an operator has made of them."""
    if type(example) is not NestedTensor:
        return
    known = t.state(JaggedParts).known
    parts = {id(getattr(example, name, None)) for name in PARTS} - known.keys()
    for operand in operands:
        if is_a(operand, TensorTracker) and id(operand.example) in parts:
            t.journal.put(known, id(operand.example), operand)
