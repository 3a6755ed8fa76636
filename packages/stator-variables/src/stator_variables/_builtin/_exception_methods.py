"""Fields and methods of exceptions (Objects/exceptions.c): new ones from the tracker, existing ones
read."""

import builtins
import sys
import types
from collections.abc import Callable
from typing import Any, NoReturn

from stator_bytecode import OperationSteps, Result, operation, settle
from stator_guards import SlotSource

from stator_variables._objects import _dict_entries, _exception, _exceptions, _list
from stator_variables._objects._exception import (
    GROUPED,
    ExceptionTracker,
    TracebackTracker,
    class_of_error,
)
from stator_variables._objects._list import ListTracker
from stator_variables._objects._lookup import overrides
from stator_variables._objects._program_error import complain, name_of, throw
from stator_variables._objects._tuple import TupleTracker
from stator_variables._objects._wrap import new_namespace
from stator_variables._protocols import _calls
from stator_variables._space import Space
from stator_variables._tracker import MISSING, Args, FunctionTable, Kwargs, VariableTracker, is_a
from stator_variables._trackers import NONE, ClassTracker, ConstantTracker

handlers = FunctionTable("exception method")
_CLASSES = tuple(
    dict.fromkeys(
        c for c in vars(builtins).values() if isinstance(c, type) and issubclass(c, BaseException)
    )
)
_PLAIN = tuple(
    cls
    for cls in _CLASSES
    if "__init__" in vars(cls)
    and (cls is ImportError or not any(name in vars(cls) for name in ("name", "encoding", "msg")))
)
"""Classes whose `__init__` takes any positional arguments and only keeps them."""


@handlers.handles(*(vars(cls)["__init__"] for cls in _PLAIN))
def init(t: Space, args: Args, kwargs: Kwargs) -> None:
    vt = args[0]
    if kwargs or vt.source is not None:
        raise t.unsupported(
            "bad-arguments", f"a call of {vt.cls.__name__}.__init__ that it does not accept"
        )
    _exception.keep(t, vt, args[1:])


# -- fields ----------------------------------------------------------------------------------------
def _args(t: Space, vt: ExceptionTracker) -> Any:
    """Return the tuple of arguments, the same on each read."""
    if vt.args_tuple is None or vt.args_tuple.items is not vt.args:
        vt.args_tuple = TupleTracker([])
        vt.args_tuple.items = vt.args
    return vt.args_tuple


def _link(name: str) -> Any:
    return lambda t, vt: NONE if getattr(vt, name) is None else getattr(vt, name)


def _value(t: Space, vt: ExceptionTracker) -> Any:
    """`StopIteration.value`, `SystemExit.code`: what `__init__` was given."""
    if issubclass(vt.cls, SystemExit) and len(vt.made_of or ()) > 1:
        return _args(t, vt)
    return vt.made_of[0] if vt.made_of else NONE


def _message(t: Space, vt: Any) -> VariableTracker:
    return vt.made_of[0] if len(vt.made_of or ()) == 1 else NONE


_FIELDS: dict[Any, Callable[[Space, Any], Any]] = {
    BaseException.__dict__["args"]: _args,
    BaseException.__dict__["__cause__"]: _link("cause"),
    BaseException.__dict__["__context__"]: _link("context"),
    BaseException.__dict__["__suppress_context__"]: lambda t, vt: ConstantTracker(
        vt.suppress_context
    ),
    BaseException.__dict__["__traceback__"]: _exceptions.traceback_of,
    StopIteration.__dict__["value"]: _value,
    SystemExit.__dict__["code"]: _value,
    ImportError.__dict__["msg"]: _message,
    **{vars(ImportError)[name]: lambda t, vt: NONE for name in ("name", "path")},
    **{
        vars(OSError)[name]: lambda t, vt: NONE
        for name in ("errno", "strerror", "filename", "filename2")
    },
    BaseExceptionGroup.__dict__["message"]: lambda t, vt: vt.args[0],
}
_DESCRIPTORS = (types.MemberDescriptorType, types.GetSetDescriptorType)


@handlers.handles_each(
    value
    for cls in _CLASSES
    for name, value in vars(cls).items()
    if isinstance(value, _DESCRIPTORS) and name not in ("__dict__", "__weakref__")
)
def read(t: Space, args: Args, kwargs: Kwargs, of: Any) -> Any:
    vt = args[0]
    if of in vt.members:
        return vt.members[of]
    if vt.source is not None and _has(of, vt.real):
        return t.wrap(of.__get__(vt.real), SlotSource(vt.source, of.__objclass__, of.__name__))
    if vt.source is not None or of not in _FIELDS:
        raise t.unsupported(
            "exception-attribute", f"{of.__name__} of a {vt.cls.__name__}, which it may not have"
        )
    return _FIELDS[of](t, vt)


def _has(of: Any, error: BaseException) -> bool:
    """`characters_written` may be missing."""
    try:
        of.__get__(error)
    except AttributeError:
        return False
    return True


_TRACEBACK_FIELDS = {
    vars(types.TracebackType)["tb_next"]: _exceptions.next_traceback,
    vars(types.TracebackType)["tb_lineno"]: _exceptions.line_of,
}


@handlers.handles_each(_TRACEBACK_FIELDS)
def read_traceback(t: Space, args: Args, kwargs: Kwargs, of: Any) -> Any:
    """The fields that need none of the frames; an existing traceback has its own."""
    return of(t, args[0]) if is_a(args[0], TracebackTracker) else MISSING


# -- methods ---------------------------------------------------------------------------------------
@handlers.handles(BaseException.with_traceback)
def with_traceback(t: Space, args: Args, kwargs: Kwargs) -> Result:
    vt, traceback = args
    _exceptions.set_traceback(t, vt, traceback)
    return vt


def _complain_of_note(t: Space, cls: type) -> NoReturn:
    if sys.version_info >= (3, 14):
        complain(t, TypeError, "add_note() argument must be str, not ", cls)
    complain(t, TypeError, "note must be a str, not '", cls, "'")


@handlers.handles(BaseException.add_note)
def add_note(t: Space, args: Args, kwargs: Kwargs) -> None:
    vt, note = args
    if not issubclass(note.cls, str):
        _complain_of_note(t, note.cls)
    if vt.namespace is None or overrides(t, vt.cls, "__getattribute__", "__setattr__"):
        raise t.unsupported(
            "exception-attribute", "a note on an exception that has attributes in its own way"
        )
    if (notes := t.lookup(vt.namespace, "__notes__")) is MISSING:
        notes = ListTracker([])
        _dict_entries.set_name(t, vt.namespace, "__notes__", notes)
    if notes.base is not list:
        throw(TypeError, "Cannot add note: __notes__ is not a list")
    _list.append(t, notes, note)


_TEXTS = dict.fromkeys(
    cls.__str__ for cls in (BaseException, AttributeError, NameError, ImportError)
)
"""Some of them have their own only before 3.14."""


@handlers.handles(*_TEXTS)
def str_(t: Space, args: Args, kwargs: Kwargs) -> Result:
    if not (parts := args[0].args):
        return ConstantTracker("")
    return t.convert(parts[0] if len(parts) == 1 else TupleTracker(parts), "s")


@handlers.handles(OSError.__str__)
@operation
def os_error_str(t: Space, args: Args, kwargs: Kwargs) -> OperationSteps:
    """`OSError_str`."""
    vt = args[0]
    if vt.source is not None:
        raise t.unsupported("string-of-unknown", "str() of an OSError from outside")
    errno, strerror, *files = (vt.members.get(vars(OSError)[name]) for name in _OF_TEXT)
    if errno is None or strerror is None:
        return (yield from settle(str_(t, args, kwargs)))
    number = (yield from settle(t.convert(errno, "s"))).value
    text = f"[Errno {number}] {(yield from settle(t.convert(strerror, 's'))).value}"
    names = []
    for file in files:
        if file is not None:
            names.append((yield from settle(t.convert(file, "r"))).value)
    return ConstantTracker(": ".join([text, *([" -> ".join(names)] if names else [])]))


_OF_TEXT = ("errno", "strerror", "filename", "filename2")


@handlers.handles(KeyError.__str__)
def key_error_str(t: Space, args: Args, kwargs: Kwargs) -> Result:
    return t.convert(args[0].args[0], "r") if len(args[0].args) == 1 else str_(t, args, kwargs)


@handlers.handles(BaseException.__repr__)
@operation
def repr_(t: Space, args: Args, kwargs: Kwargs) -> OperationSteps:
    vt = args[0]
    shown = vt.args[0] if len(vt.args) == 1 else TupleTracker(vt.args)
    text = (yield from settle(t.convert(shown, "r"))).value
    name = name_of(t, vt.cls)
    return ConstantTracker(f"{name}({text})" if len(vt.args) == 1 else f"{name}{text}")


@handlers.handles(BaseExceptionGroup.__str__)
def group_str(t: Space, args: Args, kwargs: Kwargs) -> ConstantTracker:
    message, found = args[0].args[0].constant(), args[0].members.get(GROUPED)
    if not isinstance(message, str) or found is None:
        raise t.unsupported("string-of-unknown", "str() of an exception group")
    count = len(found.items)
    return ConstantTracker(f"{message} ({count} sub-exception{'' if count == 1 else 's'})")


@handlers.handles(BaseExceptionGroup, ExceptionGroup)
def make_group(t: Space, args: Args, kwargs: Kwargs) -> ExceptionTracker:
    """A group of exceptions, where C would accept it; errors are C's own."""
    fits = len(args) == 2 and not kwargs and args[1].base in (list, tuple) and args[1].items
    if not fits or not isinstance(args[0].constant(), str):
        raise t.unsupported("bad-arguments", "a call of ExceptionGroup that it does not accept")
    if not all(issubclass(item.cls, Exception) for item in args[1].items):
        raise t.unsupported("exception-group", "a group of exceptions that are not all Exceptions")
    made = ExceptionTracker(ExceptionGroup, [args[0], args[1]])
    made.members[GROUPED] = args[1] if args[1].cls is tuple else TupleTracker(args[1].items)
    new_namespace(made)
    return made


@handlers.handles(OSError)
def make_os_error(t: Space, args: Args, kwargs: Kwargs) -> Result:
    """Make an OSError, whose class depends on its errno."""
    if kwargs or (cls := class_of_error(args)) is None:
        raise t.unsupported("construction", "an OSError with an errno that is not known")
    return _calls.instantiate(t, ClassTracker(cls), args, kwargs)
