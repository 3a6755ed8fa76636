"""The state that new exceptions take from their arguments: in `__new__`, or in `__init__`
(Objects/exceptions.c)."""

import types
from typing import Any

import stator_guards as guards
from stator_bytecode import TracebackEntry, TracebackFactory, exception_field, set_exception_field

from stator_variables._emitter import Emitter, RaisedBefore, filled, made_empty
from stator_variables._objects._builder_table import BuilderTable
from stator_variables._objects._wrap import of_instances, wrap_items
from stator_variables._runtime._contents import plain_lookup
from stator_variables._space import Space
from stator_variables._tracker import DELETED, MISSING, Args, VariableTracker
from stator_variables._trackers import NONE, ObjectTracker, is_none

builders = BuilderTable()


_IN_INIT = (StopIteration, SystemExit, ImportError)
_NAMES = ("errno", "strerror", "filename", "winerror", "filename2")
"""The arguments of an OSError, from two of them on; the fourth has a meaning on Windows only."""
_FIELDS = vars(OSError).keys() & {*_NAMES}


class ExceptionTracker(
    ObjectTracker, references=("args", "made_of", "args_tuple", "cause", "context")
):
    """An exception: args and the chaining attributes; the rest is an object like any other."""

    def __init__(self, cls: type, args: Args, real: Any = MISSING) -> None:
        super().__init__(cls, real)
        self.args = args
        # what C's `__init__`, or `__new__`, was given; None: it has yet to be
        self.made_of: Args | None = args
        self.args_tuple: Any = None  # the tuple for `args`, once it was read
        self.cause: VariableTracker | None = None
        self.context: VariableTracker | None = None
        self.suppress_context = False
        self.relied: list[Any] = []  # keys of guards that its text alone needs
        self.entries: tuple[Any, ...] = ()  # of its traceback, outermost first

    def rebuild(self, e: Emitter) -> str:
        if id(self) in e.t.machine.origins and not e.makes_tracebacks:
            raise RaisedBefore(self)
        grouped = self.members.get(GROUPED)
        made_of = [self.args[0], grouped] if grouped is not None else given_to_new(self)
        args = "".join(f", {e.expr(arg)}" for arg in made_of)
        name = e.bind(self, made_empty(e, self.cls, args))
        if grouped is not None and grouped is not self.args[1]:
            e.lines.append(f"{name}.args = ({e.expr(self.args[0])}, {e.expr(self.args[1])})")

        if (base := keeps_in_init(self.cls)) is not None and self.made_of is not None:
            e.lines.append(
                f"{base.__name__}.__init__({name}"
                f"{''.join(f', {e.expr(arg)}' for arg in self.made_of)})"
            )
        for member, value in self.members.items():
            if value is not DELETED and "__slots__" in vars(member.__objclass__):
                e.lines.append(f"{e.capture(member)}.__set__({name}, {e.expr(value)})")

        for field in ("cause", "context"):
            if getattr(self, field) is not None:
                e.lines.append(_field(e, name, field, e.expr(getattr(self, field))))
        if self.suppress_context:
            e.lines.append(_field(e, name, "suppress_context", "True"))
        if self.entries:
            e.lines.append(
                _field(e, name, "traceback", e.expr(made_traceback(e.t, self, self.entries)))
            )
        return filled(e, self, name)


def allocated(t: Space, cls: type, args: Args) -> ExceptionTracker:
    """Return the result of `__new__`."""
    if cls is BlockingIOError and len(args) > 2:
        raise t.unsupported("construction", "a BlockingIOError with a number of written characters")
    made = ExceptionTracker(cls, args)
    if keeps_in_init(cls) is not None:
        made.made_of = None
        made.args = [] if issubclass(cls, OSError) else args
    elif issubclass(cls, OSError):
        made.args, made.members = _taken_apart(args)
    return made


def keep(t: Space, vt: ExceptionTracker, args: Args) -> None:
    """Implement `__init__` of C. An OSError that took its arguments in `__new__` does nothing."""
    if not issubclass(vt.cls, OSError):
        t.journal.assign(vt, args=list(args), made_of=list(args))
    elif keeps_in_init(vt.cls) is not None:
        kept, members = _taken_apart(args)
        t.journal.assign(vt, args=kept, members={**vt.members, **members}, made_of=list(args))


def keeps_in_init(cls: type) -> type | None:
    """Return the class whose `__init__` stores its arguments, besides `args`.

    That of an OSError does so only if the class has an `__init__` of the program's, and no such
    `__new__` (`oserror_use_init`).
    """
    if issubclass(cls, OSError):
        init, new = plain_lookup(cls, "__init__"), plain_lookup(cls, "__new__")
        own = (
            type(init) is not types.WrapperDescriptorType and type(new) is types.BuiltinFunctionType
        )
        return OSError if own else None
    return next((base for base in _IN_INIT if issubclass(cls, base)), None)


def given_to_new(vt: ExceptionTracker) -> Args:
    """Return the arguments for C's `__new__` to make such an exception again."""
    if not issubclass(vt.cls, OSError):
        return vt.args
    return [] if vt.made_of is None or keeps_in_init(vt.cls) is not None else vt.made_of


def class_of_error(args: Args) -> type[OSError] | None:
    """The class of what `OSError(*args)` makes, by its number; None where that is not known."""
    number = args[0].constant() if 2 <= len(args) <= len(_NAMES) else None
    if number is MISSING:
        return None
    return type(OSError(number, "")) if isinstance(number, int) else OSError


def _taken_apart(args: Args) -> tuple[Args, dict[Any, Any]]:
    """`args` and the fields: `oserror_parse_args` and `oserror_init`."""
    if not 2 <= len(args) <= len(_NAMES):
        return list(args), {}
    has_file = len(args) > 2 and not is_none(args[2])
    given = dict(zip(_NAMES, args if has_file else args[:2], strict=False))
    fields = {
        name: value for name, value in given.items() if name[:4] != "file" or not is_none(value)
    }
    return args[:2] if has_file else list(args), {
        vars(OSError)[name]: fields[name] for name in _FIELDS & fields.keys()
    }


GROUPED = vars(BaseExceptionGroup)["exceptions"]
"""The member that holds what a group of exceptions was made of: its second argument may change
later."""


def _field(e: Emitter, name: str, field: str, value: str) -> str:
    """Sets it as C does: the class may not let attributes be set."""
    return f"{e.capture(set_exception_field)}({name}, '__{field}__', {value})"


def made_traceback(
    t: Space, exception: VariableTracker, entries: tuple[TracebackEntry, ...]
) -> Any:
    if not entries:
        return NONE
    key = ("traceback", entries)
    return t.shared.setdefault(key, TracebackTracker(exception, entries))


class TracebackTracker(VariableTracker, references=("exception",)):
    """The traceback that an exception which was raised while tracing had at some point: `entries`,
    outermost first."""

    cls = types.TracebackType

    def __init__(self, exception: VariableTracker, entries: tuple[TracebackEntry, ...]) -> None:
        self.exception = exception
        self.entries = entries

    def rebuild(self, e: Emitter) -> str:
        if not e.makes_tracebacks:
            raise RaisedBefore(self.exception)
        return e.bind(self, f"{e.capture(TracebackFactory(self.entries), 'traceback')}()")


@builders.by_base.handles(BaseException)
@of_instances
def build_exception(t: Space, real: Any, source: guards.Source) -> VariableTracker:
    args = wrap_items(
        t, exception_field(real, "args"), guards.SlotSource(source, BaseException, "args")
    )
    return ExceptionTracker(type(real), args, real)
