"""Tensor operations as nodes: the recorded functions, and conversion between trackers and nodes."""

import enum
import operator
from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any

import torch
from stator_bytecode import Result, Unsupported
from stator_guards import Equals, SizeSource
from torch import SymBool, SymFloat, SymInt

from stator_variables._handler_keys import READ_OF_NUMBER
from stator_variables._objects import _number, _number_of_numpy
from stator_variables._objects._dict import DictTracker
from stator_variables._objects._list import ListTracker
from stator_variables._objects._plain_value import plain_value
from stator_variables._objects._tuple import SequenceTracker, TupleTracker
from stator_variables._pure import NUMBERS, NUMPY, is_number_of_numpy
from stator_variables._space import Space
from stator_variables._tensors import _wrappers
from stator_variables._tensors._global_mode import GlobalModes
from stator_variables._tensors._indexing_mode import depth_of_indexing
from stator_variables._tensors._jagged_parts import note_parts
from stator_variables._tensors._recorded_functions import TENSOR_PYTHON_METHODS
from stator_variables._trace._graph import GraphValue
from stator_variables._trace._overrides import Overrides
from stator_variables._tracker import MISSING, Args, Kwargs, VariableTracker, is_a
from stator_variables._trackers import (
    ArrayTracker,
    BuiltinTracker,
    ClassTracker,
    ConstantTracker,
    NumberTracker,
    ScalarTracker,
    SliceTracker,
    TensorTracker,
)

METADATA = frozenset(
    "size dim ndimension numel nelement stride is_contiguous is_floating_point is_complex "
    "element_size storage_offset get_device is_signed is_conj is_neg is_inference is_sparse_csr "
    "__len__ is_same_size has_names is_pinned".split()
)
"""Tensor methods that only read metadata: answered from the fake tensor, no node."""


def call_recorded(t: Space, target: object, args: Args, kwargs: Kwargs) -> Result:
    if getattr(target, "__name__", "") in METADATA and args and is_a(args[0], TensorTracker):
        return read_metadata(t, target, args, kwargs)
    return record(t, node_target(target), args, kwargs)


def node_target(target: Any) -> object:
    """Return the target of a node: for a method of tensors its name."""
    is_method = (
        getattr(target, "__objclass__", None) is torch._C.TensorBase
        or target in TENSOR_PYTHON_METHODS
    )
    return target.__name__ if is_method else target


def record(t: Space, target: object, args: Args, kwargs: Kwargs | None = None) -> Result:
    """Record one operation; the Result is a tracker of what it gives."""
    kwargs = dict(kwargs or {})
    if "generator" in kwargs:
        result = t.call_with_generator(target, args, kwargs)
        if result is not MISSING:
            return result
    if target in (torch.tensor, torch.as_tensor) and _symbolic_content(
        args[0] if args else kwargs.get("data")
    ):
        target = torch._refs.tensor  # the C function reads the numbers
    if target == "new" and not kwargs and len(args) == 2 and args[1].cls is torch.Size:
        target = "new_empty"  # a size is a tuple in the graph, and a tuple is content to `new`

    if (
        target in _SETTING
        and is_number_of_numpy(args[-1].cls)
        and not issubclass(args[-1].cls, _SET)
    ):
        raise t.unsupported(
            "operator-error", f"an item set to a {args[-1].cls.__name__}, which torch refuses"
        )
    if target in _SUBSCRIPTS:
        args = [args[0], _without_arrays(args[1]), *args[2:]]
    # which was not called
    if t.state(Overrides).modes and not (
        is_in_graph(t, *args) and all(map(is_operator_operand, args))
    ):
        raise t.unsupported("mode-value", "an operation under a mode for every function of torch")
    return record_without_modes(t, target, args, kwargs)


_SETTING = (operator.setitem, "__setitem__")
_SUBSCRIPTS = (operator.getitem, "__getitem__", *_SETTING)
_SET = (float, complex, *(() if NUMPY is None else (NUMPY.integer,)))
"""Classes of NumPy numbers that `x[0] = number` accepts (`THPVariable_setitem`)."""


def _without_arrays(key: Any) -> Any:
    """Return a subscript with the tensors over the memory of arrays.

    An array of one position, or a mask, has another meaning and stays.
    """
    if is_a(key, TupleTracker):
        return TupleTracker(list(map(_without_arrays, key.items))) if key.cls is tuple else key
    is_index = is_a(key, ArrayTracker) and not key.flipped and key.tensor.example.dim()
    return key.tensor if is_index and key.tensor.example.dtype in (torch.int64, torch.bool) else key


def is_in_graph(t: Space, *vts: VariableTracker) -> bool:
    """Return True if an operation on them is a node, and not intercepted by a mode."""
    heard = t.state(Overrides).modes and any(is_a(vt, TensorTracker) for vt in vts)
    return not heard and any(is_a(vt, TensorTracker | NumberTracker) for vt in vts)


def record_without_modes(t: Space, target: object, args: Args, kwargs: Kwargs) -> Any:
    """Record a call that torch does not dispatch to modes."""
    if t.state(GlobalModes).is_sealed:
        raise t.unsupported(
            "mode-value", "an operator after state that kernels read was set between operators"
        )
    if getattr(kwargs.get("out"), "is_new", False):
        raise t.unsupported("graph-result", "an operator whose `out` is a parameter made here")
    plain = [argument(t, arg) for arg in args]
    named = {name: argument(t, arg) for name, arg in kwargs.items()}

    try:
        reads = t.policy.unbacked_numbers
        if reads and target == "item" and _is_computed_with(t):
            traced = t.graph.read_number(plain[0])
        else:
            traced = t.graph.call(target, plain, named, reads_numbers=reads)
    except Unsupported:
        if not any(map(_is_undecided, (*args, *kwargs.values()))):
            raise
        return record_without_modes(
            t, target, decided(t, args), dict(zip(kwargs, decided(t, kwargs.values()), strict=True))
        )

    for state in t.states.of_operators:
        state.check_operator(t, traced)
    _wrappers.refuse_write(t, traced.node.meta.get("writes", ()), [*args, *kwargs.values()])
    return from_traced(t, traced, [*args, *kwargs.values()])


def _is_computed_with(t: Space) -> bool:
    """Return True if the number that is read from a tensor is only computed with."""
    handler = t.handlers.get(READ_OF_NUMBER)
    return handler is not None and bool(handler(t, [], {}))


def _is_undecided(vt: VariableTracker) -> bool:
    """Return True for a symbolic bool; most operators need a real one (`is_causal=n > 1`)."""
    return is_a(vt, NumberTracker) and vt.cls is bool


def decided(t: Space, vts: Iterable[Any]) -> list[Any]:
    """The same with symbolic bools as constants."""
    return [ConstantTracker(_number.specialised(t, vt)) if _is_undecided(vt) else vt for vt in vts]


def _symbolic_content(vt: Any) -> bool:
    """Return True for a symbolic number, or a nested list with one inside."""
    if is_a(vt, SequenceTracker):
        return any(map(_symbolic_content, vt.items))
    return is_a(vt, NumberTracker | ScalarTracker) and vt.cls is not bool


_OPERANDS = (
    TensorTracker,
    NumberTracker,
    ConstantTracker,
    SequenceTracker,
    SliceTracker,
    DictTracker,
)


def is_operand(vt: VariableTracker) -> bool:
    """Return True if the node of a function in Python may take it.

    The function is interpreted for anything else: a module, or a number of NumPy, which it may
    distinguish from one of Python.
    """
    parts = vt.items if is_a(vt, SequenceTracker) else [vt]
    is_distinguished = any(is_number_of_numpy(part.cls) for part in parts)
    return is_a(vt, (*_OPERANDS, ClassTracker, BuiltinTracker)) and not is_distinguished


def operator_error(t: Space, error: Exception) -> Unsupported:
    """Return the refusal of an operator that raised on fake operands: it runs and raises
    natively."""
    first_line = str(error).partition("\n")[0]  # below it there may be a stack of C++
    return t.unsupported(
        "operator-error", f"an operator that raises {type(error).__name__}: {first_line}"
    )


def argument(t: Space, vt: VariableTracker) -> Any:
    """Return the form of a tracker in the graph: nested GraphValues and constants."""
    form = vt.in_graph(t, partial(argument, t))
    if form is not MISSING:
        return form
    if (plain := plain_value(t, vt)) is not vt:
        return argument(t, plain)
    raise t.unsupported(
        "graph-argument", f"a {vt.cls.__qualname__} as an argument of a tensor operation"
    )


def bound_of_slice(t: Space, part: VariableTracker) -> VariableTracker:
    """Return the number of a tensor that bounds a slice, so that its symbol is one of the graph."""
    return record(t, "item", [part]) if is_a(part, TensorTracker) else part


def number_of_array(t: Space, vt: VariableTracker) -> Any:
    """Return the number that an array is for operators; the array itself where it is none."""
    return _number_of_numpy.number_of_array(t, vt, _number_of_numpy.FLOATS)


def from_traced(t: Space, traced: GraphValue, operands: Sequence[Any] = ()) -> Any:
    """Return the tracker of a node's value; of a returned operand it is the operand's own."""
    if isinstance(example := traced.example, torch.Tensor):
        for operand in operands:
            for vt in operand.items if is_a(operand, SequenceTracker) else [operand]:
                if is_a(vt, TensorTracker) and _is_example(vt, example):
                    return vt
        vt = TensorTracker(traced, _wrappers.class_of(t, example))
        note_parts(t, example, operands)
        if _wrappers.stays_in_graph(example):
            vt.begun = t.machine.save()
        return vt
    if isinstance(example, SymInt | SymFloat | SymBool):
        return _of_moderate_size(t, number(t, traced), operands)

    if isinstance(example, tuple | list):
        parts = [from_traced(t, t.graph.project(traced, i), operands) for i in range(len(example))]
        kind = TupleTracker if isinstance(example, tuple) else ListTracker
        return kind(parts, type(example))
    if type(example) is dict and all(type(key) in _CONSTANT_RESULTS for key in example):
        named = {key: from_traced(t, t.graph.project(traced, key), operands) for key in example}
        return DictTracker(
            dict,
            {key: (ConstantTracker(key), part) for key, part in named.items()},
            complete=True,
        )
    # a storage, for example: that of the fake, which no object of the program has
    if type(example) not in _CONSTANT_RESULTS:
        raise t.unsupported(
            "graph-result", f"an operation that gives a {type(example).__qualname__}"
        )
    return ConstantTracker(example)


def _is_example(vt: TensorTracker, example: object) -> bool:
    return vt.example is example or (
        vt.connected is not None and vt.connected[1].example is example
    )


_CONSTANT_RESULTS: frozenset[type] = frozenset(
    {type(None), type(NotImplemented), bool, int, float, complex, str}
)
_CONSTANT_RESULTS |= {torch.dtype, torch.device, torch.layout, torch.memory_format}


MEASURED, DEEP, LARGE = 8, 40, 200
"""After so many operations an expression is measured; past this depth or size sympy recurses or
takes too long."""


def _of_moderate_size(t: Space, vt: VariableTracker, operands: Sequence[Any]) -> VariableTracker:
    """A number whose expression grew too large is a constant from here on."""
    if is_a(vt, NumberTracker):
        vt.steps = 1 + max(
            (each.steps for each in operands if is_a(each, NumberTracker)), default=0
        )
        if vt.steps > MEASURED:
            depth, size = _measured(vt.example.node.expr, {})
            if depth > DEEP or size > LARGE:
                return ConstantTracker(_number.specialised(t, vt))
            if size < MEASURED:
                vt.steps = 0
    return vt


def _measured(expression: Any, known: dict[Any, tuple[int, int]]) -> tuple[int, int]:
    """Depth and size of the tree, in which a part counts as often as it stands there."""
    if expression not in known:
        parts = [_measured(part, known) for part in expression.args]
        known[expression] = (
            1 + max((depth for depth, _ in parts), default=0),
            1 + sum(size for _, size in parts),
        )
    return known[expression]


def number(t: Space, traced: GraphValue) -> VariableTracker:
    """A symbolic number, or a constant where the symbol turned out to be one."""
    kinds = {SymInt: int, SymFloat: float, SymBool: bool}
    example = traced.example
    if isinstance(example, SymInt) and (known := example.node.maybe_as_int()) is not None:
        return ConstantTracker(known)
    return NumberTracker(traced, kinds[type(example)])


def read_metadata(t: Space, target: Any, args: Args, kwargs: Kwargs) -> Any:
    """Metadata as constants where it is static; a node where it is symbolic."""
    plain = [_example(t, arg) for arg in args]
    named = {name: _example(t, arg) for name, arg in kwargs.items()}
    try:
        value = target(*plain, **named)
    except (RuntimeError, TypeError, ValueError, ArithmeticError, IndexError) as error:
        raise operator_error(t, error) from error
    if target.__name__ == "storage_offset":
        _guard_offset(t, args[0])
    return metadata_value(t, value, target.__name__, args, kwargs)


def _guard_offset(t: Space, vt: TensorTracker) -> None:
    """Guard the offsets of the inputs over a storage: static tensors may lie anywhere in it."""
    storage = vt.example.untyped_storage()._cdata
    for found in [
        each
        for each in t.heap.trackers.values()
        if type(each) is TensorTracker and each.data is MISSING
    ]:
        source, offset = found.source, found.example.storage_offset()
        if (
            source is not None
            and type(offset) is int
            and found.example.untyped_storage()._cdata == storage
        ):
            t.guard(SizeSource(source, "storage_offset", 0), Equals(offset))


def metadata_value(t: Space, value: object, name: str, args: Args, kwargs: Kwargs) -> Result:
    if isinstance(value, tuple):
        items = [
            record(t, name, [args[0], ConstantTracker(index)])
            if isinstance(item, SymInt)
            else ConstantTracker(item)
            for index, item in enumerate(value)
        ]
        return TupleTracker(items, type(value))
    if isinstance(value, SymInt | SymBool | SymFloat):
        return record(t, name, args, kwargs)
    return ConstantTracker(value)


def _example(t: Space, vt: VariableTracker) -> object:
    value = vt.shown if is_a(vt, TensorTracker) else argument(t, vt)
    return value.example if isinstance(value, GraphValue) else value


def record_item(t: Space, vt: TensorTracker, key: VariableTracker) -> Result:
    """Record `tensor[key]`. Under the mode for functions of positions, a number may be an index."""
    key = _number_of_numpy.number_of(t, key)
    keys = key.items if is_a(key, TupleTracker) else [key]
    if depth_of_indexing() and all(is_a(part, TensorTracker) or _is_int(part) for part in keys):
        where = {
            "dtype": ConstantTracker(torch.int64),
            "device": ConstantTracker(vt.example.device),
        }
        indices = [
            record(t, torch.tensor, [part], where) if _is_int(part) else part for part in keys
        ]
        return record(t, torch.ops.aten.index, [vt, ListTracker(indices)])
    if is_a(key, NumberTracker) and key.cls is int:
        return record(t, torch.select, [vt, ConstantTracker(0), key])
    return record(t, operator.getitem, [vt, key])


def _is_int(vt: VariableTracker) -> bool:
    return is_a(vt, ConstantTracker | NumberTracker) and issubclass(vt.cls, int)


def is_operator_operand(vt: VariableTracker) -> bool:
    """Return True for a tensor or a number, of NumPy too, that is no member of an enumeration."""
    if is_a(vt, ConstantTracker):
        return issubclass(vt.cls, (int, float, complex, *NUMBERS)) and not issubclass(
            vt.cls, enum.Enum
        )
    return is_a(vt, TensorTracker | NumberTracker)
