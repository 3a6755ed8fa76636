"""Operators of numbers and strings as methods, `divmod`, `round`, `pow`: folded on constants, else
declined."""

from collections.abc import Iterator, Sequence
from typing import Any

from stator_bytecode import HandlerTable, Result

from stator_variables import _trackers as k
from stator_variables._objects._method_table import COMPARISONS
from stator_variables._objects._tuple import TupleTracker
from stator_variables._protocols import _folding, _operators
from stator_variables._space import Space
from stator_variables._tracker import MISSING, Args, Kwargs, VariableTracker

table: HandlerTable[Any, Any] = HandlerTable("number")
_NUMBERS = (int, float, complex)  # each takes the ones before it
_SLOTS = [
    "add",
    "sub",
    "mul",
    "truediv",
    "floordiv",
    "mod",
    "pow",
    "and",
    "or",
    "xor",
    "lshift",
    "rshift",
    "divmod",
]
_BINARY = (*_SLOTS, *(f"r{name}" for name in _SLOTS), "eq", "ne", "lt", "le", "gt", "ge")


def _methods(classes: Sequence[type], names: Sequence[str]) -> Iterator[Any]:
    return (vars(cls)[name] for cls in classes for name in names if name in vars(cls))


@table.handles_each(_methods((*_NUMBERS, bool), [f"__{name}__" for name in _BINARY]))
def operate(t: Space, args: Args, kwargs: Kwargs, of: Any) -> k.ConstantTracker:
    cls = of.__objclass__
    if issubclass(args[0].cls, cls) and len(args) == 2:
        accepted = _NUMBERS[: _NUMBERS.index(cls) + 1] if cls in _NUMBERS else int
        return (
            _with_other(t, of.__name__.strip("_"), *args)
            if issubclass(args[1].cls, accepted)
            else k.NOT_IMPLEMENTED
        )
    raise t.unsupported("bad-arguments", f"a call of {of.__qualname__} that it does not accept")


def _with_other(t: Space, name: str, left: VariableTracker, right: VariableTracker) -> Any:
    left, right = _plain(left), _plain(right)
    known = all((vt.is_symbolic or vt.is_known) for vt in (left, right))
    if known and (left.is_symbolic or right.is_symbolic):
        symbol = _SYMBOLS.get(name) or _SYMBOLS.get(name[1:])
        if symbol is not None:
            operands = (left, right) if name in _SYMBOLS else (right, left)
            run = _operators.compare if symbol in COMPARISONS else _operators.binary
            return run(t, symbol, *operands)
    if known:
        found = _folding.fold_numbers(t, getattr(left.cls, f"__{name}__"), [left, right], {})
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
    return k.ConstantTracker(
        int.__int__(value) if isinstance(value, int) else float.__float__(value)
    )


_SYMBOLS = {name: symbol for symbol, (name, *_) in _operators.ARITHMETIC.items()}
_SYMBOLS |= {name.strip("_"): symbol for symbol, (name, *_) in COMPARISONS.items()}


@table.handles_each(
    _methods(
        (str, bytes, range, slice, type(None)),
        [name for name, *_ in COMPARISONS.values()],
    )
)
def compare(t: Space, args: Args, kwargs: Kwargs, of: Any) -> Any:
    if of.__objclass__ is slice and all(vt.cls is slice for vt in args):
        sides = [TupleTracker(_bounds(vt), tuple) for vt in args]
        return t.compare(_SYMBOLS[of.__name__.strip("_")], *sides)
    if issubclass(args[1].cls, of.__objclass__):
        raise t.unsupported("number-object", f"a comparison of a {args[1].cls.__name__}")
    return k.NOT_IMPLEMENTED


def _bounds(vt: Any) -> list[Any]:
    if (value := vt.constant()) is MISSING:
        return [*vt.parts]
    return [*map(k.ConstantTracker, (value.start, value.stop, value.step))]


# -- builtin functions -----------------------------------------------------------------------------
@table.handles(divmod)
def handle_divmod(t: Space, args: Args, kwargs: Kwargs) -> Result:
    if all(vt.cls in (bool, int, float) and (vt.is_symbolic or vt.is_known) for vt in args):
        return TupleTracker([t.binary(symbol, *args) for symbol in ("//", "%")], tuple)
    return _operators.slots(t, "divmod", "divmod()", args[0], args[1])


@table.handles(round)
def handle_round(t: Space, args: Args, kwargs: Kwargs) -> Result:
    digits = args[1] if len(args) > 1 else kwargs.get("ndigits", k.NONE)
    number = args[0] if args else kwargs["number"]
    given = [] if k.is_none(digits) else [digits]
    return t.call_slot(number, "__round__", given, "type {} doesn't define __round__ method")


@table.handles(pow)
def handle_pow(t: Space, args: Args, kwargs: Kwargs) -> Result:
    if len(args) == 2 and not kwargs:
        return t.binary("**", args[0], args[1])
    if (folded := _folding.fold_numbers(t, pow, args, kwargs)) is not MISSING:
        return folded
    raise t.unsupported("number-object", "pow() with three arguments that are not constants")


handlers = _folding.folding(table)
