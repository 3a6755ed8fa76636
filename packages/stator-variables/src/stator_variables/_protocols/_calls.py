"""Calls and construction: Python functions become frames, C functions are handlers, `type.__call__`
is spelt out."""

import collections
import sys
import types
from typing import Any

import attrs
import torch
from stator_bytecode import (
    BindingError,
    Frame,
    Invoke,
    OperationSteps,
    Result,
    Then,
    after,
    bind_arguments,
    is_suspended,
    new_frame,
    operation,
    settle,
)
from stator_guards import (
    AttrSource,
    CapturedSource,
    DictItemSource,
    Equals,
    FunctionPartSource,
    IsNone,
    KeysAre,
)

from stator_variables._handler_keys import ORIGINAL
from stator_variables._objects import _exception, _inlining, _new_values
from stator_variables._objects._deque import DequeTracker
from stator_variables._objects._dict import DictTracker
from stator_variables._objects._list import ListTracker
from stator_variables._objects._lookup import guarded_lookup, is_subtype, type_lookup
from stator_variables._objects._plain_value import plain_arguments
from stator_variables._objects._program_error import complain, name_of, throw
from stator_variables._objects._set import SetTracker
from stator_variables._objects._tuple import TupleTracker
from stator_variables._objects._wrap import builtins_of, new_namespace, wrap_items
from stator_variables._protocols import _folding
from stator_variables._runtime._contents import plain_lookup
from stator_variables._space import Space
from stator_variables._tensors import _subclasses, _torch_calls
from stator_variables._tensors._recorded_functions import is_recorded
from stator_variables._trace._capture_state import Notes
from stator_variables._tracker import MISSING, Args, Kwargs, VariableTracker, is_a, real_of
from stator_variables._trackers import (
    NONE,
    BuiltinTracker,
    ClassTracker,
    FunctionTracker,
    ObjectTracker,
    SubclassTracker,
    is_none,
)

REFUSED_FLAGS = {0x80: "a coroutine function", 0x200: "an asynchronous generator function"}


def call(t: Space, function: VariableTracker, args: Args, kwargs: Kwargs | None = None) -> Result:
    """`function(*args, **kwargs)`: a Result."""
    kwargs = kwargs or {}
    if is_suspended(function):  # by a descriptor of the program
        return after(function, lambda given: given.call(t, args, kwargs))
    return function.call(t, args, kwargs)


def call_slot(
    t: Space,
    vt: VariableTracker,
    name: str,
    args: Args,
    complaint: str,
    kwargs: dict[str, Any] | None = None,
) -> Result:
    """Call what the class of `vt` defines as `name`; without it a TypeError, its text for the name
    of the class."""
    if (bound := t.special(vt, name)) is MISSING:
        start, end = complaint.split("{}")
        complain(t, TypeError, start, vt.cls, end)
    return call(t, bound, args, kwargs or {})


# -- Python functions ------------------------------------------------------------------------------
def call_function(t: Space, function: Any, args: Args, kwargs: Kwargs) -> Result:
    if function.real is not MISSING:
        # a function that stator compiled already is inlined
        if (original := function.real.__globals__.get(ORIGINAL)) is not None:
            globals_src = AttrSource(function.source, "__globals__")
            function = t.wrap(original, DictItemSource(globals_src, ORIGINAL))

        if (wrapped := _inlining.behind_bookkeeping(function.real)) is not None:
            function = t.wrap(wrapped, CapturedSource(wrapped.__qualname__, wrapped))
        if (found := t.call_by_rule(function, args, kwargs)) is not MISSING:
            return found

        _inlining.refuse_native(t, function)
        if _is_module_call(function.real, args):
            repeater = t.state(RepeatedCalls).repeater
            if repeater is not None:
                found = repeater.repeated(function, args, kwargs)
                return _observed(t, function, args, kwargs) if found is MISSING else found

    for flag, what in REFUSED_FLAGS.items():
        if function.code.co_flags & flag:
            raise t.unsupported("async", f"a call of {what}, {function.qualname}")

    frame = frame_for(t, function, args, kwargs)
    if _inlining.is_composed(function):
        return as_a_whole(frame)
    return Invoke(frame)


@attrs.define(eq=False)
class RepeatedCalls(Notes):
    """Calls of modules that are recorded as equal ones were."""

    repeater: Any = None
    """The part of the graph layer that repeats them; None where each call is interpreted."""

    def release(self) -> None:
        self.repeater = None


def _is_module_call(real: Any, args: Args) -> bool:
    """Return True for the call of an existing module, which runs its hooks and its `forward`."""
    return real is torch.nn.Module.__call__ and bool(args) and real_of(args[0]) is not MISSING


def _observed(t: Space, function: Any, args: Args, kwargs: Kwargs) -> Invoke:
    """Interpret a call that an equal one may repeat later."""
    frame = frame_for(t, function, args, kwargs)
    frame.returned = t.state(RepeatedCalls).repeater.begun(function, args, kwargs)
    return Invoke(frame)


@operation
def as_a_whole(frame: Frame) -> OperationSteps:
    return (yield Invoke(frame))


def frame_for(t: Space, function: Any, args: Args, kwargs: Kwargs) -> Frame:
    """A frame with the arguments bound. Raises TypeError of the program, in CPython's words."""
    defaults, kwdefaults = function_defaults(t, function)

    try:
        slots = bind_arguments(
            function.code,
            function.qualname,
            defaults,
            kwdefaults,
            list(args),
            kwargs,
            TupleTracker,
            _new_values.new_dict,
        )
    except BindingError as error:
        if function.source is not None:
            t.guard(AttrSource(function.source, "__qualname__"), Equals(function.qualname))
        throw(TypeError, str(error))

    return function_frame(t, function, slots)


def function_frame(t: Space, function: Any, slots: list[Any]) -> Frame:
    """A frame for parameters that are bound already."""
    globals_vt = function.globals
    builtins_vt, hidden = builtins_of(t, globals_vt), is_app_level(globals_vt)
    return new_frame(
        function.code, slots, function.closure, globals_vt, builtins_vt, function, hidden=hidden
    )


def is_app_level(globals_vt: VariableTracker) -> bool:
    """Return True if a function is of a module that declares its functions to stand for ones in
    C."""
    return globals_vt.real.get("__app_level__") is True


def function_defaults(t: Space, function: FunctionTracker) -> tuple[list[Any], dict[str, Any]]:
    """Positional and keyword-only defaults; those of an existing function are read, and guarded, on
    its first call."""
    if function.real is not MISSING and function.defaults is None:
        real, source = function.real, function.source
        function.defaults = _existing_defaults(t, real, source)
        function.kwdefaults = _existing_kwdefaults(t, real, source)
    return function.defaults or [], function.kwdefaults or {}


def _existing_defaults(t: Space, real: Any, source: Any) -> list[Any]:
    defaults, whole = real.__defaults__, FunctionPartSource(source, "defaults")
    if defaults is None:
        if real.__code__.co_argcount:
            t.guard(whole, IsNone())
        return []
    return wrap_items(t, defaults, whole)


def _existing_kwdefaults(t: Space, real: Any, source: Any) -> dict[str, Any]:
    whole = FunctionPartSource(source, "kwdefaults")
    if real.__kwdefaults__ is None:
        if real.__code__.co_kwonlyargcount:
            t.guard(whole, IsNone())
        return {}
    found = dict(real.__kwdefaults__)
    t.guard(whole, KeysAre(tuple(found)))
    return {name: t.wrap(value, DictItemSource(whole, name)) for name, value in found.items()}


# -- C functions -----------------------------------------------------------------------------------
def call_builtin(t: Space, function: BuiltinTracker, args: Args, kwargs: Kwargs) -> Result:
    """A function written in C: its handler, a graph operation, or a pure function of constants, in
    this order."""
    target = function.value
    args = plain_arguments(t, target, args)
    if (found := _as_known(t, target, args, kwargs)) is not MISSING:
        return found
    where = getattr(target, "__module__", None) or getattr(
        getattr(target, "__objclass__", None), "__name__", ""
    )
    name = f"{where}.{getattr(target, '__qualname__', repr(target))}" if where else repr(target)
    raise t.unsupported(
        "builtin",
        f"a call of {name}",
        "call it outside the compiled region, or accept the graph break",
    )


def _as_known(t: Space, target: object, args: Args, kwargs: Kwargs) -> Result:
    """Call a function by its handler, as a graph operation, or as a pure function of constants;
    MISSING if none applies."""
    _inlining.refuse_disallowed(t, target)
    if (found := call_substitute(t, target, args, kwargs)) is not MISSING:
        return found
    if (found := _subclasses.call(t, target, args, kwargs)) is not MISSING:
        return found
    if (handler := _handler(t, target)) is not None:
        return given(handler(t, list(args), kwargs))
    if is_recorded(target):
        return _torch_calls.call_recorded(t, target, list(args), kwargs)
    found = _folding.fold_numbers(t, target, args, kwargs)
    return _by_library(t, target, args, kwargs) if found is MISSING else found


def _by_library(t: Space, target: object, args: Args, kwargs: Kwargs) -> Result:
    """Call what a library in C has by the handler for all of it, under its name: a library may be
    imported later."""
    module = getattr(target, "__module__", None)
    if module is None and args:  # a property
        module = args[0].cls.__module__
    handler = t.handlers.get(str(module).partition(".")[0])
    if handler is None or isinstance(target, types.FunctionType):
        return MISSING
    return given(handler(t, [_as_callable(target), *args], kwargs))


def _as_callable(target: Any) -> VariableTracker:
    return ClassTracker(target) if isinstance(target, type) else BuiltinTracker(target)


def call_substitute(t: Space, target: object, args: Args, kwargs: Kwargs) -> Result:
    """Call what `substitute_in_graph` has put in place of a function; MISSING without one."""
    if (traceable := _inlining.substitute_of(target)) is None:
        return MISSING
    function = t.wrap(traceable, CapturedSource("substitute", traceable))
    return call(t, function, args, kwargs)


def given(result: Result) -> Result:
    """A handler that only does something gives nothing: None, to the program."""
    return NONE if result is None else result


def _handler(t: Space, target: object) -> Any:
    try:
        return t.handlers.get(target)
    except TypeError:  # an unhashable callable
        return None


# -- construction ----------------------------------------------------------------------------------
def construct(t: Space, cls_vt: Any, args: Args, kwargs: Kwargs) -> Result:
    """`cls(*args, **kwargs)`: the metaclass's `__call__`, else `type.__call__`."""
    cls = cls_vt.value
    # those of C do: others may observe a look-up
    hashes = plain_lookup(type(cls), "__hash__") is object.__hash__
    if hashes and (found := _as_known(t, cls, args, kwargs)) is not MISSING:
        return found
    meta_call = guarded_lookup(t, type(cls), "__call__")
    if not isinstance(meta_call, types.WrapperDescriptorType):  # no C class's own
        return call(t, t.special(cls_vt, "__call__"), args, kwargs)
    return instantiate(t, cls_vt, args, kwargs)


def instantiate(t: Space, cls_vt: Any, args: Args, kwargs: Kwargs) -> Result:
    """`type.__call__` (type_call in Objects/typeobject.c)."""
    cls = cls_vt.value
    new = guarded_lookup(t, cls, "__new__")
    new = new.__func__ if isinstance(new, staticmethod) else new
    if isinstance(new, types.FunctionType):
        return _instantiate_through_new(t, cls_vt, args, kwargs)
    takes_iterable = new in (tuple.__new__, frozenset.__new__) and len(args) < 2 and not kwargs
    if new is type.__new__ or takes_iterable:
        made = call_builtin(t, BuiltinTracker(new), [cls_vt, *args], kwargs)
        return after(made, lambda vt: initialise(t, vt, args, kwargs))
    return initialise(t, allocate(t, cls_vt, new, args, kwargs), args, kwargs)


@operation
def _instantiate_through_new(t: Space, cls_vt: Any, args: Args, kwargs: Kwargs) -> OperationSteps:
    raw, source = type_lookup(t, cls_vt.value, "__new__")
    assert source is not None
    if isinstance(raw, staticmethod):
        raw, source = raw.__func__, AttrSource(source, "__func__")
    obj = yield from settle(call(t, t.wrap(raw, source), [cls_vt, *args], kwargs))
    if not is_subtype(obj.cls, cls_vt.value):
        return obj
    return (yield from settle(initialise(t, obj, args, kwargs)))


def initialise(t: Space, obj: VariableTracker, args: Args, kwargs: Kwargs) -> Result:
    """Call `__init__` on a new object; the Result is the object."""
    raw, source = type_lookup(t, obj.cls, "__init__")
    assert source is not None
    if raw is object.__init__:
        if (args or kwargs) and plain_lookup(obj.cls, "__new__") is object.__new__:
            complain(t, TypeError, obj.cls, "() takes no arguments")
        return obj
    if issubclass(obj.cls, BaseException) and isinstance(raw, types.WrapperDescriptorType):
        return _initialise_exception(t, obj, args, kwargs)
    result = call(t, t.bind(raw, source, obj, "__init__"), args, kwargs)
    return t.completed(result, Then("instance", (obj,)))


def initialised(t: Space, obj: VariableTracker, given: VariableTracker) -> VariableTracker:
    if not is_none(given):
        complain(t, TypeError, "__init__() should return None, not '", given.cls, "'")
    return obj


_KEEP_MORE_THAN_ARGS = (UnicodeError, SyntaxError, BaseExceptionGroup)


def _initialise_exception(t: Space, obj: Any, args: Args, kwargs: Kwargs) -> Any:
    if kwargs or issubclass(obj.cls, _KEEP_MORE_THAN_ARGS):
        raise t.unsupported(
            "construction", f"making a {obj.cls.__name__}, which keeps more than its arguments"
        )
    _exception.keep(t, obj, args)
    return obj


def allocate(t: Space, cls_vt: Any, new: object, args: Args, kwargs: Kwargs) -> Any:
    """Return the result of the C `__new__` that `cls` inherits: storage by its builtin base."""
    cls = cls_vt.value
    if cls.__flags__ & _IS_ABSTRACT:
        before, quote = (
            ("with", "") if sys.version_info < (3, 12) else ("without an implementation for", "'")
        )
        names = ", ".join(f"{quote}{name}{quote}" for name in sorted(cls.__abstractmethods__))
        plural = "s" if len(cls.__abstractmethods__) > 1 else ""
        throw(
            TypeError,
            f"Can't instantiate abstract class {name_of(t, cls)} {before} "
            f"abstract method{plural} {names}",
        )

    if guarded_lookup(t, cls, "__del__") is not MISSING:
        raise t.unsupported("construction", f"making a {cls.__qualname__}, which has a finalizer")
    if (
        cls is not object
        and cls.__flags__ & (_HEAP_TYPE | _NO_INSTANCES) != _HEAP_TYPE
        and new is object.__new__
    ):
        raise t.unsupported(
            "construction", f"making an instance of {cls.__qualname__}, a class of C"
        )

    if (tracker := _storage(t, cls, new, args, kwargs)) is MISSING:
        raise t.unsupported(
            "construction",
            f"making an instance of {cls.__qualname__}",
            "make it outside the region",
        )
    if cls.__dictoffset__ or any("__dict__" in base.__dict__ for base in cls.__mro__):
        new_namespace(tracker)
    tracker.is_of_made = id(cls) in t.heap.made
    return tracker


# Py_TPFLAGS_HEAPTYPE, _DISALLOW_INSTANTIATION, _IS_ABSTRACT
_HEAP_TYPE, _NO_INSTANCES, _IS_ABSTRACT = 1 << 9, 1 << 7, 1 << 20


def _storage(t: Space, cls: type, new: Any, args: Args, kwargs: Kwargs) -> Any:
    if new in (
        object.__new__,
        property.__new__,
        types.SimpleNamespace.__new__,
    ):  # properties can only be read
        return ObjectTracker(cls)

    if (
        new in (dict.__new__, collections.OrderedDict.__new__)
        or new is collections.defaultdict.__new__
    ):
        return DictTracker(cls, complete=True)
    if new is list.__new__:
        return ListTracker([], cls)
    if new is collections.deque.__new__:
        return DequeTracker([], cls)

    if new is _NEW_TENSOR and not kwargs and not any(is_a(vt, SubclassTracker) for vt in args):
        construct = t.handlers.get(torch.Tensor)
        return MISSING if construct is None else _subclasses.around(t, construct(t, args, {}), cls)
    if new is set.__new__:
        return SetTracker(cls)
    if (handler := _handler(t, new)) is not None:
        return handler(t, [ClassTracker(cls), *args], kwargs)
    if issubclass(cls, BaseException) and new.__self__.__module__ == "builtins":
        return _exception.allocated(t, cls, list(args))
    return MISSING


_NEW_TENSOR = vars(torch._C.TensorBase)["__new__"]


# -- functions made while tracing ------------------------------------------------------------------
def make_function(
    t: Space, frame: Frame, code: types.CodeType, parts: dict[str, Any]
) -> FunctionTracker:
    """MAKE_FUNCTION: a new function; `parts`: trackers of its defaults, keyword defaults,
    annotations and closure."""
    function = FunctionTracker(code, frame.globals, name=code.co_name, qualname=code.co_qualname)
    new_namespace(function)
    function.defaults = []
    for part, value in parts.items():
        _set_part(t, function, part, value)
    return function


def _set_part(t: Space, function: FunctionTracker, part: str, value: Any) -> None:
    if part == "defaults":
        function.defaults = list(value.items)
    elif part == "kwdefaults":
        function.kwdefaults = {key.constant(): item for key, item in t.items(value)}
    elif part == "closure":
        function.closure = value if type(value) is tuple else tuple(value.items)
    elif part == "annotate":
        function.fields["__annotate__"] = value
    else:
        function.annotations = value
