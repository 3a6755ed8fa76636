"""Cells: the variables that functions share."""

from types import CellType
from typing import Any

import stator_guards as guards
from stator_bytecode import NULL

from stator_variables._emitter import Emitter
from stator_variables._objects._builder_table import BuilderTable
from stator_variables._objects._wrap import wrap_present
from stator_variables._space import Space
from stator_variables._tracker import VariableTracker

builders = BuilderTable()


class CellTracker(VariableTracker, references=("content",)):
    """One cell; `content` is NULL while it is empty."""

    cls = CellType

    def __init__(self, content: Any) -> None:
        self.content = content

    def rebuild(self, e: Emitter) -> str:
        name = e.bind(self, f"{e.capture(CellType, 'Cell')}()")
        if self.content is not NULL:
            e.lines.append(f"{name}.cell_contents = {e.expr(self.content)}")
        return name

    def replay(self, e: Emitter) -> None:
        name = e.expr(self)
        empty = self.content is NULL
        e.lines.append(
            f"del {name}.cell_contents"
            if empty
            else f"{name}.cell_contents = {e.expr(self.content)}"
        )


@builders.by_class.handles(CellType)
def build_cell(t: Space, real: Any, source: guards.Source) -> VariableTracker:
    if real == _EMPTY_CELL:
        t.guard(source, _IS_EMPTY)
        return CellTracker(NULL)
    return CellTracker(wrap_present(t, real.cell_contents, guards.CellSource(source)))


_EMPTY_CELL = CellType()


_IS_EMPTY = guards.Custom("{fn}({value})", lambda cell: cell == _EMPTY_CELL, "an empty cell")
