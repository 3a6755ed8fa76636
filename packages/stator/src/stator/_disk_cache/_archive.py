"""Pickles in which objects of the program are numbers of a table.

Only data goes by value: constants, containers of it, instances of stator's own classes, and
functions of stator. All else is in the table (`_live_object.py`), or is refused. Reading runs no
code of others: a name is looked up in modules of stator, torch and Python alone, and no module is
imported.
"""

from __future__ import annotations

import functools
import importlib
import io
import marshal
import pickle
import sys
import types
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import attrs
import torch
from stator_bytecode import is_own_module
from stator_guards import CANNOT_READ, Guard, Is, ParameterSource, Source, State, TypeIs, TypeSource

from stator._disk_cache._fingerprint import CONSTANTS, NotCached
from stator._disk_cache._live_object import FINDERS, Description, described, path_to

_ROOT = "the function"
_PARAMETER = "parameter"

_CONTAINERS = (tuple, list, dict, set, frozenset, types.MappingProxyType, types.CellType)
_OF_TORCH = (torch.dtype, torch.device, torch.layout, torch.memory_format, torch.Size)
_OTHERS = (complex, slice, range, type(...), functools.partial)
_BY_VALUE = frozenset((*CONSTANTS, *_CONTAINERS, *_OF_TORCH, *_OTHERS))
_OPERATORS = (torch._ops.OpOverload, torch._ops.OpOverloadPacket)


@attrs.frozen
class LiveObject:
    """One object of the table: its description, and where it is found.

    `kind` is a key of FINDERS, "source" for a place that a guard reads, or `_ROOT`.
    """

    description: Description
    kind: str
    place: Any


@attrs.frozen
class Archive:
    """A table, and data that refers to it. The first table does without the sources of the
    second."""

    table: tuple[LiveObject, ...]
    data: bytes


@attrs.define(eq=False)
class ArchiveWriter:
    """Writes data about one trace. `root` is the function that was traced, None where it is an
    argument."""

    guards: Sequence[Guard]
    root: object
    rows: list[LiveObject] = attrs.field(factory=list)
    _numbers: dict[int, int] = attrs.field(factory=dict)
    kept: list[object] = attrs.field(factory=list)
    """The objects of the table."""
    _sources: dict[int, Source] = attrs.field(factory=dict)
    _under_way: set[int] = attrs.field(factory=set)

    def __attrs_post_init__(self) -> None:
        for guard in self.guards:
            if guard.source is None:
                continue
            if isinstance(guard.kind, Is):
                self._sources.setdefault(id(guard.kind.held.get()), guard.source)
            elif isinstance(guard.kind, TypeIs):
                self._sources.setdefault(id(guard.kind.cls), TypeSource(guard.source))

    def write(self, value: object) -> Archive:
        """Raises NotCached for what can neither be written nor found again."""
        data = self.dumped(value)
        return Archive(tuple(self.rows), data)

    def dumped(self, value: object) -> bytes:
        stream = io.BytesIO()
        try:
            _Pickler(stream, self).dump(value)
        except (pickle.PicklingError, TypeError, AttributeError, ValueError) as error:
            raise NotCached(f"{error}") from error
        except RecursionError:
            raise NotCached("values nested deeper than can be written") from None
        return stream.getvalue()

    def number(self, value: Any) -> int:
        """Return the number of an object in the table."""
        if (known := self._numbers.get(id(value))) is not None:
            return known
        if id(value) in self._under_way:
            raise NotCached(f"no path leads to {_shown(value)}")
        self._under_way.add(id(value))
        kind, place = self._place(value)
        row = LiveObject(described(value), kind, place)
        number = self._numbers[id(value)] = len(self.rows)
        self.kept.append(value)
        self.rows.append(row)
        return number

    def _place(self, value: Any) -> tuple[str, Any]:
        if value is self.root:
            return _ROOT, None
        if (found := path_to(value)) is not None:
            return found
        if (source := self._sources.get(id(value))) is None:
            raise NotCached(f"no path leads to {_shown(value)}")
        return "source", self.dumped(source)  # objects that it needs get lower numbers


def _shown(value: object) -> str:
    if type(value) not in (types.FunctionType, types.MethodType, types.BuiltinFunctionType):
        return f"a {type(value).__qualname__}"
    return repr(getattr(value, "__qualname__", ""))


class _Pickler(pickle.Pickler):
    def __init__(self, stream: io.BytesIO, writer: ArchiveWriter) -> None:
        super().__init__(stream, protocol=pickle.HIGHEST_PROTOCOL)
        self.writer = writer
        self.live: dict[int, object] = {}

    def persistent_id(self, value: Any) -> Any:
        cls = type(value)
        if cls in CONSTANTS:
            return None
        if id(value) in self.live:
            return self.writer.number(value)
        if cls is ParameterSource:
            return _PARAMETER, value.parameter

        if cls is dict:
            is_namespace = "__name__" in value and path_to(value) is not None
            return self.writer.number(value) if is_namespace else None
        if cls in _BY_VALUE or cls in _OPERATORS or cls in _REDUCERS:
            return None
        if cls is types.FunctionType and is_own_module(value.__module__ or ""):
            return None if path_to(value) is None else self.writer.number(value)
        if is_own_module(cls.__module__) and attrs.has(cls):
            return None
        return self.writer.number(value)

    def reducer_override(self, value: Any) -> Any:
        cls = type(value)
        if cls is Live:
            self.live[id(value.value)] = value.value
            return Live, (value.value,)
        if cls.__name__ == "ObjectRef" and is_own_module(cls.__module__):
            held = value.get()
            if type(held) not in CONSTANTS:
                self.live[id(held)] = held
            return object_ref, (cls, held, value.weak)

        if cls in _OPERATORS:
            return operator_named, tuple(str(value).split("."))
        if cls is types.FunctionType and value.__module__ != __name__:
            return _reduced_function(value)
        if (reduce := _REDUCERS.get(cls)) is not None:
            return reduce(value)
        return NotImplemented


@attrs.frozen(eq=False)
class Live:
    """Marks a value as an object of the program, which is never copied."""

    value: Any


def object_ref(cls: Any, held: object, weak: bool) -> Any:
    return cls.of(held, weak=weak)


def operator_named(*names: str) -> Any:
    return functools.reduce(getattr, names, torch.ops)


def _reduced_function(value: types.FunctionType) -> Any:
    """Reduce a function of stator that has no path to its code: the versions of its module are the
    same."""
    facts = marshal.dumps(value.__code__), value.__module__, value.__name__, value.__defaults__
    return function_of, (*facts, value.__closure__)


def function_of(code: bytes, module: str, name: str, defaults: Any, closure: Any) -> Any:
    namespace = vars(importlib.import_module(module))  # one of these packages
    return types.FunctionType(marshal.loads(code), namespace, name, defaults, closure)


def cell_of(*contents: object) -> types.CellType:
    return types.CellType(*contents)


def _reduced_cell(cell: types.CellType) -> Any:
    try:
        return cell_of, (cell.cell_contents,)
    except ValueError:
        return cell_of, ()


_REDUCERS: dict[type, Callable[[Any], Any]] = {
    types.CellType: _reduced_cell,
    types.MappingProxyType: lambda value: (types.MappingProxyType, (dict(value),)),
}


# -- reading -------------------------------------------------------------------------------------
class Differs(Exception):
    """The program is not as it was when a file was written; the message has the difference."""


_CLASSES = (*_OTHERS, set, frozenset, types.MappingProxyType, torch.device, torch.Size)
_VALUES = (torch.dtype, torch.layout, torch.memory_format)


class _Unpickler(pickle.Unpickler):
    def __init__(self, data: bytes, objects: list[Any], parameters: Mapping[str, Source]) -> None:
        super().__init__(io.BytesIO(data))
        self.objects, self.parameters = objects, parameters

    def persistent_load(self, reference: Any) -> Any:
        if isinstance(reference, tuple):
            return self.parameters[reference[1]]
        return self.objects[reference]

    def find_class(self, module: str, name: str) -> Any:
        if module not in sys.modules and not is_own_module(module):
            raise Differs(f"{module} is not imported")
        found = super().find_class(module, name)
        if is_own_module(module) or found in _CLASSES or type(found) in _VALUES:
            return found
        raise Differs(f"a file does not contain {module}.{name}")


@attrs.frozen(eq=False)
class ArchiveReader:
    """Reads archives for one call: `state` are its arguments by name."""

    root: object
    parameters: Mapping[str, Source]
    state: State

    def read(self, archive: Archive) -> Any:
        """Raises Differs where an object is not the one that the file is about."""
        objects: list[Any] = []
        for row in archive.table:
            objects.append(self._found(row, objects))
        return _Unpickler(archive.data, objects, self.parameters).load()

    def _found(self, row: LiveObject, objects: list[Any]) -> Any:
        try:
            found = self._at(row, objects)
            now = described(found)
        except (*CANNOT_READ, NotCached) as error:
            raise Differs(f"{_named(row.description)} is not there") from error
        if now != row.description:
            raise Differs(_difference(row.description, now))
        return found

    def _at(self, row: LiveObject, objects: list[Any]) -> Any:
        if row.kind == _ROOT:
            return self.root
        if row.kind != "source":
            return FINDERS[row.kind](row.place)
        source: Source = _Unpickler(row.place, objects, self.parameters).load()
        return source.evaluate(self.state)


def _named(description: Description) -> str:
    words = [str(part) for part in description[:3] if isinstance(part, str)]
    return " ".join(filter(None, words))


def _difference(before: Description, now: Description) -> str:
    if before[:3] == now[:3] and before[0] in ("function", "code"):
        return f"the code of {before[2] if before[0] == 'function' else before[1]} has changed"
    if before[:-1] == now[:-1]:
        return f"{_named(before)} is of another version"
    return f"{_named(before)} is now {_named(now)}"


def read_archive(data: bytes) -> Archive:
    """Read a table and its data, which stay as they are until a `ArchiveReader` gets them."""
    found = _Unpickler(data, [], {}).load()
    assert type(found) is Archive
    return found
