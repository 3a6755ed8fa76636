"""`super` objects."""

from typing import Any

import stator_guards as guards

from stator_variables._emitter import Emitter
from stator_variables._objects._builder_table import BuilderTable, field
from stator_variables._space import Space
from stator_variables._tracker import VariableTracker

builders = BuilderTable()


class SuperTracker(VariableTracker, references=("start", "receiver")):
    """`super(cls, receiver)`."""

    cls = super

    def __init__(self, start: VariableTracker, receiver: VariableTracker) -> None:
        self.start = start
        self.receiver = receiver

    def get_attribute(self, t: Space, name: str) -> Any:
        return t.super_attribute(self, name)

    def rebuild(self, e: Emitter) -> str:
        return e.bind(self, f"super({e.expr(self.start)}, {e.expr(self.receiver)})")


@builders.by_class.handles(super)
def build_super(t: Space, real: VariableTracker, source: guards.Source) -> VariableTracker:
    return SuperTracker(field(t, real, "__thisclass__", source), field(t, real, "__self__", source))
