"""C functions that may be run while tracing: pure ones, on constants.

A method of an immutable builtin type is pure. Functions that read the outside world (clock,
environment, files, random streams) never are.
"""

import builtins
import cmath
import enum
import math
import operator
import pathlib
import re
import sys
import types
from collections.abc import Iterator
from typing import Any

import torch

from stator_variables._defining_module import module_of

NUMPY: Any = sys.modules.get("numpy")  # torch loads it where it is installed, and works without it
NUMBERS: tuple[type, ...] = (
    () if NUMPY is None else tuple({NUMPY.dtype(code).type for code in "bBhHiIlLqQefd"})
)
"""The classes of NumPy's numbers that a tensor operation takes as it takes Python's: not `bool`, a
float to it."""
TRUTHS: tuple[type, ...] = () if NUMPY is None else (NUMPY.bool_,)

CYTHON_FUNCTION = None if NUMPY is None else type(NUMPY.random.Generator.normal)
"""The class of methods that Cython makes, which bind like those of Python."""

_DTYPES = "bool uint8 int8 int16 int32 int64 float32 float64 complex64 complex128".split()
DTYPES: dict[Any, torch.dtype] = (
    {} if NUMPY is None else {NUMPY.dtype(name): getattr(torch, name) for name in _DTYPES}
)
"""NumPy's dtypes that tensors have as well, and can do everything with."""

IMMUTABLE_TYPES = frozenset(
    {
        *(
            bool,
            int,
            float,
            complex,
            str,
            bytes,
            tuple,
            range,
            frozenset,
            slice,
            type(None),
            type(Ellipsis),
        ),
        *(
            torch.Size,
            torch.dtype,
            torch.device,
            torch.layout,
            torch.memory_format,
            type(torch.finfo(torch.float32)),
        ),
        type(torch.iinfo(torch.int32)),
        *(re.Pattern, re.Match),
    }
)

_BUILTINS = frozenset(
    getattr(builtins, name)
    for name in (
        "abs ascii bin chr divmod format hex len max min oct ord pow repr round sorted sum "
        "hash all any bool int float complex str bytes range slice frozenset tuple"
    ).split()
)
_MODULES = (math, cmath, operator)
_FUNCTIONS = frozenset(
    value
    for module in _MODULES
    for value in vars(module).values()
    if isinstance(value, types.BuiltinFunctionType)
)
_MORE = frozenset(
    {
        *(torch.finfo, torch.iinfo, torch.promote_types, torch.can_cast, torch.device, torch.Size),
        re._compile,  # type: ignore[attr-defined]
        *(str.maketrans, int.from_bytes, float.fromhex, sys.intern),
        torch._C._get_privateuse1_backend_name,
        torch.typename,
    }
)


_ADDRESSES = frozenset(map(id, NUMBERS))
_NUMPY = {
    base
    for cls in (*NUMBERS, *map(type, DTYPES))
    for base in cls.__mro__
    if base.__module__ == "numpy"
}


def is_number_of_numpy(cls: object) -> bool:
    """Return True for a class of NumPy numbers, by identity: a metaclass may define how its classes
    compare."""
    return id(cls) in _ADDRESSES


def runs_user_code(target: Any, values: list[Any]) -> bool:
    """Return True if C calls a method of the program on one of the values, an enum member."""
    owner, name = getattr(target, "__objclass__", object), target.__name__
    own_text = name == "__format__" and not any(values[1:])  # then C gives `str(self)`
    # a method of a number or a text is C's own on `self`; that of a container calls its items
    is_own = owner is not object and owner not in _CONTAINERS and not own_text
    operands = values[1:] if is_own else values
    return (name in _FORMATTING and has_own_methods(operands, of_text=True)) or (
        name not in _TEXTS and has_own_methods(operands)
    )


def methods_of_texts(target: Any, value: Any) -> Iterator[tuple[type, str]]:
    """Yield the methods that C calls to format enum members, which the program may override."""
    if target.__name__ not in _FORMATTING:
        return
    if type(value) in _CONTAINERS:
        yield from (method for item in value for method in methods_of_texts(target, item))
    elif issubclass(type(value), enum.Enum):
        yield from ((type(value), name) for name in sorted(_OF_TEXT))


def has_own_methods(value: Any, *, of_text: bool = False) -> bool:
    if type(value) in _CONTAINERS:
        return any(has_own_methods(item, of_text=of_text) for item in value)
    if not issubclass(cls := type(value), enum.Enum):
        return False
    found = [
        (name, raw) for base in cls.__mro__ for name, raw in vars(base).items() if name[:2] == "__"
    ]
    own = {
        name for name, raw in found if type(raw) is types.FunctionType and module_of(raw) != "enum"
    }
    return bool(own & _OF_TEXT if of_text else own - _OF_TEXT - _UNUSED)


_CONTAINERS = (tuple, list, frozenset)
_OF_TEXT = frozenset({"__str__", "__repr__", "__format__"})
_TEXTS = _OF_TEXT | {"str", "repr", "ascii"}
_FORMATTING = _TEXTS | {"format", "format_map", "__mod__"}
_UNUSED = frozenset({"__new__", "__init__", "__new_member__", "__call__"})


_WITH_STATE = frozenset(
    {"__enter__", "__exit__", "__iter__", "__reversed__", "finditer", "scanner"}
)
"""A device is a context; what goes through something stands somewhere in it."""


def is_pure(target: object) -> bool:
    """Return True if calling `target` on constants has no effect and depends on nothing else."""
    if isinstance(
        target,
        types.MethodDescriptorType | types.WrapperDescriptorType | types.ClassMethodDescriptorType,
    ):
        if target.__name__ in _WITH_STATE:
            return False
        return target.__objclass__ in (*IMMUTABLE_TYPES, *_NUMPY) or (
            target.__objclass__ is object and target.__name__ in _OBJECT
        )

    try:
        return (
            is_number_of_numpy(target)
            or target in _BUILTINS
            or target in _FUNCTIONS
            or target in _MORE
        )
    except TypeError:
        return False


_OBJECT = frozenset({"__eq__", "__ne__", "__str__", "__repr__", "__format__", "__hash__"})


PATHS = (
    *(pathlib.PurePosixPath, pathlib.PureWindowsPath),
    *(pathlib.PosixPath, pathlib.WindowsPath),
)
"""Classes of paths, whose text determines them."""
