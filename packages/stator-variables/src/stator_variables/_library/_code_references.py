"""Objects that a function can reach: by the names that its code and the code of what it calls use,
in the globals and in modules, and through whatever those objects refer to."""

import gc
import types
from collections.abc import Iterable, Iterator, Set
from inspect import getattr_static
from typing import Any

import torch

from stator_variables._defining_module import is_of_stdlib
from stator_variables._objects._cache_contents import CACHED

_LIMIT = 5_000
"""The number of objects that are looked at; a function that reaches more is taken to reach all."""

_WITHOUT_PARTS = (str, bytes, int, float, type(None), types.BuiltinFunctionType, types.CodeType)


def reaches(roots: Iterable[object], targets: Set[int], with_torch: bool) -> bool:
    """Return whether one of the objects with the ids `targets`, or anything of torch, may be
    reached from the roots."""
    seen: dict[int, object] = {}
    waiting = list(roots)
    while waiting:
        found = waiting.pop()
        if id(found) in targets or len(seen) > _LIMIT or (with_torch and _is_of_torch(found)):
            return True
        if id(found) not in seen and not isinstance(found, _WITHOUT_PARTS):
            seen[id(found)] = found
            waiting += _references(found)
    return False


def _references(found: object) -> Iterator[object]:
    if (inside := getattr_static(found, "__wrapped__", None)) is not None:
        yield inside  # of a cached function, a method, or a decorated function
    if isinstance(found, types.FunctionType | type) and is_of_stdlib(found):
        return  # it refers to a program's objects only where it was given them
    if isinstance(found, types.FunctionType):
        yield from (found.__closure__, found.__defaults__, found.__kwdefaults__)
        yield from _used(found.__code__, found.__globals__)
    elif isinstance(found, type):
        yield from found.__mro__
        yield from (value for name, value in vars(found).items() if name != "__annotations__")
    elif not isinstance(found, types.ModuleType | classmethod | staticmethod | CACHED):
        yield from gc.get_referents(found)


def _is_of_torch(found: object) -> bool:
    if isinstance(found, types.BuiltinFunctionType):
        found = found.__self__
    if isinstance(found, types.ModuleType):
        return found.__name__.partition(".")[0] == "torch"
    if isinstance(found, types.FunctionType | type):
        return str(found.__module__).partition(".")[0] == "torch"
    return isinstance(found, torch.Tensor | torch.Generator)


def _used(code: types.CodeType, scope: dict[str, Any]) -> Iterator[object]:
    """Yield what the names of some code refer to, as globals and as parts of such modules."""
    for name in code.co_names:
        value = scope.get(name)
        yield value
        if isinstance(value, types.ModuleType):
            yield from map(vars(value).get, code.co_names)

    for inner in code.co_consts:
        if isinstance(inner, types.CodeType):
            yield from _used(inner, scope)
