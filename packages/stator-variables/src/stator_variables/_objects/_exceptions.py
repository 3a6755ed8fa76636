"""Raising and matching exceptions (`do_raise`, `PyErr_GivenExceptionMatches`, `_PyErr_SetObject` in
CPython)."""

import functools
from collections.abc import Callable
from typing import Any

from stator_bytecode import Frame, Result, TracebackEntry, after, decode, exception_field
from stator_guards import SlotSource

from stator_variables._objects._exception import ExceptionTracker, TracebackTracker, made_traceback
from stator_variables._objects._lookup import is_subtype, overrides
from stator_variables._objects._program_error import complain, throw, type_name
from stator_variables._objects._tuple import TupleTracker
from stator_variables._space import Space
from stator_variables._tracker import MISSING, VariableTracker, is_a
from stator_variables._trackers import ClassTracker, ConstantTracker, is_none


def exception_from(t: Space, value: VariableTracker, cause: VariableTracker | None) -> Result:
    """The exception that `raise value from cause` raises: at once, when both are exceptions
    already."""
    raised = _instance(t, value, "exceptions must derive from BaseException")
    return raised if cause is None else after(raised, lambda found: _caused(t, found, cause))


def _caused(t: Space, raised: VariableTracker, cause: VariableTracker) -> Result:
    if raised.source is not None:
        raise t.unsupported(
            "exception-attribute-write", "raise ... from on an exception from outside"
        )
    if is_none(cause):
        return _chained(t, raised, None)
    complaint = "exception causes must derive from BaseException"
    return after(
        _instance(t, cause, complaint, is_cause=True), lambda found: _chained(t, raised, found)
    )


def thrown_from(t: Space, kind: Any, value: VariableTracker) -> Result:
    """Return the exception of `generator.throw(kind, value)` (`_gen_throw`,
    `PyErr_NormalizeException`)."""
    if is_a(kind, ExceptionTracker):
        return (
            kind
            if is_none(value)
            else throw(TypeError, "instance exception may not have a separate value")
        )

    if not _is_class(kind):
        complaint = "exceptions must be classes or instances deriving from BaseException, not"
        complain(t, TypeError, f"{complaint} ", kind.cls)
    if is_a(value, ExceptionTracker) and is_subtype(value.cls, kind.value):
        return value
    args = [] if is_none(value) else value.items if is_a(value, TupleTracker) else [value]
    return after(
        t.call(kind, args),
        lambda made: _checked(t, kind, made, functools.partial(type_name, t)),
    )


def _is_class(value: VariableTracker) -> bool:
    return is_a(value, ClassTracker) and is_subtype(value.value, BaseException)


def _instance(
    t: Space, value: VariableTracker, complaint: str, *, is_cause: bool = False
) -> Result:
    if _is_class(value):
        return after(
            t.call(value, []),
            lambda made: _checked(t, value, made, repr, is_cause=is_cause),
        )
    return value if is_a(value, ExceptionTracker) else throw(TypeError, complaint)


def _checked(
    t: Space,
    cls: Any,
    made: VariableTracker,
    name: Callable[[type], str],
    *,
    is_cause: bool = False,
) -> Any:
    if is_a(made, ExceptionTracker):
        return made
    if is_cause:  # nobody checks it
        raise t.unsupported("exception-attribute-write", "a cause that is no exception")
    if any(overrides(t, type(each), "__repr__") for each in (cls.value, made.cls)):
        raise t.unsupported("builtin", "the name of a class whose metaclass overrides `__repr__`")
    expected = f"calling {cls.value!r} should have returned an instance of BaseException"
    throw(TypeError, f"{expected}, not {name(made.cls)}")


def _chained(t: Space, raised: VariableTracker, cause: VariableTracker | None) -> VariableTracker:
    t.journal.assign(raised, cause=cause, suppress_context=True)
    return raised


def with_context(t: Space, raised: Any, handled: Any) -> None:
    """Set the implicit `__context__`; an exception is never its own context, and a cycle is cut."""
    if raised is handled or raised.source is not None:
        return
    t.journal.assign(raised, context=handled)
    link, seen = handled, set()
    while link is not None and id(link) not in seen:
        seen.add(id(link))
        if getattr(link, "context", None) is raised:
            t.journal.assign(link, context=None)
            break
        link = getattr(link, "context", None)


def matches(t: Space, exception: VariableTracker, pattern: Any) -> bool:
    """Return True if `except pattern` catches `exception`."""
    patterns = pattern.items if is_a(pattern, TupleTracker) else [pattern]
    if not all(
        is_a(item, ClassTracker) and is_subtype(item.value, BaseException) for item in patterns
    ):
        throw(TypeError, "catching classes that do not inherit from BaseException is not allowed")
    return any(is_subtype(exception.cls, item.value) for item in patterns)


def traceback_of(t: Space, exception: ExceptionTracker) -> Any:
    """Return the third argument of `__exit__`: one object, until the exception gets another
    entry."""
    if exception.source is None:
        return made_traceback(t, exception, exception.entries)
    return t.wrap(exception_field(exception.real, "__traceback__"), _traceback_source(exception))


def set_traceback(t: Space, exception: VariableTracker, value: VariableTracker) -> None:
    """Give an exception that was made here another traceback that was, or none."""
    is_made = is_a(value, TracebackTracker) or (value is not MISSING and is_none(value))
    if exception.source is not None or not is_made:
        raise t.unsupported("exception-attribute-write", "setting __traceback__ of an exception")
    entries = value.entries if is_a(value, TracebackTracker) else ()
    t.journal.assign(exception, entries=entries)


def next_traceback(t: Space, traceback: Any) -> Any:
    """`tb_next`: the traceback of the frames further inside."""
    return made_traceback(t, traceback.exception, traceback.entries[1:])


def line_of(t: Space, traceback: Any) -> VariableTracker:
    """`tb_lineno`."""
    entry = traceback.entries[0]
    return ConstantTracker(decode(entry.code).instructions[entry.index].positions[0])


def _traceback_source(exception: Any) -> SlotSource:
    return SlotSource(exception.source, BaseException, "__traceback__")


def extend_traceback(t: Space, exception: ExceptionTracker, frame: Frame) -> None:
    """Add an entry for where `frame` is. One that represents C has none."""
    if not frame.hidden:
        entry = TracebackEntry(frame.code.raw, frame.pc, frame.globals.real)
        t.journal.assign(exception, entries=(entry, *exception.entries))


def is_traceback_of(exception: ExceptionTracker, traceback: VariableTracker) -> bool:
    if is_a(traceback, TracebackTracker):
        return traceback.exception is exception
    return exception.source is not None and traceback.source == _traceback_source(exception)
