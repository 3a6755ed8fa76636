"""Calls and functions of the concrete domain.

A Python function becomes a frame. Builtins that look at the frame that calls them (`locals`, `super`, `sys.exc_info`)
are in `FRAME_AWARE`: natively they would see the Machine's own frames.
"""

from __future__ import annotations

import builtins
import inspect
import sys
from collections.abc import Callable, Sequence
from types import BuiltinFunctionType, CellType, CodeType, FunctionType, GeneratorType, MethodType, MethodWrapperType
from typing import TYPE_CHECKING, Any, cast

from stator_bytecode._concrete._classes import build_class
from stator_bytecode._concrete._names import namespace
from stator_bytecode._concrete._values import is_iterable, shown
from stator_bytecode._fields import exception_field
from stator_bytecode._machine._binding import BindingError, bind_arguments, new_frame
from stator_bytecode._machine._domain import Invoke, Result
from stator_bytecode._machine._frame import NULL, Frame, Then

if TYPE_CHECKING:
    from stator_bytecode._concrete._interpreter import ConcreteDomain
    from stator_bytecode._machine._machine import Machine

_ASYNCHRONOUS = inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR | inspect.CO_ITERABLE_COROUTINE
_OURS = __name__.partition("._")[0] + "._"


def is_internal(names: dict[str, Any]) -> bool:
    """Whether these globals are those of a module of the interpreter itself, which is never interpreted."""
    return str(names.get("__name__")).startswith(_OURS)


class Calls:
    active: Machine
    interprets: Callable[[FunctionType], bool]

    def call(self, function: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> Result:
        kind = type(function)
        if kind is MethodType:
            return self.call(function.__func__, [function.__self__, *args], kwargs)
        if kind is FunctionType:
            if self.runs_as_frame(function):
                return Invoke(self.frame_of(function, args, kwargs))
            return function(*args, **kwargs)
        domain = cast("ConcreteDomain", self)
        if kind is BuiltinFunctionType or kind is MethodWrapperType:
            if type(function.__self__) is GeneratorType:
                return domain.call_generator_method(function, args, kwargs)
        elif isinstance(function, type) and (instance := self._instance(function, args, kwargs)) is not None:
            return instance
        aware = FRAME_AWARE.get(id(function))
        return function(*args, **kwargs) if aware is None else aware(domain, function, list(args), kwargs)

    def call_spread(self, function: Any, args: Any, kwargs: dict[str, Any] | None) -> Result:
        if type(args) is not tuple:
            if not is_iterable(args):
                text = f"{shown(function)} argument after * must be an iterable, not {type(args).__name__}"
                raise TypeError(text)
            args = tuple(args)
        return self.call(function, args, kwargs or {})

    def runs_as_frame(self, function: FunctionType) -> bool:
        if function.__code__.co_flags & _ASYNCHRONOUS:
            return False
        return not is_internal(function.__globals__) and self.interprets(function)

    def frame_of(self, function: FunctionType, args: Sequence[Any], kwargs: dict[str, Any]) -> Frame:
        code, problem = function.__code__, None
        defaults = function.__defaults__ or (), function.__kwdefaults__ or {}
        try:
            bound = bind_arguments(code, function.__qualname__, *defaults, args, kwargs)
        except BindingError as error:
            problem = str(error)
        if problem is not None:
            raise TypeError(problem)
        builtin_names = getattr(function, "__builtins__")
        return new_frame(code, bound, function.__closure__ or (), function.__globals__, builtin_names, function)

    def _instance(self, cls: type, args: Sequence[Any], kwargs: dict[str, Any]) -> Invoke | None:
        """What `type.__call__` does when `__init__` is a Python function and the object a plain one."""
        initializer: Any = getattr(cls, "__init__")
        plain = getattr(cls, "__new__") is object.__new__ and type(cls).__call__ is type.__call__
        if not plain or type(initializer) is not FunctionType or not self.runs_as_frame(initializer):
            return None
        instance: Any = object.__new__(cls)
        return Invoke(self.frame_of(initializer, [instance, *args], kwargs), Then("instance", (instance,)))

    def complete(self, then: Then, value: Any) -> Result:
        assert then.kind == "instance", then
        if value is not None:
            raise TypeError(f"__init__() should return None, not '{type(value).__name__}'")
        return then.values[0]

    # making functions

    def make_function(self, frame: Frame, code: CodeType, parts: dict[str, Any]) -> FunctionType:
        made = FunctionType(code, frame.globals, None, None, parts.get("closure"))
        for part, value in parts.items():
            if part != "closure":
                _set_part(made, part, value)
        return made

    def load_super(self, frame: Frame, super_fn: Any, cls: Any, receiver: Any, name: str) -> Any:
        if super_fn is super:
            return getattr(super(cls, receiver), name)
        two_arguments = frame.code.instructions[frame.pc].arg[2]
        return getattr(super_fn(cls, receiver) if two_arguments else super_fn(), name)


def _set_part(function: FunctionType, part: str, value: Any) -> None:
    if part == "annotations" and type(value) is tuple:
        value = dict(zip(value[::2], value[1::2], strict=True))
    setattr(function, f"__{part}__", value)


# builtins that look at their caller's frame


def local_variables(frame: Frame) -> Any:
    """What `locals()` gives: the namespace of a class or module, a new dictionary for a function."""
    if frame.names is not None or not frame.code.raw.co_flags & inspect.CO_OPTIMIZED:
        return namespace(frame)
    raw = frame.code.raw
    cells = {*raw.co_cellvars, *raw.co_freevars}
    found = {}
    for name, value in zip(frame.code.slots, frame.slots, strict=True):
        if name in cells and type(value) is CellType:
            value = NULL if _is_empty(value) else value.cell_contents
        if value is not NULL:
            found[name] = value
    return found


def _is_empty(cell: CellType) -> bool:
    try:
        cell.cell_contents  # noqa: B018  # raises when the cell is empty
    except ValueError:
        return True
    return False


FrameAware = Callable[["ConcreteDomain", Any, "list[Any]", "dict[str, Any]"], Result]
FRAME_AWARE: dict[int, FrameAware] = {}


def _aware(*functions: Any) -> Callable[[FrameAware], FrameAware]:
    def register(handler: FrameAware) -> FrameAware:
        FRAME_AWARE.update({id(function): handler for function in functions})
        return handler

    return register


def _caller(domain: ConcreteDomain) -> Frame:
    return domain.active.frames[-1]


@_aware(builtins.__build_class__)
def _build_class(domain: ConcreteDomain, function: Any, args: list[Any], kwargs: dict[str, Any]) -> Result:
    return build_class(domain, *args, **kwargs)


@_aware(builtins.next)
def _next(domain: ConcreteDomain, function: Any, args: list[Any], kwargs: dict[str, Any]) -> Result:
    return function(*args, **kwargs) if kwargs else domain.call_next(args)


_LOOKS: dict[Any, Callable[[Frame], Any]] = {
    builtins.globals: lambda frame: frame.globals,
    builtins.dir: lambda frame: sorted(local_variables(frame)),
    **dict.fromkeys((builtins.locals, builtins.vars), local_variables),
}


@_aware(*_LOOKS)
def _look(domain: ConcreteDomain, function: Any, args: list[Any], kwargs: dict[str, Any]) -> Result:
    return function(*args, **kwargs) if args or kwargs else _LOOKS[function](_caller(domain))


@_aware(builtins.eval, builtins.exec)
def _evaluate(domain: ConcreteDomain, function: Any, args: list[Any], kwargs: dict[str, Any]) -> Result:
    frame = _caller(domain)
    if len(args) >= 1 and all(part is None for part in args[1:]) and not kwargs.keys() & {"globals", "locals"}:
        args = [args[0], frame.globals, local_variables(frame)]
    return function(*args, **kwargs)


@_aware(sys.exc_info)
def _exc_info(domain: ConcreteDomain, function: Any, args: list[Any], kwargs: dict[str, Any]) -> Result:
    if (handled := domain.active.handled()) is None or args or kwargs:
        return function(*args, **kwargs)
    return type(handled), handled, exception_field(handled, "__traceback__")


@_aware(sys.exception)
def _exception(domain: ConcreteDomain, function: Any, args: list[Any], kwargs: dict[str, Any]) -> Result:
    handled = domain.active.handled()
    return function(*args, **kwargs) if handled is None or args or kwargs else handled


@_aware(builtins.super)
def _super(domain: ConcreteDomain, function: Any, args: list[Any], kwargs: dict[str, Any]) -> Result:
    if args or kwargs:
        return function(*args, **kwargs)
    frame = _caller(domain)
    return super(_class_of(domain, frame), _first_argument(domain, frame))


def _first_argument(domain: ConcreteDomain, frame: Frame) -> Any:
    if not frame.code.raw.co_argcount:
        raise RuntimeError("super(): no arguments")
    first = frame.slots[0]
    if type(first) is CellType and frame.code.slots[0] in frame.code.raw.co_cellvars:
        first = domain.cell_get(first)
    if first is NULL:
        raise RuntimeError("super(): arg[0] deleted")
    return first


def _class_of(domain: ConcreteDomain, frame: Frame) -> Any:
    names = frame.code.raw.co_freevars
    if not frame.code.raw.co_argcount:
        raise RuntimeError("super(): no arguments")
    if "__class__" not in names:
        raise RuntimeError("super(): __class__ cell not found")
    cls = domain.cell_get(frame.slots[len(frame.slots) - len(names) + names.index("__class__")])
    if cls is NULL:
        raise RuntimeError("super(): empty __class__ cell")
    if not isinstance(cls, type):
        raise RuntimeError(f"super(): __class__ is not a type ({type(cls).__name__})")
    return cls
