"""A value written down so that two runs can be compared: structure, types, values, identity and
aliasing.

``describe`` walks everything reachable and gives one fact per path, such as ``result.loss.dtype =
torch.float32``. An object met a second time is only a reference to where it was met first, so
sharing is part of the description; tensors also name the place where their storage was met first.
What cannot be copied (functions, classes, devices) stands for itself. ``differences`` compares two
descriptions, tensors bit by bit or within a tolerance.
"""

from __future__ import annotations

import functools
import math
import re
import types
import weakref
from array import array
from collections import OrderedDict, defaultdict, deque
from collections.abc import Iterator, Mapping
from typing import Any

import attrs
import numpy as np
import torch
from numpy.lib.array_utils import byte_bounds
from torch.utils._python_dispatch import is_traceable_wrapper_subclass

ATOMS = (type(None), bool, int, float, complex, str, bytes, type(...), slice, range, np.generic)
THEMSELVES = (
    type,
    types.FunctionType,
    types.BuiltinFunctionType,
    types.ModuleType,
    types.CodeType,
    torch.dtype,
    torch.device,
    torch.layout,
    torch.memory_format,
    weakref.ref,
)
KEPT_BY_TENSORS = [np.dtype(code) for code in "?bBhilefdFD"]
# What only a compiling tool or a cache keeps on an object; a user does not see it change.
HIDDEN = {"_compiled_call_impl", "_is_torch_compile"}
LONG = 100  # more integers than this, as of a random stream, are one fact
CONTAINERS = (list, tuple, dict, set, frozenset, deque)  # which have no attributes themselves


@attrs.frozen
class Tolerance:
    """How far numbers of a compiled kernel may be off, and whether layouts of results must be the
    same."""

    relative: float
    absolute: float
    strides: bool = True


EXACT = Tolerance(0.0, 0.0)
INDUCTOR = Tolerance(1e-3, 5e-4, strides=False)


@attrs.define
class Description:
    """Facts by path, in the order they were met. Keeps what it describes alive, so that identities
    stay true."""

    facts: dict[str, Any] = attrs.field(factory=dict)
    places: dict[int, str] = attrs.field(factory=dict)
    storages: dict[int, str] = attrs.field(factory=dict)
    spans: list[tuple[int, int, str]] = attrs.field(factory=list)
    alive: list[Any] = attrs.field(factory=list)

    def add(self, path: str, value: Any) -> None:
        if isinstance(value, ATOMS):
            self.facts[path] = (_class_name(type(value)), _comparable(value))
        elif isinstance(value, THEMSELVES):
            self.facts[path] = ("itself", _stable(value))
        elif id(value) in self.places:
            self.facts[path] = ("same as", self.places[id(value)])
        else:
            self.places[id(value)] = path
            self.alive.append(value)
            self.facts[path] = ("a", _class_name(type(value)))
            for name, part in self._parts(path, value):
                self.add(path + name, part)

    def _parts(self, path: str, value: Any) -> Iterator[tuple[str, Any]]:
        if isinstance(value, torch.Tensor):
            yield from self._tensor(path, value)
        elif isinstance(value, np.ndarray):
            self._array(path, value)
        elif isinstance(value, torch.Generator):
            self.facts[path + ".state"] = value.get_state()
        elif isinstance(value, types.MethodType):
            yield from ((".__func__", value.__func__), (".__self__", value.__self__))
        elif isinstance(value, types.CellType):
            yield ".cell_contents", value.cell_contents
        elif isinstance(value, set | frozenset):
            # what is not told by its value hashes by its address, a NaN as well
            told = all(
                type(item) in (int, bool, float, str, bytes) and not _is_nan(item) for item in value
            )
            yield "{}", list(value) if told else sorted(value, key=repr)
        elif isinstance(value, Mapping):
            yield from _mapping(value)
            if isinstance(value, defaultdict):
                yield ".default_factory", value.default_factory
        elif isinstance(value, tuple | list | deque | array):
            kind: Any = next(
                kind for kind in (tuple, list, deque, array) if isinstance(value, kind)
            )
            self.facts[path + ".len"] = (
                kind.__len__(value),
                deque.maxlen.__get__(value) if kind is deque else None,
                array.typecode.__get__(value) if kind is array else None,
            )
            items = list(kind.__iter__(value))
            if len(items) > LONG and all(type(item) is int for item in items):
                self.facts[path + ".items"] = items
            else:
                yield from ((f"[{i}]", part) for i, part in enumerate(items))
        elif isinstance(value, bytearray):
            self.facts[path + ".data"] = bytes(value)
        elif isinstance(value, functools.partial):
            yield from ((f".{name}", getattr(value, name)) for name in ("func", "args", "keywords"))
        elif isinstance(value, BaseException):
            yield from (
                (f".{name}", getattr(value, name)) for name in ("args", "__cause__", "__context__")
            )
        if not isinstance(value, torch.Tensor):
            yield from _attributes(value)

    def _array(self, path: str, value: Any) -> None:
        self.facts[path + ".dtype"] = (value.dtype, value.shape, value.flags.writeable)
        # what leads to no other element may be any number
        steps = zip(value.shape, value.strides, strict=True)
        self.facts[path + ".strides"] = tuple(
            step for size, step in steps if size > 1 and value.size
        )
        kept = value.dtype in KEPT_BY_TENSORS
        self.facts[path + ".data"] = torch.tensor(value.copy()) if kept else value.tolist()
        if value.size:
            self.facts[path + ".memory"] = self._memory(path, *byte_bounds(value))

    def _memory(self, path: str, start: int, stop: int) -> str:
        """Where memory that meets this was first met."""
        found = next(
            (other for low, high, other in self.spans if start < high and low < stop), path
        )
        self.spans.append((start, stop, found))
        return found

    def _tensor(self, path: str, value: torch.Tensor) -> Iterator[tuple[str, Any]]:
        # what a subclass makes of these questions is its own affair
        with torch._C.DisableTorchFunctionSubclass():
            self._metadata(path, value)
            grad = value.grad if self.facts[f"{path}.is_leaf"] is True else None
        if grad is not None:
            yield ".grad", grad
        if vars(value):
            yield from (
                (f".{k}", v)
                for k, v in vars(value).items()
                if not k.startswith("_dynamo") and k not in HIDDEN
            )

    def _metadata(self, path: str, value: torch.Tensor) -> None:
        for name in ("dtype", "shape", "device", "requires_grad", "is_leaf", "layout"):
            self.facts[f"{path}.{name}"] = asked(value, name)
        if is_traceable_wrapper_subclass(value):  # its parts are attributes
            return
        if value.layout == torch.strided and not value._is_zerotensor():  # which has no memory
            self.facts[path + ".stride"] = value.stride()
            self.facts[path + ".storage_offset"] = value.storage_offset()
            storage = value.untyped_storage()
            self.alive.append(storage)
            start = storage.data_ptr() if value.device.type == "cpu" and storage.nbytes() else 0
            if start and start not in self.storages:
                self._memory(path, start, start + storage.nbytes())
            self.facts[path + ".storage"] = self.storages.setdefault(start or storage._cdata, path)
        self.facts[path + ".data"] = value.detach().clone()


def asked(value: torch.Tensor, name: str) -> Any:
    """Of a view whose base was written to where autograd forbids that, it refuses to tell."""
    try:
        return getattr(value, name)
    except RuntimeError as error:
        return str(error)


def describe(**roots: Any) -> Description:
    """One description of all of ``roots``, in this order: what they share shows."""
    description = Description()
    for name, root in roots.items():
        description.add(name, root)
    return description


def _comparable(value: Any) -> Any:
    """What texts, numpy and complex scalars are compared by; floats are compared within the
    tolerance, like tensors."""
    if isinstance(value, float | np.floating):
        return float(value)
    if type(value) is str:
        if " at 0x" in value:  # where an object lies is up to the allocator
            return re.sub(r" at 0x[0-9a-f]+>?", " at …", value)
        return value
    return repr(value) if isinstance(value, complex | np.generic) else value


def _class_name(cls: type) -> tuple[str, str]:
    return cls.__module__, cls.__qualname__


def _stable(value: Any) -> Any:
    """Deep copies and second definitions of one function or class are the same one to a reader."""
    if isinstance(value, types.FunctionType):
        return (value.__module__, value.__qualname__)
    if isinstance(value, type):
        return _class_name(value)
    if isinstance(value, types.ModuleType):
        return value.__name__
    return None if isinstance(value, weakref.ref) else value


def _mapping(value: Mapping[Any, Any]) -> Iterator[tuple[str, Any]]:
    """Order counts; keys that are plain data name the path, others are described themselves. Of a
    dict's subclass whose methods are the program's, the items are those that C keeps."""
    kind: Any = next((kind for kind in (OrderedDict, dict) if isinstance(value, kind)), type(value))
    items = list(kind.items(value))
    yield (
        ".keys()",
        [(_class_name(type(key)), key if isinstance(key, ATOMS) else None) for key, _ in items],
    )
    for i, (key, part) in enumerate(items):
        # a text with an address in it is no name
        named = isinstance(key, ATOMS) and _comparable(key) == key
        yield (f"[{key!r}]" if named else f"[key {i}]"), part
        if not named:
            yield f".key {i}", key


def _attributes(value: Any) -> Iterator[tuple[str, Any]]:
    if type(value) in CONTAINERS:
        return
    slots = [name for cls in type(value).__mro__ for name in _slots(cls)]
    if isinstance(value, OrderedDict | types.MethodType | np.ndarray):
        return
    for name in slots:
        if hasattr(value, name):
            yield f".{name}", getattr(value, name)
    for name, part in getattr(value, "__dict__", {}).items():
        if name not in HIDDEN:
            yield f".{name}", part


def _slots(cls: type) -> tuple[str, ...]:
    slots = vars(cls).get("__slots__", ())
    names = (slots,) if isinstance(slots, str) else tuple(slots)
    return tuple(
        name
        for name in names
        if name not in ("__dict__", "__weakref__") and not name.startswith("__")
    )


def differences(left: Description, right: Description, tolerance: Tolerance = EXACT) -> list[str]:
    """One line for each path whose facts differ; ``left`` is what was expected."""
    found = []
    for path in {**left.facts, **right.facts}:
        if path.endswith(".stride") and not tolerance.strides:
            continue
        ours, theirs = left.facts.get(path, "(nothing)"), right.facts.get(path, "(nothing)")
        if not _agree(ours, theirs, tolerance):
            found.append(f"{path}: {_shown(ours)} became {_shown(theirs)}")
    return found


def _agree(left: Any, right: Any, tolerance: Tolerance) -> bool:
    if isinstance(left, torch.Tensor) and isinstance(right, torch.Tensor):
        if left.dtype != right.dtype or left.shape != right.shape:
            return False
        return bool(_close(left, right, tolerance))
    if (
        type(left) is type(right) is tuple
        and len(left) == len(right) == 2
        and type(left[1]) is type(right[1]) is float
    ):
        # which tells all floats apart, NaN for NaN
        if left[0] != right[0] or repr(left[1]) == repr(right[1]):
            return bool(left[0] == right[0])
        one, other = (torch.tensor(side[1], dtype=torch.float64) for side in (left, right))
        return _close(one, other, tolerance)
    return type(left) is type(right) and bool(left == right)


def _close(left: torch.Tensor, right: torch.Tensor, tolerance: Tolerance) -> bool:
    left, right = (
        side.to_dense() if side.layout != torch.strided else side for side in (left, right)
    )
    if left.is_complex() and right.is_complex():
        left, right = (torch.view_as_real(side.resolve_conj()) for side in (left, right))
    if tolerance.relative == tolerance.absolute == 0.0 or not (
        left.is_floating_point() or left.is_complex()
    ):
        both = (
            torch.equal(torch.nan_to_num(left), torch.nan_to_num(right))
            if left.is_floating_point()
            else None
        )
        if both is None:
            return torch.equal(left, right)
        signs = torch.equal(torch.signbit(left) & (left == 0), torch.signbit(right) & (right == 0))
        return both and signs and torch.equal(left.isnan(), right.isnan())
    return torch.allclose(left, right, tolerance.relative, tolerance.absolute, equal_nan=True)


def _shown(fact: Any) -> str:
    if isinstance(fact, torch.Tensor) and fact.numel() > 8:
        return f"tensor{tuple(fact.shape)} {fact.flatten()[:4].tolist()}…"
    text = repr(fact)
    return text if len(text) < 200 else text[:200] + "…"


def _is_nan(value: Any) -> bool:
    return isinstance(value, float) and math.isnan(value)
