"""Facts about what a container or object holds: how many, which keys in which order, and what is
absent."""

from collections.abc import Hashable, Iterable
from typing import Any, ClassVar

from attrs import field, frozen

from stator_guards._cells import Cells
from stator_guards._guard import Kind
from stator_guards._object_ref import kept, key_of, real, same_keys, same_plain_keys, short
from stator_guards._part_source import written_key
from stator_guards._source import Renderer, State


@frozen
class Length(Kind):
    """`len(value) == length`."""

    length: int

    rank = 14
    merge_key = None
    needs = "of length {0.length}"
    fix = "keep the length fixed, or stack the elements into one tensor with a dynamic dimension"
    compare: ClassVar[str] = "=="

    def test(self, value: str, render: Renderer) -> str:
        return f"{render.capture(len, 'len')}({value}) {self.compare} {self.length}"

    def holds(self, value: Any, state: State) -> bool:
        return len(value) == self.length

    def watch(self, value: object, cells: Cells) -> bool:
        return type(value) is tuple or cells.mapping(value)

    def found(self, value: Any, state: State) -> str:
        return f"of length {len(value)}"


@frozen
class LongerThan(Length):
    """`len(value) > length`."""

    needs = "of more than {0.length} items"
    fix = "keep the length on this side of it, or expect another compiled version"
    compare = ">"

    def holds(self, value: Any, state: State) -> bool:
        return len(value) > self.length


def _kept(keys: Iterable[Hashable]) -> tuple[Hashable, ...]:
    return tuple(map(kept, keys))


def _keys(keys: Iterable[Hashable]) -> tuple[Hashable, ...]:
    return tuple(map(key_of, keys))


_PLAIN_KEYS = frozenset((str, int, bytes, bool))


@frozen
class KeysAre(Kind):
    """The keys of a mapping in their order: constants by exact type and value, other keys by
    identity."""

    keys: tuple[Hashable, ...] = field(eq=_keys, converter=_kept)

    rank = 18
    merge_key = None
    reads = 2
    fix = "pass the same keys in the same order"

    def test(self, value: str, render: Renderer) -> str:
        if not self.keys:
            return f"{render.capture(len, 'len')}({value}) == 0"
        if self._are_plain:
            keys = render.capture(list(self.keys), "keys")
            types = render.capture(list(map(type, self.keys)), "key_types")
            return f"{render.capture(same_plain_keys, 'same_plain_keys')}({value}, {keys}, {types})"
        keys = render.capture(_keys(self.keys), "keys")
        return f"{render.capture(same_keys, 'same_keys')}({value}, {keys})"

    def holds(self, value: Any, state: State) -> bool:
        if self._are_plain:
            return same_plain_keys(value, [*self.keys], [*map(type, self.keys)])
        return same_keys(value, _keys(self.keys))

    @property
    def _are_plain(self) -> bool:
        return _PLAIN_KEYS.issuperset(map(type, self.keys))

    def watch(self, value: object, cells: Cells) -> bool:
        return cells.order(value)

    @property
    def needed(self) -> str:
        return f"a mapping with keys {short([*map(real, self.keys)])}"

    def found(self, value: Any, state: State) -> str:
        return f"one with keys {short(list(value))}"


@frozen
class KeyPresent(Kind):
    """`key in value`, whatever its value is; `owner` is `dict` where the class of the value decides
    in its own way."""

    key: Hashable = field(eq=key_of, converter=kept)
    owner: type[dict[Any, Any]] | None = None

    rank = 15
    needs = "with {0.shown}"
    finds = "without {0.shown}"
    fix = "keep {0.shown} in place"
    operator: ClassVar[str] = "in"

    def test(self, value: str, render: Renderer) -> str:
        key = written_key(self.key, render)
        if self.owner is None:
            return f"{key} {self.operator} {value}"
        negation = "" if self.operator == "in" else "not "
        return f"{negation}{render.capture(dict.__contains__, 'dict_contains')}({value}, {key})"

    def holds(self, value: Any, state: State) -> bool:
        key = real(self.key)
        found = key in value if self.owner is None else dict.__contains__(value, key)
        return found is (self.operator == "in")

    def watch(self, value: object, cells: Cells) -> bool:
        return cells.lookup(value, real(self.key))

    @property
    def shown(self) -> str:
        return short(real(self.key))


@frozen
class KeyAbsent(KeyPresent):
    """`key not in value`."""

    needs = KeyPresent.finds
    finds = KeyPresent.needs
    fix = "set {0.shown} before the first call, or never"
    operator = "not in"


@frozen
class AttrAbsent(Kind):
    """`not hasattr(value, attribute)`, by plain attribute lookup; or a slot, which `member` reads,
    is empty."""

    attribute: str
    member: Any = field(default=None, eq=id, repr=False)

    rank = 40
    needs = "without attribute {0.attribute!r}"
    finds = "with attribute {0.attribute!r}"
    fix = "set {0.attribute!r} before the first call, or never"

    def test(self, value: str, render: Renderer) -> str:
        if self.member is not None:
            member = render.capture(self.member, self.attribute)
            return f"{render.capture(is_empty, 'is_empty')}({member}, {value})"
        return f"not {render.capture(hasattr, 'hasattr')}({value}, {self.attribute!r})"

    def holds(self, value: object, state: State) -> bool:
        return (
            not hasattr(value, self.attribute)
            if self.member is None
            else is_empty(self.member, value)
        )

    def watch(self, value: object, cells: Cells) -> bool:
        return self.member is None and cells.no_attribute(value, self.attribute)


def is_empty(member: Any, value: Any) -> bool:
    """Return True if a member descriptor of C, such as a slot, has no value, whatever `__getattr__`
    would return."""
    try:
        member.__get__(value)
    except AttributeError:
        return True
    return False
