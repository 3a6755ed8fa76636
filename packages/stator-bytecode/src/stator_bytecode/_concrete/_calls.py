"""Calls and functions of the concrete domain.

A Python function becomes a frame. Builtins that read the frame of their caller (`locals`, `super`,
`sys.exc_info`) are in `FRAME_AWARE`: natively they would see the Machine's own frames.
"""

import builtins
import inspect
import sys
from collections.abc import Callable, Sequence
from types import (
    BuiltinFunctionType,
    CellType,
    CodeType,
    FunctionType,
    GeneratorType,
    MethodType,
    MethodWrapperType,
)
from typing import Any

from stator_bytecode._concrete._classes import build_class
from stator_bytecode._concrete._generators import call_generator_method, call_next
from stator_bytecode._concrete._names import cell_content, namespace
from stator_bytecode._concrete._operations import ConcreteOperations, NamedArgs
from stator_bytecode._concrete._values import is_iterable, spread_text
from stator_bytecode._fields import exception_field
from stator_bytecode._machine._binding import BindingError, bind_arguments, new_frame
from stator_bytecode._machine._domain import Invoke, Result
from stator_bytecode._machine._frame import NULL, Frame, Then

_ASYNCHRONOUS = inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR | inspect.CO_ITERABLE_COROUTINE
_OURS = __name__.partition("._")[0] + "._"


def is_internal(names: dict[str, Any]) -> bool:
    """Return True for the globals of the interpreter's own modules, which are never interpreted."""
    return str(names.get("__name__")).startswith(_OURS)


class Calls(ConcreteOperations):
    def call(self, function: Any, args: Sequence[Any], kwargs: NamedArgs) -> Result:
        kind = type(function)
        if kind is MethodType:
            return self.call(function.__func__, [function.__self__, *args], kwargs)
        if kind is FunctionType:
            if self.runs_as_frame(function):
                return Invoke(self.frame_of(function, args, kwargs))
            return function(*args, **kwargs)

        if kind is BuiltinFunctionType or kind is MethodWrapperType:
            if type(function.__self__) is GeneratorType:
                return call_generator_method(function, args, kwargs)
        elif (
            isinstance(function, type)
            and (instance := self._instance(function, args, kwargs)) is not None
        ):
            return instance

        aware = FRAME_AWARE.get(id(function))
        return (
            function(*args, **kwargs)
            if aware is None
            else aware(self, function, list(args), kwargs)
        )

    def call_spread(self, function: Any, args: Any, kwargs: NamedArgs | None) -> Result:
        if type(args) is not tuple:
            if not is_iterable(args):
                what = spread_text(function, "*")
                raise TypeError(f"{what} must be an iterable, not {type(args).__name__}")
            args = tuple(args)
        return self.call(function, args, kwargs or {})

    def runs_as_frame(self, function: FunctionType) -> bool:
        if function.__code__.co_flags & _ASYNCHRONOUS:
            return False
        return not is_internal(function.__globals__) and self.interprets(function)

    def frame_of(self, function: FunctionType, args: Sequence[Any], kwargs: NamedArgs) -> Frame:
        code, problem = function.__code__, None
        defaults = function.__defaults__ or ()
        kwdefaults = function.__kwdefaults__ or {}
        try:
            bound = bind_arguments(code, function.__qualname__, defaults, kwdefaults, args, kwargs)
        except BindingError as error:
            problem = str(error)
        if problem is not None:
            raise TypeError(problem)
        builtin_names = getattr(function, "__builtins__")
        return new_frame(
            code, bound, function.__closure__ or (), function.__globals__, builtin_names, function
        )

    def _instance(self, cls: type, args: Sequence[Any], kwargs: NamedArgs) -> Invoke | None:
        """Act as `type.__call__` when `__init__` is a Python function and the object a plain
        one."""
        initializer: Any = getattr(cls, "__init__")
        plain = getattr(cls, "__new__") is object.__new__ and type(cls).__call__ is type.__call__
        if (
            not plain
            or type(initializer) is not FunctionType
            or not self.runs_as_frame(initializer)
        ):
            return None
        instance: Any = object.__new__(cls)
        return Invoke(
            self.frame_of(initializer, [instance, *args], kwargs), Then("instance", (instance,))
        )

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


# builtins that read their caller's frame


def local_variables(frame: Frame) -> Any:
    """Return the result of `locals()`: the namespace of a class or module, a new dictionary for a
    function."""
    if frame.names is not None or not frame.code.raw.co_flags & inspect.CO_OPTIMIZED:
        return namespace(frame)
    raw = frame.code.raw
    cells = {*raw.co_cellvars, *raw.co_freevars}
    found = {}
    for name, value in zip(frame.code.slots, frame.slots, strict=True):
        content = cell_content(value) if name in cells and type(value) is CellType else value
        if content is not NULL:
            found[name] = content
    return found


def _caller(domain: ConcreteOperations) -> Frame:
    return domain.active.frames[-1]


def _next(domain: ConcreteOperations, function: Any, args: list[Any], kwargs: NamedArgs) -> Result:
    return function(*args, **kwargs) if kwargs else call_next(args)


def _evaluate(
    domain: ConcreteOperations, function: Any, args: list[Any], kwargs: NamedArgs
) -> Result:
    frame = _caller(domain)
    if (
        len(args) >= 1
        and all(part is None for part in args[1:])
        and not kwargs.keys() & {"globals", "locals"}
    ):
        return function(args[0], frame.globals, local_variables(frame), **kwargs)
    return function(*args, **kwargs)


def _exception(domain: ConcreteOperations) -> BaseException | None:
    handled = domain.active.handled()
    return sys.exception() if handled is None else handled


def _exc_info(domain: ConcreteOperations) -> Any:
    if (handled := _exception(domain)) is None:
        return None, None, None
    return type(handled), handled, exception_field(handled, "__traceback__")


def _super(domain: ConcreteOperations) -> Any:
    frame = _caller(domain)
    return super(_class_of(frame), _first_argument(frame))


_WITHOUT_ARGUMENTS: dict[Any, Callable[[ConcreteOperations], Any]] = {
    builtins.globals: lambda domain: _caller(domain).globals,
    builtins.dir: lambda domain: sorted(local_variables(_caller(domain))),
    **dict.fromkeys(
        (builtins.locals, builtins.vars), lambda domain: local_variables(_caller(domain))
    ),
    builtins.super: _super,
    sys.exception: _exception,
    sys.exc_info: _exc_info,
}


def _look(domain: ConcreteOperations, function: Any, args: list[Any], kwargs: NamedArgs) -> Result:
    return function(*args, **kwargs) if args or kwargs else _WITHOUT_ARGUMENTS[function](domain)


FRAME_AWARE: dict[int, Callable[[ConcreteOperations, Any, list[Any], NamedArgs], Result]] = {
    id(builtins.__build_class__): lambda domain, _, args, kwargs: build_class(
        domain, *args, **kwargs
    ),
    id(builtins.next): _next,
    **dict.fromkeys(map(id, (builtins.eval, builtins.exec)), _evaluate),
    **dict.fromkeys(map(id, _WITHOUT_ARGUMENTS), _look),
}


def _first_argument(frame: Frame) -> Any:
    first = frame.slots[0]
    if type(first) is CellType and frame.code.slots[0] in frame.code.raw.co_cellvars:
        first = cell_content(first)
    if first is NULL:
        raise RuntimeError("super(): arg[0] deleted")
    return first


def _class_of(frame: Frame) -> Any:
    names = frame.code.raw.co_freevars
    if not frame.code.raw.co_argcount:
        raise RuntimeError("super(): no arguments")
    if "__class__" not in names:
        raise RuntimeError("super(): __class__ cell not found")
    cls = cell_content(frame.slots[len(frame.slots) - len(names) + names.index("__class__")])
    if cls is NULL:
        raise RuntimeError("super(): empty __class__ cell")
    if not isinstance(cls, type):
        raise RuntimeError(f"super(): __class__ is not a type ({type(cls).__name__})")
    return cls
