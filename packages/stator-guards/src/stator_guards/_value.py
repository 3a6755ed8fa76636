"""Facts about one value: its type, its identity, its constant value, its truth."""

import math
from collections.abc import Hashable, Sequence
from typing import ClassVar

from attrs import field, frozen

from stator_guards._cells import Cells
from stator_guards._guard import CaseFunction, Kind
from stator_guards._object_ref import (
    PLAIN,
    ObjectRef,
    constant_key,
    is_constant,
    is_literal,
    key_of,
    same_constant,
    short,
)
from stator_guards._source import Renderer, State
from stator_guards.errors import InvalidUse


def type_case(value: object) -> Hashable:
    return id(type(value))


def constant_case(value: object) -> Hashable:
    """The key of a number or text, None for other values: their parts may be objects of user
    classes."""
    return constant_key(value) if type(value) in _SCALARS else None


_SCALARS = frozenset((*PLAIN, float, complex))


@frozen
class TypeIs(Kind):
    """`type(value) is cls`, exactly."""

    cls: type = field(eq=id)  # a metaclass may define how its classes compare

    rank = 10
    merge_key = None
    of_contents = False
    needs = "a {0.cls.__qualname__}"
    fix = "pass values of one type, or expect one compiled version per type"

    def test(self, value: str, render: Renderer) -> str:
        cls = render.capture(self.cls, self.cls.__name__)
        return f"{render.capture(type, 'type')}({value}) is {cls}"

    def holds(self, value: object, state: State) -> bool:
        return type(value) is self.cls

    def watch(self, value: object, cells: Cells) -> bool:
        return cells.type_of(value)

    def discriminants(self) -> Sequence[tuple[CaseFunction, Hashable]]:
        return ((type_case, id(self.cls)),)

    def found(self, value: object, state: State) -> str:
        return f"a {type(value).__qualname__}"


@frozen(init=False)
class Is(Kind):
    """`value is obj`. Held weakly where possible: a new object at a dead one's address never
    matches."""

    held: ObjectRef

    rank = 12
    merge_key = None
    of_contents = False
    reads = 2
    needs = "the object {0.held.text}"
    finds = "another one, {1}"
    fix = "keep using the same object, or pass what changes as an argument"

    def __init__(self, obj: object, *, weak: bool = True) -> None:
        self.__attrs_init__(ObjectRef.of(obj, weak=weak))

    @property
    def is_gone(self) -> bool:
        return self.held.is_gone

    def test(self, value: str, render: Renderer) -> str:
        if not self.held.weak:
            return f"{value} is {render.capture(self.held.get(), f'expected_{value}')}"
        # a dead weak reference gives None, which must not match a value that is None
        name = self.held.name if self.held.name.isidentifier() else value
        reference = render.capture(self.held.reference, f"{name}_ref")
        return f"{value} is not None and {reference}() is {value}"

    def holds(self, value: object, state: State) -> bool:
        return self.held.is_(value)

    def watch(self, value: object, cells: Cells) -> bool:
        return True

    def discriminants(self) -> Sequence[tuple[CaseFunction, Hashable]]:
        return ((id, self.held.address),)


@frozen
class IsNone(Kind):
    """`value is None`."""

    rank = 10
    merge_key = None
    of_contents = False
    operator: ClassVar[str] = "is"
    needs = "None"
    fix = "pass None always or never"

    def test(self, value: str, render: Renderer) -> str:
        return f"{value} {self.operator} None"

    def holds(self, value: object, state: State) -> bool:
        return (value is None) is (self.operator == "is")

    def watch(self, value: object, cells: Cells) -> bool:
        return True

    def discriminants(self) -> Sequence[tuple[CaseFunction, Hashable]]:
        return ((type_case, id(type(None))),) if self.operator == "is" else ()


@frozen
class IsNotNone(IsNone):
    """`value is not None`."""

    operator = "is not"
    needs = "not None"


@frozen
class Truth(Kind):
    """`bool(value)` is `expected`: of flags, and of containers that must stay empty or filled."""

    expected: bool

    rank = 14
    merge_key = None
    of_contents = False
    fix = "keep the flag or container as it was, or expect one compiled version per truth value"

    def test(self, value: str, render: Renderer) -> str:
        return value if self.expected else f"not {value}"

    def holds(self, value: object, state: State) -> bool:
        return bool(value) is self.expected

    def watch(self, value: object, cells: Cells) -> bool:
        return is_constant(value) or cells.mapping(value)

    @property
    def needed(self) -> str:
        return "true" if self.expected else "false"


def _constant(instance: object, attribute: object, value: object) -> None:
    if not is_constant(value):
        raise InvalidUse(
            f"Equals needs a constant, not {short(value)}", "guard other objects with Is"
        )


@frozen
class Equals(Kind):
    """The very constant `value`, by exact type and value at every depth: 1, True and 1.0 differ,
    -0.0 and 0.0 too."""

    value: object = field(eq=key_of, validator=_constant)

    rank = 16
    merge_key = None
    of_contents = False
    reads = 3

    def test(self, value: str, render: Renderer) -> str:
        return " and ".join(_same(value, self.value, render))

    def holds(self, value: object, state: State) -> bool:
        return same_constant(value, constant_key(self.value))

    def watch(self, value: object, cells: Cells) -> bool:
        return True

    def discriminants(self) -> Sequence[tuple[CaseFunction, Hashable]]:
        cls = type(self.value)
        constant = ((constant_case, constant_key(self.value)),) if cls in _SCALARS else ()
        return (*constant, (type_case, id(cls)))

    @property
    def needed(self) -> str:
        return short(self.value)

    def found(self, value: object, state: State) -> str:
        same_text = short(value) == short(self.value)
        return f"{short(value)} of type {type(value).__qualname__}" if same_text else short(value)

    @property
    def fix(self) -> str:
        if type(self.value) is int:
            return "let this int become symbolic, or pass it as a tensor"
        if type(self.value) is float:
            return "pass this float as a tensor"
        return "keep the value constant, or expect one compiled version per value"


def _same(value: str, constant: object, render: Renderer) -> list[str]:
    """The tests that `value` is exactly `constant`, cheapest first."""
    cls = type(constant)
    if constant is None or cls is bool or constant is Ellipsis:
        return [f"{value} is {constant!r}"]

    is_cls = f"{render.capture(type, 'type')}({value}) is {render.capture(cls, cls.__name__)}"
    if cls in (int, str, bytes):
        if is_literal(constant):
            return [is_cls, f"{value} == {constant!r}"]
        return [is_cls, f"{value} == {render.capture(constant, f'expected_{value}')}"]
    if isinstance(constant, float) and cls is float and constant and math.isfinite(constant):
        return [is_cls, f"{value} == {constant!r}"]
    if isinstance(constant, tuple) and cls is tuple and len(constant) <= 8:
        items = [
            test for i, item in enumerate(constant) for test in _same(f"{value}[{i}]", item, render)
        ]
        return [is_cls, f"{render.capture(len, 'len')}({value}) == {len(constant)}", *items]

    key = render.capture(constant_key(constant), f"expected_{value}")
    return [is_cls, f"{render.capture(same_constant, 'same_constant')}({value}, {key})"]
