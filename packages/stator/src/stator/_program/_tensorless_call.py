"""Functions that can reach no tensor, by what they are given and by the globals that they name.

    def draw_spans(count):                   given numbers; names `np` and `range`
        starts = np.random.choice(count, 3)
        return [starts[i] for i in range(3)]

Where such a function breaks, no graph has anything to gain from the rest of it: it runs natively,
as one call.
"""

import builtins
import logging
import sys
from collections.abc import Iterator
from types import BuiltinFunctionType, CodeType, FunctionType, ModuleType
from typing import Any

import stator_variables as variables
from stator_bytecode import NULL, decode

_NUMBERS_AND_TEXT = (type(None), bool, int, float, complex, str, bytes, type(...), slice, range)
_SEQUENCES = (list, tuple, set, frozenset)
_LOGGERS = (logging.Logger, logging.RootLogger)
_MOST_ITEMS = 64
# What is imported is unknown; each call would return instances of another class.
_REFUSED = (__import__, __build_class__)


def reaches_no_tensor(operands: list[Any]) -> bool:
    """Return True for a call, given as trackers, the callable first, whose result can depend on no
    tensor, and that can run no operator on one."""
    callee, *given = [vt for vt in operands if vt is not NULL]
    if variables.is_a(callee, variables.MethodTracker):
        given = [callee.receiver, *given]
        callee = callee.function
    function = variables.real_of(callee)
    if type(function) is not FunctionType or not all(map(_is_plain_tracker, given)):
        return False
    return _is_plain_function(function, set())


def _is_plain_tracker(vt: Any) -> bool:
    real = variables.real_of(vt)
    if real is not variables.MISSING:
        return _is_plain(real, set())
    if vt.is_symbolic or vt.constant() is not variables.MISSING:
        return True
    return vt.base in (list, tuple) and all(map(_is_plain_tracker, vt.items))


def _is_plain_function(function: FunctionType, seen: set[int]) -> bool:
    """Return True if the function finds nothing but plain values, functions among them that are
    like it."""
    if id(function) in seen:
        return True
    seen.add(id(function))
    if _is_of_library(function.__module__):
        return True

    found = [*_named(function), *(function.__defaults__ or ())]
    found += (function.__kwdefaults__ or {}).values()
    found += [cell.cell_contents for cell in function.__closure__ or () if _is_filled(cell)]
    return all(_is_plain(value, seen) for value in found)


def _named(function: FunctionType) -> Iterator[object]:
    """Yield the globals and builtins that the code of a function names, or that of one inside."""
    for name in _names_in(function.__code__):
        if name in function.__globals__:
            yield function.__globals__[name]
        else:
            yield getattr(builtins, name, None)


def _names_in(code: CodeType) -> Iterator[str]:
    for instr in decode(code).instructions:
        if instr.op == "LOAD_GLOBAL":
            yield instr.arg[0]
        elif instr.op == "LOAD_NAME":
            yield instr.arg
        elif instr.op == "IMPORT_NAME" and not _is_of_library(instr.arg):
            yield "__import__"
        elif instr.op == "LOAD_BUILD_CLASS":
            yield "__build_class__"

    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names_in(constant)


def _is_plain(value: object, seen: set[int]) -> bool:
    kind = type(value)
    if kind in _NUMBERS_AND_TEXT or kind in _LOGGERS:
        return True
    if kind in _SEQUENCES or kind is dict:
        return _is_small_and_plain(value, seen)
    if isinstance(value, FunctionType):
        return _is_plain_function(value, seen)
    if isinstance(value, ModuleType):
        return _is_of_library(value.__name__)
    if isinstance(value, type | BuiltinFunctionType):
        return value not in _REFUSED and _is_of_library(value.__module__)
    return _is_of_numpy(kind)


def _is_small_and_plain(value: Any, seen: set[int]) -> bool:
    if id(value) in seen:
        return True
    seen.add(id(value))
    if len(value) > _MOST_ITEMS:
        return False
    items = [*value, *value.values()] if type(value) is dict else [*value]
    return all(_is_plain(item, seen) for item in items)


def _is_of_library(module: str | None) -> bool:
    """Return True for a module of the standard library or of NumPy."""
    package = str(module).partition(".")[0]
    return package == "numpy" or package in sys.stdlib_module_names


def _is_of_numpy(kind: type) -> bool:
    """Return True for the types of dtypes and functions of NumPy; arrays are what graphs
    compute."""
    return kind.__module__.partition(".")[0] == "numpy" and not hasattr(kind, "__array__")


def _is_filled(cell: Any) -> bool:
    try:
        cell.cell_contents  # noqa: B018
    except ValueError:
        return False
    return True
