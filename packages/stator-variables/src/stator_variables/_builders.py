"""From an existing object and its source to its tracker: one builder per kind of object."""

import collections
import enum
import functools
import operator
import types
import weakref
from collections.abc import Callable, Iterable
from typing import Any

import stator_guards as guards
import torch
from stator_bytecode import NULL, exception_field
from torch.nested._internal.nested_tensor import NestedTensor
from torch.nn.parameter import is_lazy

from stator_variables import _kinds as k
from stator_variables._objects import _iterator, _set_members
from stator_variables._objects._builder_table import Builder, BuilderTable
from stator_variables._objects._dict import DictTracker
from stator_variables._objects._exception import ExceptionTracker
from stator_variables._objects._method import MethodTracker
from stator_variables._objects._number_builders import build_atom, build_scalar
from stator_variables._objects._set import SetTracker
from stator_variables._objects._view import VIEW_CLASSES, ProxyTracker
from stator_variables._objects._weakrefs import build_weakref
from stator_variables._objects._wrapping import (
    ATOMS,
    BY_IDENTITY,
    ENUMS_OF_C,
    SINGLETONS,
    VALUES,
    behind_proxy,
    equal_to,
    globals_tracker,
    with_namespace,
    wrap_items,
    wrap_present,
)
from stator_variables._pure import NUMPY, PATHS, TRUTHS, is_number_of_numpy
from stator_variables._runtime._support import plain_tensor, tensor_of
from stator_variables._space import Space
from stator_variables._tensors import _jagged, _wrappers
from stator_variables._tensors._history import history_of, is_behind
from stator_variables._tracker import VariableTracker


def _field(t: Space, real: Any, name: str, source: guards.Source) -> Any:
    return t.wrap(getattr(real, name), guards.AttrSource(source, name))


def build_value(t: Space, real: Any, source: guards.Source) -> VariableTracker:
    if type(real) is slice and not all(
        type(part) in ATOMS for part in (real.start, real.stop, real.step)
    ):
        t.guard(source, guards.TypeIs(slice))
        start, stop, step = (_field(t, real, name, source) for name in ("start", "stop", "step"))
        return k.SliceTracker((start, stop, step))
    if is_number_of_numpy(type(real)) or type(real) in TRUTHS:
        return build_scalar(t, real, source)
    t.guard(
        source,
        equal_to(real) if type(real) in (torch.device, *ENUMS_OF_C) else guards.Equals(real),
    )
    return k.ConstantTracker(real)


def _by_identity(kind: Callable[[Any], VariableTracker]) -> Builder:
    """What is known once it is known which object it is."""

    def build(t: Space, real: Any, source: guards.Source) -> VariableTracker:
        t.guard(source, guards.Is(real))
        return kind(real)

    return build


build_singleton = _by_identity(k.ConstantTracker)
build_by_identity = _by_identity(k.BuiltinTracker)
build_class = _by_identity(k.ClassTracker)


def build_path(t: Space, real: Any, source: guards.Source) -> VariableTracker:
    cls, text = type(real), str(real)
    same = guards.Custom(
        "{fn}({value})", lambda path: type(path) is cls and str(path) == text, repr(real)
    )
    t.guard(source, same)
    return k.ConstantTracker(real)


def build_enum(t: Space, real: Any, source: guards.Source) -> VariableTracker:
    return with_namespace(t, build_singleton(t, real, source), real, source)


def build_tensor(t: Space, real: Any, source: guards.Source) -> Any:
    if type(real) not in (torch.Tensor, torch.nn.Parameter, torch.nn.Buffer):
        return build_subclass(t, real, source)
    if real.is_nested or real.is_mkldnn:  # the one has no sizes, the fake of the other is strided
        raise t.unsupported(
            "no-fake-tensor",
            f"{source} is a strided nested tensor, or one for MKL-DNN",
            "make nested tensors with layout=torch.jagged",
        )
    if is_behind(real):
        raise t.unsupported(
            "no-fake-tensor", f"{source} is a view whose base was written to with gradients"
        )
    t.keep_apart(source, real)
    dims = t.policy.dims(source, real)
    traced = t.graph.tensor_input(source, real, dims, source.name)
    # What was asked for may not be: the base of a view that was read first has the sizes it had then.
    sizes = frozenset(i for i, size in enumerate(traced.example.shape) if _is_symbolic(size))
    strides = frozenset(
        i for i, dim in enumerate(dims) if dim.stride and _is_symbolic(traced.example.stride(i))
    )
    with t.caller_modes():
        t.guard(source, guards.TensorMatch(real, sizes, strides))
    if (
        getattr(real, "_dynamo_static_input_type", None) == "guarded"
    ):  # `mark_static_address(tensor, guard=True)`
        t.guard(source, guards.Is(real))
    vt = k.TensorTracker(traced, type(real))
    if real.requires_grad:
        vt.history = history_of(traced.example)
    return vt


def build_subclass(t: Space, real: Any, source: guards.Source) -> VariableTracker:
    """A tensor of a class that only Python knows as a plain one over its memory."""
    if type(real) is NestedTensor:
        jagged: VariableTracker = _jagged.build(t, real, source)
        return jagged
    if _wrappers.is_wrapper(type(real)):
        wrapper: VariableTracker = _wrappers.build(t, real, source)
        return wrapper
    dispatches = type(real).__torch_dispatch__ is not torch.Tensor.__torch_dispatch__
    if dispatches or is_lazy(real) or torch.is_inference_mode_enabled():
        raise t.unsupported("tensor-subclass", f"an input of class {type(real).__qualname__}")
    t.guard(source, guards.TypeIs(type(real)))
    t.overrides.subclasses = True
    plain, memory = plain_tensor(real), guards.CallSource(plain_tensor, source)
    vt = build_tensor(t, plain, memory)
    vt.real, vt.source = plain, memory
    return with_namespace(t, k.SubclassTracker(vt, type(real)), real, source)


def build_array(t: Space, real: Any, source: guards.Source) -> VariableTracker:
    """An array as a tensor over its memory; what no tensor can be over is an object of which nothing is known."""
    if (tensor := tensor_of(real)) is None:
        return build_object(t, real, source)
    memory = guards.CallSource(tensor_of, source)
    t.guard(source, guards.TypeIs(type(real)))
    t.memory.has_arrays = True
    vt = build_tensor(t, tensor, memory)
    vt.real, vt.source = tensor, memory
    return k.ArrayTracker(vt, type(real))


def _is_symbolic(size: Any) -> bool:
    return isinstance(size, torch.SymInt)


def build_dict(t: Space, real: Any, source: guards.Source) -> VariableTracker:
    t.guard(source, guards.TypeIs(type(real)))
    tracker = DictTracker(type(real), complete=False)
    if issubclass(type(real), collections.defaultdict):
        tracker.default_factory = _field(t, real, "default_factory", source)
    return with_namespace(t, tracker, real, source)


def build_mappingproxy(t: Space, real: Any, source: guards.Source) -> VariableTracker:
    t.guard(source, guards.TypeIs(types.MappingProxyType))
    return ProxyTracker(t.wrap(behind_proxy(real), guards.CallSource(behind_proxy, source)))


def build_set(t: Space, real: Any, source: guards.Source) -> VariableTracker:
    t.guard(source, guards.TypeIs(type(real)))
    tracker = SetTracker(type(real))
    tracker.unread = lambda vt: _read_set(t, vt, real, source)
    return with_namespace(t, tracker, real, source)


def _read_set(t: Space, vt: SetTracker, real: Any, source: guards.Source) -> None:
    _set_members.read(t, vt, real, source)


def build_function(t: Space, real: Any, source: guards.Source) -> VariableTracker:
    t.guard(source, guards.TypeIs(types.FunctionType))
    t.guard(guards.FunctionPartSource(source, "code"), guards.Is(real.__code__))
    cells = guards.FunctionPartSource(source, "closure")
    closure = tuple(
        t.wrap(cell, guards.ItemSource(cells, i)) for i, cell in enumerate(real.__closure__ or ())
    )
    globals_vt = globals_tracker(t, real.__globals__)
    function = k.FunctionTracker(
        real.__code__, globals_vt, name=real.__name__, qualname=real.__qualname__, closure=closure
    )
    return with_namespace(t, function, real, source)


def build_method(t: Space, real: Any, source: guards.Source) -> VariableTracker:
    t.guard(source, guards.TypeIs(types.MethodType))
    return MethodTracker(_field(t, real, "__func__", source), _field(t, real, "__self__", source))


def build_builtin_function(t: Space, real: Any, source: guards.Source) -> VariableTracker:
    """A C function; one bound to an object (`some_list.append`) is a method of that object."""
    owner = getattr(real, "__self__", None)
    of_none = (
        owner is None
        or isinstance(owner, types.ModuleType | type)
        or type(owner).__name__ == "ScriptFunction"
    )
    if of_none or (descriptor := _descriptor_of(type(owner), real)) is None:
        return build_by_identity(t, real, source)
    t.guard(source, guards.TypeIs(type(real)))
    t.guard(guards.AttrSource(source, "__name__"), guards.Equals(real.__name__))
    t.guard(guards.AttrSource(source, "__self__"), guards.TypeIs(type(owner)))
    return MethodTracker(
        k.BuiltinTracker(descriptor), _field(t, real, "__self__", source), type(real)
    )


def build_method_wrapper(t: Space, real: Any, source: guards.Source) -> VariableTracker:
    """A slot of a C class bound to an object (`some_object.__setattr__`): a method of that object."""
    descriptor = vars(real.__objclass__).get(real.__name__)
    if not isinstance(descriptor, types.WrapperDescriptorType) or isinstance(
        real.__self__, types.ModuleType | type
    ):
        return build_by_identity(t, real, source)
    t.guard(source, guards.TypeIs(types.MethodWrapperType))
    t.guard(guards.AttrSource(source, "__name__"), guards.Equals(real.__name__))
    t.guard(guards.AttrSource(source, "__objclass__"), guards.Is(real.__objclass__))
    receiver = _field(t, real, "__self__", source)
    return MethodTracker(k.BuiltinTracker(descriptor), receiver, types.MethodWrapperType)


def _descriptor_of(cls: type, real: Any) -> Any:
    """The method descriptor a bound C method was made from; a subclass may override its name."""
    for base in cls.__mro__:
        found = base.__dict__.get(real.__name__)
        if (
            isinstance(found, types.MethodDescriptorType)
            and found.__get__(real.__self__, type(real.__self__)) == real
        ):
            return found
    return None


def build_super(t: Space, real: Any, source: guards.Source) -> VariableTracker:
    return k.SuperTracker(
        _field(t, real, "__thisclass__", source), _field(t, real, "__self__", source)
    )


def build_cell(t: Space, real: Any, source: guards.Source) -> VariableTracker:
    if real == _EMPTY_CELL:
        t.guard(source, _IS_EMPTY)
        return k.CellTracker(NULL)
    return k.CellTracker(wrap_present(t, real.cell_contents, guards.CellSource(source)))


_EMPTY_CELL = types.CellType()
_IS_EMPTY = guards.Custom("{fn}({value})", lambda cell: cell == _EMPTY_CELL, "an empty cell")


def build_partial(t: Space, real: Any, source: guards.Source) -> VariableTracker:
    t.guard(source, guards.TypeIs(type(real)))
    function = _field(t, real, "func", source)
    args = wrap_items(t, real.args, guards.AttrSource(source, "args"))
    keywords, kwargs_source = dict(real.keywords), guards.AttrSource(source, "keywords")
    t.guard(kwargs_source, guards.KeysAre(tuple(keywords)))
    kwargs = {
        name: t.wrap(arg, guards.DictItemSource(kwargs_source, name))
        for name, arg in keywords.items()
    }
    return with_namespace(t, k.PartialTracker(type(real), function, args, kwargs), real, source)


def build_exception(t: Space, real: Any, source: guards.Source) -> VariableTracker:
    t.guard(source, guards.TypeIs(type(real)))
    args = wrap_items(
        t, exception_field(real, "args"), guards.SlotSource(source, BaseException, "args")
    )
    return with_namespace(t, ExceptionTracker(type(real), args, real), real, source)


def build_object(t: Space, real: Any, source: guards.Source) -> VariableTracker:
    t.guard(source, guards.TypeIs(type(real)))
    return with_namespace(t, k.ObjectTracker(type(real), real), real, source)


@guards.shown_as("the arguments of {0}")
def recipe_of(real: Any) -> tuple[tuple[Any, ...], tuple[tuple[str, Any], ...]]:
    """The arguments an object was made with, by its `__reduce__`."""
    made, args = real.__reduce__()
    if isinstance(made, functools.partial):  # a methodcaller with keywords
        return (*made.args, *args), tuple(made.keywords.items())
    return args, ()


def build_recipe(t: Space, real: Any, source: guards.Source) -> VariableTracker:
    """An `operator.itemgetter` and its kin, by the constants it was made with."""
    t.guard(source, guards.TypeIs(type(real)))
    args, kwargs = recipe_of(real)
    if not all(type(value) in ATOMS for value in (*args, *dict(kwargs).values())):
        return build_object(t, real, source)
    t.guard(guards.CallSource(recipe_of, source), guards.Equals((args, kwargs)))
    named = {name: k.ConstantTracker(value) for name, value in kwargs}
    return k.RecipeTracker(type(real), [k.ConstantTracker(value) for value in args], named)


def build_iterator(t: Space, real: Any, source: guards.Source) -> VariableTracker:
    found: VariableTracker = _iterator.build(t, real, source)
    return found


def _iterator_classes() -> list[type]:
    """Builtin iterators and dict views, whose state can be read."""
    dicts: list[Any] = [{}, {}.values(), {}.items(), collections.OrderedDict()]
    made: list[Any] = [[], (), "", "é", b"", range(0), range(1 << 70), set(), *dicts]
    reversible: list[Any] = [[], {}, {}.values(), {}.items()]
    backwards = [reversed(x) for x in reversible]
    classes = [
        *map(type, map(iter, made)),
        *map(type, backwards),
        reversed,
        zip,
        map,
        filter,
        enumerate,
    ]
    return [*classes, *(view for views in VIEW_CLASSES.values() for view in views)]


_EXACT: tuple[tuple[Iterable[type], Builder], ...] = (
    (ATOMS, build_atom),
    (VALUES, build_value),
    (SINGLETONS, build_singleton),
    (PATHS, build_path),
    ((types.BuiltinFunctionType,), build_builtin_function),
    ((types.MethodWrapperType,), build_method_wrapper),
    (_iterator_classes(), build_iterator),
    ((operator.itemgetter, operator.attrgetter, operator.methodcaller), build_recipe),
    ((types.FunctionType,), build_function),
    ((types.MethodType,), build_method),
    ((super,), build_super),
    ((types.CellType,), build_cell),
    ((types.MappingProxyType,), build_mappingproxy),
    ((weakref.ref, weakref.KeyedRef), build_weakref),
)
_WITH_SUBCLASSES: tuple[tuple[Iterable[type], Builder], ...] = (
    ((torch.Tensor,), build_tensor),
    (() if NUMPY is None else (NUMPY.ndarray,), build_array),
    ((types.ModuleType,), build_by_identity),
    ((enum.Enum,), build_enum),
    ((dict,), build_dict),
    ((set, frozenset), build_set),
    ((BaseException,), build_exception),
    ((functools.partial,), build_partial),
    (
        (torch._ops.OpOverload, torch._ops.OpOverloadPacket, torch._ops.HigherOrderOperator),
        build_by_identity,
    ),
)
builders = BuilderTable()
for _classes, _builder in _EXACT:
    builders.by_class.handles(*_classes)(_builder)
for _classes, _builder in _WITH_SUBCLASSES:
    builders.by_base.handles(*_classes)(_builder)
_of_no_object = [cls for cls in BY_IDENTITY if cls not in builders.by_class]
builders.by_class.handles(*_of_no_object)(build_by_identity)
