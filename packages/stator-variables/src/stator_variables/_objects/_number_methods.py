"""Operators of numbers as methods, and comparisons of other constants: folded, else declined."""

from collections.abc import Iterator, Sequence
from typing import Any

from stator_bytecode import OPERATOR_NAMES, Result

from stator_variables._objects import _number
from stator_variables._objects._method_table import COMPARISONS
from stator_variables._objects._tuple import TupleTracker
from stator_variables._space import Space
from stator_variables._tracker import MISSING, Args, FunctionTable, Kwargs, VariableTracker
from stator_variables._trackers import NOT_IMPLEMENTED, ConstantTracker

handlers = FunctionTable("number")
_NUMBERS = (int, float, complex)  # each takes the ones before it
_SLOTS = (*OPERATOR_NAMES.values(), "divmod")
_BINARY = (*_SLOTS, *(f"r{name}" for name in _SLOTS), "eq", "ne", "lt", "le", "gt", "ge")


def _methods(classes: Sequence[type], names: Sequence[str]) -> Iterator[Any]:
    return (vars(cls)[name] for cls in classes for name in names if name in vars(cls))


@handlers.handles_each(_methods((*_NUMBERS, bool), [f"__{name}__" for name in _BINARY]))
def operate(t: Space, args: Args, kwargs: Kwargs, of: Any) -> Result:
    if (found := t.fold(of, args, kwargs)) is not MISSING:
        return found
    cls = of.__objclass__
    if issubclass(args[0].cls, cls) and len(args) == 2:
        accepted = _NUMBERS[: _NUMBERS.index(cls) + 1] if cls in _NUMBERS else int
        return (
            _with_other(t, of.__name__.strip("_"), *args)
            if issubclass(args[1].cls, accepted)
            else NOT_IMPLEMENTED
        )
    raise t.unsupported("bad-arguments", f"a call of {of.__qualname__} that it does not accept")


def _with_other(t: Space, name: str, left: VariableTracker, right: VariableTracker) -> Any:
    left, right = _plain(left), _plain(right)
    known = all((vt.is_symbolic or vt.is_known) for vt in (left, right))
    symbol = _SYMBOLS.get(name) or _SYMBOLS.get(name[1:])
    if known and symbol is not None and (left.is_symbolic or right.is_symbolic):
        run = t.compare if symbol in COMPARISONS else t.binary
        return run(symbol, left, right) if name in _SYMBOLS else run(symbol, right, left)
    if known:
        operands = [_number.as_constant(t, vt) for vt in (left, right)]
        found = t.fold(getattr(left.cls, f"__{name}__"), operands, {})
        if found is not MISSING:
            return found
    raise t.unsupported(
        "number-object", f"an operator of a {right.cls.__name__} that is not known while tracing"
    )


def _plain(vt: VariableTracker) -> VariableTracker:
    """A constant of a subclass (an IntEnum member) as the number that the operators of the builtin
    class see."""
    if (value := vt.constant()) is MISSING or type(value) in (bool, *_NUMBERS):
        return vt
    return ConstantTracker(int.__int__(value) if isinstance(value, int) else float.__float__(value))


_SYMBOLS = {name: symbol for symbol, name in OPERATOR_NAMES.items()}
_SYMBOLS |= {name.strip("_"): symbol for symbol, (name, *_) in COMPARISONS.items()}


@handlers.handles_each(
    _methods(
        (str, bytes, range, slice, type(None)),
        [name for name, *_ in COMPARISONS.values()],
    )
)
def compare(t: Space, args: Args, kwargs: Kwargs, of: Any) -> Result:
    if (found := t.fold(of, args, kwargs)) is not MISSING:
        return found
    if of.__objclass__ is slice and all(vt.cls is slice for vt in args):
        sides = [TupleTracker(_bounds(vt)) for vt in args]
        return t.compare(_SYMBOLS[of.__name__.strip("_")], *sides)
    if issubclass(args[1].cls, of.__objclass__):
        raise t.unsupported("number-object", f"a comparison of a {args[1].cls.__name__}")
    return NOT_IMPLEMENTED


def _bounds(vt: Any) -> list[Any]:
    if (value := vt.constant()) is MISSING:
        return [*vt.parts]
    return [*map(ConstantTracker, (value.start, value.stop, value.step))]
