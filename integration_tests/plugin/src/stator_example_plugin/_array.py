"""A tracker from outside: arrays of Python's `array` module, by their content.

One that exists is guarded as a whole, by a kind of guard of this package.
"""

from __future__ import annotations

from array import array
from typing import Any

import attrs
from stator_bytecode import HandlerTable
from stator_guards import Kind, Renderer, Source, State, TypeIs
from stator_variables import (
    BuilderTable,
    ConstantTracker,
    Emitter,
    MethodTable,
    Space,
    VariableTracker,
)

__all__ = ["ArrayTracker", "ContentIs", "builders", "handlers"]

builders = BuilderTable()
methods = MethodTable("method of arrays")
handlers: HandlerTable[Any, Any] = methods.handlers


@attrs.frozen
class ContentIs(Kind):
    """The type code and the items of an array."""

    typecode: str
    items: tuple[int | float, ...]

    needs = "of {0.typecode!r} with the items {0.items}"
    fix = "keep the items, or expect another compiled version"
    reads = 2

    def test(self, value: str, render: Renderer) -> str:
        return f"{value}.typecode == {self.typecode!r} and tuple({value}) == {self.items!r}"

    def holds(self, value: Any, state: State) -> bool:
        return bool(value.typecode == self.typecode and tuple(value) == self.items)


class ArrayTracker(VariableTracker):
    """An array; `items` are constants."""

    cls = array

    def __init__(self, typecode: str, items: list[Any]) -> None:
        self.typecode = typecode
        self.items = items

    def rebuild(self, e: Emitter) -> str:
        make = e.capture(array, "array")
        return e.bind(self, f"{make}({self.typecode!r}, {self.items!r})")

    def replay(self, e: Emitter) -> None:
        items = f"{e.capture(array, 'array')}({self.typecode!r}, {self.items!r})"
        e.lines.append(f"{e.expr(self)}[:] = {items}")


@builders.by_class.handles(array)
def build_array(t: Space, real: Any, source: Source) -> VariableTracker:
    t.guard(source, TypeIs(array))
    t.guard(source, ContentIs(real.typecode, tuple(real)))
    return ArrayTracker(real.typecode, list(real))


@methods.handles(array.__len__)
def length(t: Space, vt: ArrayTracker) -> Any:
    return ConstantTracker(len(vt.items))


@methods.handles(array.__getitem__)
def get_item(t: Space, vt: ArrayTracker, key: Any) -> Any:
    index = key.constant()
    if type(index) is not int or not -len(vt.items) <= index < len(vt.items):
        raise t.unsupported("bad-arguments", "an index of an array that is not in it")
    return ConstantTracker(vt.items[index])


@methods.handles(array.append, takes=1)
def append(t: Space, vt: ArrayTracker, item: Any) -> Any:
    try:
        added = array(vt.typecode, [item.constant()])
    except (TypeError, OverflowError) as error:  # also of a number that the graph computes
        raise t.unsupported("builtin", f"array.append: {error}") from None

    t.write(vt, items=[*vt.items, *added])
    return ConstantTracker(None)
