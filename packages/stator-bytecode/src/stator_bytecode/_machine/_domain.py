"""The Domain protocol: the operations of the Machine on opaque values.

An operation gives back a value, an `Invoke` (a tail call: run this frame, its result completes the
instruction), or a `Pending` coroutine (see `operation`). It raises `Raised` for an exception of the
interpreted program, `Unsupported` for what it cannot capture.
"""

import functools
from collections.abc import Callable, Generator, Sequence
from types import CodeType
from typing import Any, ParamSpec, Protocol

from attrs import frozen

from stator_bytecode._codec._instruction import Instruction
from stator_bytecode._machine._frame import VALUE, Frame, GeneratorState, Then

V = Any  # a value of the domain, opaque to the Machine
OperationSteps = Generator[Any, Any, V]
"""The body of an operation, or a part of it: yields what is suspended, and is sent the values."""
P = ParamSpec("P")


class Raised(BaseException):
    """An exception of the interpreted program. `value` is the domain's exception value."""

    def __init__(self, value: V) -> None:
        super().__init__(value)
        self.value = value


class Reraised(Raised):
    """An exception on its way out again: it gets no new context. `lasti`: the instruction that it
    counts as raised by."""

    def __init__(self, value: V, lasti: int | None = None) -> None:
        super().__init__(value)
        self.lasti = lasti


@frozen(eq=False)
class Invoke:
    """Run `frame`; its result, through `then`, completes the operation."""

    frame: Frame
    then: Then = VALUE


@frozen(eq=False)
class Resume:
    """Go on in a generator: send `sent` in, or throw `thrown`. Completes with what it yields.

    When it returns instead, `then` is what that means: "next" (`next_value` gives this): NULL,
    exhausted; "value" (a call of `next`, `send`, `throw`): StopIteration is raised; "close": the
    call's None. A `sent` of None is the program's None.
    """

    generator: GeneratorState
    sent: V = None
    thrown: V = None
    then: Then = VALUE


@frozen(eq=False)
class Pending:
    """An operation that needs frames run before it has a result; see `operation`."""

    coroutine: OperationSteps


Result = Any  # V | Invoke | Resume | Pending


def operation(method: Callable[P, OperationSteps]) -> Callable[P, Pending]:
    """Make a generator function a Domain operation. It yields `Invoke`/`Resume` and is sent the
    results."""

    @functools.wraps(method)
    def start(*args: P.args, **kwargs: P.kwargs) -> Pending:
        return Pending(method(*args, **kwargs))

    return start


def is_suspended(result: Result) -> bool:
    """Return True if frames have to run before the value is there."""
    return type(result) in (Pending, Resume, Invoke)


def settle(result: Result) -> OperationSteps:
    """`yield from settle(op(...))` inside an operation: the value of another operation, whatever it
    gave back."""
    if type(result) is Pending:
        value = yield from result.coroutine
        return (yield from settle(value)) if is_suspended(value) else value
    return (yield result) if is_suspended(result) else result


def after(result: Result, go_on: Callable[[V], Result]) -> Result:
    """Return `go_on(value)` for the value of another operation: at once where that is there
    already."""
    return _gone_on(result, go_on) if is_suspended(result) else go_on(result)


@operation
def _gone_on(result: Result, go_on: Callable[[V], Result]) -> OperationSteps:
    return go_on((yield from settle(result)))


def chained(outer: OperationSteps, inner: OperationSteps) -> OperationSteps:
    """Run `inner`, whose result `outer` awaits, and then `outer` to its end."""
    suspended = settle(Pending(inner))
    try:
        while True:
            try:
                got = yield from suspended
            except Raised as raised:
                item = outer.throw(raised)
            else:
                item = outer.send(got)
            suspended = settle(item)
    except StopIteration as stop:
        return stop.value


class Domain(Protocol):
    """The meaning of values. `frame` is the running frame; names and counts come straight from the
    instruction."""

    # bookkeeping
    def mark(self) -> Any:
        """Return the present state of the trace, for `rollback`."""

    def rollback(self, mark: Any) -> None:
        """Undo all that was done since `mark`."""

    def as_raised(self, error: BaseException) -> Raised | None:
        """Return the exception of the interpreted program that `error` is, None if it is none."""

    def at(self, frame: Frame, instruction: Instruction) -> None:
        """Record where the program is; called before each instruction that can break or call."""

    # constants, names, imports
    def constant(self, value: object) -> V:
        """Return the value of a constant of the code."""

    def load_global(self, frame: Frame, name: str) -> Result:
        """LOAD_GLOBAL: the global, else the builtin, else NameError."""

    def store_global(self, frame: Frame, name: str, value: V) -> Result:
        """STORE_GLOBAL."""

    def delete_global(self, frame: Frame, name: str) -> Result:
        """DELETE_GLOBAL."""

    def load_name(self, frame: Frame, name: str) -> Result:
        """LOAD_NAME, in a class body: the name there, else the global, else the builtin."""

    def store_name(self, frame: Frame, name: str, value: V) -> Result:
        """STORE_NAME, in a class body."""

    def delete_name(self, frame: Frame, name: str) -> Result:
        """DELETE_NAME, in a class body."""

    def load_locals(self, frame: Frame) -> Result:
        """LOAD_LOCALS: the mapping of a class body."""

    def load_from_mapping(self, mapping: V, name: str) -> Result:
        """The item, or NULL when the mapping has none."""

    def build_class(self, frame: Frame) -> Result:
        """LOAD_BUILD_CLASS: the function that a class statement calls."""

    def import_name(self, frame: Frame, name: str, fromlist: V, level: V) -> Result:
        """IMPORT_NAME: the module."""

    def import_from(self, module: V, name: str) -> Result:
        """IMPORT_FROM: an attribute of the module, else its submodule."""

    def import_star(self, frame: Frame, module: V) -> Result:
        """IMPORT_STAR: into the globals of `frame`."""

    # cells: values of the domain too; `NULL` represents an empty one
    def make_cell(self, content: V) -> V:
        """Return a new cell."""

    def cell_get(self, cell: V) -> V:
        """Return the content of a cell."""

    def cell_set(self, cell: V, content: V) -> None:
        """Replace the content of a cell."""

    # results of called frames
    def complete(self, then: Then, value: V) -> Result:
        """Complete the operation with `value`, returned by an Invoke's frame. Called for every kind
        of Then but "value", "attribute", "next" and "send", which the Machine completes itself.

        "instance": `then.values[0]`, or TypeError; "truth", "length": a Python bool; "iter":
        `value`, if it is an iterator.
        """

    # operators
    def unary(self, operator: str, value: V) -> Result:
        """`-value`, `+value`, `~value` or `not value`, by the operator's text."""

    def binary(self, operator: str, left: V, right: V) -> Result:
        """`left operator right`; with `=` at the end of the operator, in place."""

    def compare(self, operator: str, left: V, right: V) -> Result:
        """A rich comparison, by the operator's text."""

    def contains(self, container: V, item: V, invert: bool) -> Result:
        """`item in container`; `invert`: `not in`."""

    def identical(self, left: V, right: V, invert: bool) -> Result:
        """`left is right`; `invert`: `is not`."""

    def truth(self, value: V) -> Result:
        """A Python bool (not a V), an Invoke with a "truth" or "length" Then, or a Pending that
        ends in a Python bool."""

    def from_bool(self, value: bool) -> V:
        """Return the value that represents a Python bool."""

    def is_none(self, value: V) -> bool:
        """Return True if the value is None."""

    # attributes and items
    def get_attribute(self, value: V, name: str) -> Result:
        """LOAD_ATTR."""

    def load_method(self, value: V, name: str) -> Result:
        """`(function, receiver)` when an unbound function can be called with the receiver first,
        else `(attribute, NULL)`."""

    def load_super(self, frame: Frame, super_fn: V, cls: V, receiver: V, name: str) -> Result:
        """LOAD_SUPER_ATTR: `super_fn(cls, receiver).name`."""

    def set_attribute(self, value: V, name: str, new: V) -> Result:
        """STORE_ATTR."""

    def delete_attribute(self, value: V, name: str) -> Result:
        """DELETE_ATTR."""

    def get_item(self, container: V, key: V) -> Result:
        """`container[key]`."""

    def set_item(self, container: V, key: V, new: V) -> Result:
        """`container[key] = new`."""

    def delete_item(self, container: V, key: V) -> Result:
        """`del container[key]`."""

    # calls and functions
    def call(self, function: V, args: Sequence[V], kwargs: dict[str, V]) -> Result:
        """A call; the Result of a function of Python is an Invoke."""

    def call_spread(self, function: V, args: V, kwargs: V | None) -> Result:
        """CALL_FUNCTION_EX: `function(*args, **kwargs)`."""

    def make_function(self, frame: Frame, code: CodeType, parts: dict[str, V]) -> V:
        """`parts` has any of defaults (tuple), kwdefaults (dict), annotations, closure (tuple of
        cells)."""

    # iteration and generators
    def get_iterator(self, value: V) -> Result:
        """`iter(value)`."""

    def next_value(self, iterator: V) -> Result:
        """The next item, or NULL when exhausted, or a Resume for a generator."""

    def make_generator(self, state: GeneratorState) -> V:
        """Return the value of a generator, coroutine or async generator with this state."""

    def generator_state(self, value: V) -> GeneratorState | None:
        """Return the state of a value that `make_generator` returned, None for others."""

    def drop(self, value: V, holders: list[Frame], kept: V | None = None) -> None:
        """Drop a value from a frame (it may be NULL or a marker); `holders` may still have it, or
        what is `kept`."""

    def abandon(self, ran: list[GeneratorState], released: list[V], holders: list[V]) -> None:
        """An instruction that resumed the generators `ran` is done, with the values `released`; the
        frames have only `holders`. (There may be NULL and markers among the values.)"""

    def send(self, receiver: V, value: V) -> Result:
        """SEND to something that is no generator of ours: `(yielded, NULL)` or `(NULL,
        returned)`."""

    def yield_from_iterator(self, value: V) -> Result:
        """GET_YIELD_FROM_ITER: the iterator that `yield from value` delegates to."""

    # building
    def build_tuple(self, items: list[V]) -> V:
        """BUILD_TUPLE."""

    def build_list(self, items: list[V]) -> V:
        """BUILD_LIST."""

    def build_set(self, items: list[V]) -> Result:
        """BUILD_SET: items are hashed."""

    def build_map(self, keys: list[V], values: list[V]) -> Result:
        """BUILD_MAP: keys are hashed."""

    def build_const_key_map(self, keys: V, values: list[V]) -> Result:
        """BUILD_CONST_KEY_MAP: `keys` is a constant tuple."""

    def build_string(self, parts: list[V]) -> Result:
        """BUILD_STRING: the parts of an f-string, joined."""

    def build_slice(self, parts: list[V]) -> Result:
        """BUILD_SLICE: two or three parts."""

    def list_append(self, target: V, item: V) -> Result:
        """LIST_APPEND: to the list of a comprehension."""

    def list_extend(self, target: V, iterable: V) -> Result:
        """LIST_EXTEND: `[*target, *iterable]`."""

    def list_to_tuple(self, target: V) -> V:
        """LIST_TO_TUPLE: `(*target,)`."""

    def set_add(self, target: V, item: V) -> Result:
        """SET_ADD: to the set of a comprehension."""

    def set_update(self, target: V, iterable: V) -> Result:
        """SET_UPDATE: `{*target, *iterable}`."""

    def map_add(self, target: V, key: V, value: V) -> Result:
        """MAP_ADD: to the dict of a comprehension."""

    def dict_update(self, target: V, mapping: V) -> Result:
        """DICT_UPDATE: `{**target, **mapping}`."""

    def dict_merge(self, target: V, mapping: V, function: V) -> Result:
        """DICT_MERGE: keyword arguments for `function`, none of them twice."""

    def unpack(self, value: V, count: int) -> Result:
        """A Python list of `count` values."""

    def unpack_ex(self, value: V, before: int, after: int) -> Result:
        """A Python list of before + 1 + after values."""

    def format_value(self, value: V, conversion: str, spec: V | None) -> Result:
        """FORMAT_VALUE: converted by `str`, `repr` or `ascii`, then formatted."""

    def build_interpolation(self, value: V, text: V, conversion: str, spec: V | None) -> Result:
        """BUILD_INTERPOLATION: a replacement field of a template string, with its expression's
        text."""

    def build_template(self, strings: V, interpolations: V) -> Result:
        """BUILD_TEMPLATE: a template string, of two tuples."""

    # exceptions
    def exception_from(self, value: V, cause: V | None) -> Result:
        """RAISE_VARARGS: the exception instance (class instantiated, cause set), not yet raised."""

    def is_made_here(self, exception: V) -> bool:
        """Return True if the exception exists in the domain alone, so that it has no traceback
        yet."""

    def extend_traceback(self, exception: V, frame: Frame) -> None:
        """Add an entry for the instruction that `frame` is at to the traceback of an exception that
        was made here."""

    def is_object(self, exception: V) -> bool:
        """Return True if the exception is an object of the native program, whose traceback the
        Machine cannot extend: it is raised natively where something here catches it."""

    def exception_matches(self, exception: V, pattern: V) -> Result:
        """A Python bool."""

    def with_context(self, exception: V, handled: V) -> None:
        """Set `__context__` as CPython does when `exception` is raised while `handled` is being
        handled."""

    def python_error(self, kind: type[BaseException], *args: object) -> V:
        """An exception the Machine itself raises, such as UnboundLocalError."""

    def stop_iteration_value(self, exception: V) -> V:
        """Return the value of a StopIteration."""

    def exception_type(self, exception: V) -> V:
        """Return the class of an exception."""

    def exception_traceback(self, exception: V) -> V:
        """Return the traceback of an exception, or None."""

    # with statements
    def enter_context(self, manager: V) -> Result:
        """`(exit, entered)`: the bound `__exit__`, and the Result of calling `__enter__`. May be
        Pending."""

    # match statements
    def match_class(self, subject: V, cls: V, count: int, names: V) -> Result:
        """MATCH_CLASS: the tuple of attributes, or None."""

    def match_mapping(self, subject: V) -> Result:
        """MATCH_MAPPING: True for a mapping."""

    def match_sequence(self, subject: V) -> Result:
        """MATCH_SEQUENCE: True for a sequence that is no text."""

    def match_keys(self, subject: V, keys: V) -> Result:
        """MATCH_KEYS: the tuple of values, or None."""

    def length(self, value: V) -> Result:
        """GET_LEN."""

    # exception groups
    def match_group(self, exception: V, pattern: V) -> Result:
        """A Python tuple `(rest, match)`, each None (the domain's) when empty."""

    def prepare_reraise(self, original: V, remaining: V) -> Result:
        """PREP_RERAISE_STAR: what is left of an exception group, with new exceptions."""


def raised_as(domain: Domain, error: BaseException) -> Raised:
    """The exception of the interpreted program that `error` is; an error that is none goes on."""
    if (raised := error if isinstance(error, Raised) else domain.as_raised(error)) is None:
        raise error
    return raised
