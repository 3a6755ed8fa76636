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
from stator_bytecode import Code, FrameLayout, Point, decode, is_own_module
from stator_guards import CANNOT_READ, Guard, Is, ParameterSource, Source, State, TypeIs, TypeSource

from stator._disk_cache._code_place import CodePlaces, code_at, code_of, nested
from stator._disk_cache._fingerprint import CONSTANTS, NotCached, of_class
from stator._disk_cache._live_object import FINDERS, Description, described, path_to

_ROOT = "the function"
_BY_NAME, _IN_TARGET, _OF_FUNCTION = "code by name", "code of the target", "code of a function"
_PARAMETER = "parameter"

_CONTAINERS = (tuple, list, dict, set, frozenset, types.MappingProxyType, types.CellType)
_VALUES = (torch.dtype, torch.layout, torch.memory_format)
"""Classes of torch that have one instance for each value, found by its name."""
_OF_TORCH = (*_VALUES, torch.device, torch.Size)
_OTHERS = (complex, slice, range, type(...), functools.partial)
_BY_VALUE = frozenset((*CONSTANTS, *_CONTAINERS, *_OF_TORCH, *_OTHERS))
_OPERATORS = (torch._ops.OpOverload, torch._ops.OpOverloadPacket)


@attrs.frozen
class LiveObject:
    """One object of the table: its description, and where it is found.

    `kind` is a key of FINDERS, "source" for a place that a guard reads, `_ROOT`, or one of those of
    code.
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
    argument; `targets` are the codes of what was traced."""

    guards: Sequence[Guard]
    root: object
    targets: Sequence[types.CodeType]
    rows: list[LiveObject] = attrs.field(factory=list)
    _numbers: dict[int, int] = attrs.field(factory=dict)
    kept: list[object] = attrs.field(factory=list)
    """The objects of the table."""
    _sources: dict[int, Source] = attrs.field(factory=dict)
    _under_way: set[int] = attrs.field(factory=set)
    _codes: CodePlaces = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        held: list[Any] = []
        self._codes = CodePlaces(self.targets, held)
        for guard in self.guards:
            if guard.source is None:
                continue
            if isinstance(guard.kind, Is):
                held.append(guard.kind.held.get())
                self._sources.setdefault(id(held[-1]), guard.source)
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
        if type(value) is types.CodeType:
            return self._place_of_code(value)
        if (found := path_to(value)) is not None:
            return found
        if (source := self._sources.get(id(value))) is None:
            raise NotCached(f"no path leads to {_shown(value)}")
        return "source", self.dumped(source)  # objects that it needs get lower numbers

    def _place_of_code(self, code: types.CodeType) -> tuple[str, Any]:
        if (inner := self._codes.in_target(code)) is not None:
            return _IN_TARGET, inner
        if (source := self._sources.get(id(code))) is not None:
            return "source", self.dumped(source)
        if (name := self._codes.name(code)) is not None:
            return _BY_NAME, name
        if (owner := self._codes.owner(code)) is not None:
            return _OF_FUNCTION, self.dumped(owner)
        raise NotCached(f"no path leads to the code of {code.co_qualname}")


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
        if cls in CONSTANTS or cls in _VALUES:
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
        if is_own_module(str(of_class(cls, "__module__"))) and attrs.has(cls):
            return None
        return self.writer.number(value)

    def reducer_override(self, value: Any) -> Any:
        cls = type(value)
        if cls is Live:
            self.live[id(value.value)] = value.value
            return Live, (value.value,)
        if is_object_ref(value):
            held = value.get()
            if type(held) not in CONSTANTS:
                self.live[id(held)] = held
            return object_ref, (cls, held, value.weak)

        if cls is Code:
            self.live[id(value.raw)] = value.raw
            return decoded, (value.raw,)
        if cls is Point:
            return Point, (value.frames, value.carried)
        if cls is FrameLayout:
            return self._reduced_layout(value)

        if cls in _OPERATORS:
            return operator_named, tuple(str(value).split("."))
        if cls is types.FunctionType and value.__module__ != __name__:
            return _reduced_function(value)
        if (reduce := _REDUCERS.get(cls)) is not None:
            return reduce(value)
        return NotImplemented

    def _reduced_layout(self, layout: FrameLayout) -> Any:
        self.live[id(layout.globals)] = layout.globals  # which are the program's
        fields = attrs.fields(FrameLayout)
        return FrameLayout, tuple(getattr(layout, each.name) for each in fields)


def is_object_ref(value: object) -> bool:
    """Return True for the references by which guards and sources hold objects."""
    return type(value).__name__ == "ObjectRef" and is_own_module(type(value).__module__)


@attrs.frozen(eq=False)
class Live:
    """Marks a value as an object of the program, which is never copied."""

    value: Any


def object_ref(cls: Any, held: object, weak: bool) -> Any:
    return cls.of(held, weak=weak)


def decoded(code: types.CodeType) -> Code:
    return decode(code)


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
    """Reads archives for one call: `state` are its arguments by name; `targets` are the codes of
    what is to be traced."""

    root: object
    targets: Sequence[types.CodeType]
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

    def check_named(self, row: LiveObject) -> None:
        """Raise Differs where what has that name is another object than the row is about; what has
        no name, or is not there yet, is left for a call."""
        if row.kind != _BY_NAME and row.kind not in FINDERS:
            return
        try:
            found = self._at(row, [])
        except CANNOT_READ:
            return
        if (now := described(found)) != row.description:
            raise Differs(_difference(row.description, now))

    def _at(self, row: LiveObject, objects: list[Any]) -> Any:
        if row.kind == _ROOT:
            return self.root
        if row.kind == _BY_NAME:
            return code_at(row.place)
        if row.kind == _IN_TARGET:
            number, path = row.place
            return nested(self.targets[number], path)
        if row.kind in FINDERS:
            return FINDERS[row.kind](row.place)

        place: Any = _Unpickler(row.place, objects, self.parameters).load()
        if row.kind == _OF_FUNCTION:
            function, path = place
            return nested(code_of(function), path)
        return place.evaluate(self.state)


def _named(description: Description) -> str:
    words = [str(part) for part in description[:3] if isinstance(part, str)]
    return " ".join(filter(None, words))


def _difference(before: Description, now: Description) -> str:
    name_end = {"function": 3, "code": 2}.get(str(before[0]), 0)
    if name_end and before[:name_end] == now[:name_end]:
        return f"the code of {before[name_end - 1]} has changed"
    if before[:-1] == now[:-1]:
        return f"{_named(before)} is of another version"
    return f"{_named(before)} is now {_named(now)}"


def read_archive(data: bytes) -> Archive:
    """Read a table and its data, which stay as they are until a `ArchiveReader` gets them."""
    found = _Unpickler(data, [], {}).load()
    assert type(found) is Archive
    return found
