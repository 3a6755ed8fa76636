"""Sources that read one part of another source's value: an attribute, an item, a cell, a size."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from itertools import islice
from types import CellType
from typing import Any, ClassVar, Literal

from attrs import field, frozen

from stator_guards._cells import Cells
from stator_guards._object_ref import ObjectRef, is_literal, kept, key_of, real
from stator_guards._source import CapturedSource, Renderer, Source, State

read_plainly = object.__getattribute__
"""Attribute lookup that no class can override: `__dict__` must not run user code."""


@frozen(eq=False)
class PartSource(Source):
    """A part of `whole`; a subclass defines how it is written (`write`), read (`read`), named
    (`text`), labelled (`tag`).

    Chains may be thousands of parts long (a linked list is), so nothing here recurses along them.
    """

    whole: Source

    text: ClassVar[str]
    """The name of the source; `{0}` is replaced by that of the whole, `{part}` by this source."""
    tag: ClassVar[str]
    """The label of the source; `{whole}` is the source that it is a part of, `{part}` this one."""

    def __attrs_post_init__(self) -> None:
        hash(self)

    @property
    def base(self) -> Source:
        return self.whole

    def _chain(self) -> tuple[Source, list[PartSource]]:
        """The start of the chain, and its parts from there to this one."""
        parts: list[PartSource] = []
        source: Source = self
        while isinstance(source, PartSource):
            parts.append(source)
            source = source.whole
        return source, parts[::-1]

    @property
    def name(self) -> str:
        start, parts = self._chain()
        text = start.name
        for part in parts:
            text = part.named(text)
        return text

    @property
    def description(self) -> str:
        start, parts = self._chain()
        text = start.description
        for part in parts:
            text = part.described(text)
        return text

    def expression(self, render: Renderer) -> str:
        return self.write(render.value(self.whole), render)

    def evaluate(self, state: State) -> Any:
        start, parts = self._chain()
        value = start.evaluate(state)
        for part in parts:
            value = part.read(value)
        return value

    def __eq__(self, other: object) -> bool:
        one: object = self
        while isinstance(one, PartSource) and isinstance(other, PartSource):
            if one is other:
                return True
            if (
                type(one) is not type(other)
                or hash(one) != hash(other)
                or one.identity[1:] != other.identity[1:]
            ):
                return False
            one, other = one.whole, other.whole
        return not isinstance(one, PartSource) and one == other

    __hash__ = Source.__hash__

    def named(self, whole: str) -> str:
        return self.text.format(whole, part=self)

    def described(self, whole: str) -> str:
        """Return the part as text of the program, or in words where the whole is in words."""
        suffix = self.named("")
        if " " not in whole or suffix[0] not in ".[":
            return self.named(whole)
        is_item = suffix[0] == "["
        return f"item {suffix[1:-1]} of {whole}" if is_item else f"{suffix[1:]} of {whole}"

    @property
    def label(self) -> str:
        return self.tag.format(whole=self.whole, part=self)

    def write(self, whole: str, render: Renderer) -> str:
        """Return the text in generated code: by default the name for people."""
        return self.named(whole)

    def read(self, whole: object) -> Any:
        raise NotImplementedError


@frozen(eq=False)
class AttrSource(PartSource):
    """`whole.attribute`, by plain attribute lookup: it may run a property or `__getattr__`."""

    attribute: str

    text = "{0}.{part.attribute}"
    tag = "{part.attribute}"

    def write(self, whole: str, render: Renderer) -> str:
        if self.attribute.isidentifier() and not self.attribute.startswith("__debug__"):
            return f"{whole}.{self.attribute}"
        return f"{render.capture(getattr, 'getattr')}({whole}, {self.attribute!r})"

    def read(self, whole: object) -> Any:
        return getattr(whole, self.attribute)

    def watch(self, whole: object, value: object, cells: Cells) -> bool:
        return cells.attribute(whole, self.attribute, value)


@frozen(eq=False)
class InstanceDictSource(PartSource):
    """The `__dict__` of an object (for a class its mapping proxy), whatever its class overrides."""

    text = "{0}.__dict__"
    tag = "dict"

    def write(self, whole: str, render: Renderer) -> str:
        return f"{render.capture(read_plainly, 'read_plainly')}({whole}, '__dict__')"

    def read(self, whole: object) -> Any:
        return read_plainly(whole, "__dict__")

    def watch(self, whole: object, value: object, cells: Cells) -> bool:
        return cells.instance_dict(whole, value)


@frozen(eq=False)
class DictItemSource(PartSource):
    """`whole[key]` of a mapping. Keys that equal each other but differ in type (1, True) make
    different sources.

    `owner`: `dict`, where its own storage is read: the mapping's class looks items up in its own
    way, or makes them.
    """

    key: Hashable = field(converter=kept)
    owner: type[dict[Any, Any]] | None = None

    tag = "{part.shown}"

    @property
    def shown(self) -> str:
        return self.key.text if isinstance(self.key, ObjectRef) else str(self.key)

    @property
    def identity(self) -> tuple[Hashable, ...]:
        return (self.whole, key_of(self.key))

    def named(self, whole: str) -> str:
        if isinstance(self.whole, InstanceDictSource) and isinstance(self.key, str):
            return f"{whole.removesuffix('.__dict__')}.{self.key}"
        return f"{whole}[{self.shown if isinstance(self.key, ObjectRef) else repr(self.key)}]"

    def described(self, whole: str) -> str:
        if (own_name := self.whole.described_item(self.key)) is not None:
            return own_name
        in_scope = isinstance(self.whole, CapturedSource) and self.whole.is_scope
        return self.shown if in_scope else PartSource.described(self, whole)

    def write(self, whole: str, render: Renderer) -> str:
        key = written_key(self.key, render)
        return (
            f"{whole}[{key}]"
            if self.owner is None
            else f"{render.capture(stored, 'stored')}({whole}, {key})"
        )

    def read(self, whole: Any) -> Any:
        key = real(self.key)
        return whole[key] if self.owner is None else stored(whole, key)

    def watch(self, whole: object, value: object, cells: Cells) -> bool:
        return cells.lookup(whole, real(self.key))


def written_key(key: Hashable, render: Renderer) -> str:
    if isinstance(key, ObjectRef):
        hint = f"key_{key.name}" if key.name.isidentifier() else "key"
        return f"{render.capture(key.get, hint)}()"
    return repr(key) if is_literal(key) else render.capture(key, "key")


def stored(mapping: dict[Any, Any], key: Hashable) -> Any:
    """Return an item of a dict without `__missing__` of its class. Raises KeyError."""
    if (found := dict.get(mapping, key, stored)) is stored:
        raise KeyError(key)
    return found


@frozen(eq=False)
class ItemSource(PartSource):
    """`whole[index]` of a sequence; `owner` is the builtin class whose storage is read, past the
    sequence's own."""

    index: int
    owner: Any = None

    text = "{0}[{part.index}]"
    tag = "{whole.label}_{part.index}"

    def described(self, whole: str) -> str:
        own_name = self.whole.described_item(self.index)
        return PartSource.described(self, whole) if own_name is None else own_name

    def write(self, whole: str, render: Renderer) -> str:
        if self.owner is None:
            return f"{whole}[{self.index}]"
        getitem = render.capture(self.owner.__getitem__, f"{self.owner.__name__}_getitem")
        return f"{getitem}({whole}, {self.index})"

    def read(self, whole: Any) -> Any:
        return (
            whole[self.index] if self.owner is None else self.owner.__getitem__(whole, self.index)
        )

    def watch(self, whole: object, value: object, cells: Cells) -> bool:
        return type(whole) is tuple


@frozen(eq=False)
class TypeSource(PartSource):
    """The exact type of an object, without a `__class__` property."""

    text = "type({0})"
    tag = "type_of_{whole.label}"

    def write(self, whole: str, render: Renderer) -> str:
        return f"{render.capture(type, 'type')}({whole})"

    def read(self, whole: Any) -> Any:
        return type(whole)

    def watch(self, whole: object, value: object, cells: Cells) -> bool:
        return cells.type_of(whole)


@frozen(eq=False)
class CellSource(PartSource):
    """The contents of a closure cell."""

    text = "{0}.cell_contents"
    tag = "in_{whole.label}"

    def read(self, whole: Any) -> Any:
        return whole.cell_contents

    def watch(self, whole: object, value: object, cells: Cells) -> bool:
        return type(whole) is CellType and cells.pointer(whole, cells.layout.cell_contents, value)


@frozen(eq=False)
class FunctionPartSource(PartSource):
    """A component of a plain Python function: an attribute that no subclass can shadow (functions
    have none).

    Items of it are sources of their own: `ItemSource(FunctionPartSource(fn, "defaults"), 0)`.
    """

    part: Literal["code", "closure", "defaults", "kwdefaults"]

    text = "{0}.__{part.part}__"
    tag = "{whole.label}_{part.part}"

    def read(self, whole: Any) -> Any:
        return getattr(whole, f"__{self.part}__")

    def watch(self, whole: Any, value: object, cells: Cells) -> bool:
        return cells.function_part(whole, self.part, value)


@frozen(eq=False)
class SlotSource(PartSource):
    """A `__slots__` member, through the descriptor of the class that declares it."""

    owner: type
    slot: str

    text = "{0}.{part.slot}"
    tag = "{part.slot}"

    def write(self, whole: str, render: Renderer) -> str:
        read = self.owner.__dict__[self.slot].__get__
        name = self.slot.strip("_")
        return f"{render.capture(read, f'slot_{name}')}({whole})"

    def read(self, whole: Any) -> Any:
        return self.owner.__dict__[self.slot].__get__(whole)

    def watch(self, whole: Any, value: object, cells: Cells) -> bool:
        return self.owner is type and self.slot == "__mro__" and cells.type_version(whole)


def nth(iterable: Iterable[object], index: int) -> object:
    """The element at `index` of something iterable again; IndexError past its end, or when it
    changes meanwhile."""
    try:
        return next(islice(iterable, index, index + 1))
    except (StopIteration, RuntimeError):
        raise IndexError(index) from None


@frozen(eq=False)
class KeySource(PartSource):
    """The i-th key of a mapping, in its order."""

    index: int

    text = "list({0})[{part.index}]"
    tag = "key_{part.index}"

    def write(self, whole: str, render: Renderer) -> str:
        return f"{render.capture(nth, 'nth')}({whole}, {self.index})"

    def read(self, whole: Any) -> Any:
        return nth(whole, self.index)

    def watch(self, whole: Any, value: object, cells: Cells) -> bool:
        return cells.order(whole)


@frozen(eq=False)
class SizeSource(PartSource):
    """A size or stride of a tensor along `dim`, or its storage offset (then `dim` is 0)."""

    kind: Literal["size", "stride", "storage_offset"]
    dim: int = 0

    text = "{0}.{part.kind}({part.argument})"
    tag = "{whole.label}_{part.kind}_{part.argument}"

    @property
    def argument(self) -> str:
        return "" if self.kind == "storage_offset" else str(self.dim)

    def read(self, whole: Any) -> object:
        return (
            whole.storage_offset()
            if self.kind == "storage_offset"
            else getattr(whole, self.kind)(self.dim)
        )
