"""Raising and matching exceptions (`do_raise`, `PyErr_GivenExceptionMatches`, `_PyErr_SetObject` in CPython)."""

from typing import Any

from stator_bytecode import Pending, settle
from stator_guards import AttrSource

from stator_variables import _kinds as k
from stator_variables._build import wrap
from stator_variables._model import _calls
from stator_variables._model._lookup import is_subtype
from stator_variables._model._raising import throw
from stator_variables._tracing import Tracing
from stator_variables._tracker import VariableTracker


def exception_from(t: Tracing, value: Any, cause: Any) -> Any:
    """The exception that `raise value from cause` raises: at once, when both are exceptions already."""
    made = _made_from(t, value, cause)
    if any(isinstance(part, k.ClassTracker) for part in (value, cause)):
        return Pending(made)
    try:
        next(made)
    except StopIteration as done:
        return done.value
    raise AssertionError("nothing to wait for")


def _made_from(t: Tracing, value: Any, cause: Any) -> Any:
    raised = yield from _instance(t, value, "exceptions must derive from BaseException")
    if cause is None:
        return raised
    if raised.source is not None:
        raise t.unsupported("exception-attribute-write", "raise ... from on an exception from outside")
    if k.is_none(cause):
        _chain(t, raised, None)
    else:
        _chain(t, raised, (yield from _instance(t, cause, "exception causes must derive from BaseException")))
    return raised


def _instance(t: Tracing, value: Any, complaint: str) -> Any:
    if isinstance(value, k.ClassTracker) and is_subtype(value.value, BaseException):
        value = yield from settle(_calls.call(t, value, [], {}))
    if not isinstance(value, k.ExceptionTracker):
        throw(TypeError, complaint)
    return value


def _chain(t: Tracing, raised: Any, cause: Any) -> None:
    t.journal.assign(raised, cause=cause, suppress_context=True)


def with_context(t: Tracing, raised: Any, handled: Any) -> None:
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


def matches(t: Tracing, exception: Any, pattern: Any) -> bool:
    """Whether `except pattern` catches `exception`."""
    patterns = pattern.items if isinstance(pattern, k.TupleTracker) else [pattern]
    if not all(isinstance(item, k.ClassTracker) and is_subtype(item.value, BaseException) for item in patterns):
        throw(TypeError, "catching classes that do not inherit from BaseException is not allowed")
    return any(is_subtype(exception.cls, item.value) for item in patterns)


def traceback_of(t: Tracing, exception: Any) -> Any:
    """What `__exit__` gets third; that of an exception made while tracing may be handed on, not looked into."""
    if exception.source is None:
        return TracebackTracker(exception)
    return wrap(t, exception.real.__traceback__, AttrSource(exception.source, "__traceback__"))


class TracebackTracker(VariableTracker):
    """The traceback of an exception that was raised while tracing; it exists only once the exception is real."""

    import types as _types

    cls = _types.TracebackType

    def __init__(self, exception: Any) -> None:
        self.exception = exception
