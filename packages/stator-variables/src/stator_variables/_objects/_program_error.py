"""Raising exceptions of the interpreted program from inside the data model."""

import itertools
import sys
import types
from collections.abc import Callable
from typing import Any, NoReturn, cast

from stator_bytecode import OperationSteps, Raised, settle
from stator_guards import CapturedSource, Equals, Is, SlotSource

from stator_variables import _trackers as k
from stator_variables._objects._exception import ExceptionTracker
from stator_variables._objects._method import MethodTracker
from stator_variables._objects._wrap import new_namespace
from stator_variables._runtime._contents import may_override
from stator_variables._space import Space
from stator_variables._tracker import Args, VariableTracker, is_a

Naming = Callable[[Space, type], str]


def error(kind: type[BaseException], *args: object) -> ExceptionTracker:
    """A new exception; arguments are constants or trackers."""
    return new_exception(
        kind, [arg if is_a(arg, VariableTracker) else k.ConstantTracker(arg) for arg in args]
    )


def new_exception(kind: type[BaseException], args: Args) -> ExceptionTracker:
    tracker = ExceptionTracker(kind, args)
    new_namespace(tracker)
    return tracker


def complain(
    t: Space, kind: type[BaseException], *pieces: str | type, naming: Naming | None = None
) -> NoReturn:
    """Raise an error of C that names classes; guards on the names are relied on if the program
    reads the text."""
    known = len(t.guards)
    naming = naming or type_name
    made = error(
        kind,
        "".join(
            [piece if type(piece) is str else naming(t, cast(type, piece)) for piece in pieces]
        ),
    )
    made.relied = [*itertools.islice(reversed(t.guards), len(t.guards) - known)]
    raise Raised(made)


def throw(kind: type[BaseException], *args: object) -> NoReturn:
    """Raise an exception of the interpreted program."""
    raise Raised(error(kind, *args))


def attempt(
    t: Space, expected: Any, otherwise: Any, function: Callable[..., Any], *args: Any
) -> OperationSteps:
    """The value of the Result that `function(*args)` gives; `otherwise` where the program raises
    what is expected."""
    try:
        return (yield from settle(function(*args)))
    except Raised as raised:
        if not issubclass(raised.value.cls, expected):
            raise
        # by C: nobody has seen the text
        for guard in raised.value.relied if type(raised) is Raised else ():
            t.guards.pop(guard)
        return otherwise


def absent(t: Space, vt: VariableTracker, name: str) -> NoReturn:
    """The AttributeError of C for an attribute that a class, a module or another object does not
    have."""
    if is_a(vt, k.ClassTracker):
        complain(t, AttributeError, "type object '", vt.value, f"' has no attribute '{name}'")
    if is_a(vt, k.BuiltinTracker) and issubclass(vt.cls, types.ModuleType):
        own_name = vars(types.ModuleType)["__dict__"].__get__(vt.value).get("__name__")
        throw(
            AttributeError,
            f"module {'' if own_name is None else repr(own_name) + ' '}has no attribute '{name}'",
        )
    complain(t, AttributeError, "'", vt.cls, f"' object has no attribute '{name}'")


def function_text(vt: VariableTracker) -> str:
    """Return the name of a function in errors of calls (`_PyObject_FunctionStr`)."""
    while is_a(vt, MethodTracker):
        vt = vt.function
    if is_a(vt, k.FunctionTracker):
        qualname, module = vt.qualname, vt.globals.real.get("__name__")
    else:
        qualname, module = vt.describe(), getattr(getattr(vt, "value", None), "__module__", None)
    return f"{qualname}()" if module in (None, "builtins") else f"{module}.{qualname}()"


def spread_text(function: VariableTracker, stars: str) -> str:
    """Return the words of an error for what is spread in a call."""
    if sys.version_info >= (3, 15):
        return f"Value after {stars}"
    return f"{function_text(function)} argument after {stars}"


def complain_of_manager(t: Space, cls: type, has_enter: bool) -> NoReturn:
    """Raise what `with` raises over an object without `__enter__` or `__exit__`.

    The texts of 3.14, which depend on asynchronous methods too, are left to CPython.
    """
    if sys.version_info >= (3, 14):
        raise t.unsupported("bad-arguments", "a `with` over something that is no context manager")
    missed = " (missed __exit__ method)" if has_enter else ""
    text = f"' object does not support the context manager protocol{missed}"
    complain(t, TypeError, "'", cls, text)


def type_name(t: Space, cls: type) -> str:
    """The name that C's error texts give (`tp_name`): classes written in C carry their module."""
    name: str = name_of(t, cls)
    return name if may_override(cls) or cls.__module__ == "builtins" else f"{cls.__module__}.{name}"


def name_of(t: Space, cls: Any, field: str = "__name__") -> Any:
    """The name of a class, relied on where the program may change it."""
    name = vars(type)[field].__get__(cls)
    if may_override(cls):
        kind = Equals(name) if type(name) is str else Is(name)
        t.guard(SlotSource(CapturedSource(cls.__qualname__, cls), type, field), kind)
    return name


def full_name(t: Space, cls: type) -> str:
    """Return the name with module and outer classes (`%T` of C)."""
    module, name = (name_of(t, cls, field) for field in ("__module__", "__qualname__"))
    return (
        str(name)
        if type(module) is not str or module in ("builtins", "__main__")
        else f"{module}.{name}"
    )


name_in_slots = full_name if sys.version_info >= (3, 13) else name_of


def as_program_error(t: Space, caught: Exception) -> Raised:
    """Return the exception that a pure function raised on constants, to be made again of its class
    and arguments alone.

    Raises Unsupported for one with more state, such as that of an `__init__` written in Python.
    """
    cls, of_c = type(caught), isinstance(type(caught).__init__, types.WrapperDescriptorType)
    if (
        not of_c
        or len(BaseException.__reduce__(caught)) > 2
        or not all(map(_is_plain, caught.args))
    ):
        raise t.unsupported(
            "exception-object", f"a {cls.__name__} that holds more than texts and numbers"
        )
    return Raised(error(cls, *caught.args))


def _is_plain(value: object) -> bool:
    return isinstance(value, int | float | str | bytes | type(None))
