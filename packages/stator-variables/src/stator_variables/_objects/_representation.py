"""The text of a container: `repr` of its items, one after the other."""

from collections.abc import Iterable
from typing import Any

import attrs
from stator_bytecode import OperationSteps, Result, operation, settle

from stator_variables._objects._method_table import settle_all
from stator_variables._objects._text import text_of
from stator_variables._space import Space
from stator_variables._trace._capture_state import CaptureState
from stator_variables._tracker import VariableTracker
from stator_variables._trackers import ConstantTracker


def shown(
    t: Space, vt: VariableTracker, again: str, items: Iterable[Any], start: str, end: str
) -> Result:
    """Return `repr(vt)`, a Result. A container that contains itself is shown as `again`."""
    return in_turn(t, vt, again, joined(t, list(items), start, end))


@attrs.define(eq=False)
class Representations(CaptureState):
    """The containers whose `repr` is under way, outermost first."""

    containers: list[VariableTracker] = attrs.Factory(list)

    def moment(self) -> tuple[Any, ...]:
        return (len(self.containers),)


@operation
def in_turn(t: Space, vt: VariableTracker, again: str, text: Result) -> OperationSteps:
    """Return the text, or `again` where that of the same container is under way
    (`Py_ReprEnter`)."""
    under_way = t.state(Representations).containers
    if any(other is vt for other in under_way):
        return ConstantTracker(again)
    depth = len(under_way)
    under_way.append(vt)
    t.journal.record(lambda: under_way.__delitem__(slice(depth, None)))
    try:
        return (yield from settle(text))
    finally:
        del under_way[depth:]


@operation
def joined(t: Space, items: list[Any], start: str, end: str) -> OperationSteps:
    texts = yield from settle_all(t.convert(item, "r") for item in items)
    return text_of(t, [start, *[part for text in texts for part in (", ", text)][1:], end])
