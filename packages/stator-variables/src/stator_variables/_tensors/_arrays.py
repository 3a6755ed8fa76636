"""NumPy arrays: tensors that share their memory, computed with by torch's own NumPy layer,
`torch._numpy`.

Each operation runs twice. First NumPy itself runs on *samples*: arrays of the same dtypes and
sizes with arbitrary contents. The result determines the classes, sizes and strides, and the sharing
of memory. Then the layer runs on fake tensors, and each torch function that it calls becomes a
node. If the two disagree there is a break.
"""

import importlib
import operator
from collections.abc import Callable
from typing import Any

import torch
from stator_bytecode import Unsupported
from stator_guards import CallSource, Is
from torch import Tensor
from torch.overrides import TorchFunctionMode

from stator_variables._objects import _number
from stator_variables._objects._list import ListTracker
from stator_variables._objects._program_error import throw
from stator_variables._objects._tuple import TupleTracker
from stator_variables._pure import DTYPES, NUMPY, is_number_of_numpy
from stator_variables._runtime._message_filter import filtered
from stator_variables._space import Space
from stator_variables._tensors import _array_operands, _tensor_operators, _torch_calls
from stator_variables._tensors._array_sample import NAMES, hint_of, sample_of, sizes_of
from stator_variables._tensors._recorded_functions import is_recorded
from stator_variables._trace._graph import GraphValue
from stator_variables._tracker import MISSING, Args, Kwargs, VariableTracker, is_a
from stator_variables._trackers import (
    NONE,
    ArrayTracker,
    ClassTracker,
    ConstantTracker,
    NumberTracker,
    SliceTracker,
    TensorTracker,
)


class _Layer:
    """`torch._numpy`, imported when something of it is first used: importing stator is to be
    quick."""

    def __getattr__(self, name: str) -> object:
        return getattr(importlib.import_module("torch._numpy"), name)


layer: Any = _Layer()
_SUBSCRIPTS: dict[str, Any] = {"__getitem__": operator.getitem, "__setitem__": operator.setitem}
_NAMES_OF_OPERATORS = "add sub mul truediv floordiv mod pow matmul lshift rshift and or xor"
_AUGMENTED = {
    getattr(operator, f"i{name}"): getattr(
        operator, name if name not in ("and", "or") else f"{name}_"
    )
    for name in _NAMES_OF_OPERATORS.split()
}
LARGEST = 1 << 16
"""Bytes of an array that a graph may hold."""
_METADATA = frozenset(("broadcast_shapes", "__get__"))
"""Functions that are evaluated on fakes, besides metadata, without a node."""


def compute(
    t: Space,
    function: Callable[..., Any],
    substitute: object,
    args: Args,
    kwargs: Kwargs,
) -> Any:
    """Return the result of a NumPy `function`, computed by torch's `substitute` for it."""
    _refuse_error_state(t)
    step = _Step(t)
    args = _array_operands.operands(t, function, args)
    if function is operator.getitem or (function is operator.setitem and args[2] is not args[1]):
        step.key = args[1]

    try:
        expected = step.sampled(function, args, kwargs)
        made = MISSING if step.samples else step.made(expected)
        if made is not MISSING:
            return made
        step.prepare(function, args, kwargs)
        found = step.recorded(substitute, args, kwargs)
    except Unsupported:
        raise
    except IndexError as error:
        # so loops over arrays end
        if function is operator.getitem and is_a(args[1], ConstantTracker):
            for size in args[0].tensor.example.shape:
                operator.index(size)  # NumPy judged by what it is now: `ShapeEnv` guards it
            throw(IndexError, *error.args)
        raise t.unsupported("numpy", f"{_name(function)}: IndexError: {error}") from error
    # either of the two refuses: natively it raises, or works, in NumPy's own way
    except Exception as error:
        raise t.unsupported(
            "numpy", f"{_name(function)}: {type(error).__name__}: {error}"
        ) from error

    return step.result(expected, found, _name(function))


def _refuse_error_state(t: Space) -> None:
    """Reject settings of `numpy.errstate` other than warnings, which a graph cannot implement."""
    t.guard(CallSource(_calls_out), Is(_calls_out()))
    if _calls_out():
        raise t.unsupported("numpy", f"a computation under numpy.errstate({NUMPY.geterr()})")


def _calls_out() -> bool:
    return not {"ignore", "warn"}.issuperset(NUMPY.geterr().values())


def _name(function: object) -> str:
    return f"numpy.{getattr(function, '__name__', function)}"


class _Step(TorchFunctionMode):
    """One operation. As a mode: what is called on fakes is recorded."""

    def __init__(self, t: Space) -> None:
        super().__init__()
        self.t = t
        # by the id of the tracker: tracker, NumPy's own array
        self.samples: dict[int, tuple[Any, Any]] = {}
        self.traced: dict[int, GraphValue] = {}  # by the id of the fake
        # by the expression: symbolic indices and bounds of slices
        self.bounds: dict[Any, GraphValue] = {}
        self.key: VariableTracker | None = None  # of a subscript
        # by the id of the tracker: what an operand is converted to
        self.loops: dict[int, torch.dtype] = {}

    # -- NumPy -------------------------------------------------------------------------------------
    def sampled(self, function: Callable[..., Any], args: Args, kwargs: Kwargs) -> Any:
        plain = [self._plain(vt, self._sample, lambda vt: vt.value) for vt in args]
        named = {
            name: self._plain(vt, self._sample, lambda vt: vt.value) for name, vt in kwargs.items()
        }
        with (
            NUMPY.errstate(all="ignore"),
            filtered("error", ""),
        ):  # a warning of NumPy has to be issued on each call
            return function(*plain, **named)

    def _sample(self, vt: ArrayTracker) -> object:
        if id(vt) not in self.samples:
            made = sample_of(vt.tensor.example)
            if vt.flipped:
                made = NUMPY.flip(made, vt.flipped)
                made.flags.writeable = False  # what is written to it has to show elsewhere
            self.samples[id(vt)] = vt, made if vt.cls is NUMPY.ndarray else made[()]
        return self.samples[id(vt)][1]

    def _plain(
        self, vt: VariableTracker, array: Callable[[Any], Any], value: Callable[[Any], Any]
    ) -> object:
        """The argument that a tracker represents, with arrays by `array` and constants by
        `value`."""
        if is_a(vt, NumberTracker):
            is_index = vt is self.key and vt.cls is int
            if is_index and vt.example.node.hint is not None:
                return self._bound(vt, array, value)
            vt = _number.as_constant(self.t, vt)

        if is_a(vt, ArrayTracker):
            return array(vt)
        if is_a(vt, TupleTracker | ListTracker) and vt.cls in (tuple, list, torch.Size):
            parts = [self._plain(item, array, value) for item in vt.items]
            return parts if vt.cls is list else tuple(parts)
        if is_a(vt, SliceTracker):
            return slice(*(self._bound(part, array, value) for part in vt.parts))
        if is_a(vt, ConstantTracker | ClassTracker):
            return value(vt)
        raise self.t.unsupported(
            "numpy", f"a {vt.cls.__qualname__} as an argument of a function of NumPy"
        )

    def _bound(self, vt: VariableTracker, array: Callable[[Any], Any], value: Any) -> object:
        """A part of a slice: of a symbolic one the number for NumPy, for the layer its symbol."""
        if not is_a(vt, NumberTracker) or vt.cls is not int or vt.example.node.hint is None:
            return self._plain(vt, array, value)
        self.bounds[vt.example.node.expr] = vt.traced
        return vt.example if array == self._operand else vt.example.node.hint

    # -- torch -------------------------------------------------------------------------------------
    def recorded(self, substitute: Any, args: Args, kwargs: Kwargs) -> object:
        with self:
            plain = [self._plain(vt, self._operand, self._constant) for vt in args]
            named = {
                name: self._plain(vt, self._operand, self._constant) for name, vt in kwargs.items()
            }
            return substitute(*plain, **named)

    def prepare(self, function: Callable[..., Any], args: Args, kwargs: Kwargs) -> None:
        """Determine the dtypes to which NumPy converts the operands of a `ufunc`, by NumPy
        itself."""
        if (ufunc := _array_operands.ufunc_of(function)) is None:
            return
        operands = args[: ufunc.nin]
        if kwargs.keys() - {"out"} or not all(
            is_a(vt, ArrayTracker | ConstantTracker) for vt in operands
        ):
            raise self.t.unsupported(
                "numpy", f"{_name(function)} with arguments that decide how it computes"
            )

        given = [_array_operands.dtype_of(vt) for vt in operands]
        for vt, dtype in zip(
            operands, ufunc.resolve_dtypes((*given, *[None] * ufunc.nout)), strict=False
        ):
            if is_a(vt, ConstantTracker):
                # raises for an int out of the dtype's range, which some functions accept
                dtype.type(vt.value)
            self.loops[id(vt)] = DTYPES[dtype]

    def _operand(self, vt: ArrayTracker) -> object:
        example = vt.tensor.example
        self.traced[id(example)] = vt.tensor.traced
        if vt.flipped:
            example = torch.flip(example, vt.flipped)
        wanted = self.loops.get(id(vt), example.dtype)
        return layer.ndarray(example if wanted == example.dtype else example.to(wanted))

    def _constant(self, vt: Any) -> object:
        """Return a constant for the layer: a NumPy number has a dtype of its own, Python's have
        not."""
        value = vt.value
        if id(vt) in self.loops:
            return layer.ndarray(torch.tensor(_bare(value), dtype=self.loops[id(vt)]))
        if is_number_of_numpy(type(value)):
            return layer.ndarray(torch.tensor(_bare(value), dtype=DTYPES[value.dtype]))
        if isinstance(value, NUMPY.dtype) or (
            isinstance(value, type) and issubclass(value, NUMPY.generic)
        ):
            return NUMPY.dtype(value).name
        return value

    def __torch_function__(
        self, func: Any, types: object, args: Any = (), kwargs: Any = None
    ) -> object:
        name, kwargs = func.__name__, kwargs or {}
        if name == "__get__" and func.__self__.__name__ in ("T", "mT", "H", "mH", "real", "imag"):
            return self._kept(self.t.graph.attribute(self._traced(args[0]), func.__self__.__name__))
        if name in _torch_calls.METADATA or name in _METADATA or not is_recorded(func):
            return func(*args, **kwargs)
        if func in (torch.tensor, torch.as_tensor) and "dtype" not in kwargs:
            # under the default of the layer, which is NumPy's
            kwargs = {**kwargs, "dtype": func(*args).dtype}
        target = _SUBSCRIPTS.get(name) or _torch_calls.node_target(func)
        operands = [*args]
        if name in _SUBSCRIPTS and type(args[1]) is tuple and len(args[1]) == 1:
            (operands[1],) = args[1]
        if target is operator.getitem and isinstance(operands[1], torch.SymInt):
            target = torch.select  # a subscript would need the value of the symbol
            operands = [operands[0], 0, operands[1]]
        return self._kept(self.t.graph.call(target, self._traced(operands), self._traced(kwargs)))

    def _kept(self, traced: GraphValue) -> object:
        """The fake that a node gives; many of them for a node that gives many."""
        if isinstance(example := traced.example, tuple | list):
            parts = [self._kept(self.t.graph.project(traced, i)) for i in range(len(example))]
            return type(example)(parts)
        if example is None:
            return None
        if not isinstance(example, Tensor):
            raise self.t.unsupported(
                "numpy", f"a {type(example).__name__} that depends on the contents of an array"
            )
        self.traced[id(example)] = traced
        return example

    def _traced(self, value: Any) -> Any:
        """Return a structure of fakes with their graph values in place of them."""
        if isinstance(value, Tensor):
            return self.traced[id(value)]
        if isinstance(value, torch.SymInt):
            return self._size(value)
        if isinstance(value, slice):
            return slice(*map(self._traced, (value.start, value.stop, value.step)))
        if isinstance(value, dict):
            return {key: self._traced(item) for key, item in value.items()}
        return (
            type(value)(map(self._traced, value))
            if type(value) in (tuple, list, torch.Size)
            else value
        )

    def _size(self, number: Any) -> Any:
        """A symbolic bound of a slice, or a size, read from a tensor that has it."""
        if (bound := self.bounds.get(number.node.expr)) is not None:
            return bound
        for traced in [*self.traced.values()]:
            for i, size in enumerate(traced.example.shape):
                if isinstance(size, torch.SymInt) and size.node.expr == number.node.expr:
                    return self.t.graph.call("size", [traced, i], {})
        raise self.t.unsupported("numpy", f"the size {number}, which no array has")

    def made(self, expected: Any) -> Any:
        """Arrays of nothing but what is known, if they are small: the graph holds them, and copies
        them."""
        if type(expected) in (tuple, list):
            once = {id(part): self.made(part) for part in expected}
            parts = [once[id(part)] for part in expected]
            kind = TupleTracker if type(expected) is tuple else ListTracker
            return MISSING if MISSING in parts else kind(parts, type(expected))
        if (
            type(expected) is not NUMPY.ndarray
            or expected.nbytes > LARGEST
            or expected.dtype not in DTYPES
        ):
            return MISSING

        if not expected.flags.writeable or any(step < 0 for step in expected.strides):
            return MISSING
        traced = self.t.graph.call(
            "clone", [self.t.graph.install("array", torch.from_numpy(expected))], {}
        )
        return _new_array(traced, expected)

    # -- both --------------------------------------------------------------------------------------
    def result(self, expected: Any, found: Any, name: str) -> Any:
        if expected is None:
            return NONE

        if (
            type(expected) in (tuple, list)
            and isinstance(found, tuple | list)
            and len(expected) == len(found)
        ):
            kind = TupleTracker if type(expected) is tuple else ListTracker
            once = {
                id(example): self.result(example, got, name)
                for example, got in zip(expected, found, strict=True)
            }
            return kind([once[id(example)] for example in expected], type(expected))

        tensor = found.tensor if isinstance(found, layer.ndarray) else found
        if not isinstance(tensor, Tensor):
            raise self.t.unsupported("numpy", f"{name}, which gives a {type(expected).__name__}")
        for vt, sample in self.samples.values():
            if expected is sample and _same_place(tensor, vt.tensor.example):
                return vt
            if expected is sample:
                raise self.t.unsupported("numpy", f"{name}, which gives its operand")
        return self._array(expected, tensor, name)

    def _array(self, expected: Any, example: Tensor, name: str) -> ArrayTracker:
        """A new array or number, if the two agree on it."""
        is_array = type(expected) is NUMPY.ndarray
        if self.bounds:  # NumPy and torch have other strides for nothing: `ShapeEnv` guards it
            bool(example.numel())
        metadata = getattr(expected, "dtype", None), getattr(expected, "shape", None)
        if metadata[0] is None or (DTYPES.get(metadata[0]), metadata[1]) != (
            example.dtype,
            sizes_of(example.shape),
        ):
            pair = f"a {type(expected).__name__} ({metadata}), and {example.dtype}"
            detail = f"{name} gives {pair} ({sizes_of(example.shape)}) in torch's NumPy layer"
            raise self.t.unsupported("numpy", detail)

        shares = [
            _storage(vt.tensor.example) == _storage(example) for vt, _ in self.samples.values()
        ]
        agreed = [
            is_array and NUMPY.may_share_memory(expected, made) for _, made in self.samples.values()
        ]

        traced = self.traced[id(example)]
        if is_array and not _alike(expected, example):
            fixed = expected.flags.writeable and expected.flags.c_contiguous
            if any(shares) or any(agreed) or not fixed:
                raise self.t.unsupported(
                    "numpy", f"{name}, which torch's NumPy layer lays out in another way"
                )
            traced = self.t.graph.call("contiguous", [traced], {})

        if any(shares) and not any(agreed):
            traced = self.t.graph.call("clone", [traced], {})
        elif shares != agreed and example.numel():
            raise self.t.unsupported(
                "numpy", f"{name}, which gives a view where torch's NumPy layer gives a copy"
            )
        if example.is_conj() or example.is_neg():
            raise self.t.unsupported("numpy", f"{name}, which torch leaves to be done later")
        return _new_array(traced, expected)


def _new_array(traced: GraphValue, expected: Any) -> ArrayTracker:
    """A number with gradients, of `torch.compiler.wrap_numpy`, is an array: no number has any."""
    kind = NUMPY.ndarray if traced.example.requires_grad else type(expected)
    made = ArrayTracker(TensorTracker(traced, Tensor), kind)
    made.owns_memory = type(expected) is NUMPY.ndarray and expected.flags.owndata
    return made


def _same_place(one: Tensor, other: Tensor) -> bool:
    """Return True if these are the same view of the same memory."""
    places = ((_storage(x), x.dtype, x.shape, x.stride(), x.storage_offset()) for x in (one, other))
    return one is other or operator.eq(*places)


def _storage(example: Tensor) -> int:
    return example.untyped_storage()._cdata  # type: ignore[no-any-return]


def _alike(expected: Any, example: Tensor) -> bool:
    """Return True if a NumPy array is writable and has the memory layout of the fake."""
    steps = [hint_of(step) * expected.itemsize for step in example.stride()]
    same = all(
        ours == step
        for ours, step, size in zip(expected.strides, steps, expected.shape, strict=True)
        if size > 1
    )
    return bool(expected.flags.writeable and (same or not expected.size))


def _bare(value: Any) -> object:
    return value.item() if is_number_of_numpy(type(value)) else value


def _is_integral(vt: VariableTracker) -> bool:
    return is_a(vt, ArrayTracker) and NAMES[vt.tensor.example.dtype].kind in "iu"


# -- between tensors and arrays --------------------------------------------------------------------


def operate(t: Space, function: Callable[..., Any], *operands: VariableTracker) -> Any:
    """An operator or subscript with an array on one side: both worlds find out by themselves whose
    method it is."""
    if any(is_a(vt, TensorTracker) for vt in operands):
        numbers = _tensor_operators.operate(t, function, *operands)
        if numbers is not MISSING:
            return numbers
    if function in _AUGMENTED and operands[0].cls is not NUMPY.ndarray:
        function = _AUGMENTED[function]  # of numbers
    if function in (operator.pow, operator.ipow) and _is_integral(operands[1]):
        raise t.unsupported(
            "numpy", "integers to the power of integers, which NumPy refuses if one is negative"
        )
    if function is operator.getitem and (forward := _forward(operands[1])) is not None:
        return _backwards(t, operands[0], operands[1], forward)
    return compute(t, function, _OWN_OPERATORS.get(function, function), list(operands), {})


def remainder(a: object, b: object) -> object:
    """A remainder of zero has the sign of the divisor in NumPy, in torch that of the dividend."""
    found = layer.remainder(a, b)
    return (
        layer.where(found == 0, layer.copysign(found, b), found)
        if found.tensor.is_floating_point()
        else found
    )


def _remain(a: Any, b: object) -> Any:
    a[...] = remainder(a, b)
    return a


_OWN_OPERATORS: dict[Any, Callable[..., Any]] = {operator.mod: remainder, operator.imod: _remain}


_SLICES = (ConstantTracker, SliceTracker)


def _forward(key: VariableTracker) -> VariableTracker | None:
    """A key with `:` for each `::-1`, None where it has none."""
    parts = key.items if is_a(key, TupleTracker) else [key]
    turned = [is_a(part, _SLICES) and part.constant() == slice(None, None, -1) for part in parts]
    if not any(turned):
        return None
    forward = [
        ConstantTracker(slice(None)) if turn else part
        for part, turn in zip(parts, turned, strict=True)
    ]
    return TupleTracker(forward)


def _backwards(t: Space, vt: Any, key: VariableTracker, forward: VariableTracker) -> ArrayTracker:
    """A view that goes backwards, which no tensor can be: the way forward, to be turned wherever it
    is read."""
    view = operate(t, operator.getitem, vt, forward)
    step = _Step(t)
    steps = step.sampled(operator.getitem, [vt, key], {}).strides
    if vt.flipped or view.flipped or any(size < 2 for size in view.tensor.example.shape):
        raise t.unsupported("numpy", "a view of a view backwards")
    return ArrayTracker(view.tensor, view.cls, tuple(i for i, step in enumerate(steps) if step < 0))
