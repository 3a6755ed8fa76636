"""Copies of everything that a function can reach, for the duration of a block: a run inside it
leaves nothing behind.

    world = CopiedWorld(fn, (x, seen))    copies of the arguments, of the globals that are named,
                                          of cells, of what classes and functions of the program
                                          hold; what these share stays shared
    with world.installed():
        fn(*world.state)                  every name is bound to its copy: no object from outside
                                          is written
    world.left                            the values of the names at the end of the block, which
                                          are bound as before now

Code of libraries is not followed. An object without a faithful copy (a generator, a file, what a
cached function holds) would be used up or written: it raises `CannotCopy`.
"""

import copy
import functools
import gc
import sys
import threading
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from types import CellType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any

import attrs
import torch
from stator_bytecode import FlatState, is_own_module
from stator_variables import UNTOLD, history_of

from stator._oracle_mode._comparison import ATOMS, Comparison, parts
from stator._program._installed_code import is_installed
from stator._regions._wrapper import original_of

_HOLDERS_OF_FUNCTIONS = (staticmethod, classmethod, property, functools.partial, MethodType)
_SHARED = (type(threading.Lock()), type(threading.RLock()), ContextVar, ModuleType)
_WITHOUT_COPY = (
    functools._lru_cache_wrapper,
    weakref.WeakValueDictionary,
    weakref.WeakKeyDictionary,
    weakref.WeakSet,
)
_ATOMS = frozenset(map(id, ATOMS))
UNBOUND = object()
NamedValues = dict[str, Any]
_IS_IMMUTABLE = 1 << 8  # Py_TPFLAGS_IMMUTABLETYPE


class CannotCopy(Exception):
    """Running the function on copies would use something up that is not copied."""


@attrs.define(eq=False)
class OwnedNames:
    """The names of one owner: a namespace, a class, a cell, or a function (its defaults). `wanted`
    restricts them."""

    owner: Any
    label: str
    wanted: frozenset[str] | None = None

    def read(self) -> NamedValues:
        if isinstance(self.owner, type):
            return {
                name: value
                for name, value in vars(self.owner).items()
                if not _is_of_the_class(name)
            }
        if isinstance(self.owner, dict):
            wanted = self.owner if self.wanted is None else self.wanted
            return {name: self.owner[name] for name in [*wanted] if name in self.owner}
        names = (
            ("cell_contents",)
            if isinstance(self.owner, CellType)
            else ("__defaults__", "__kwdefaults__")
        )
        return {name: getattr(self.owner, name) for name in names if _is_bound(self.owner, name)}

    def write(self, values: NamedValues) -> None:
        """Bind each name to its value, and none besides of those that `read` gives."""
        now = self.read()
        for name in now.keys() - values.keys():
            self._delete(name)
        for name, value in values.items():
            if name not in now or now[name] is not value:
                self._bind(name, value)

    def _bind(self, name: str, value: object) -> None:
        if isinstance(self.owner, dict):
            self.owner[name] = value
        else:  # without `__setattr__` of a metaclass
            (type.__setattr__ if isinstance(self.owner, type) else setattr)(self.owner, name, value)

    def _delete(self, name: str) -> None:
        if isinstance(self.owner, dict):
            del self.owner[name]
        else:
            (type.__delattr__ if isinstance(self.owner, type) else delattr)(self.owner, name)


def _is_of_the_class(name: str) -> bool:
    """Return True for a name that a metaclass maintains: `__slots__`, or `_member_map_` of an
    Enum."""
    return name.startswith("_") and (name.endswith("_") or name == "_abc_impl")


def _is_bound(owner: object, name: str) -> bool:
    try:
        getattr(owner, name)
    except ValueError:  # an empty cell
        return False
    return True


@attrs.define(eq=False)
class CopiedWorld:
    fn: FunctionType
    arguments: tuple[Any, ...]
    state: FlatState = attrs.field(init=False)
    places: list[OwnedNames] = attrs.field(factory=list)
    left: list[NamedValues] = attrs.field(factory=list)
    cuts_history: bool = False  # of a tensor that was computed: autograd may raise for the copy
    _copies: list[NamedValues] = attrs.field(factory=list)
    _memo: dict[int, Any] = attrs.field(factory=dict)
    _seen: dict[int, Any] = attrs.field(factory=dict)
    _faithful: Comparison = attrs.field(factory=Comparison)

    def __attrs_post_init__(self) -> None:
        """Raises CannotCopy."""
        self._follow(self.fn)
        self._follow(self.arguments)
        values = [place.read() for place in self.places]
        with self._harmless_hashes(values):
            self._copy(values)

    def _copy(self, values: list[NamedValues]) -> None:
        for reference in [found for found in self._seen.values() if type(found) is weakref.ref]:
            self._memo[id(reference)] = weakref.ref(
                self._copied(reference()), reference.__callback__
            )
        for parameter in [
            found for found in self._seen.values() if isinstance(found, torch.nn.Parameter)
        ]:
            with _copying(parameter):  # which leaves out the gradient
                copy.deepcopy(parameter, self._memo).grad = copy.deepcopy(
                    parameter.grad, self._memo
                )
        self.state = tuple(map(self._copied, self.arguments))
        self._copies = [
            {name: self._copied(value) for name, value in names.items()} for names in values
        ]

    @contextmanager
    def _harmless_hashes(self, values: list[NamedValues]) -> Iterator[None]:
        """A copied container hashes and compares its keys: where these have code of the program,
        it runs with the names bound to copies that are dropped."""
        hashing = {number: found for number, found in self._seen.items() if _runs_code(found)}
        if not hashing:
            yield
            return

        memo = {**self._memo, **hashing}
        dropped = [
            {name: _deep_copy(value, memo) for name, value in names.items()} for names in values
        ]
        with _bound(self.places, dropped, []):
            yield

    @contextmanager
    def installed(self) -> Iterator[None]:
        with _bound(self.places, self._copies, self.left):
            yield

    def variables(self) -> Iterator[tuple[str, Any, Any]]:
        """Each by its name: what the run left there, and what is there now."""
        for place, left in zip(self.places, self.left, strict=True):
            now = place.read()
            for name in [*left, *(now.keys() - left.keys())]:
                label = place.label if name == "cell_contents" else f"{place.label} {name}"
                yield label, left.get(name, UNBOUND), now.get(name, UNBOUND)

    def _copied(self, value: object) -> Any:
        made = _deep_copy(value, self._memo)
        for where, left, right in self._faithful.differences(
            value, made, f"a {type(value).__qualname__}"
        ):
            raise CannotCopy(f"in a copy, {where} is {right} for {left}")
        return made

    def _follow(self, value: object) -> None:
        """Find the places that code can get at from here."""
        waiting = [value]
        while waiting:
            found = waiting.pop()
            if id(found) not in self._seen and _has_parts(found):
                self._seen[id(found)] = found
                waiting += self._next(found)

    def _next(self, value: Any) -> list[Any]:
        if isinstance(value, FunctionType):
            return self._of_function(original_of(value) or value)
        if isinstance(value, type):
            return [] if _is_of_a_library(_namespace_of(value)) else self._of_class(value)
        # which deepcopy refuses
        if isinstance(value, torch.Tensor) and history_of(value) is not None:
            if history_of(value) is UNTOLD:
                raise CannotCopy(
                    "a view whose base was written to has no copy with the same history"
                )
            with torch.inference_mode(False), torch.enable_grad():
                self._memo[id(value)] = value.detach().clone().requires_grad_().clone()
            self.cuts_history = True

        if isinstance(value, _WITHOUT_COPY):
            raise CannotCopy(f"{type(value).__qualname__} cannot be copied")
        if type(value) is weakref.ref:
            return [value()]
        if isinstance(value, _HOLDERS_OF_FUNCTIONS):
            return gc.get_referents(value)
        return [type(value), *_keys(value), *parts(value).values()]

    def _of_function(self, fn: FunctionType) -> list[Any]:
        if _is_of_a_library(fn.__globals__):
            return []
        cells = zip(fn.__code__.co_freevars, fn.__closure__ or (), strict=True)
        wanted = frozenset(_names(fn.__code__))
        return self._at(
            *(
                OwnedNames(namespace, "the global", wanted)
                for namespace in _namespaces(fn.__globals__, wanted)
            ),
            *(OwnedNames(cell, f"the variable {name}") for name, cell in cells),
            *(OwnedNames(owner, f"{fn.__qualname__}'s") for owner in (fn, fn.__dict__)),
        )

    def _of_class(self, cls: type) -> list[Any]:
        own = (
            []
            if cls.__flags__ & _IS_IMMUTABLE
            else self._at(OwnedNames(cls, f"{cls.__qualname__}'s"))
        )
        functions = [
            value
            for value in vars(cls).values()
            if isinstance(value, (FunctionType, *_HOLDERS_OF_FUNCTIONS))
        ]
        return [*own, *functions, *cls.__bases__, type(cls)]

    def _at(self, *places: OwnedNames) -> list[Any]:
        self.places += places
        return [value for place in places for value in place.read().values()]


def _has_parts(value: object) -> bool:
    return id(type(value)) not in _ATOMS and not isinstance(value, ModuleType)


def _deep_copy(value: object, memo: dict[int, Any]) -> Any:
    if isinstance(value, (*_SHARED, *_HOLDERS_OF_FUNCTIONS[:3])):
        return value
    with _copying(value):
        return copy.deepcopy(value, memo)


@contextmanager
def _bound(
    places: list[OwnedNames], values: list[NamedValues], left: list[NamedValues]
) -> Iterator[None]:
    """Bind the names of each place to these values; `left` receives what they are at the end."""
    before = [place.read() for place in places]
    try:
        for place, new in zip(places, values, strict=True):
            place.write(new)
        yield
    finally:
        left += [place.read() for place in places]
        for place, old in zip(places, before, strict=True):
            place.write(old)


@contextmanager
def _copying(value: object) -> Iterator[None]:
    try:
        yield
    except Exception as error:  # runs code of the program's classes, which may raise anything
        raise CannotCopy(f"{type(value).__qualname__}: {error}") from error


def _keys(value: object) -> list[Any]:
    bases: list[Any] = [base for base in (dict, set, frozenset) if issubclass(type(value), base)]
    return [*bases[0].__iter__(value)] if bases else []


def _runs_code(container: object) -> bool:
    """Return True for a container whose keys may have a `__hash__` or `__eq__` of the program."""
    return any(map(_has_parts, _keys(container)))


def _names(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)


def _namespaces(first: NamedValues, wanted: frozenset[str]) -> list[NamedValues]:
    """Return the namespace, and those of the program's modules that it names, recursively."""
    found = [first]
    for namespace in found:
        modules = [
            module for name in wanted if isinstance(module := namespace.get(name), ModuleType)
        ]
        inside = [vars(module) for module in modules if not _is_of_a_library(vars(module))]
        found += [each for each in inside if not any(each is one for one in found)]
    return found


def _namespace_of(cls: type) -> NamedValues:
    return vars(sys.modules[cls.__module__]) if cls.__module__ in sys.modules else {}


def _is_of_a_library(namespace: NamedValues) -> bool:
    top = str(namespace.get("__name__")).partition(".")[0]
    file = str(namespace.get("__file__") or "")
    return top in sys.stdlib_module_names - {"__main__"} or is_own_module(top) or is_installed(file)
