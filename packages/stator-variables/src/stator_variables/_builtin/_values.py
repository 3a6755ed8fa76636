"""Lists and tuples as callables, allocation of containers, and small values with handlers of their
own: slices, sizes."""

import collections
import functools
from typing import Any

import torch
from stator_bytecode import Result, after

from stator_variables._objects import _number
from stator_variables._objects._list import ListTracker
from stator_variables._objects._sequence import size_of
from stator_variables._objects._tuple import TupleTracker
from stator_variables._objects._wrap import with_new_namespace
from stator_variables._protocols import _calls
from stator_variables._space import Space
from stator_variables._tracker import MISSING, Args, FunctionTable, Kwargs, VariableTracker
from stator_variables._trackers import (
    NONE,
    NOT_IMPLEMENTED,
    BuiltinTracker,
    ConstantTracker,
    SliceTracker,
    is_none,
)

handlers = FunctionTable("value")


@handlers.handles(slice)
def make_slice(t: Space, args: Args, kwargs: Kwargs) -> Result:
    if (folded := t.fold(slice, args, kwargs)) is not MISSING:
        return folded
    start, stop, step = (NONE, args[0], NONE) if len(args) == 1 else (*args, NONE)[:3]
    return SliceTracker((start, stop, step))


_PARTS = ("start", "stop", "step")


@handlers.handles_each({getattr(slice, name): name for name in _PARTS})
def part_of_slice(t: Space, args: Args, kwargs: Kwargs, of: str) -> Any:
    vt = args[0]
    if vt.is_known:
        return ConstantTracker(getattr(vt.value, of))
    return vt.parts[_PARTS.index(of)]


_LIKE_TUPLE = ("__getitem__", "__add__", "__mul__", "__rmul__")


@handlers.handles_each({getattr(torch.Size, name): getattr(tuple, name) for name in _LIKE_TUPLE})
def size_as_tuple(t: Space, args: Args, kwargs: Kwargs, of: object) -> Result:
    """`torch.Size` has methods of its own that do what tuple's do, and give sizes where tuple's
    give tuples."""
    return t.call(BuiltinTracker(of), args, kwargs)


@handlers.handles(torch.Size.__radd__)
def size_radd(t: Space, args: Args, kwargs: Kwargs) -> VariableTracker:
    size, left = args
    if left.base is not tuple:
        return NOT_IMPLEMENTED
    return size_of(t, [*left.items, *size.items])


@handlers.handles(torch.Size.numel)
def size_numel(t: Space, args: Args, kwargs: Kwargs) -> Result:
    if (known := t.fold(torch.Size.numel, args, kwargs)) is not MISSING:  # of 64 bits
        return known
    product = functools.reduce(functools.partial(t.binary, "*"), args[0].items, ConstantTracker(1))
    if all(map(_fits_word, (*args[0].items, product))):
        return product
    return t.fold(torch.Size.numel, [_number.as_constant(t, args[0])], {})


def _fits_word(vt: Any) -> bool:
    """Guarded; sizes that depend on data are those of tensors, which have no more elements."""
    number = vt.example if vt.is_symbolic else vt.value
    return _guard_or_true(number < 1 << 63) and _guard_or_true(number >= -(1 << 63))


def _guard_or_true(fact: bool | torch.SymBool) -> bool:
    """Return `torch.fx.experimental.symbolic_shapes.guard_or_true`, without its import of sympy."""
    return fact if isinstance(fact, bool) else bool(fact.node.guard_or_true("", 0))


# Handlers of `list`, `tuple` and named tuples as callables.


@handlers.handles(tuple)
def make_tuple(t: Space, args: Args, kwargs: Kwargs) -> Result:
    if args and args[0].cls is tuple:
        return args[0]
    return _collected(t, TupleTracker, args)


@handlers.handles(torch.Size)
def make_size(t: Space, args: Args, kwargs: Kwargs) -> Result:
    return _collected(t, functools.partial(size_of, t), args)


@handlers.handles(list)
def make_list(t: Space, args: Args, kwargs: Kwargs) -> Result:
    return _collected(t, ListTracker, args)


def _collected(t: Space, make: Any, args: Args) -> Result:
    return after(t.drain(args[0], calls_len=True), make) if args else make([])


_ALLOCATORS = (dict.__new__, list.__new__, set.__new__, collections.defaultdict.__new__)


@handlers.handles_each({*_ALLOCATORS, collections.OrderedDict.__new__})
def container_new(t: Space, args: Args, kwargs: Kwargs, of: object) -> Any:
    """An empty container: what else `__new__` is given, `__init__` uses."""
    if args[0].base is not type:
        raise t.unsupported("bad-arguments", "__new__ of something that is no class")
    return _calls.allocate(t, args[0], of, [], {})


@handlers.handles(tuple.__new__)
def tuple_new(t: Space, args: Args, kwargs: Kwargs) -> Result:
    _refuse_more(t, args, kwargs)
    cls = args[0].value
    return _collected(t, lambda items: with_new_namespace(TupleTracker(items, cls)), args[1:])


def _refuse_more(t: Space, args: Args, kwargs: Kwargs) -> None:
    """Reject arguments besides an iterable: whether C takes them depends on the `__init__` of the
    class."""
    if kwargs or len(args) > 2:
        raise t.unsupported("bad-arguments", "more than an iterable for a tuple or frozenset")


STRUCTS = [cls for cls in tuple.__subclasses__() if hasattr(cls, "n_sequence_fields")]
"""Named tuples made in C (Objects/structseq.c): `torch.return_types.max`, `time.struct_time`."""


@handlers.handles_each(STRUCTS)
def make_struct(t: Space, args: Args, kwargs: Kwargs, of: Any) -> Result:
    """One of its visible items alone: what C refuses, and one with more fields, is made
    natively."""

    def made(items: list[Any]) -> TupleTracker:
        if len(items) != of.n_sequence_fields:
            raise t.unsupported("construction", f"making a {of.__qualname__} of {len(items)} items")
        return TupleTracker(items, of)

    if len(args) != 1 or kwargs or of.__flags__ & _NO_INSTANCES:
        raise t.unsupported("construction", f"making a {of.__qualname__}")
    return after(t.drain(args[0], error_text="constructor requires a sequence"), made)


_NO_INSTANCES = 1 << 7  # Py_TPFLAGS_DISALLOW_INSTANTIATION


_TUPLE_GETTER = type(vars(collections.namedtuple("_Probe", "field"))["field"])


@handlers.handles(_TUPLE_GETTER.__get__)
def named_field(t: Space, args: Args, kwargs: Kwargs) -> Result:
    descriptor, vt = args[:2]
    index = descriptor.real.__reduce__()[1][0]
    return descriptor if is_none(vt) else vt.items[index]
