"""Facts that relate several sources, and predicates that upper layers bring along."""

import ast
from collections.abc import Callable, Hashable, Mapping
from itertools import combinations, starmap
from typing import Any, ClassVar

from attrs import field, frozen

from stator_guards._cells import Cells
from stator_guards._guard import Kind
from stator_guards._object_ref import identity, short
from stator_guards._source import GuardRenderer, Renderer, Source, State


@frozen
class SameObject(Kind):
    """`value is other`: two paths that led to one object still do."""

    other: Source

    rank = 12
    of_contents = False
    operator: ClassVar[str] = "is"
    needs = "the same object as {0.other}"
    finds = "another object, {1}"
    fix = "keep passing one object in both places, or never do"

    @property
    def others(self) -> tuple[Source, ...]:
        return (self.other,)

    def test(self, value: str, render: Renderer) -> str:
        return f"{value} {self.operator} {render.value(self.other)}"

    def holds(self, value: object, state: State) -> bool:
        return (value is self.other.evaluate(state)) is (self.operator == "is")

    def watch(self, value: object, cells: Cells) -> bool:
        return True


@frozen
class DistinctObject(SameObject):
    """`value is not other`: two paths that led to two objects still do."""

    operator = "is not"
    needs = "another object than {0.other}"
    finds = "the same object as {0.other}"
    fix = "keep passing two objects, or copy one of them"


def all_distinct(*values: object) -> bool:
    return len(set(map(identity, values))) == len(values)


def identities(*values: object) -> frozenset[int] | None:
    """Return the identities of values; None where one is there twice."""
    found = frozenset(map(identity, values))
    return found if len(found) == len(values) else None


_ARE_APART: Any = frozenset.isdisjoint


def are_disjoint(*parts: frozenset[int] | None) -> bool:
    """Return whether no part is None and no two have a common member."""
    return None not in parts and all(starmap(_ARE_APART, combinations(parts, 2)))


@frozen
class AllDistinct(Kind):
    """The value and all of `others` are different objects."""

    others: tuple[Source, ...]
    first: Source
    """The source of the value itself."""

    rank = 31
    of_contents = False
    finds = "one object in two of these places"
    fix = "pass different objects, or always the same one in the same places"

    def test(self, value: str, render: GuardRenderer) -> str:
        parts = render.kept(identities, [self.first, *self.others])
        return f"{render.capture(are_disjoint, 'are_disjoint')}({', '.join(parts)})"

    def holds(self, value: object, state: State) -> bool:
        return all_distinct(value, *(source.evaluate(state) for source in self.others))

    def watch(self, value: object, cells: Cells) -> bool:
        """Needs no words: all of the sources are pinned in one group."""
        return True

    @property
    def needed(self) -> str:
        return f"another object than {', '.join(map(str, self.others))}"


def _ids(scope: Mapping[str, object]) -> tuple[tuple[str, int], ...]:
    return tuple((name, id(obj)) for name, obj in scope.items())


@frozen
class ShapeExpression(Kind):
    """A Python expression over sizes: its free names are keys of `sources`, or else of `scope`."""

    text: str
    sources: Mapping[str, Source] = field(eq=lambda sources: tuple(sources.items()))
    scope: Mapping[str, object] = field(factory=dict, eq=_ids)

    rank = 80
    fix = "keep the relation between the sizes, or expect another compiled version"

    @property
    def others(self) -> tuple[Source, ...]:
        return tuple(self.sources.values())

    def test(self, value: str, render: Renderer) -> str:
        tree = ast.parse(self.text.strip(), mode="eval")
        for node in ast.walk(tree):
            if isinstance(node, ast.Name):
                node.id = self._rendered(node.id, render)
        return f"({ast.unparse(tree)})"

    def _rendered(self, name: str, render: Renderer) -> str:
        if name in self.sources:
            return render.value(self.sources[name])
        return render.capture(self.scope[name], name) if name in self.scope else name

    def holds(self, value: object, state: State) -> bool:
        """Raises ArithmeticError or ValueError where it cannot be computed (10 // n == 2 where n is
        0)."""
        return bool(eval(self.text.strip(), dict(self.scope), self._sizes(state)))

    def _sizes(self, state: State) -> dict[str, object]:
        return {name: source.evaluate(state) for name, source in self.sources.items()}

    @property
    def needed(self) -> str:
        described = ", ".join(f"{name} = {source}" for name, source in self.sources.items())
        return f"{self.text} ({described})"

    def found(self, value: object, state: State) -> str:
        return ", ".join(f"{name} = {size!r}" for name, size in self._sizes(state).items())


@frozen
class Custom(Kind):
    """A pure Python predicate of an upper layer. `template` may use `{fn}` and `{value}`;
    `fn(value)` gives the same.

    `words(value, cells)` records the words of memory that prove it, and returns False if none do.
    """

    template: str
    fn: Callable[[Any], bool]
    description: str = ""
    words: Callable[[Any, Cells], bool] = field(default=lambda value, cells: False, eq=False)

    rank = 60
    reads = 2

    @property
    def merge_key(self) -> Hashable:
        """The description: `fn` may be another function each time the same predicate is made."""
        return (self.template, self.description or self.fn)

    fix = "keep this property of the value, or expect another compiled version"

    def test(self, value: str, render: Renderer) -> str:
        fn = (
            render.capture(self.fn, getattr(self.fn, "__name__", "fn"))
            if "{fn}" in self.template
            else ""
        )
        return f"({self.template.format(fn=fn, value=value)})"

    def holds(self, value: object, state: State) -> bool:
        return bool(self.fn(value))

    def watch(self, value: object, cells: Cells) -> bool:
        return self.words(value, cells)

    @property
    def needed(self) -> str:
        return (
            self.description or f"such that {self.template.format(fn=short(self.fn), value='it')}"
        )
