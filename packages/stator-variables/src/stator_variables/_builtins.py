"""Handlers of the builtin functions and classes.

Past 500 lines because it is one flat table, a few lines for each builtin; attributes, containers, iterators and
generators are its sections, and each can leave for a file of its own.
"""

from __future__ import annotations

import builtins
import collections
import functools
import operator
import types
from collections.abc import Callable
from typing import Any

import torch
from stator_bytecode import NULL, HandlerTable, Raised, Resume, Then, operation, settle
from stator_guards import CallSource, CapturedSource, Truth

from stator_variables import (
    _attributes,
    _calls,
    _containers,
    _dicts,
    _iteration,
    _operators,
    _tensor_attributes,
    _torch_calls,
)
from stator_variables import _kinds as k
from stator_variables._applevel import _reductions
from stator_variables._build import new_namespace, wrap
from stator_variables._lookup import defines, guarded_lookup, mro_of, type_lookup
from stator_variables._raising import new_exception, throw, type_name
from stator_variables._sorting import sorted_list
from stator_variables._strings import convert
from stator_variables._tracing import Tracing
from stator_variables._tracker import MISSING

handlers: HandlerTable[Any, Any] = HandlerTable("builtin")
Args = list[Any]
Kwargs = dict[str, Any]


def app_level(t: Tracing, function: Any, args: Args, kwargs: Kwargs) -> Any:
    """Call a Python function of ours in place of a C one."""
    return _calls.call(t, wrap(t, function, CapturedSource(function.__qualname__, function)), args, kwargs)


def _replace(real: Any, function: Any) -> None:
    @handlers.handles(real)
    def run(t: Tracing, args: Args, kwargs: Kwargs) -> Any:
        args = [_in_any_order(real, args[0], kwargs), *args[1:]] if len(args) == 1 else args
        folded = _calls.fold(t, real, args, kwargs)
        return app_level(t, function, args, kwargs) if folded is MISSING else folded


def _in_any_order(real: Any, iterable: Any, kwargs: Kwargs) -> Any:
    """A set of strings or ints as a tuple, for functions that give the same whatever the order is."""
    if isinstance(iterable, k.SetTracker) and not kwargs and has_total_order(iterable):
        values = list(iterable.entries.values())
        if real is not sum or all(item.cls is int for item in values):
            return k.TupleTracker(values, tuple)
    return iterable


for _reduction in ("all", "any", "sum", "min", "max"):
    _replace(getattr(builtins, _reduction), getattr(_reductions, _reduction))
_replace(functools.reduce, _reductions.reduce)


# -- types ------------------------------------------------------------------------------------------------------------
@handlers.handles(type)
def type_of(t: Tracing, args: Args, kwargs: Kwargs) -> Any:
    if len(args) != 1 or kwargs:
        raise t.unsupported("class-definition", "making a class inside the region", "define the class outside")
    return _attributes.class_of(t, args[0])


@handlers.handles(isinstance)
def handle_isinstance(t: Tracing, args: Args, kwargs: Kwargs) -> Any:
    return _as_constant(t, is_instance(t, *args))


@operation
def _settled_constant(t: Tracing, result: Any) -> Any:
    return k.ConstantTracker((yield from settle(result)))


def _as_constant(t: Tracing, result: Any) -> Any:
    return k.ConstantTracker(result) if isinstance(result, bool) else _settled_constant(t, result)


def is_instance(t: Tracing, vt: Any, classes: Any) -> Any:
    """A Python bool, or a suspended Result that ends in one."""
    found = class_list(t, classes)
    checks = [_has_hook(t, cls, "__instancecheck__") for cls in found]
    is_its_class = isinstance(vt, k.TensorTracker | k.ClassTracker) or "__class__" not in vars(vt.cls)
    mro_of(t, vt.cls)
    if not any(checks) and (is_its_class or vt.real is MISSING):
        return issubclass(vt.cls, tuple(found))
    return _is_instance_hooked(t, vt, found)


def _has_hook(t: Tracing, cls: type, name: str) -> bool:
    return type(cls) is _TENSOR_TYPE or isinstance(guarded_lookup(t, type(cls), name), types.FunctionType)


def _is_registered(t: Tracing, cls: type, base: type) -> bool:
    """`issubclass(cls, base)` of an abstract base class, with which other classes can be registered at any time."""
    found = issubclass(cls, base)
    classes = (CapturedSource(cls.__qualname__, cls), CapturedSource(base.__qualname__, base))
    t.guard(CallSource(issubclass, *classes), Truth(found))
    return found


@operation
def _is_instance_hooked(t: Tracing, vt: Any, classes: list[type]) -> Any:
    for cls in classes:
        if vt.cls is cls:
            return True
        if not _has_hook(t, cls, "__instancecheck__"):
            if issubclass(vt.cls, cls):
                return True
        elif (yield from _ask_hook(t, vt, cls, "__instancecheck__")):
            return True
    return False


def _ask_hook(t: Tracing, vt: Any, cls: type, name: str) -> Any:
    import abc

    known = _is_tensor_of if type(cls) is _TENSOR_TYPE else _KNOWN_CHECKS.get(cls)
    if known is not None:
        return known(t, vt, cls)
    if guarded_lookup(t, type(cls), name) is getattr(abc.ABCMeta, name):
        return _is_registered(t, vt.value if name == "__subclasscheck__" else vt.cls, cls)
    raw, source = type_lookup(t, type(cls), name)
    assert source is not None
    result = yield from settle(_calls.call(t, wrap(t, raw, source), [k.ClassTracker(cls), vt], {}))
    return (yield from settle(_operators.truth(t, result)))


def _is_parameter(t: Tracing, vt: Any, cls: type) -> bool:
    return issubclass(vt.cls, torch.nn.Parameter)


def _is_buffer(t: Tracing, vt: Any, cls: type) -> bool:
    if issubclass(vt.cls, cls):
        return True
    marked = _tensor_attributes.own(t, vt, "_is_buffer") if isinstance(vt, k.TensorTracker) else MISSING
    return marked is not MISSING and bool(marked.constant())


def _is_tensor_of(t: Tracing, vt: Any, cls: Any) -> bool:
    """`isinstance(x, torch.FloatTensor)`: asks for dtype, layout and device, which the input is guarded on."""
    if not isinstance(vt, k.TensorTracker):
        return False
    device = "cuda" if cls.is_cuda else "cpu"
    found = vt.example
    return (found.dtype, found.layout, found.device.type) == (cls.dtype, cls.layout, device)


_TENSOR_TYPE = type(torch.FloatTensor)
_KNOWN_CHECKS: dict[type, Callable[[Tracing, Any, type], bool]] = {
    torch.nn.Parameter: _is_parameter,
    torch.nn.Buffer: _is_buffer,
}


def class_list(t: Tracing, classes: Any) -> list[type]:
    """The classes named by the second argument of isinstance: a class, a union, or nested tuples of them."""
    if isinstance(classes, k.ClassTracker):
        return [classes.value]
    if isinstance(classes, k.TupleTracker):
        return [cls for item in classes.items for cls in class_list(t, item)]
    if isinstance(classes.real, types.UnionType):
        return [cls if isinstance(cls, type) else type(None) for cls in classes.real.__args__]
    origin = getattr(classes.real, "__origin__", None)
    if isinstance(origin, type):
        return [origin]
    throw(TypeError, "isinstance() arg 2 must be a type, a tuple of types, or a union")


@handlers.handles(issubclass)
def handle_issubclass(t: Tracing, args: Args, kwargs: Kwargs) -> Any:
    if not isinstance(args[0], k.ClassTracker):
        throw(TypeError, "issubclass() arg 1 must be a class")
    return _as_constant(t, _is_subclass(t, args[0], class_list(t, args[1])))


@operation
def _is_subclass(t: Tracing, vt: Any, classes: list[type]) -> Any:
    mro_of(t, vt.value)
    for cls in classes:
        if not _has_hook(t, cls, "__subclasscheck__"):
            if issubclass(vt.value, cls):
                return True
        elif (yield from _ask_hook(t, vt, cls, "__subclasscheck__")):
            return True
    return False


@handlers.handles(callable)
def handle_callable(t: Tracing, args: Args, kwargs: Kwargs) -> Any:
    vt = args[0]
    if isinstance(vt, k.FunctionTracker | k.ClassTracker | k.MethodTracker):
        return k.ConstantTracker(True)
    return k.ConstantTracker(type_lookup(t, vt.cls, "__call__")[1] is not None)


@handlers.handles(super)
def make_super(t: Tracing, args: Args, kwargs: Kwargs) -> Any:
    if args:
        return k.SuperTracker(args[0], args[1])
    frame = t.frame
    assert frame is not None
    index = frame.code.slots.index("__class__") if "__class__" in frame.code.slots else -1
    if index < 0:
        throw(RuntimeError, "super(): __class__ cell not found")
    first = frame.slots[0]
    receiver = first.content if isinstance(first, k.CellTracker) else first
    return k.SuperTracker(frame.slots[index].content, receiver)


# -- attributes -------------------------------------------------------------------------------------------------------
def _name(vt: Any, function: str) -> str:
    name = vt.constant()
    if not isinstance(name, str):
        throw(TypeError, f"attribute name must be string, not '{type_name(vt.cls)}'")
    return name


@handlers.handles(getattr)
def handle_getattr(t: Tracing, args: Args, kwargs: Kwargs) -> Any:
    name = _name(args[1], "getattr")
    if len(args) == 2:
        return _attributes.get_attribute(t, args[0], name)
    return _getattr_default(t, args[0], name, args[2])


@operation
def _getattr_default(t: Tracing, vt: Any, name: str, default: Any) -> Any:
    try:
        return (yield from settle(_attributes.get_attribute(t, vt, name)))
    except Raised as raised:
        if not issubclass(raised.value.cls, AttributeError):
            raise
        return default


@handlers.handles(hasattr)
def handle_hasattr(t: Tracing, args: Args, kwargs: Kwargs) -> Any:
    return _hasattr(t, args[0], _name(args[1], "hasattr"))


@operation
def _hasattr(t: Tracing, vt: Any, name: str) -> Any:
    found = yield from settle(_getattr_default(t, vt, name, MISSING))
    return k.ConstantTracker(found is not MISSING)


@handlers.handles(setattr)
def handle_setattr(t: Tracing, args: Args, kwargs: Kwargs) -> Any:
    return _then_none(t, _attributes.set_attribute(t, args[0], _name(args[1], "setattr"), args[2]))


@handlers.handles(delattr)
def handle_delattr(t: Tracing, args: Args, kwargs: Kwargs) -> Any:
    return _then_none(t, _attributes.delete_attribute(t, args[0], _name(args[1], "delattr")))


@operation
def _then_none(t: Tracing, result: Any) -> Any:
    yield from settle(result)
    return k.NONE


@handlers.handles(object.__getattribute__)
def object_getattribute(t: Tracing, args: Args, kwargs: Kwargs) -> Any:
    name = _name(args[1], "__getattribute__")
    found = _attributes.generic_get(t, args[0], name)
    if found is MISSING:
        throw(AttributeError, f"'{type_name(args[0].cls)}' object has no attribute '{name}'")
    return found


@handlers.handles(object.__setattr__)
def object_setattr(t: Tracing, args: Args, kwargs: Kwargs) -> Any:
    return _then_none(t, _attributes.generic_set(t, args[0], _name(args[1], "__setattr__"), args[2]))


@handlers.handles(object.__delattr__)
def object_delattr(t: Tracing, args: Args, kwargs: Kwargs) -> Any:
    return _then_none(t, _attributes.generic_set(t, args[0], _name(args[1], "__delattr__"), MISSING))


@handlers.handles(vars)
def handle_vars(t: Tracing, args: Args, kwargs: Kwargs) -> Any:
    if not args or args[0].namespace is None:
        raise t.unsupported("vars", "vars() of something without a plain __dict__")
    return args[0].namespace


@handlers.handles(object.__new__)
def object_new(t: Tracing, args: Args, kwargs: Kwargs) -> Any:
    return _calls.allocate(t, args[0], object.__new__, [], {})


@handlers.handles(object.__init__)
def object_init(t: Tracing, args: Args, kwargs: Kwargs) -> Any:
    return k.NONE


@handlers.handles(object.__init_subclass__)
def init_subclass(t: Tracing, args: Args, kwargs: Kwargs) -> Any:
    return k.NONE


# -- objects ----------------------------------------------------------------------------------------------------------
@handlers.handles(len)
def handle_len(t: Tracing, args: Args, kwargs: Kwargs) -> Any:
    return _containers.length(t, args[0])


@handlers.handles(iter)
def handle_iter(t: Tracing, args: Args, kwargs: Kwargs) -> Any:
    if len(args) == 2:
        return k.IteratorTracker(type(iter(int, 1)), "callable", list(args))
    return _iteration.get_iterator(t, args[0])


@handlers.handles(next)
def handle_next(t: Tracing, args: Args, kwargs: Kwargs) -> Any:
    if isinstance(args[0], k.GeneratorTracker) and len(args) == 1:
        return Resume(args[0].state, k.NONE)
    return _next(t, args[0], args[1] if len(args) > 1 else None)


@operation
def _next(t: Tracing, it: Any, default: Any) -> Any:
    try:
        value = yield from settle(_iteration.next_value(t, it))
    except Raised as raised:
        if default is None or not issubclass(raised.value.cls, StopIteration):
            raise
        return default
    if value is not NULL:
        return value
    if default is None:
        raise Raised(new_exception(StopIteration, []))
    return default


@handlers.handles(bool)
def handle_bool(t: Tracing, args: Args, kwargs: Kwargs) -> Any:
    if not args:
        return k.ConstantTracker(False)
    if isinstance(args[0], k.NumberTracker):
        return _torch_calls.record(t, operator.ne, [args[0], k.ConstantTracker(0)], {})
    return _as_constant(t, _operators.truth(t, args[0]))


def _number(t: Tracing, cls: type, method: str, args: Args, kwargs: Kwargs) -> Any:
    folded = _calls.fold(t, cls, args, kwargs)
    if folded is not MISSING:
        return folded
    vt = args[0]
    if isinstance(vt, k.NumberTracker):
        return vt if vt.cls is cls else _torch_calls.record(t, getattr(torch, f"sym_{cls.__name__}"), [vt], {})
    if isinstance(vt, k.TensorTracker):
        return _torch_calls.record(t, "item", [vt], {})
    bound = _attributes.special(t, vt, method)
    if bound is MISSING:
        what = "a string or a real number" if cls is float else "a string, a bytes-like object or a real number"
        throw(TypeError, f"{cls.__name__}() argument must be {what}, not '{type_name(vt.cls)}'")
    return _calls.call(t, bound, [], {})


@handlers.handles(int)
def handle_int(t: Tracing, args: Args, kwargs: Kwargs) -> Any:
    return _number(t, int, "__int__", args, kwargs)


@handlers.handles(float)
def handle_float(t: Tracing, args: Args, kwargs: Kwargs) -> Any:
    return _number(t, float, "__float__", args, kwargs)


@handlers.handles(str)
def handle_str(t: Tracing, args: Args, kwargs: Kwargs) -> Any:
    return convert(t, args[0], "s") if len(args) == 1 and not kwargs else _folded(t, str, args, kwargs)


@handlers.handles(repr)
def handle_repr(t: Tracing, args: Args, kwargs: Kwargs) -> Any:
    return convert(t, args[0], "r")


def _folded(t: Tracing, function: Any, args: Args, kwargs: Kwargs) -> Any:
    found = _calls.fold(t, function, args, kwargs)
    if found is MISSING:
        raise t.unsupported("builtin", f"{function.__name__}() of values that are not known while tracing")
    return found


@handlers.handles(abs)
def handle_abs(t: Tracing, args: Args, kwargs: Kwargs) -> Any:
    if isinstance(args[0], k.TensorTracker | k.NumberTracker):
        return _torch_calls.record(t, operator.abs, args, {})
    return _by_dunder(t, abs, "__abs__", args)


def _by_dunder(t: Tracing, function: Any, name: str, args: Args) -> Any:
    folded = _calls.fold(t, function, args, {})
    if folded is not MISSING:
        return folded
    bound = _attributes.special(t, args[0], name)
    if bound is MISSING:
        throw(TypeError, f"bad operand type for {function.__name__}(): '{type_name(args[0].cls)}'")
    return _calls.call(t, bound, args[1:], {})


# -- containers -------------------------------------------------------------------------------------------------------
@handlers.handles(tuple)
def make_tuple(t: Tracing, args: Args, kwargs: Kwargs) -> Any:
    return _collected(t, lambda items: k.TupleTracker(items, tuple), args)


@handlers.handles(torch.Size)
def make_size(t: Tracing, args: Args, kwargs: Kwargs) -> Any:
    return _collected(t, lambda items: k.TupleTracker(items, torch.Size), args)


@handlers.handles(list)
def make_list(t: Tracing, args: Args, kwargs: Kwargs) -> Any:
    return _collected(t, lambda items: k.ListTracker(items, list), args)


@handlers.handles(set)
def make_set(t: Tracing, args: Args, kwargs: Kwargs) -> Any:
    return _set_of(t, set, args)


@handlers.handles(frozenset)
def make_frozenset(t: Tracing, args: Args, kwargs: Kwargs) -> Any:
    return args[0] if args and args[0].cls is frozenset else _set_of(t, frozenset, args)


@operation
def _set_of(t: Tracing, cls: type, args: Args) -> Any:
    made = k.SetTracker(cls)
    if args:
        yield from settle(_containers.set_update(t, made, args[0]))
    return made


@operation
def _collected(t: Tracing, make: Any, args: Args) -> Any:
    return make((yield from settle(_iteration.drain(t, args[0]))) if args else [])


@handlers.handles(frozenset.__new__)
def _frozenset_new(t: Tracing, args: Args, kwargs: Kwargs) -> Any:
    return _set_of(t, args[0].value, args[1:])


@handlers.handles(dict)
def make_dict(t: Tracing, args: Args, kwargs: Kwargs) -> Any:
    return _filled(t, k.DictTracker(dict, complete=True), args, kwargs)


@handlers.handles(collections.OrderedDict)
def make_ordered_dict(t: Tracing, args: Args, kwargs: Kwargs) -> Any:
    made = k.DictTracker(collections.OrderedDict, complete=True)
    new_namespace(made)
    return _filled(t, made, args, kwargs)


@operation
def _filled(t: Tracing, made: Any, args: Args, kwargs: Kwargs) -> Any:
    yield from settle(_dicts.update_all(t, [made, *args], kwargs, "__init__"))
    return made


@handlers.handles(tuple.__new__)
def tuple_new(t: Tracing, args: Args, kwargs: Kwargs) -> Any:
    cls = args[0].value
    return _collected(t, lambda items: _named_tuple(cls, items), args[1:])


def _named_tuple(cls: type, items: list[Any]) -> Any:
    made = k.TupleTracker(items, cls)
    if cls.__dictoffset__:
        new_namespace(made)
    return made


_TUPLE_GETTER = type(vars(collections.namedtuple("_Probe", "field"))["field"])


@handlers.handles(_TUPLE_GETTER.__get__)
def named_field(t: Tracing, args: Args, kwargs: Kwargs) -> Any:
    descriptor, vt = args[:2]
    index = descriptor.real.__reduce__()[1][0]
    return descriptor if k.is_none(vt) else vt.items[index]


# -- iterators --------------------------------------------------------------------------------------------------------
@handlers.handles(range)
def make_range(t: Tracing, args: Args, kwargs: Kwargs) -> Any:
    values = [int(arg.example) if isinstance(arg, k.NumberTracker) else arg.constant() for arg in args]
    if any(v is MISSING for v in values):
        throw(TypeError, f"'{type_name(args[0].cls)}' object cannot be interpreted as an integer")
    return _folded(t, range, [k.ConstantTracker(v) for v in values], kwargs)


@handlers.handles(zip)
def make_zip(t: Tracing, args: Args, kwargs: Kwargs) -> Any:
    strict = kwargs["strict"].constant() if "strict" in kwargs else False
    return _iterators(t, args, lambda found: k.IteratorTracker(zip, "zip", [found, bool(strict)]))


@handlers.handles(map)
def make_map(t: Tracing, args: Args, kwargs: Kwargs) -> Any:
    return _iterators(t, args[1:], lambda found: k.IteratorTracker(map, "map", [args[0], found]))


@handlers.handles(filter)
def make_filter(t: Tracing, args: Args, kwargs: Kwargs) -> Any:
    return _iterators(t, args[1:], lambda found: k.IteratorTracker(filter, "filter", [args[0], found[0]]))


@handlers.handles(enumerate)
def make_enumerate(t: Tracing, args: Args, kwargs: Kwargs) -> Any:
    start = args[1] if len(args) > 1 else kwargs.get("start", k.ConstantTracker(0))
    return _iterators(t, args[:1], lambda found: k.IteratorTracker(enumerate, "enumerate", [found[0], start]))


@operation
def _iterators(t: Tracing, iterables: Args, make: Any) -> Any:
    found = []
    for iterable in iterables:
        found.append((yield from settle(_iteration.get_iterator(t, iterable))))
    return make(found)


@handlers.handles(reversed)
def make_reversed(t: Tracing, args: Args, kwargs: Kwargs) -> Any:
    vt = args[0]
    bound = _attributes.special(t, vt, "__reversed__")
    if isinstance(bound, k.MethodTracker) and isinstance(bound.function, k.FunctionTracker):
        return _calls.call(t, bound, [], {})
    if isinstance(vt, k.TupleTracker):
        return k.IteratorTracker(reversed, "reversed", [vt, len(vt.items)])
    if isinstance(vt, k.ConstantTracker) and hasattr(
        type(vt.value), "__reversed__" if bound is not MISSING else "__len__"
    ):
        items = [_calls.fresh(t, item) for item in reversed(vt.value)]
        through = k.ConstantTracker(vt.value[::-1]) if isinstance(vt.value, range) else vt  # C goes through this, too
        return k.IteratorTracker(type(reversed(vt.value)), "constant", [items, through])
    if bound is not MISSING:
        return _calls.call(t, bound, [], {})
    if not (defines(t, vt.cls, "__getitem__") and defines(t, vt.cls, "__len__")):
        throw(TypeError, f"'{type_name(vt.cls)}' object is not reversible")
    return _reversed_protocol(t, vt)


@operation
def _reversed_protocol(t: Tracing, vt: Any) -> Any:
    """`reversed` of an object with `__len__` and `__getitem__`."""
    size = (yield from settle(_containers.length(t, vt))).constant()
    if not isinstance(size, int):
        raise t.unsupported("builtin", f"reversed() of a {vt.cls.__name__} of unknown length")
    return k.IteratorTracker(reversed, "reversed getitem", [vt, size])


@handlers.handles(sorted)
def handle_sorted(t: Tracing, args: Args, kwargs: Kwargs) -> Any:
    if len(args) != 1 or not kwargs.keys() <= {"key", "reverse"}:
        raise t.unsupported("bad-arguments", "a call of sorted() that it does not accept")
    return _sorted(t, args[0], kwargs)


@operation
def _sorted(t: Tracing, iterable: Any, kwargs: Kwargs) -> Any:
    if isinstance(iterable, k.SetTracker) and not k.is_none(kwargs.get("key", k.NONE)):
        raise t.unsupported("set-order", "sorted() of a set with a key, which leaves equal keys in the order of hashes")
    items = yield from settle(_unordered_items(t, iterable))
    return (yield from settle(sorted_list(t, items, kwargs.get("key"), kwargs.get("reverse"))))


def _unordered_items(t: Tracing, iterable: Any) -> Any:
    """All items, for who puts them in order: those of a set too, when they are strings or ints."""
    if isinstance(iterable, k.SetTracker) and has_total_order(iterable):
        return list(iterable.entries.values())
    return _iteration.drain(t, iterable)


def has_total_order(vt: Any) -> bool:
    kinds = {type(item.constant()) for item in vt.entries.values()}
    return kinds in ({str}, {int}, {bytes}, {float}) and not any(
        item.value != item.value for item in vt.entries.values()
    )


_OVER_CONTAINERS: tuple[type, ...] = (type(iter([])), type(iter(())), type(iter({})), type(reversed([])))
_ITERATOR_TYPES: tuple[Any, ...] = (*_OVER_CONTAINERS, zip, map, filter, enumerate)


@handlers.handles(*[cls.__next__ for cls in _ITERATOR_TYPES], types.GeneratorType.__next__)
def iterator_next(t: Tracing, args: Args, kwargs: Kwargs) -> Any:
    if not isinstance(args[0], k.IteratorTracker | k.GeneratorTracker):
        raise t.unsupported("foreign-iterator", f"a step of an existing {args[0].cls.__name__}")
    return handle_next(t, args[:1], {})


@handlers.handles(*[cls.__iter__ for cls in _ITERATOR_TYPES], types.GeneratorType.__iter__)
def iterator_iter(t: Tracing, args: Args, kwargs: Kwargs) -> Any:
    return args[0]


# -- generators -------------------------------------------------------------------------------------------------------
def _state_of(t: Tracing, vt: Any) -> Any:
    """The state of a generator that was made while tracing; one that existed before has a native frame."""
    if not isinstance(vt, k.GeneratorTracker):
        raise t.unsupported("foreign-iterator", f"a step of an existing {vt.cls.__name__}")
    return vt.state


@handlers.handles(types.GeneratorType.send)
def generator_send(t: Tracing, args: Args, kwargs: Kwargs) -> Any:
    return Resume(_state_of(t, args[0]), args[1])


@handlers.handles(types.GeneratorType.throw)
def generator_throw(t: Tracing, args: Args, kwargs: Kwargs) -> Any:
    _state_of(t, args[0])
    return _throw_into(t, args[0], args[1] if len(args) == 2 else args[2])


@operation
def _throw_into(t: Tracing, generator: Any, value: Any) -> Any:
    from stator_variables import _exceptions

    thrown = yield from settle(_exceptions.exception_from(t, value, None))
    return (yield Resume(generator.state, None, thrown))


@handlers.handles(types.GeneratorType.close)
def generator_close(t: Tracing, args: Args, kwargs: Kwargs) -> Any:
    _state_of(t, args[0])
    return _close(t, args[0])


@operation
def _close(t: Tracing, generator: Any) -> Any:
    from stator_bytecode import GeneratorStatus

    status = generator.state.status
    if status is GeneratorStatus.CLOSED:
        return k.NONE
    try:
        yield Resume(generator.state, None, new_exception(GeneratorExit, []), Then("value"))
    except Raised as raised:
        if not issubclass(raised.value.cls, GeneratorExit | StopIteration):
            raise
        return k.NONE
    throw(RuntimeError, "generator ignored GeneratorExit")


# -- functools, operator ----------------------------------------------------------------------------------------------
@handlers.handles(functools.partial)
def make_partial(t: Tracing, args: Args, kwargs: Kwargs) -> Any:
    function, *rest = args
    if isinstance(function, k.PartialTracker) and function.cls is functools.partial:
        return k.PartialTracker(
            functools.partial, function.function, [*function.args, *rest], {**function.kwargs, **kwargs}
        )
    return k.PartialTracker(functools.partial, function, rest, kwargs)


def _operator_handlers() -> None:
    binary = {"add": "+", "sub": "-", "mul": "*", "truediv": "/", "floordiv": "//", "mod": "%", "pow": "**"}
    binary |= {"matmul": "@", "and_": "&", "or_": "|", "xor": "^", "lshift": "<<", "rshift": ">>"}
    binary |= {"iadd": "+=", "isub": "-=", "imul": "*=", "itruediv": "/=", "ior": "|=", "iand": "&="}
    for name, symbol in binary.items():
        _register_operator(getattr(operator, name), lambda t, a, s=symbol: _operators.binary(t, s, a[0], a[1]))
    for name, symbol in {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}.items():
        _register_operator(getattr(operator, name), lambda t, a, s=symbol: _operators.compare(t, s, a[0], a[1]))
    for name, symbol in {"neg": "-", "pos": "+", "invert": "~"}.items():
        _register_operator(getattr(operator, name), lambda t, a, s=symbol: _operators.unary(t, s, a[0]))
    _register_operator(operator.getitem, lambda t, a: _iteration.get_item(t, a[0], a[1]))
    _register_operator(operator.setitem, lambda t, a: _then_none(t, _containers.set_item(t, *a)))
    _register_operator(operator.delitem, lambda t, a: _then_none(t, _containers.delete_item(t, *a)))
    _register_operator(operator.is_, lambda t, a: _operators.identical(t, a[0], a[1], False))
    _register_operator(operator.is_not, lambda t, a: _operators.identical(t, a[0], a[1], True))
    _register_operator(operator.not_, lambda t, a: _operators._negated(t, a[0]))
    _register_operator(operator.truth, lambda t, a: _as_constant(t, _operators.truth(t, a[0])))
    _register_operator(operator.contains, lambda t, a: _operators.contains(t, a[0], a[1], False))
    _register_operator(operator.index, lambda t, a: handle_int(t, a, {}))


def _register_operator(function: Any, run: Any) -> None:
    handlers.handles(function)(lambda t, args, kwargs: run(t, args))


_operator_handlers()
