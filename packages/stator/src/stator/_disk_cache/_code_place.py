"""The place of code in a program: where another process finds the code of a function that was
interpreted, or that a break is in.

    code of the target     (0, (3,))                         a constant of the code of the function
    code by name           ("model", "Block.forward", ())    of a function of a module
    code of a function     (<function in the table>, ())     of a function that a guard reads
"""

from __future__ import annotations

import functools
import itertools
import sys
from collections.abc import Iterable, Iterator, Sequence
from types import CodeType, FunctionType, MethodType
from typing import Any, TypeAlias

import attrs

from stator._disk_cache._live_object import WRAPPED, at_path

Nested: TypeAlias = tuple[int, ...]
"""The positions, among the constants of code, that lead to code in it."""
CodeName: TypeAlias = tuple[str, str, Nested]


def codes_in(code: CodeType, path: Nested = ()) -> Iterator[tuple[CodeType, Nested]]:
    """Yield code and all code in it, each with its positions."""
    yield code, path
    for position, constant in enumerate(code.co_consts):
        if type(constant) is CodeType:
            yield from codes_in(constant, (*path, position))


def nested(code: CodeType, path: Nested) -> CodeType:
    """Return code by its positions. Raises KeyError where there is none."""
    for position in path:
        constants = code.co_consts
        if position >= len(constants) or type(constants[position]) is not CodeType:
            raise KeyError(code.co_qualname)
        code = constants[position]
    return code


def path_in(code: CodeType, wanted: CodeType) -> Nested | None:
    """Return the positions of code in other code, None where it is not in it."""
    return next((path for each, path in codes_in(code) if each is wanted), None)


def code_of(value: Any) -> CodeType:
    """Return the code of a function or method. Raises KeyError for other objects."""
    function = value.__func__ if type(value) is MethodType else value
    if type(function) is not FunctionType:
        raise KeyError(type(value).__name__)
    return function.__code__


def code_at(name: CodeName) -> CodeType:
    """Return the code by its name, in a module that is imported. Raises KeyError or
    AttributeError."""
    module, qualname, path = name
    found = at_path((module, qualname))
    if issubclass(type(found), property):
        found = found.fget
    return nested(code_of(found), path)


@attrs.define(eq=False)
class CodePlaces:
    """The places of code for one file. `targets` are the codes of what was traced, `held` objects
    that guards refer to."""

    targets: Sequence[CodeType]
    held: Sequence[Any]
    _owners: dict[CodeType, tuple[Any, Nested]] | None = None

    def in_target(self, code: CodeType) -> tuple[int, Nested] | None:
        for number, target in enumerate(self.targets):
            if (path := path_in(target, code)) is not None:
                return number, path
        return None

    def name(self, code: CodeType) -> CodeName | None:
        """Return the name of code in a module, None where none leads to it."""
        qualname = code.co_qualname.partition(".<locals>.")[0]
        names = [qualname, *(f"{qualname}.{path}" for path in WRAPPED)]
        for module, name in itertools.product(_modules_of(code.co_filename), names):
            try:
                outer = code_at((module, name, ()))
            except (KeyError, AttributeError):
                continue
            if (path := path_in(outer, code)) is not None:
                return module, name, path
        return None

    def owner(self, code: CodeType) -> tuple[Any, Nested] | None:
        """Return a function that a guard refers to, and the positions in its code."""
        if self._owners is None:
            self._owners = dict(_owned(self.held))
        found = self._owners.get(code)
        return found if found is not None and path_in(code_of(found[0]), code) is not None else None


def _owned(held: Iterable[Any]) -> Iterator[tuple[CodeType, tuple[Any, Nested]]]:
    for value in held:
        if type(value) in (FunctionType, MethodType):
            for code, path in codes_in(code_of(value)):
                yield code, (value, path)


def _modules_of(filename: str) -> tuple[str, ...]:
    return _modules_by_file(len(sys.modules)).get(filename, ())


@functools.lru_cache(maxsize=1)
def _modules_by_file(count: int) -> dict[str, tuple[str, ...]]:
    """Return the names of modules by their files; `count` is the number of those imported."""
    found: dict[str, tuple[str, ...]] = {}
    for name, module in [*sys.modules.items()]:
        namespace = getattr(module, "__dict__", {})
        filename = namespace.get("__file__") if type(namespace) is dict else None
        if isinstance(filename, str):
            found[filename] = (*found.get(filename, ()), name)
    return found
