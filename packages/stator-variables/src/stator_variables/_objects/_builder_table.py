"""Builders of trackers, by the classes of the existing objects."""

from collections.abc import Callable
from functools import cached_property
from typing import Any

import attrs
from stator_bytecode import HandlerTable
from stator_guards import AttrSource, Is, Source

from stator_variables._space import Space
from stator_variables._tracker import VariableTracker
from stator_variables._trackers import BuiltinTracker

Builder = Callable[[Space, Any, Source], VariableTracker]
"""Guards what it reads of an existing object, and makes its tracker."""


def _table() -> HandlerTable[type, Builder]:
    return HandlerTable("builder")


@attrs.frozen(slots=False)
class BuilderTable:
    """The builders of one module: of exactly these classes, and of these classes with their
    subclasses."""

    by_class: HandlerTable[type, Builder] = attrs.field(factory=_table)
    by_base: HandlerTable[type, Builder] = attrs.field(factory=_table)

    def merged_with(self, *others: "BuilderTable") -> "BuilderTable":
        return BuilderTable(
            self.by_class.merged_with(*(other.by_class for other in others)),
            self.by_base.merged_with(*(other.by_base for other in others)),
        )

    @cached_property
    def exact(self) -> dict[int, Builder]:
        """The builders by the identity of their classes: a metaclass may define how its classes
        compare and hash."""
        tables = self.by_base, self.by_class
        return {id(cls): builder for table in tables for cls, builder in table.items()}

    def find(self, cls: type) -> Builder | None:
        """Return the builder of instances of a class."""
        if (found := self.exact.get(id(cls))) is not None:
            return found
        bases = self.by_base.items()
        return next((builder for base, builder in bases if type.__subclasscheck__(base, cls)), None)


def by_identity(kind: Callable[[Any], VariableTracker]) -> Builder:
    """Return the builder of what is known once it is known which object it is."""

    def build(t: Space, real: object, source: Source) -> VariableTracker:
        t.guard(source, Is(real))
        return kind(real)

    return build


build_by_identity = by_identity(BuiltinTracker)


def field(t: Space, real: object, name: str, source: Source) -> Any:
    """The tracker of an attribute that C reads."""
    return t.wrap(getattr(real, name), AttrSource(source, name))
