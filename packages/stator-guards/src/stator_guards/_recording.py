"""Reading sources and checking guards while the words that prove them are recorded."""

from __future__ import annotations

import gc
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from stator_guards._cells import Cells
from stator_guards._guard import Guard
from stator_guards._part_source import PartSource
from stator_guards._source import Source, State


def read(source: Source, values: Mapping[Source, Any], state: State) -> Any:
    """The value of a source whose base was read already."""
    return (
        source.read(values[source.whole])
        if isinstance(source, PartSource)
        else source.evaluate(state)
    )


def stays(source: Source, values: Mapping[Source, Any], cells: Cells) -> bool:
    """Record the words that prove that a source keeps its value; read it again, now that they are
    recorded."""
    value = values[source]
    cells.begin(source)
    if isinstance(source, PartSource):
        whole = values[source.whole]
        if source.watch(whole, value, cells) and is_same(source.read(whole), value):
            return True
    elif source.watch(None, value, cells):
        return True
    cells.rollback()
    return False


def holds_on(guard: Guard, values: Mapping[Source, Any], state: State, cells: Cells) -> bool:
    """Record the words that prove that a guard holds; check it again, now that they are
    recorded."""
    value = None if guard.source is None else values[guard.source]
    cells.begin(guard)
    if guard.kind.watch(value, cells) and guard.kind.holds(value, state):
        return True
    cells.rollback()
    return False


def is_same(new: object, old: object) -> bool:
    """Return whether a value is the one it was; the proxy of a class dict is made anew for every
    reader."""
    return new is old or (
        type(new) is MappingProxyType and gc.get_referents(new) == gc.get_referents(old)
    )
