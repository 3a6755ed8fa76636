"""Numbers and arrays of NumPy, where it is installed. Functions of numbers that are known are
called; the others, and what works on arrays, is what `_tensors/_arrays.py` makes of it.
"""

import functools
import operator
from collections.abc import Callable
from typing import Any

import torch
from stator_bytecode import HandlerTable, Result

from stator_variables._applevel import _methods as app
from stator_variables._library import _array_resize
from stator_variables._objects import _new_values, _number, _number_of_numpy
from stator_variables._objects._list import ListTracker
from stator_variables._objects._method_table import app_level
from stator_variables._objects._tuple import SequenceTracker, TupleTracker
from stator_variables._pure import DTYPES, NUMBERS, NUMPY
from stator_variables._runtime._message_filter import filtered
from stator_variables._space import Space
from stator_variables._tensors import (
    _array_conversions,
    _array_sample,
    _array_tensors,
    _arrays,
    _torch_calls,
)
from stator_variables._tensors._arrays import layer
from stator_variables._tensors._arrays_beside_tensors import is_tensor, wrapped
from stator_variables._tracker import MISSING, Args, Kwargs, VariableTracker, is_a
from stator_variables._trackers import (
    NONE,
    ArrayTracker,
    ClassTracker,
    ConstantTracker,
    NumberTracker,
    TensorTracker,
    is_none,
)

handlers: HandlerTable[Any, Any] = HandlerTable("NumPy").merged_with(_array_conversions.handlers)
_REDUCTIONS = (
    "prod sum mean max min amax amin std var median round clip dot ndim size "
    "argmax argmin isclose log2"
)

FUNCTIONS = """
abs absolute add arccos arccosh arcsin arcsinh arctan arctan2 arctanh bitwise_and bitwise_or
bitwise_xor ceil conj conjugate copysign cos cosh deg2rad degrees divide divmod equal exp exp2 expm1
fabs floor floor_divide fmax fmin fmod gcd greater greater_equal hypot invert isfinite isinf isnan
lcm ldexp left_shift less less_equal log log10 log1p log2 logaddexp logaddexp2 logical_and
logical_not logical_or logical_xor matmul maximum minimum modf multiply negative nextafter not_equal
positive power rad2deg radians remainder right_shift rint sign signbit sin sinh sqrt square subtract
tan tanh true_divide trunc all amax amin any append arange argmax argmin argsort around array
array_split asarray ascontiguousarray atleast_1d atleast_2d atleast_3d average bincount
broadcast_arrays broadcast_to clip column_stack concatenate copy copyto corrcoef count_nonzero cov
cumprod cumsum diag diag_indices diag_indices_from diagflat diagonal diff dot dsplit dstack einsum
empty empty_like expand_dims eye fill_diagonal flatnonzero flip fliplr flipud full full_like
geomspace gradient hsplit hstack identity imag indices inner isclose kron linspace logspace max mean
median meshgrid min moveaxis nan_to_num ndim nonzero ones ones_like outer percentile prod ptp put
put_along_axis quantile ravel real repeat reshape resize roll rollaxis rot90 round searchsorted sinc
sort split squeeze stack std sum swapaxes take take_along_axis tensordot tile trace transpose tri
tril tril_indices triu triu_indices unique vander var vdot vsplit vstack where zeros zeros_like
linalg.cholesky linalg.cond linalg.det linalg.eigvalsh linalg.inv linalg.matrix_power
linalg.matrix_rank linalg.multi_dot linalg.norm linalg.pinv linalg.solve fft.fft fft.ifft fft.rfft
fft.irfft fft.fft2 fft.ifft2 fft.fftfreq fft.fftshift
""".split()
"""Functions that NumPy and the layer have under one name, with equal results: a test compares them
on a table of arrays."""

METHODS = """
all any argmax argmin argsort astype clip conj conjugate copy cumprod cumsum diagonal dot fill
flatten max mean min nonzero prod put ravel repeat reshape round searchsorted sort squeeze std sum
swapaxes take trace transpose var view __abs__
""".split()


def _sign(x: object) -> object:
    return layer.where(layer.isnan(x), x, layer.sign(x))


def _argsort(a: object, axis: int | None = -1, kind: str | None = None) -> object:
    if kind not in (
        "stable",
        "mergesort",
    ):  # where equal items go is up to the machine, and to NumPy
        raise NotImplementedError("an order that is not stable")
    return layer.argsort(a, axis, kind)


def _round(a: Any, decimals: int = 0) -> Any:
    if decimals and not a.tensor.is_floating_point():
        raise NotImplementedError("decimals of integers")
    return layer.round(a, decimals)


def _clip(a: object, a_min: object = None, a_max: object = None, out: object = None) -> Any:
    kind = layer.asarray(a).tensor.dtype
    bounds = [bound for bound in (a_min, a_max) if type(bound) is int]
    if not kind.is_floating_point and any(
        not torch.iinfo(kind).min <= b <= torch.iinfo(kind).max for b in bounds
    ):
        raise NotImplementedError("a bound that the dtype has not")
    return layer.clip(a, a_min, a_max, out=out)


def _take(a: object, indices: object, axis: int | None = None) -> object:
    # fakes have no other layout of the result
    return layer.take(a, layer.ascontiguousarray(indices), axis)


def _take_along_axis(arr: Any, indices: object, axis: int) -> object:
    # torch takes indices modulo the size; indexing checks them
    return layer.take_along_axis(arr, layer.arange(arr.shape[axis])[indices], axis)


def _put(a: Any, indices: object, values: object) -> None:
    places, given = (layer.asarray(part).tensor.flatten() for part in (indices, values))
    if places.numel() != given.numel():
        raise NotImplementedError("values that are repeated")
    if not torch.can_cast(places.dtype, torch.int64):
        raise NotImplementedError("indices that are no integers")
    a.tensor.put_(places.long(), given.to(a.tensor.dtype))


def _products(name: str) -> Any:
    def product(a: object, b: object) -> object:
        if not all(isinstance(operand, layer.ndarray) and operand.ndim for operand in (a, b)):
            raise NotImplementedError("a product with a number, which NumPy leaves to BLAS")
        return getattr(layer, name)(a, b)

    return product


def _stacked(value: Any) -> object:
    """A sequence that holds arrays as one array."""
    holds_arrays = type(value) in (list, tuple) and any(map(_is_stackable, value))
    return layer.stack([_stacked(item) for item in value]) if holds_arrays else value


def _is_stackable(value: object) -> bool:
    return isinstance(value, layer.ndarray) or _stacked(value) is not value


def _array(obj: object, dtype: object = None, **options: object) -> object:
    return layer.array(_stacked(obj), dtype, **options)


def _asarray(obj: object, dtype: object = None, **options: object) -> object:
    return layer.asarray(_stacked(obj), dtype, **options)


_OWN = {
    "array": _array,
    "asarray": _asarray,
    "sign": _sign,
    "argsort": _argsort,
    "round": _round,
    "around": _round,
    "take": _take,
    "put": _put,
    "take_along_axis": _take_along_axis,
    "clip": _clip,
}
_OWN |= {
    "remainder": _arrays.remainder,
    "divmod": lambda a, b: (layer.floor_divide(a, b), _arrays.remainder(a, b)),
}
_OWN |= {name: _products(name) for name in ("dot", "inner")}
"""Replacements of functions of the layer that differ from NumPy's."""


def _named(module: object, name: str) -> object:
    """None where this release of NumPy has no such function."""
    for part in name.split("."):
        module = getattr(module, part, None)
    return module


def _substitute(owner: object, name: str) -> object:
    return _OWN.get(name) or _named(owner, name)


def _known(t: Space, vt: VariableTracker) -> Any:
    """A number, a dtype, or a tuple of them."""
    vt = _number.as_constant(t, vt)
    return vt.value if is_a(vt, ClassTracker) else vt.constant()


def _call(t: Space, args: Args, kwargs: Kwargs) -> Any:
    """A function of NumPy that is an object of a class of its own."""
    function, *operands = args
    if function.real is MISSING:
        raise t.unsupported("builtin", "a function of NumPy's that was made here")
    return _function(t, operands, kwargs, of=function.real)


def _function(t: Space, args: Args, kwargs: Kwargs, of: Any) -> Any:
    """Call a function on numbers alone; compute one that takes or gives an array."""
    if (folded := _folded(t, of, args, kwargs)) is not MISSING:
        return folded
    if of in _OF_METADATA and len(args) == 1 and is_a(args[0], ArrayTracker) and not kwargs:
        return _FIELDS[of.__name__](t, args, kwargs)
    if of in _OF_SIZES and (made := _of_size(t, _OF_SIZES[of], args, kwargs)) is not MISSING:
        return made
    if of not in _SUBSTITUTES:
        raise t.unsupported("builtin", f"a call of numpy.{getattr(of, '__name__', '?')}")
    operands = [_as_array(t, of, vt, kwargs) for vt in args]
    substitute = _substitute(layer, _SUBSTITUTES[of])
    if isinstance(of, NUMPY.ufunc) and not kwargs and any(map(is_tensor, args)):
        return wrapped(t, args, lambda given: _arrays.compute(t, of, substitute, given, {}))
    return _arrays.compute(t, of, substitute, operands, kwargs)


def _is_symbolic_size(vt: VariableTracker) -> bool:
    parts = vt.items if is_a(vt, SequenceTracker) else [vt]
    return all(part.cls is int for part in parts) and any(
        is_a(part, NumberTracker) for part in parts
    )


def _of_size(t: Space, make: object, args: Args, kwargs: Kwargs) -> Any:
    """An array of a symbolic size, of which nothing hangs on the number; `ShapeEnv` guards that it
    is a size."""
    if len(args) != 1 or kwargs.keys() - {"dtype"} or not _is_symbolic_size(args[0]):
        return MISSING
    usual, dtype = int if make is torch.arange else float, kwargs.get("dtype", NONE)
    given = usual if is_none(dtype) else _known(t, dtype)
    known = isinstance(given, type | NUMPY.dtype)
    wanted = DTYPES.get(NUMPY.dtype(given)) if known else None
    if wanted is None or (usual is int and wanted is not torch.int64):
        return MISSING
    named = {"dtype": ConstantTracker(wanted), "device": ConstantTracker(torch.device("cpu"))}
    return ArrayTracker(_torch_calls.record_without_modes(t, make, args, named), NUMPY.ndarray)


def _folded(t: Space, real: Any, args: Args, kwargs: Kwargs) -> Any:
    if not isinstance(real, NUMPY.ufunc) and real not in _FOLDED:
        return MISSING
    if not kwargs:
        found = _number_of_numpy.computed(t, real, args, is_of_numpy=True)
        if found is not MISSING:
            return found
    values, named = (
        [_known(t, vt) for vt in args],
        {name: _known(t, vt) for name, vt in kwargs.items()},
    )
    if any(value is MISSING or value is NUMPY.ndarray for value in (*values, *named.values())):
        return MISSING

    try:
        with filtered("error", ""):
            result = real(*values, **named)
    except Exception as error:  # natively it raises in its own words, and warns
        raise t.unsupported("builtin", f"numpy.{real.__name__}(): {error}") from None
    return ConstantTracker(result) if type(result) in (*NUMBERS, int, float, bool) else MISSING


def _as_array(t: Space, real: object, vt: VariableTracker, kwargs: Kwargs) -> Any:
    """The two functions that see a tensor as an array over its memory, or a copy of it; also one in
    a sequence."""
    if real not in (NUMPY.array, NUMPY.asarray):
        return vt
    if is_a(vt, TupleTracker | ListTracker) and vt.cls in (tuple, list):
        items = [_as_array(t, real, item, kwargs) for item in vt.items]
        kept = all(map(operator.is_, items, vt.items))
        return vt if kept else type(vt)(items, vt.cls)
    if not is_a(vt, TensorTracker):
        return vt
    if real is NUMPY.array and not is_none(kwargs.get("copy")) and _warns_of_copies():
        raise t.unsupported(
            "numpy", "a copy of a tensor, of which NumPy warns: `Tensor.__array__` has no `copy`"
        )
    return _array_tensors.array_of(t, vt)


@functools.cache
def _warns_of_copies() -> bool:
    try:
        with filtered("error", ""):
            NUMPY.array(torch.empty(0))
    except Warning:
        return True
    return False


def _method(t: Space, args: Args, kwargs: Kwargs, of: Any) -> Result:
    if (folded := t.fold(of, args, kwargs)) is not MISSING:
        return folded
    return _arrays.compute(t, of, _substitute(layer.ndarray, of.__name__), args, kwargs)


def _of_dtypes(t: Space, args: Args, kwargs: Kwargs, of: object) -> VariableTracker:
    """A dtype made of its name or its class, or compared with them."""
    values = [_known(t, vt) for vt in args]
    if kwargs or MISSING in values:
        raise t.unsupported("numpy", "a dtype of what is not known")
    return _new_values.computed(t, of, *values)


def _view(name: str) -> Any:
    return lambda t, args, kwargs: _arrays.operate(t, operator.attrgetter(name), args[0])


def _shape(t: Space, args: Args, kwargs: Kwargs) -> TupleTracker:
    tensor = args[0].tensor
    sizes = _torch_calls.metadata_value(t, tensor.example.shape, "size", [tensor], {})
    return TupleTracker(sizes.items)


def _length(t: Space, args: Args, kwargs: Kwargs) -> VariableTracker:
    if not args[0].tensor.example.dim():
        raise t.unsupported("numpy", "the length of an array without dimensions")
    return _shape(t, args, kwargs).items[0]


def _size(t: Space, args: Args, kwargs: Kwargs) -> Any:
    return _torch_calls.read_metadata(t, torch.Tensor.numel, [args[0].tensor], {})


def _byte_count(t: Space, args: Args, kwargs: Kwargs) -> Any:
    itemsize = ConstantTracker(args[0].tensor.example.itemsize)
    return app_level(t, app.product, [_size(t, args, kwargs), itemsize])


def _strides(t: Space, args: Args, kwargs: Kwargs) -> Any:
    """The steps in bytes. Those of dimensions without a second item are arbitrary."""
    tensor, flipped = args[0].tensor, args[0].flipped
    if any(size < 2 for size in tensor.example.shape):
        raise t.unsupported("numpy", "strides of an array that is shorter than two somewhere")
    steps = _torch_calls.metadata_value(t, tensor.example.stride(), "stride", [tensor], {})
    itemsize = tensor.example.itemsize
    signs = [-itemsize if i in flipped else itemsize for i in range(len(steps.items))]
    return app_level(t, app.products, [steps, TupleTracker(map(ConstantTracker, signs))])


def _metadata(read: Callable[[Any], Any]) -> Any:
    return lambda t, args, kwargs: ConstantTracker(read(args[0].tensor.example))


def _of_tensors(field: Callable[..., Any]) -> Callable[..., Any]:
    """Return a handler that reads a field of an array, if a tensor can be over its memory."""

    def read(t: Space, args: Args, kwargs: Kwargs) -> Any:
        if not is_a(args[0], ArrayTracker):
            raise t.unsupported("numpy", "an attribute of an array that no tensor can represent")
        return field(t, args, kwargs)

    return read


_FIELDS = {
    "shape": _shape,
    "size": _size,
    "nbytes": _byte_count,
    "strides": _strides,
    "__len__": _length,
    "ndim": _metadata(lambda example: example.dim()),
    "itemsize": _metadata(lambda example: example.itemsize),
    "dtype": _metadata(lambda example: _array_sample.NAMES[example.dtype]),
    "T": _view("T"),
    "real": _view("real"),
    "imag": _view("imag"),
}


if NUMBERS:
    _FOLDED = {getattr(NUMPY, name, None) for name in _REDUCTIONS.split()}
    _OF_METADATA = {NUMPY.shape, NUMPY.ndim, NUMPY.size}
    _SUBSTITUTES = {_named(NUMPY, name): name for name in FUNCTIONS}
    _SUBSTITUTES.pop(None, None)
    _OF_SIZES = {
        getattr(NUMPY, name): getattr(torch, name) for name in ("zeros", "ones", "empty", "arange")
    }
    _CALLABLE = (NUMPY.ufunc, type(NUMPY.prod))
    _OWNERS = (vars(NUMPY.ndarray), vars(NUMPY.generic))
    handlers.handles(*(kind.__call__ for kind in _CALLABLE))(_call)
    handlers.handles_each(real for real in _SUBSTITUTES if not isinstance(real, _CALLABLE))(
        _function
    )
    handlers.handles_each(owner[name] for name in METHODS for owner in _OWNERS if name in owner)(
        _method
    )
    handlers.handles_each((vars(NUMPY.dtype)["__eq__"], vars(NUMPY.dtype)["__ne__"], NUMPY.dtype))(
        _of_dtypes
    )
    handlers.handles(vars(NUMPY.ndarray)["resize"])(_array_resize.resize)
    for _name, _handler in _FIELDS.items():
        handlers.handles(vars(NUMPY.ndarray)[_name])(_of_tensors(_handler))
