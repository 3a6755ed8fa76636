"""The words of one root object as places in another one of the same structure: a second equal model
is bound without working out anew which words prove which fact.

    values of the bound root          words                        values of the new root
    4: self.__dict__         ◄──  version of the dict at 4    ──►   4: its own __dict__
    9: a weight              ◄──  sizes of the tensor at 9    ──►   9: its own weight
       class Linear          ◄──  version of the class        ──►      the same word

Whether facts can be watched is decided by the classes of values, by what classes hold, and by the
classes of keys of dicts: these must be the same. Where the new root differs, `OtherStructure` is
raised, and each fact is worked out.

The order is that of every binding: words are read first, then values are read again and all guards
checked.
"""

from __future__ import annotations

import functools
import gc
import operator
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

from attrs import Factory, define

from stator_guards._cells import Words, attributes_of, classes_of_keys
from stator_guards._guard import CANNOT_READ
from stator_guards._memory import (
    ObjectLayout,
    WordReader,
    detach,
    give_dict_version,
    has_inline_values,
    unshare,
    word,
)
from stator_guards._object_ref import is_constant
from stator_guards._recording import is_same
from stator_guards._source import State
from stator_guards._walk import Steps


class OtherStructure(Exception):
    """The facts of the group may stand on other words here."""


class Base(NamedTuple):
    """The start of an address: the value at a place, or what belongs to it.

    kind "object": the value. "attributes": its `__dict__`. "tensor", "implementation", "autograd":
    a tensor, its TensorImpl, its AutogradMeta. "shared": an object that all roots have, at place 0.
    """

    kind: str
    place: int
    shared: int = 0
    """The id of the object."""


@define(eq=False)
class BoundWords:
    """The words of a new root, with what they hold, and the values by place."""

    words: Words
    places: Any
    expected: bytes
    values: list[Any]


@define(eq=False)
class RootTemplate:
    """The words of a group in the order in which they are read: a base for each, and the offset
    from it.

    No tuples are made for them, as so many new objects would start the collector of cycles.
    """

    steps: Steps
    layout: ObjectLayout
    facts: list[list[object]]
    types: list[type]
    shared: dict[int, Any] = Factory(dict)
    """The objects that all roots have, by id."""
    bases: dict[Base, int] = Factory(dict)
    words: list[int] = Factory(list)
    """The number of the base of each word."""
    offsets: list[int] = Factory(list)
    pointers: dict[int, int] = Factory(dict)
    """The number of the base that each such word points at."""
    links: dict[int, int] = Factory(dict)
    """The same of pointers between the parts of a tensor, which hold nothing."""
    fixed: dict[int, int] = Factory(dict)
    """The contents of words that are the same below each root."""
    held: dict[int, object] = Factory(dict)
    """The objects that words point at below each root."""
    same: list[tuple[int, int]] = Factory(list)
    """Pairs of places that hold one object."""
    constant: dict[int, Any] = Factory(dict)
    """Places with the same value below each root: classes, and what they hold."""
    mappings: dict[int, Any] = Factory(dict)
    """The facts that decide whether a dict can be watched, by the number of its base."""
    tensors: dict[int, Any] = Factory(dict)
    """The facts that decide which words a tensor has, by its place."""

    def bind(
        self, root: object, state: State, reader: WordReader, *, keeps_root: bool = False
    ) -> BoundWords | None:
        """Return None where a guard does not hold. Raises OtherStructure.

        With `keeps_root`, the root is among the owners of words, which are kept alive.
        """
        try:
            values = self.steps.values(state, root)
            self._compare_values(values)
            holders, addresses = self._resolve(values)
        except CANNOT_READ:
            return None

        for base in self.mappings:
            if isinstance(holders[base], dict):
                give_dict_version(self.layout, holders[base])
        starts = map(addresses.__getitem__, self.words)
        found = [*map(operator.add, starts, self.offsets)]
        if len({*found}) != len(found):
            raise OtherStructure

        places = reader.places_of(found)
        expected = reader.read(places)
        self._compare_words(memoryview(expected).cast("Q"), addresses)
        self._compare_mappings(holders)
        again = self.steps.read(state, root)
        if again is None:
            return None
        if not all(map(operator.is_, again[1:], values[1:])):
            self._compare_again(again, values)
        words = self._words(found, holders, None if keeps_root else root)
        return BoundWords(words, places, expected, again)

    def _compare_values(self, values: Sequence[Any]) -> None:
        if [*map(type, values)] != self.types:
            raise OtherStructure
        if any(values[one] is not values[other] for one, other in self.same):
            raise OtherStructure
        if any(not is_same(values[place], value) for place, value in self.constant.items()):
            raise OtherStructure
        if any(_facts_of_tensor(values[place]) != known for place, known in self.tensors.items()):
            raise OtherStructure

    def _resolve(self, values: Sequence[Any]) -> tuple[list[Any], list[int]]:
        """Return for each base what holds its memory, and its address."""
        holders, addresses = list[Any](), list[int]()
        implementations = self._implementations(values)

        for kind, place, shared in self.bases:
            if kind == "object":
                holder = values[place]
            elif kind == "attributes":
                holder = self._attributes(values[place])
            elif kind == "shared":
                holder = self.shared[shared]
            else:
                holders.append(implementations[place])
                addresses.append(_address_in_tensor(kind, values[place]))
                continue
            holders.append(holder)
            addresses.append(id(holder))

        return holders, addresses

    def _implementations(self, values: Sequence[Any]) -> dict[int, object]:
        """Return what holds the memory of each tensor, by its place: the same for all of its
        words."""
        if not self.tensors:
            return {}
        from stator_guards._tensor_memory import implementations_of

        held = implementations_of([values[place] for place in self.tensors])
        return dict(zip(self.tensors, held, strict=True))

    def _attributes(self, value: Any) -> Any:
        attributes = attributes_of(value)
        if attributes is None:
            raise OtherStructure
        if self.layout.dict_values and has_inline_values(self.layout, attributes):
            detach(value)
            unshare(attributes)
        return attributes

    def _compare_words(self, held: Any, addresses: Sequence[int]) -> None:
        if any(held[i] != value for i, value in self.fixed.items()):
            raise OtherStructure
        for pointing in (self.pointers, self.links):
            if any(held[i] != addresses[base] for i, base in pointing.items()):
                raise OtherStructure

    def _compare_mappings(self, holders: Sequence[Any]) -> None:
        for base, known in self.mappings.items():
            if _facts_of_mapping(holders[base], self.layout) != known:
                raise OtherStructure

    def _compare_again(self, again: Sequence[Any], values: Sequence[Any]) -> None:
        """Compare values that were read twice, as proxies of classes are made anew."""
        if not all(map(is_same, again[1:], values[1:])):
            raise OtherStructure

    def _words(self, found: Sequence[int], holders: Sequence[Any], root: object) -> Words:
        """Return the words, without `root` among their owners."""
        owners = dict(zip(found, map(holders.__getitem__, self.words), strict=True))
        targets = {found[i]: holders[base] for i, base in self.pointers.items()}
        targets.update({found[i]: target for i, target in self.held.items()})
        return Words(
            dict(zip(found, range(len(found)), strict=True)),
            self.facts,
            {address: holder for address, holder in owners.items() if holder is not root},
            targets,
        )


class _Part(NamedTuple):
    """A part of the memory of one owner: a base with its number and its address, and the bytes up
    to the last word (0: all)."""

    number: int
    base: Base
    start: int
    extent: int


@define(eq=False)
class _Builder:
    """Finds out what the words of one bound root lie in."""

    made: RootTemplate
    values: Sequence[Any]
    places: dict[int, int] = Factory(dict)
    """The place of each value, by its id."""
    attributes: dict[int, int] = Factory(dict)
    """The place of an object by the id of its `__dict__`."""
    parts: dict[int, list[_Part]] = Factory(dict)
    """The parts of the memory of each owner, by its id."""
    of_classes: set[int] = Factory(set)
    """The ids of dicts of classes that are read through their proxies; the classes are the same."""

    def find_places(self) -> None:
        for place, value in enumerate(self.values[1:], 1):
            if isinstance(value, type | MappingProxyType):
                self.made.constant[place] = value
                if isinstance(value, MappingProxyType):
                    self.of_classes.update(map(id, gc.get_referents(value)))
            elif id(value) in self.places:
                self.made.same.append((self.places[id(value)], place))
            elif not is_constant(value):
                self._add_place(place, value)

    def _add_place(self, place: int, value: object) -> None:
        self.places[id(value)] = place
        attributes = attributes_of(value)
        if attributes is None:
            return
        if self.attributes.setdefault(id(attributes), place) != place:
            raise OtherStructure

    def add_all(self, words: Words, expected: bytes, root: object) -> None:
        """Add all words, with what they hold; those of one object mostly follow each other."""
        made = self.made
        add_number, add_offset = made.words.append, made.offsets.append
        owner, parts = object(), list[_Part]()
        owners, held = words.owners, memoryview(expected).cast("Q")

        for index, address in enumerate(words.indices):
            holder = owners.get(address, root)
            if holder is not owner:
                owner, parts = holder, self._parts_of(holder)
            offset = -1
            for part in parts:
                offset = address - part.start
                if part.extent == 0 or 0 <= offset < part.extent:
                    break
            else:
                raise OtherStructure

            add_number(part.number)
            add_offset(offset)
            if part.extent == 0:
                self._add_word(index, part, holder, held[index], words.targets.get(address, words))
            elif offset in _LINKS:
                self._add_link(index, part, offset, held[index])

        made.held = {
            index: words.targets[address]
            for index, address in enumerate(words.indices)
            if address in words.targets and index not in made.pointers
        }

    def _add_word(self, index: int, part: _Part, owner: object, held: int, target: object) -> None:
        """Add what a word of a Python object must hold, if anything."""
        made = self.made
        if part.base.kind == "shared":
            made.fixed[index] = held
        elif type(target) is not Words:
            self._point(index, held, target)
        elif not isinstance(owner, dict):
            made.fixed[index] = held
        elif part.number not in made.mappings:
            made.mappings[part.number] = _facts_of_mapping(owner, made.layout)

    def _add_link(self, index: int, part: _Part, offset: int, held: int) -> None:
        """Add what decides where the other words of a tensor lie."""
        layout, (kind, place, _) = _tensor_layout(), part.base
        if kind == "tensor" and offset == layout.implementation:
            self.made.links[index] = self._number(Base("implementation", place))
        elif kind == "implementation" and offset == layout.autograd:
            if held:
                self.made.links[index] = self._number(Base("autograd", place))
            else:
                self.made.fixed[index] = 0

    def _parts_of(self, owner: Any) -> list[_Part]:
        """Return the memory of an owner: what words in it are relative to."""
        if (known := self.parts.get(id(owner))) is not None:
            return known
        if type(owner) is tuple:
            found = [*self._parts_of_tensor(owner[0])]
        else:
            base = self._base_of(owner)
            found = [_Part(self._number(base), base, id(owner), 0)]
        self.parts[id(owner)] = found
        return found

    def _parts_of_tensor(self, tensor: Any) -> Iterator[_Part]:
        place = self.places.get(id(tensor))
        if place is None:
            raise OtherStructure
        self.made.tensors[place] = _facts_of_tensor(tensor)
        kinds = [*_EXTENTS] if _has_autograd(tensor) else [*_EXTENTS][:2]
        for kind in kinds:
            base = Base(kind, place)
            yield _Part(self._number(base), base, _address_in_tensor(kind, tensor), _EXTENTS[kind])

    def _base_of(self, owner: Any) -> Base:
        if isinstance(owner, type) or id(owner) in self.of_classes:
            self.made.shared[id(owner)] = owner
            return Base("shared", 0, id(owner))
        if (place := self.attributes.get(id(owner))) is not None:
            return Base("attributes", place)
        if (place := self.places.get(id(owner))) is not None:
            return Base("object", place)
        raise OtherStructure

    def _number(self, base: Base) -> int:
        return self.made.bases.setdefault(base, len(self.made.bases))

    def _point(self, index: int, held: int, target: object) -> None:
        """Add what a pointer points at: something of the root, or what all roots have."""
        if (place := self.attributes.get(id(target))) is not None:
            base = Base("attributes", place)
        elif (place := self.places.get(id(target))) is not None:
            base = Base("object", place)
        else:
            self.made.fixed[index] = held
            return
        self.made.pointers[index] = self._number(base)


_EXTENTS = {"tensor": 40, "implementation": 176, "autograd": 136}
"""The parts of a tensor, and the bytes up to the last word in each: all words of one part lie
before the next part, wherever that is allocated."""


_LINKS = (16, 24)
"""The offsets in a tensor, or in its TensorImpl, of pointers to the next part."""


def template_of(
    steps: Steps,
    layout: ObjectLayout,
    words: Words,
    expected: bytes,
    values: Mapping[Any, Any],
    root: object,
) -> RootTemplate | None:
    """Return the template of a root whose binding is current; None where words lie elsewhere."""
    by_place = [None, *(values.get(source, root) for source in steps.places)]
    made = RootTemplate(steps, layout, words.facts, [])
    builder = _Builder(made, by_place)
    try:
        builder.find_places()
        builder.add_all(words, expected, root)
    except (OtherStructure, *CANNOT_READ):
        return None
    made.types = [dict, *map(type, by_place[1:])]
    return made


def _address_in_tensor(kind: str, tensor: Any) -> int:
    if kind == "tensor":
        return id(tensor)
    implementation: int = tensor._cdata
    if kind == "implementation":
        return implementation
    autograd = word(implementation + _tensor_layout().autograd)
    if not autograd:
        raise OtherStructure
    return autograd


def _has_autograd(tensor: Any) -> bool:
    """Return True if a tensor has an AutogradMeta."""
    return word(tensor._cdata + _tensor_layout().autograd) != 0


@functools.cache  # the import statement alone costs more than a read word
def _tensor_layout() -> Any:
    from stator_guards._tensor_memory import tensor_layout

    return tensor_layout()


def _facts_of_mapping(mapping: Any, layout: ObjectLayout) -> object:
    """Return what decides that a dict can be watched. Runs no user code."""
    if not isinstance(mapping, dict) or has_inline_values(layout, mapping):
        raise OtherStructure
    size = len(mapping) if type(mapping) is OrderedDict else None
    return type(mapping), classes_of_keys([*mapping]), size


def _facts_of_tensor(tensor: Any) -> object:
    """Return what decides which words a tensor has."""
    return tensor.dim(), tensor.layout, tensor._is_view()
