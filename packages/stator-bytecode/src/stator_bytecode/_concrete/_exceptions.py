"""Exceptions and `with` of the concrete domain."""

import functools
import sys
from collections.abc import Callable
from operator import attrgetter
from types import CodeType, FrameType, FunctionType, TracebackType
from typing import Any

from stator_bytecode._concrete._context_methods import methods_enter_first, methods_exit_first
from stator_bytecode._concrete._operations import ConcreteOperations
from stator_bytecode._concrete._values import natively
from stator_bytecode._fields import exception_field, set_exception_field
from stator_bytecode._machine._domain import Result
from stator_bytecode._machine._frame import Frame


class Exceptions(ConcreteOperations):
    def exception_from(self, value: Any, cause: Any) -> BaseException:
        exception = _instantiated(value, "exceptions must derive from BaseException")
        frame = self.active.frames[-1]
        instr = frame.code.instructions[frame.pc]
        if cause is not None:
            set_exception_field(
                exception,
                "__cause__",
                _instantiated(cause, "exception causes must derive from BaseException"),
            )
        elif instr.op == "RAISE_VARARGS" and instr.arg == 2:
            set_exception_field(exception, "__cause__", None)

        set_exception_field(
            exception,
            "__traceback__",
            traceback_at(frame, exception_field(exception, "__traceback__")),
        )
        return exception

    exception_type = natively(type)
    stop_iteration_value = natively(attrgetter("value"))

    def is_object(self, exception: BaseException) -> bool:
        return False

    is_made_here = is_object

    def extend_traceback(self, exception: BaseException, frame: Frame) -> None:
        """Do nothing: exceptions that are objects have the traceback of the native frames."""

    def exception_matches(self, exception: BaseException, pattern: Any) -> bool:
        """Match by the real inheritance: `except` does not call `__subclasscheck__`."""
        if type(pattern) is type or isinstance(pattern, type):
            if BaseException in pattern.__mro__:
                return pattern in type(exception).__mro__
        elif isinstance(pattern, tuple) and all(map(_is_exception_class, pattern)):
            return any(item in type(exception).__mro__ for item in pattern)
        raise TypeError("catching classes that do not inherit from BaseException is not allowed")

    def with_context(self, exception: BaseException, handled: BaseException) -> None:
        if handled is exception:
            return
        current, seen = handled, {id(handled)}
        while (context := exception_field(current, "__context__")) is not None and id(
            context
        ) not in seen:
            if context is exception:
                set_exception_field(current, "__context__", None)
                break
            seen.add(id(context))
            current = context
        set_exception_field(exception, "__context__", handled)

    def python_error(self, kind: type[BaseException], *args: object) -> BaseException:
        error = kind(*args)
        if self.active.frames:
            set_exception_field(error, "__traceback__", traceback_at(self.active.frames[-1], None))
        return error

    def exception_traceback(self, exception: BaseException) -> Any:
        return exception_field(exception, "__traceback__")

    def enter_context(self, manager: Any) -> Result:
        frame = self.active.frames[-1]
        find = methods_exit_first if frame.code.instructions[frame.pc].arg else methods_enter_first
        enter, leave = find(manager)
        return leave, self.call(enter, [], {})

    def match_group(self, exception: BaseException, pattern: Any) -> tuple[Any, Any]:
        """`(rest, match)`, as `except*` splits a group or wraps a naked exception."""
        for item in pattern if isinstance(pattern, tuple) else (pattern,):
            if not _is_exception_class(item):
                raise TypeError(
                    "catching classes that do not inherit from BaseException is not allowed"
                )
            if issubclass(item, BaseExceptionGroup):
                raise TypeError(
                    "catching ExceptionGroup with except* is not allowed. Use except instead."
                )
        if self.exception_matches(exception, pattern):
            return None, _wrapped(exception)
        if isinstance(exception, BaseExceptionGroup):
            match, rest = exception.split(pattern)
            return rest, match
        return exception, None

    def prepare_reraise(
        self, original: BaseException, remaining: list[BaseException | None]
    ) -> Any:
        """Return what leaves an `except*` statement: exceptions no clause took, and those clauses
        raised."""
        if not isinstance(original, BaseExceptionGroup):
            return remaining[0]
        errors = [error for error in remaining if error is not None]
        raised = [error for error in errors if not _is_part_of(error, original)]
        unhandled = _projection(
            original, [error for error in errors if _is_part_of(error, original)]
        )
        if not raised:
            return unhandled
        if unhandled is not None:
            raised.append(unhandled)
        return raised[0] if len(raised) == 1 else BaseExceptionGroup("", raised)


def _is_exception_class(value: Any) -> bool:
    return isinstance(value, type) and BaseException in value.__mro__


def _instantiated(value: Any, otherwise: str) -> BaseException:
    if _is_exception_class(value):
        if not isinstance(made := value(), BaseException):
            raise TypeError(
                f"calling {value!r} should have returned an instance of BaseException, "
                f"not {type(made)!r}"
            )
        return made
    if not isinstance(value, BaseException):
        raise TypeError(otherwise)
    return value


def _wrapped(exception: BaseException) -> BaseExceptionGroup[Any]:
    return (
        exception
        if isinstance(exception, BaseExceptionGroup)
        else BaseExceptionGroup("", [exception])
    )


_METADATA = ("__traceback__", "__cause__", "__context__")


def _is_part_of(error: BaseException, group: BaseExceptionGroup[Any]) -> bool:
    """Return True if `error` came out of splitting `group`: then it has the very same metadata."""
    return (
        isinstance(error, BaseExceptionGroup)
        and getattr(error, "__notes__", None) is getattr(group, "__notes__", None)
        and all(exception_field(error, name) is exception_field(group, name) for name in _METADATA)
    )


def _projection(group: BaseExceptionGroup[Any], parts: list[BaseException]) -> BaseException | None:
    kept = {id(leaf) for part in parts for leaf in _leaves(part)}
    match, _ = group.split(
        lambda error: not isinstance(error, BaseExceptionGroup) and id(error) in kept
    )
    return match


def _leaves(error: BaseException) -> list[BaseException]:
    if not isinstance(error, BaseExceptionGroup):
        return [error]
    return [leaf for inner in error.exceptions for leaf in _leaves(inner)]


# A traceback entry that shows where an interpreted frame stands.
#
# An entry needs a native frame object; the one made here is that of a tiny function with the name,
# file and line of the user's. Only the frame that raises gets one: the frames that the exception
# passes through on its way out are not shown.


def traceback_at(frame: Frame, rest: TracebackType | None) -> TracebackType:
    instr = frame.code.instructions[frame.pc]
    raw = frame.code.raw
    line = instr.positions[0] or raw.co_firstlineno
    shown = _substitute(raw, line)(frame.globals)
    return TracebackType(rest, shown, 0, line)


@functools.lru_cache(maxsize=4096)
def _substitute(code: CodeType, line: int) -> Callable[[dict[str, Any]], FrameType]:
    shown = _frame_of_me.__code__.replace(
        co_filename=code.co_filename,
        co_name=code.co_name,
        co_qualname=code.co_qualname,
        co_firstlineno=line,
    )

    def substitute(names: dict[str, Any]) -> FrameType:
        function: Any = FunctionType(
            shown, {"_current": _current, "__name__": names.get("__name__")}
        )
        frame: FrameType = function()
        return frame

    return substitute


_current = sys._getframe


def _frame_of_me() -> FrameType:
    return _current()
