"""What new exceptions keep of what they are made with: in `__new__`, or in `__init__` (Objects/exceptions.c)."""

import types
from typing import Any

from stator_variables import _kinds as k
from stator_variables._objects._lookup import plain_lookup
from stator_variables._space import Space
from stator_variables._tracker import MISSING

_IN_INIT = (StopIteration, SystemExit, ImportError)
_NAMES = ("errno", "strerror", "filename", "winerror", "filename2")
"""What an OSError is made with, from two of them on; the fourth means something on Windows only."""
_FIELDS = vars(OSError).keys() & {*_NAMES}


def allocated(t: Space, cls: type, args: list[Any]) -> k.ExceptionTracker:
    """What `__new__` makes."""
    if cls is BlockingIOError and len(args) > 2:
        raise t.unsupported(
            "construction", "a BlockingIOError that may be told how much was written"
        )
    made = k.ExceptionTracker(cls, args)
    if keeps_in_init(cls) is not None:
        made.made_of = None
        made.args = [] if issubclass(cls, OSError) else args
    elif issubclass(cls, OSError):
        made.args, made.members = _taken_apart(args)
    return made


def keep(t: Space, vt: k.ExceptionTracker, args: list[Any]) -> None:
    """What `__init__` of C does. An OSError that was given everything in `__new__` does nothing."""
    if not issubclass(vt.cls, OSError):
        t.journal.assign(vt, args=list(args), made_of=list(args))
    elif keeps_in_init(vt.cls) is not None:
        kept, members = _taken_apart(args)
        t.journal.assign(vt, args=kept, members={**vt.members, **members}, made_of=list(args))


def keeps_in_init(cls: type) -> type | None:
    """Whose `__init__` keeps what it is given, besides `args`; an OSError's only where the class has one of the
    program's, and no such `__new__` (`oserror_use_init`)."""
    if issubclass(cls, OSError):
        init, new = plain_lookup(cls, "__init__"), plain_lookup(cls, "__new__")
        own = (
            type(init) is not types.WrapperDescriptorType and type(new) is types.BuiltinFunctionType
        )
        return OSError if own else None
    return next((base for base in _IN_INIT if issubclass(cls, base)), None)


def given_to_new(vt: k.ExceptionTracker) -> list[Any]:
    """What C's `__new__` is to be given to make such an exception again."""
    if not issubclass(vt.cls, OSError):
        return vt.args
    return [] if vt.made_of is None or keeps_in_init(vt.cls) is not None else vt.made_of


def class_of_error(args: list[Any]) -> type[OSError] | None:
    """The class of what `OSError(*args)` makes, by its number; None where that is not known."""
    number = args[0].constant() if 2 <= len(args) <= len(_NAMES) else None
    if number is MISSING:
        return None
    return type(OSError(number, "")) if isinstance(number, int) else OSError


def _taken_apart(args: list[Any]) -> tuple[list[Any], dict[Any, Any]]:
    """`args` and the fields: `oserror_parse_args` and `oserror_init`."""
    if not 2 <= len(args) <= len(_NAMES):
        return list(args), {}
    has_file = len(args) > 2 and not k.is_none(args[2])
    given = dict(zip(_NAMES, args if has_file else args[:2], strict=False))
    fields = {
        name: value for name, value in given.items() if name[:4] != "file" or not k.is_none(value)
    }
    return args[:2] if has_file else list(args), {
        vars(OSError)[name]: fields[name] for name in _FIELDS & fields.keys()
    }
