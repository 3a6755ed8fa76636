"""A generated check that a state like one that was seen releases plain values only.

`hold_plain_values` finds this out of any values. States that reach one place have the same
structure as a rule, so that the check generated for it has a few comparisons left:

    def releases_plain_values(state):
        try:
            local_self = state[0]
            local_args_cell = state[3]
            if type(local_args_cell) is not CellType:
                return False
            local_args_cell_content = local_args_cell.cell_contents
            if type(local_args_cell_content) is not tuple:
                return False
            if getrefcount(local_self) <= 3 and not holds_plain_values(local_self):
                return False
            values = (
                state[1], *local_args_cell_content,
            )
            return PLAIN.issuperset(map(identity, map(type, values)))
        except ValueError:
            return False

False means that the structure is another one, not that an end is observable.
"""

import gc
import itertools
import sys
import textwrap
import weakref
from collections.abc import Sequence
from types import CellType, MethodType
from typing import Any

from stator_guards import identity

from stator_variables._runtime._finalizers import (
    _EMPTY_CELL,
    _ITERATORS,
    _PLAIN,
    are_plain,
    holds_plain_values_alone,
)

_MOST = 64
"""The number of objects that are not plain up to which a check is generated."""

_PROVIDED: dict[str, object] = {
    "CellType": CellType,
    "EMPTY_CELL": _EMPTY_CELL,
    "MethodType": MethodType,
    "PLAIN": _PLAIN,
    "get_referents": gc.get_referents,
    "getrefcount": sys.getrefcount,
    "getweakrefcount": weakref.getweakrefcount,
    "holds_plain_values": holds_plain_values_alone,
    "identity": identity,
}


class _TooLarge(Exception):
    """The state has more objects than a check is worth."""


def release_check_source(
    state: Sequence[object], parameters: Sequence[str], places: Sequence[int]
) -> tuple[str, dict[str, object]] | None:
    """Return the source of `releases_plain_values` for states like this one and the objects that it
    refers to; None where `places` has too many objects.

    The check takes a tuple, which is all that refers to the values at `places` on behalf of the
    caller, and calls nothing of the program.
    """
    writer = _Writer()
    try:
        for place in places:
            writer.add(state[place], f"state[{place}]", f"local_{parameters[place]}", 1)
    except _TooLarge:
        return None
    return writer.text(), {**_PROVIDED, **writer.classes}


class _Writer:
    """Writes the lines for one state, value by value."""

    def __init__(self) -> None:
        self.classes: dict[str, object] = {}
        self._lines: list[str] = []
        self._plain: list[str] = []
        """Expressions of values, starred ones of their items, that have to be plain."""
        self._names: dict[int, str] = {}
        """The names of the objects that are not plain, by identity."""
        self._references: dict[str, int] = {}
        """The references from the state and its containers to each object that has to live on."""
        self._seen: list[object] = []
        """The objects with names, so that none of their identities is used again."""

    def add(self, value: Any, expression: str, hint: str, references: int) -> None:
        """Check a value, to which the state or a container refers `references` times."""
        cls = type(value)
        if identity(cls) in _PLAIN:
            self._plain.append(expression)
            return
        if (known := self._names.get(identity(value))) is not None:
            self._refuse(f"{expression} is not {known}")
            if known in self._references:
                self._references[known] += references
            return

        name = self._bind(value, expression, hint)

        if cls is tuple:
            self._add_tuple(value, name)
        elif cls is CellType:
            self._add_cell(value, name)
        elif cls is MethodType:
            self._refuse(f"type({name}) is not MethodType or getweakrefcount({name})")
            self.add(value.__self__, f"{name}.__self__", f"{name}_self", 1)
            self.add(value.__func__, f"{name}.__func__", f"{name}_func", 1)
        elif identity(cls) in _ITERATORS:
            self._add_iterator(value, name)
        elif (cls is list or cls is dict) and are_plain(_items(value)):
            self._refuse(f"type({name}) is not {cls.__name__}")
            self._plain += [f"*{name}"] + [f"*{name}.values()"] * (cls is dict)
        else:
            self._references[name] = references

    def text(self) -> str:
        for one, other in itertools.combinations(self._references, 2):
            self._refuse(f"{one} is {other}")
        for name, references in self._references.items():
            own = references + 2  # the local and the argument
            self._refuse(f"getrefcount({name}) <= {own} and not holds_plain_values({name})")
        values = textwrap.wrap("".join(f"{each}, " for each in self._plain), 88)
        self._lines += ["values = (", *(f"    {line}" for line in values), ")"]
        self._lines.append("return PLAIN.issuperset(map(identity, map(type, values)))")

        body = "".join(f"        {line}\n" for line in self._lines)
        handler = "    except ValueError:  # a cell is empty\n        return False\n"
        return f"def releases_plain_values(state):\n    try:\n{body}{handler}"

    def _bind(self, value: object, expression: str, hint: str) -> str:
        if len(self._names) == _MOST:
            raise _TooLarge
        name = hint
        while name in self._names.values():
            name += "_"
        self._names[identity(value)] = name
        self._seen.append(value)
        self._lines.append(f"{name} = {expression}")
        return name

    def _refuse(self, condition: str) -> None:
        """Write that the structure is another one if `condition` holds."""
        self._lines += [f"if {condition}:", "    return False"]

    def _add_tuple(self, value: tuple[object, ...], name: str) -> None:
        if are_plain(value):
            self._refuse(f"type({name}) is not tuple")
            self._plain.append(f"*{name}")
            return
        self._refuse(f"type({name}) is not tuple or len({name}) != {len(value)}")
        for i, item in enumerate(value):
            self.add(item, f"{name}[{i}]", f"{name}_{i}", 1)

    def _add_cell(self, cell: CellType, name: str) -> None:
        if cell == _EMPTY_CELL:
            self._refuse(f"type({name}) is not CellType or {name} != EMPTY_CELL")
            return
        self._refuse(f"type({name}) is not CellType")
        self.add(cell.cell_contents, f"{name}.cell_contents", f"{name}_content", 1)

    def _add_iterator(self, iterator: object, name: str) -> None:
        """Check what an iterator refers to. A list of its referents refers to them as well."""
        cls = type(iterator)
        self.classes[cls.__name__] = cls
        parts = gc.get_referents(iterator)
        listed = self._bind(parts, f"get_referents({name})", f"{name}_parts")
        self._refuse(f"type({name}) is not {cls.__name__} or len({listed}) != {len(parts)}")
        for i, part in enumerate(parts):
            self.add(part, f"{listed}[{i}]", f"{listed}_{i}", 2)


def _items(value: list[object] | dict[object, object]) -> Sequence[object]:
    return value if type(value) is list else [*value, *value.values()]  # type: ignore[union-attr]
