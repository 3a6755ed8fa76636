"""Differences between two values that two runs of one program gave: structure, classes, values,
sharing."""

import collections
import contextlib
from collections.abc import Iterator
from types import (
    CodeType,
    FunctionType,
    GeneratorType,
    MemberDescriptorType,
    MethodType,
    ModuleType,
)
from typing import Any

import attrs
import torch
from stator_backends import Tolerance
from stator_variables import history_of

ATOMS = (int, float, complex, str, bytes, bool, type(None))
_WHOLE = (type, FunctionType, MethodType, ModuleType, CodeType, GeneratorType)
_CONTAINERS = (collections.OrderedDict, dict, list, tuple, collections.deque, set, frozenset)


@attrs.define
class Comparison:
    """A comparison of everything that one run gave with everything that the other gave.

    It records which object of one run corresponds to which of the other, so that sharing is
    compared.
    """

    tolerance: Tolerance = attrs.field(factory=Tolerance)
    _ours: dict[int, tuple[Any, Any]] = attrs.field(factory=dict)
    _theirs: dict[int, tuple[Any, Any]] = attrs.field(factory=dict)

    def differences(self, a: object, b: object, where: str) -> Iterator[tuple[str, str, str]]:
        """The place, what is there in `a`, what is there in `b`."""
        if a is b:
            return
        if not _is_same_class(type(a), type(b)):
            yield f"the type of {where}", type(a).__name__, type(b).__name__
        elif isinstance(a, ATOMS):
            if repr(a) != repr(b):
                yield where, repr(a), repr(b)
        elif id(a) in self._ours:
            if self._ours[id(a)][1] is not b:
                yield f"the identity of {where}", "an object seen before", "another object"
        elif id(b) in self._theirs and not isinstance(a, tuple | frozenset):
            yield f"the identity of {where}", "an object of its own", "an object seen before"
        else:
            self._ours[id(a)] = self._theirs[id(b)] = (a, b)
            yield from self._inside(a, b, where)

    def _inside(self, a: Any, b: Any, where: str) -> Iterator[tuple[str, str, str]]:
        if isinstance(a, torch.Tensor):
            yield from _tensor_differences(a, b, where, self.tolerance)
        ours, theirs = parts(a), parts(b)
        if list(ours) != list(theirs):
            yield f"the parts of {where}", str(list(ours)), str(list(theirs))
            return
        for name, part in ours.items():
            yield from self.differences(part, theirs[name], where + name)


def _is_same_class(a: type, b: type) -> bool:
    """A class that the function makes is another one in each run."""
    return a is b or (a.__module__, a.__qualname__) == (b.__module__, b.__qualname__)


def _tensor_differences(
    a: torch.Tensor, b: torch.Tensor, where: str, tolerance: Tolerance
) -> Iterator[tuple[str, str, str]]:
    for fact in ("shape", "dtype", "device", "requires_grad"):
        if getattr(a, fact) != getattr(b, fact):
            yield f"the {fact} of {where}", str(getattr(a, fact)), str(getattr(b, fact))
            return
    try:
        # A view whose base was written to has no readable history: it is compared without.
        plain, found = (one.detach() if one.requires_grad else one for one in (a, b))
        torch.testing.assert_close(
            found, plain, rtol=tolerance.rtol, atol=tolerance.atol, equal_nan=True
        )
    except AssertionError as error:
        lines = [line for line in str(error).splitlines() if line]
        yield f"the values of {where}", str(a.detach()), f"{b.detach()}\n  {' '.join(lines)}"


def parts(value: Any) -> dict[str, Any]:
    """Return the parts of a value, by the text to append to its name. Runs no code of its class."""
    cls = type(value)
    if issubclass(cls, _WHOLE):
        return {}
    attributes = {f".{name}": attribute for name, attribute in sorted(_attributes(value).items())}
    if issubclass(cls, torch.Tensor):
        return {".grad": value.grad if history_of(value) is None else None, **attributes}
    if issubclass(cls, torch.Generator):
        return {".state": value.get_state()}
    base = next((base for base in _CONTAINERS if issubclass(cls, base)), None)
    items = {} if base is None else _items(base, value)
    return {**items, **attributes}


def _items(base: Any, value: Any) -> dict[str, Any]:
    """Return the items in the storage of the builtin container.

    Items of a set, which have no position, are named by their text.
    """
    if issubclass(base, dict):
        items = [*base.items(value)]
        return {
            f"[{key!r}]" if isinstance(key, ATOMS) else f"[key {at}]": item
            for at, (key, item) in enumerate(items)
        }
    items = [*base.__iter__(value)]
    if base not in (set, frozenset):
        return {f"[{index}]": item for index, item in enumerate(items)}
    texts = sorted(repr(item) for item in items if isinstance(item, ATOMS))
    return {".len": len(items), **{f" with {text}": True for text in texts}}


def _attributes(value: object) -> dict[str, Any]:
    """Return the attributes in the dictionary of an object, and those in its slots."""
    found: dict[str, Any] = {}
    with contextlib.suppress(AttributeError):
        found |= object.__getattribute__(value, "__dict__")
    slots = [
        slot
        for cls in type(value).__mro__
        for slot in [*vars(cls).values()]
        if type(slot) is MemberDescriptorType
    ]
    for slot in slots:
        with contextlib.suppress(AttributeError):  # an empty one
            found[slot.__name__] = slot.__get__(value)
    return found
