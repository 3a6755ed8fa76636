"""Objects of the running program that a file refers to: functions, classes, modules, code.

A file holds no such object. It has a description of each, and where to find it: the path by which
it can be imported, or a source that a guard reads. What is found in another process has to fit the
description: the same code in a function, the same version of a package in C.

    description   ("function", "model", "Block.forward", <fingerprint of the code>)
    path          ("model", "Block.forward")       in a module that is imported already
"""

from __future__ import annotations

import collections
import enum
import functools
import importlib
import sys
import types
from collections.abc import Callable, Hashable
from typing import Any, TypeAlias

import torch
from stator_bytecode import is_own_module
from stator_variables import ALLOWED, NONSTRICT, SUBSTITUTES, has_mark

from stator._disk_cache._fingerprint import CONSTANTS, NotCached, of_class, of_code
from stator._program._interoperation import ORIGINAL_CALLABLE

Description: TypeAlias = tuple[Hashable, ...]
Path: TypeAlias = tuple[str, str]
"""The name of a module and the path from there; ("builtins", "len"), ("torch.nn", "")."""

_IN_C = (
    types.BuiltinFunctionType,
    types.MethodDescriptorType,
    types.WrapperDescriptorType,
    types.MethodWrapperType,
    types.GetSetDescriptorType,
    types.MemberDescriptorType,
    types.ClassMethodDescriptorType,
)
_VALUES_OF_TORCH = (torch.dtype, torch.device, torch.layout, torch.memory_format)
_HEAP = 1 << 9  # Py_TPFLAGS_HEAPTYPE
_TYPES = {value: name for name, value in vars(types).items() if isinstance(value, type)}
_MOST = 64


def described(value: Any) -> Description:
    """Return what the trace relies on of an object that no guard checks. Raises NotCached for an
    object of which that is not known."""
    cls = type(value)
    if cls in CONSTANTS:
        return "constant", cls.__name__, repr(value)
    if cls is types.FunctionType:
        _refuse_marked(value)
        names = value.__module__, value.__qualname__
        return "function", *names, _version(names[0] or ""), of_code(value.__code__)
    if cls is types.CodeType:
        return "code", value.co_qualname, of_code(value)
    if issubclass(cls, types.ModuleType):
        return "module", value.__name__

    if issubclass(cls, type):
        module = of_class(value, "__module__")
        return "class", module, of_class(value, "__qualname__"), _version(str(module))
    if cls in _IN_C:
        return _of_c(value)
    if cls in _VALUES_OF_TORCH:
        return "value", cls.__name__, repr(value)

    if cls is tuple and len(value) <= _MOST:
        return "tuple", *map(described, value)
    if issubclass(cls, enum.Enum):
        return "member", described(cls), value.name, repr(value.value)
    if cls is dict and "__name__" in value and (module := _module_of(value)) is not None:
        return "namespace", module
    # guards check the contents of what can change, as they do within one process
    if _can_change(cls):
        return "object", described(cls)
    raise NotCached(f"a {cls.__module__}.{cls.__qualname__}")


def _can_change(cls: type) -> bool:
    """Return True for classes whose instances hold nothing that is constant for an object: what
    they hold is in their `__dict__`, or in a container."""
    while cls.__flags__ & _HEAP and not issubclass(torch.Tensor, cls):
        assert cls.__base__ is not None
        if cls.__basicsize__ > cls.__base__.__basicsize__ + _DICT_AND_WEAKREF:
            return False  # `__slots__`, or a class in C: a pattern, a `partial`
        cls = cls.__base__
    return cls in _STORAGES


_STORAGES = (object, dict, list, set, collections.OrderedDict, torch.Tensor)
_DICT_AND_WEAKREF = 16


def _refuse_marked(function: Any) -> None:
    """Raise NotCached for a function of which the trace does not follow the code."""
    is_constant = getattr(function, "_dynamo_marked_constant", False)
    has_other = id(function) in SUBSTITUTES or has_mark(function, ALLOWED, NONSTRICT)
    if is_constant or has_other or getattr(function, "_stator_in_graph", False):
        raise NotCached(f"{function.__qualname__}, which is marked for tracing")


def _of_c(value: Any) -> Description:
    owner = getattr(value, "__self__", None)
    module = value.__module__ if isinstance(getattr(value, "__module__", None), str) else ""
    if not module and (cls := getattr(value, "__objclass__", None)) is not None:
        module = cls.__module__
    where: Hashable = type(owner).__name__
    if isinstance(owner, type | types.ModuleType):
        where = owner.__name__
    name = getattr(value, "__qualname__", None) or value.__name__
    return "in C", type(value).__name__, module, str(where), str(name), _version(module)


def _version(module: str) -> str:
    """Return the version of the package that a module belongs to, where it has one."""
    package = sys.modules.get(module.partition(".")[0])
    version = getattr(package, "__version__", None)
    return str(version) if isinstance(version, str) else ""  # of torch: of a class of its own


def _module_of(namespace: dict[str, Any]) -> str | None:
    """Return the name under which the module with this namespace was imported; None without one."""
    name = namespace.get("__name__")
    if isinstance(name, str) and _is_of(sys.modules.get(name), namespace):
        return name
    modules = [*sys.modules.items()]
    return next((name for name, module in modules if _is_of(module, namespace)), None)


def _is_of(module: Any, namespace: dict[str, Any]) -> bool:
    return issubclass(type(module), types.ModuleType) and vars(module) is namespace


def path_to(value: Any) -> tuple[str, Path] | None:
    """Return the kind of a path and the path by which an object can be found again; None if there
    is none."""
    cls = type(value)
    if cls is dict:
        if value is sys.modules:
            return "path", ("sys", "modules")
        name = _module_of(value) if "__name__" in value else None
        return None if name is None else ("namespace", (name, ""))
    if issubclass(cls, types.ModuleType):
        is_known = sys.modules.get(value.__name__) is value
        return ("path", (value.__name__, "")) if is_known else None
    return next((("path", path) for path in _paths(value) if _is_at(path, value)), None)


def _paths(value: Any) -> list[Path]:
    if type(value) in (dict, list, set, tuple):
        return []
    if issubclass(type(value), enum.Enum):
        return [(type(value).__module__, f"{type(value).__qualname__}.{value.name}")]
    if issubclass(type(value), type):
        return _paths_of_class(value)
    if type(value) not in (types.FunctionType, *_IN_C):
        return _named_in_module(value)  # to read more could run code of the program

    name, found = _name_of(value), list[Path]()
    module = getattr(value, "__module__", None)
    owner = getattr(value, "__self__", None)
    if type(value) in _IN_C and isinstance(owner, types.ModuleType):
        found.append((owner.__name__, name))
    if (cls := getattr(value, "__objclass__", None)) is not None:
        path = f"{of_class(cls, '__qualname__')}.{value.__name__}"
        found.append((of_class(cls, "__module__"), path))

    if isinstance(module, str):
        found.append((module, name))
        if "<locals>" in name:  # a module may have it by another name: `torch.max_pool2d`
            found.append((module, getattr(value, "__name__", name)))
        elif type(value) is types.FunctionType:
            found += [(module, f"{name}.{path}") for path in WRAPPED]
    return found


def _paths_of_class(cls: type) -> list[Path]:
    found = [("types", name) for value, name in _TYPES.items() if value is cls]
    module, name = of_class(cls, "__module__"), of_class(cls, "__qualname__")
    if not isinstance(module, str):
        return found

    found.append((module, name))
    if "<locals>" in name:
        found.append((module, of_class(cls, "__name__")))
    return found


WRAPPED = ("__wrapped__", ORIGINAL_CALLABLE, "__wrapped__.__wrapped__")
"""The paths from a function that was wrapped by a decorator to the function of the program."""


def _named_in_module(value: Any) -> list[Path]:
    """Return the name that the module of its class has for an object, as for a sentinel."""
    module = sys.modules.get(type(value).__module__)
    if module is None or not type(value).__flags__ & _HEAP:
        return []
    names = [name for name, each in [*vars(module).items()] if each is value]
    return [(module.__name__, name) for name in names[:1]]


def _name_of(value: Any) -> str:
    name = getattr(value, "__qualname__", None) or getattr(value, "__name__", None)
    return name if isinstance(name, str) else ""


def _is_at(path: Path, value: object) -> bool:
    try:
        return bool(path[1]) and at_path(path) is value
    except (KeyError, AttributeError):
        return False


def at_path(path: Path) -> Any:
    """Return what is at a path, in a module that is imported already. Raises KeyError or
    AttributeError."""
    module: Any = importlib.import_module(path[0]) if is_own_module(path[0]) else None
    module = sys.modules[path[0]] if module is None else module
    return functools.reduce(_part, filter(None, path[1].split(".")), module)


def _part(whole: Any, name: str) -> Any:
    """Return an attribute, of a class the one that it has itself, without a descriptor's call or
    code of its metaclass."""
    if not issubclass(type(whole), type):
        return getattr(whole, name)
    for cls in type.__dict__["__mro__"].__get__(whole):
        if name in vars(cls):
            found = vars(cls)[name]
            is_plain = type(found) in (types.FunctionType, *_IN_C)
            return found if is_plain else type.__getattribute__(whole, name)
    return type.__getattribute__(whole, name)


def namespace_at(path: Path) -> dict[str, Any]:
    """Return the namespace of a module that is imported already. Raises KeyError."""
    return vars(sys.modules[path[0]])


FINDERS: dict[str, Callable[[Path], Any]] = {"path": at_path, "namespace": namespace_at}
"""The functions that find an object, by the kind of its place."""
