"""Tensors around tensors: classes with `__torch_dispatch__`, `__tensor_flatten__` and
`__tensor_unflatten__`.

By these a class declares that an operation on it is nothing but operations on its parts. So it is
an input of the graph like any tensor, its fake one of the class around fake parts, and
`__torch_dispatch__` runs with the graph.

    x + 1      the graph: add = x + 1      guards: the class, its `__tensor_flatten__`, the parts

Nothing here reads a part: that is a break. Parts share memory with nothing else, as compilers
assume.
"""

import enum
import types
from collections.abc import Collection, Iterable, Iterator
from typing import Any

import torch
from stator_guards import AttrSource, CapturedSource, Custom, Source, TensorMatch, TypeIs
from torch import Tensor
from torch._library.fake_class_registry import FakeScriptObject
from torch._library.opaque_object import is_opaque_value_type
from torch._subclasses.fake_tensor import FakeTensor
from torch.nested._internal.nested_tensor import NestedTensor
from torch.nn import Parameter
from torch.utils._python_dispatch import (
    is_traceable_wrapper_subclass,
    is_traceable_wrapper_subclass_type,
)

from stator_variables._objects._lookup import guarded_lookup
from stator_variables._space import Space
from stator_variables._trace._graph import Dim
from stator_variables._trace._memory import InputMemory
from stator_variables._tracker import MISSING, is_a
from stator_variables._trackers import TensorTracker

_OWN = frozenset(
    "__new__ __init__ __init_subclass__ __class_getitem__ __module__ __doc__ __qualname__ "
    "__annotations__ __slots__ __slotnames__ __dict__ __weakref__ __firstlineno__ "
    "__static_attributes__ __abstractmethods__ __parameters__ __orig_bases__ __repr__ __str__ "
    "__format__ __reduce__ __reduce_ex__ __deepcopy__ __setstate__ __torch_dispatch__ "
    "__torch_function__".split()
)
"""Attributes of `torch.Tensor` that a class may override; with others a method is not what the
graph calls."""

_AS_TORCH_HAS_IT = (
    Tensor.__torch_function__.__func__,  # type: ignore[attr-defined]
    torch._C._disabled_torch_function_impl,
)


_PLAIN = (Tensor, Parameter, FakeTensor)


def is_wrapper(cls: type) -> bool:
    """Return True if a class meets these requirements."""
    if cls is NestedTensor:  # see `_jagged`
        return True
    if cls in _PLAIN or not (issubclass(cls, Tensor) and is_traceable_wrapper_subclass_type(cls)):
        return False
    below = [base for base in cls.__mro__ if not issubclass(Tensor, base)]
    changed = {name for base in below for name in vars(base) if hasattr(Tensor, name)} - _OWN
    override = cls.__torch_function__
    return not changed and getattr(override, "__func__", override) in _AS_TORCH_HAS_IT


_IS_WRAPPER = Custom(
    "{fn}({value})",
    is_wrapper,
    "a class whose operators are those of its parts",
    words=lambda cls, cells: cells.type_version(cls),
)


def build(t: Space, real: Any, source: Source) -> TensorTracker:
    cls, shape = type(real), shape_of(real)
    dims = t.policy.dims(source, real)
    if shape is MISSING or torch.is_inference_mode_enabled() or any(dim.strict for dim in dims):
        raise t.unsupported("tensor-subclass", f"an input of class {cls.__qualname__}")

    t.guard(source, TypeIs(cls))
    guarded_lookup(t, cls, "__torch_dispatch__")
    t.guard(CapturedSource(cls.__qualname__, cls), _IS_WRAPPER)
    composition = Composition(shape, real)
    t.guard(
        source,
        Custom("{fn}({value})", composition.holds, f"made of what a {cls.__qualname__} was"),
    )

    t.state(InputMemory).has_wrappers = True
    with t.caller_modes():
        for part_source, part in _parts(real, source):
            t.keep_apart(part_source, part)
            t.guard(part_source, TensorMatch(part))
        traced = t.graph.tensor_input(source, real, [Dim()] * real.dim(), source.name)
        t.guard(source, TensorMatch(real))

    if type(traced.example) is not cls:
        raise t.unsupported(
            "tensor-subclass", f"{cls.__qualname__}: its __tensor_unflatten__ gives another class"
        )
    return TensorTracker(traced, cls)


def _parts(wrapper: Any, source: Source) -> Iterator[tuple[Source, Tensor]]:
    """The plain tensors inside, at any depth."""
    for name in wrapper.__tensor_flatten__()[0]:
        part: Any = getattr(wrapper, name)
        part_source = AttrSource(source, name)
        if is_traceable_wrapper_subclass(part):
            yield from _parts(part, part_source)
        elif isinstance(part, Tensor):
            yield part_source, part


def class_of(t: Space, example: Tensor) -> type:
    """The class of a result, for which a fake stands."""
    if type(example) not in _PLAIN:
        if type(example) is not NestedTensor and not is_known(example):
            raise t.unsupported(
                "tensor-subclass", f"an operation that gives a {type(example).__qualname__}"
            )
        return type(example)
    return Parameter if isinstance(example, Parameter) else Tensor


def is_known(example: Any) -> bool:
    """Return True if the graph can have a result: one like an input, or one that only the graph can
    have."""
    return shape_of(example) is not MISSING or stays_in_graph(example)


def stays_in_graph(example: Any) -> bool:
    """Return True for a result with a context that no entry can compare, nor make again: symbolic
    sizes, or a mask that a placement holds for the next operator."""
    if type(example) in _PLAIN or type(example) is NestedTensor:  # an entry can make a jagged one
        return False
    if not is_wrapper(type(example)) or shape_of(example) is not MISSING:
        return False
    (names, context), (_, again) = example.__tensor_flatten__(), example.__tensor_flatten__()
    parts = [shape_of(getattr(example, name)) for name in names]
    look = *example.shape, *example.stride()
    try:
        _key((look, context), (look, again))
    except _OnlyInGraph:
        return MISSING not in parts
    except TypeError:
        return False
    return False


class _OnlyInGraph(TypeError):
    """A value in a context that operators understand, and that no guard can be about."""


def shape_of(wrapper: Any) -> Any:
    """Return the class's description of a wrapper, comparable; MISSING if it cannot be compared, or
    the object is unfinished."""
    is_tensor: bool = isinstance(wrapper, Tensor)
    if not is_tensor:
        return _shape_of_object(wrapper)
    if type(wrapper) in _PLAIN:
        return Tensor if wrapper.layout is torch.strided else MISSING
    if not is_wrapper(type(wrapper)) or wrapper.layout is not torch.strided:
        return MISSING

    try:
        (names, context), (_, again) = wrapper.__tensor_flatten__(), wrapper.__tensor_flatten__()
        inner = [getattr(wrapper, name) for name in names]
    except Exception:  # whatever the program's method raises: the object is not finished
        return MISSING
    look = *wrapper.shape, *wrapper.stride(), wrapper.requires_grad
    try:
        key = _key((look, context), (look, again))
    except TypeError:
        return MISSING
    parts = list(map(shape_of, inner))
    return MISSING if MISSING in parts else (type(wrapper), *zip(names, parts, strict=True), key)


_REMEMBERED = 64
"""Equal wrappers whose objects one guard remembers: those of equal blocks share it."""


class Composition:
    """Compares wrappers with the one of the trace.

    A parameter has the same objects on each call: what cannot change is compared by identity.
    """

    def __init__(self, shape: Any, real: Any) -> None:
        self.shape = shape
        self.seen: dict[tuple[Any, ...], Any] = {}
        self.holds(real)

    def holds(self, wrapper: Any) -> bool:
        """Return True for a wrapper that `shape_of` describes as that of the trace. Plain tensors
        inside are left to guards of their own."""
        try:
            names, context = wrapper.__tensor_flatten__()
            parts = [*map(wrapper.__getattribute__, names)]
        except Exception:  # whatever the program's method raises, as in `shape_of`
            return False
        around = [part for part in parts if type(part) not in _PLAIN]
        objects = (*context, *around) if type(context) is tuple else (context, *around)
        look = wrapper.shape, wrapper.stride(), wrapper.requires_grad
        key = (*names, *map(id, objects), *look)
        if key in self.seen:
            return True

        if shape_of(wrapper) != self.shape:
            return False
        is_fixed = _is_fixed(context) and not any(isinstance(part, Tensor) for part in around)
        if is_fixed and len(self.seen) < _REMEMBERED:
            self.seen[key] = objects  # which keeps their identities
        return True


def _is_fixed(value: Any) -> bool:
    """Return True for a value in a context that stays what it is while it is the same object."""
    kind = type(value)
    if kind in (tuple, torch.Size):
        return all(map(_is_fixed, value))
    if kind in (list, dict):
        return False
    is_atom = kind in _ATOMS or isinstance(value, type | enum.Enum | types.FunctionType)
    return is_atom or not getattr(value, "__dict__", None)


def _shape_of_object(part: Any) -> Any:
    """Return a part that is no tensor (the mesh of a DTensor) as it is compared: by its value."""
    real = part.real_obj if isinstance(part, FakeScriptObject) else part
    has_value = getattr(type(real), "__hash__", None) not in (None, object.__hash__)
    return (type(real), real) if has_value else MISSING


_ATOMS = (
    int,
    str,
    bool,
    bytes,
    type(None),
    torch.dtype,
    torch.device,
    torch.layout,
    torch.memory_format,
)


def _key(value: Any, again: Any) -> object:
    """Equal for equal contexts. TypeError for a value that may change unnoticed, as a list can that
    is there again."""
    kind = type(value)
    if kind is torch.SymInt:
        raise _OnlyInGraph("a symbolic size")
    if kind in (float, complex):
        return kind, repr(value)
    if kind in (tuple, torch.Size) or (kind is list and value is not again):
        return kind, *map(_key, value, again)
    if kind is dict and value is not again:
        return kind, *((_key(name, name), _key(item, again[name])) for name, item in value.items())

    immutable = kind in _ATOMS or isinstance(value, type | enum.Enum | types.FunctionType)
    by_value = getattr(kind, "__hash__", None) not in (None, object.__hash__)
    if not immutable and (not by_value or isinstance(value, Tensor | torch.SymInt)):
        raise TypeError(f"a {kind.__qualname__} in a context")
    if not immutable:  # what it keeps beside its value must not change either
        _key_of_attributes(value)
    hash(value)
    return kind, value


def _key_of_attributes(value: Any) -> None:
    try:
        for held in getattr(value, "__dict__", {}).values():
            _key(held, held)
    except TypeError as error:
        if is_opaque_value_type(type(value)):
            raise _OnlyInGraph(*error.args) from None
        raise


def refuse_write(t: Space, writes: Collection[int], operands: Iterable[Any]) -> None:
    """Reject a write to a tensor inside of another, or to one with others in it, once such a part
    is known by itself: fakes do not show what they share."""
    if not writes or not t.state(InputMemory).shown_twice:
        return
    examples: list[Any] = [vt.example for vt in operands if is_a(vt, TensorTracker)]
    wrappers: list[Any] = [*filter(is_traceable_wrapper_subclass, examples)]
    shared = {each.untyped_storage()._cdata for each in wrappers} | t.state(InputMemory).shown_twice
    if not shared.isdisjoint(writes):
        raise t.unsupported("tensor-subclass", "a write to a tensor that shares a part with others")


MARKS = frozenset({"_is_param", "_is_buffer"})
"""Attributes by which torch itself marks tensors of any class."""


def refuse_attribute(t: Space, vt: Any, name: str) -> None:
    """Reject attributes of the object itself: parts, which the graph may change, and what depends
    on them."""
    held = vars(vt.example if vt.real is MISSING else vt.real)
    if name in held and name not in MARKS and not _is_apart(vt, name):
        raise t.unsupported(
            "tensor-attribute", f"the attribute {name} of a tensor of class {vt.cls.__qualname__}"
        )


def _is_apart(vt: Any, name: str) -> bool:
    """Return True for an attribute of an existing object that is no part of it, and that no
    operator can have set: those in place may."""
    if vt.real is MISSING or vt.example._version:
        return False
    is_atom = type(vars(vt.real)[name]) in (*_ATOMS, float, complex)
    return is_atom and name not in vt.real.__tensor_flatten__()[0]
