"""Operators, unary to in-place, comparisons, truth and containment: CPython's dispatch, reflected
forms included.

`binary_op1` and `do_richcompare` (Objects/abstract.c, Objects/object.c) over trackers.
"""

import collections
import functools
import numbers
import operator
import types
from collections.abc import Callable
from typing import Any

from stator_bytecode import (
    OPERATOR_NAMES,
    OperationSteps,
    Result,
    Then,
    Unsupported,
    after,
    is_suspended,
    operation,
    settle,
)
from stator_guards import (
    Source,
)
from torch import Tensor

from stator_variables._handler_keys import BRANCH_ON_DATA
from stator_variables._objects import _list, _number, _number_of_numpy
from stator_variables._objects._lookup import (
    defines,
    guarded_lookup,
    is_subtype,
    overrides,
    type_lookup,
)
from stator_variables._objects._method_table import COMPARISONS
from stator_variables._objects._new_values import computed
from stator_variables._objects._program_error import attempt, complain
from stator_variables._protocols import _attributes, _consumption, _containers, _folding
from stator_variables._protocols._same_object import same_object
from stator_variables._pure import is_number_of_numpy
from stator_variables._runtime._contents import plain_lookup
from stator_variables._space import Space
from stator_variables._tensors import _symbolic
from stator_variables._trace._overrides import Overrides
from stator_variables._tracker import MISSING, VariableTracker
from stator_variables._trackers import (
    ArrayTracker,
    BuiltinTracker,
    ConstantTracker,
    NumberTracker,
    ObjectTracker,
    is_none,
)

ARITHMETIC = {
    symbol: (name, getattr(operator, f"__{name}__"), getattr(operator, f"__i{name}__"))
    for symbol, name in OPERATOR_NAMES.items()
}
UNARY: dict[str, tuple[str, Any]] = {
    "-": ("__neg__", operator.neg),
    "+": ("__pos__", operator.pos),
    "~": ("__invert__", operator.invert),
}


def unary(t: Space, symbol: str, vt: VariableTracker) -> Result:
    name, function = UNARY[symbol]
    if (found := _number_of_numpy.computed(t, function, [vt])) is not MISSING:
        return found
    if vt.cls is bool or (vt.cls is float and symbol == "~"):
        vt = _number.as_constant(t, vt)
    if symbol == "~" and vt.is_symbolic:
        return binary(t, "-", unary(t, "-", vt), ConstantTracker(1))
    if (found := vt.operate(t, function, vt)) is not MISSING:
        return found
    return t.call_slot(vt, name, [], f"bad operand type for unary {symbol}: '{{}}'")


def binary(t: Space, symbol: str, left: VariableTracker, right: Any) -> Result:
    """`left symbol right`; a symbol that ends in "=" is the in-place form."""
    in_place = symbol.endswith("=")
    name, plain, augmented = ARITHMETIC[symbol.removesuffix("=")]
    if (found := _number_of_numpy.computed(t, plain, [left, right])) is not MISSING:
        return found

    left, right = _computable(t, symbol, left, right)
    if name in ("pow", "lshift", "rshift"):
        if name != "pow" and _symbolic.is_by_constant(left, right):
            return binary(
                t, "*" if name == "lshift" else "//", left, ConstantTracker(1 << right.value)
            )
        left, right = _symbolic.as_words(t, name, left, right)
    if name in ("and", "or", "xor") and _symbolic.is_masked(left, right):
        return _of_bits(t, symbol, left, right)

    makes_text = left.cls is str and symbol[0] in "+%" and _number.has_texts((left, right))
    function = augmented if in_place else plain
    if not makes_text and (found := _operated(t, function, left, right)) is not MISSING:
        return found
    return slots(t, name, symbol, left, right, in_place=in_place)


def _operated(t: Space, function: Any, left: VariableTracker, right: VariableTracker) -> Any:
    """Return what the slots for operators of the one side give, or of the other."""
    found = left.operate(t, function, left, right)
    return right.operate(t, function, left, right) if found is MISSING else found


def _of_bits(t: Space, symbol: str, left: Any, right: VariableTracker) -> Result:
    number, size, is_high = _symbolic.low_bits(left, right)
    if size is None:
        return binary(
            t,
            symbol,
            _number.as_constant(t, left),
            _number.as_constant(t, right),
        )

    of_number, of_rest, more = _BITS[symbol[0], is_high]
    rest = binary(t, "%", number, ConstantTracker(size))
    terms = [
        binary(t, "*", vt, ConstantTracker(factor))
        for vt, factor in ((number, of_number), (rest, of_rest))
        if factor
    ]
    return functools.reduce(
        functools.partial(binary, t, "+"), [*terms, ConstantTracker(more(size))]
    )


# With r = n % size: how often n, how often r, and what else. The mask is the bits below `size`, or
# (high) all others.
_BITS: dict[tuple[str, bool], tuple[int, int, Callable[[int], int]]] = {
    ("&", False): (0, 1, lambda size: 0),
    ("&", True): (1, -1, lambda size: 0),
    ("|", False): (1, -1, lambda size: size - 1),
    ("|", True): (0, 1, lambda size: -size),
    ("^", False): (1, -2, lambda size: size - 1),
    ("^", True): (-1, 2, lambda size: -size),
}

_OF_BOOLS = frozenset({"&", "|", "&=", "|="})
_REMAINDERS = frozenset({"%", "%="})


def _computable(
    t: Space, symbol: str, left: VariableTracker, right: VariableTracker
) -> tuple[Any, Any]:
    """Return operands that symbolic operators support, with constants for others.

    Symbolic numbers do not combine with complex ones or those of NumPy, and of remainders by 1 only
    with ints; symbolic bools have two operators, with bools alone. A bool beside a symbolic number
    is the int that it is.
    """
    for number, other in ((left, right), (right, left)):
        if not number.is_symbolic or other.base is Tensor or type(other) is ArrayTracker:
            continue
        of_bools = number.cls is not bool or (other.cls is bool and symbol in _OF_BOOLS)
        of_one = symbol in _REMAINDERS and _symbolic.is_taken_for_zero(left, right)
        if other.cls is complex or is_number_of_numpy(other.cls) or not of_bools or of_one:
            return _number.as_constant(t, left), _number.as_constant(t, right)
    return _beside(left, right), _beside(right, left)


def _beside(vt: VariableTracker, other: VariableTracker) -> VariableTracker:
    numbers = other.is_symbolic and other.cls is not bool
    return (
        ConstantTracker(int(vt.value))
        if numbers and type(vt) is ConstantTracker and vt.cls is bool
        else vt
    )


def _ordered(t: Space, first: Any, second: Any) -> list[Any]:
    """The right operand goes first when its class is a proper subclass that overrides the reflected
    method."""
    left, right = first[0].cls, second[0].cls
    if left is right:
        return [first]
    if is_subtype(right, left) and guarded_lookup(t, right, second[1]) is not guarded_lookup(
        t, left, second[1]
    ):
        return [second, first]
    return [first, second]


def _try_slots(t: Space, attempts: list[Any], fail: Any) -> Result:
    """Call slot methods in turn until one is not NotImplemented."""
    if not attempts:
        return fail()
    results = _slot_call(t, *attempts[0])
    return _next_slots(t, results, attempts[1:], fail) if _may_decline(results) else results


def _slot_call(t: Space, receiver: VariableTracker, name: str, argument: VariableTracker) -> Result:
    raw, source = type_lookup(t, receiver.cls, name)
    assert source is not None
    if raw is object.__ne__:
        return _inverted_eq(t, receiver, argument)
    if isinstance(raw, types.MethodDescriptorType) and _is_foreign_to_tensors(
        t, receiver, argument
    ):
        return ConstantTracker(NotImplemented)
    if name in _COMPARISONS and _attributes.may_refuse(t, raw):
        return _compared_if_bound(t, raw, source, receiver, name, argument)
    return t.call(t.bind(raw, source, receiver, name), [argument])


_COMPARISONS = frozenset({"__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__"})


@operation
def _compared_if_bound(
    t: Space, raw: Any, source: Source, receiver: Any, name: str, argument: VariableTracker
) -> OperationSteps:
    if (bound := (yield from _attributes.bound_or_none(t, raw, source, receiver, name))) is None:
        return ConstantTracker(NotImplemented)
    return (yield from settle(t.call(bound, [argument])))


def _is_foreign_to_tensors(t: Space, receiver: VariableTracker, argument: VariableTracker) -> bool:
    """Return True for an object that is no number and has no `__torch_function__`: its own operator
    is called."""
    if (
        receiver.base is not Tensor
        or type(argument) is not ObjectTracker
        or t.state(Overrides).modes
    ):
        return False
    return (
        not issubclass(argument.cls, numbers.Number)
        and guarded_lookup(t, argument.cls, _TORCH_FUNCTION) is MISSING
    )


_TORCH_FUNCTION = "__torch_function__"


def _inverted_eq(t: Space, receiver: VariableTracker, argument: VariableTracker) -> Result:
    """Implement `object.__ne__`: the opposite of the result of the own `__eq__`."""
    compared = _slot_call(t, receiver, "__eq__", argument)
    return after(compared, lambda equal: equal if _may_decline(equal) else negated(t, equal))


def _may_decline(result: Result) -> bool:
    return is_suspended(result) or result.cls is types.NotImplementedType


@operation
def _next_slots(t: Space, result: Result, attempts: list[Any], fail: Any) -> OperationSteps:
    value = yield from settle(result)
    for other in attempts:
        if not _may_decline(value):
            return value
        value = yield from settle(_slot_call(t, *other))
    return value if not _may_decline(value) else fail()


def slots(
    t: Space,
    name: str,
    symbol: str,
    left: VariableTracker,
    right: VariableTracker,
    *,
    in_place: bool = False,
) -> Result:
    """The dispatch of a binary operator; `divmod` has no sign of its own."""
    attempts = [(left, f"__i{name}__", right)] if in_place else []
    attempts += _ordered(t, (left, f"__{name}__", right), (right, f"__r{name}__", left))
    known = [
        attempt
        for attempt in attempts
        if guarded_lookup(t, attempt[0].cls, attempt[1]) is not MISSING
    ]
    fail = functools.partial(_no_operator, t, symbol, left, right)

    def waits(attempt: Any) -> bool:
        return name in ("add", "mul") and _waits(attempt[0].cls, attempt[1], f"__r{name}__")

    waiting = list(filter(waits, known))
    if waiting and name == "mul":
        numbers = [attempt for attempt in known if not waits(attempt)]
        return _try_slots(t, numbers, lambda: _repeated(t, left, waiting, fail))
    return _try_slots(t, sorted(known, key=waits), fail)


def _repeated(t: Space, left: VariableTracker, attempts: list[Any], fail: Callable[[], Any]) -> Any:
    """Implement `sequence_repeat` in Objects/abstract.c: of two sequences, the left one raises that
    the other is no number."""
    count = min(attempts, key=lambda attempt: attempt[0] is not left)[2]
    if not defines(t, count.cls, "__index__"):
        complain(t, TypeError, "can't multiply sequence by non-int of type '", count.cls, "'")
    return _try_slots(t, attempts, fail)


def _waits(cls: type, name: str, reflected: str) -> bool:
    """Return True for `sq_concat` or `sq_repeat`, which are tried after the number slots of both
    operands, in place as well.

    A class statement makes a number slot of an inherited `__iadd__`, and of all where it defines
    the reflected method.
    """
    if not any(
        plain_lookup(cls, name) is vars(base).get(name)
        for base in _SEQUENCES
        if issubclass(cls, base)
    ):
        return False
    return cls in _SEQUENCES or not (
        name == "__iadd__" or isinstance(plain_lookup(cls, reflected), types.FunctionType)
    )


_SEQUENCES = frozenset({list, tuple, str, bytes, bytearray, collections.deque})


def _no_operator(t: Space, symbol: str, left: VariableTracker, right: VariableTracker) -> Any:
    what = "** or pow()" if symbol == "**" else symbol
    complain(
        t,
        TypeError,
        f"unsupported operand type(s) for {what}: '",
        left.cls,
        "' and '",
        right.cls,
        "'",
    )


# -- comparison ------------------------------------------------------------------------------------
def compare(t: Space, symbol: str, left: VariableTracker, right: VariableTracker) -> Result:
    name, reflected, function = COMPARISONS[symbol]
    if (found := _number_of_numpy.computed(t, function, [left, right])) is not MISSING:
        return found
    left, right = _computable(t, symbol, left, right)
    if (found := _operated(t, function, left, right)) is not MISSING:
        return found
    attempts = _ordered_comparison(t, (left, name, right), (right, reflected, left))
    known = [a for a in attempts if _compares(t, a[0], a[1])]
    return _try_slots(t, known, lambda: _no_comparison(t, symbol, left, right))


def _compares(t: Space, vt: VariableTracker, name: str) -> bool:
    raw = guarded_lookup(t, vt.cls, name)
    if raw is object.__ne__:
        return _compares(t, vt, "__eq__")
    return raw is not MISSING and raw is not getattr(object, name)


def _ordered_comparison(t: Space, first: Any, second: Any) -> list[Any]:
    left, right = first[0].cls, second[0].cls
    if (
        left is not right
        and is_subtype(right, left)
        and guarded_lookup(t, right, second[1]) is not MISSING
    ):
        return [second, first]
    return [first, second]


def _no_comparison(
    t: Space, symbol: str, left: VariableTracker, right: VariableTracker
) -> ConstantTracker:
    if symbol in ("==", "!="):
        return identical(t, left, right, symbol == "!=")
    complain(
        t,
        TypeError,
        f"'{symbol}' not supported between instances of '",
        left.cls,
        "' and '",
        right.cls,
        "'",
    )


def negated(t: Space, vt: VariableTracker) -> Result:
    return after(truth(t, vt), lambda held: ConstantTracker(not held))


def identical(
    t: Space, left: VariableTracker, right: VariableTracker, invert: bool
) -> ConstantTracker:
    return ConstantTracker(same_object(t, left, right) is not invert)


# -- truth and containment -------------------------------------------------------------------------
def truth(t: Space, vt: Any) -> Result:
    """A Python bool, or a suspended Result that ends in one."""
    if (found := _number_of_numpy.computed(t, bool, [vt])) is not MISSING:
        vt = found
    if _folding.are_plain(vt):
        if _number.has_texts([vt]):  # a number is never written as nothing
            return True
        if vt.value is NotImplemented:
            raise t.unsupported("warning", "the truth of NotImplemented, of which Python warns")
        return bool(vt.value)
    if vt.base in _CONTAINERS and not _shows_itself(t, vt.cls):
        return bool(_list.has_more(t, vt) or vt.contents(t))

    if vt.is_symbolic:
        return _truth_of_number(t, vt)
    if vt.base is Tensor and not t.state(Overrides).modes:
        if (expected := _checked_truth(t, vt)) is not None:
            return expected
        hint = "use torch.where or torch.cond, or accept the graph break"
        raise t.unsupported("data-dependent-branch", "a branch on the value of a tensor", hint)
    for name, kind in (("__bool__", "truth"), ("__len__", "length")):
        if (bound := t.special(vt, name)) is not MISSING:
            return t.completed(t.call(bound, []), Then(kind))
    return True


_CONTAINERS = (list, tuple, collections.deque, set, dict)


def _shows_itself(t: Space, cls: type) -> bool:
    """Return True if a class of containers defines its truth in Python."""
    return defines(t, cls, "__bool__") or overrides(t, cls, "__len__")


def _truth_of_number(t: Space, vt: NumberTracker) -> bool:
    """Return the truth, which `ShapeEnv` guards, or which is expected and checked at run time."""
    try:
        return _number.decide(t, vt)
    except Unsupported:
        if (expected := _checked_truth(t, vt)) is None:
            raise
        return expected


def _checked_truth(t: Space, vt: VariableTracker) -> bool | None:
    """Return the truth that is expected of data, and that the graph checks; or None."""
    handler = t.handlers.get(BRANCH_ON_DATA)
    return None if handler is None else handler(t, [vt], {})


def truth_of_result(t: Space, value: VariableTracker, kind: str) -> Result:
    """The truth that `__bool__` ("truth") or `__len__` ("length") gave, checked as C does."""
    if kind == "truth" and value.cls is not bool:
        complain(t, TypeError, "__bool__ should return bool, returned ", value.cls)
    return (
        truth(t, value)
        if kind == "truth"
        else after(_containers.checked_length(t, value), functools.partial(truth, t))
    )


def contains(t: Space, container: Any, item: Any, invert: bool) -> Result:
    """`item in container`."""
    if _folding.are_plain(container, item):
        has = computed(t, operator.contains, container.value, item.value)
        return ConstantTracker(has.constant() is not invert)
    raw, source = type_lookup(t, container.cls, "__contains__")
    if raw is None:
        complain(t, TypeError, "'", container.cls, "' object is not a container")
    if source is not None:
        found = t.call(t.bind(raw, source, container, "__contains__"), [item])
    else:
        found = _consumption.any_equal(t, container, item)
    return after(found, lambda value: _contained(t, value, invert))


def _contained(t: Space, value: VariableTracker, invert: bool) -> Result:
    return after(truth(t, value), lambda held: ConstantTracker(held is not invert))


def get_item(t: Space, container: VariableTracker, key: VariableTracker) -> Result:
    """`container[key]`: a Result."""
    if (found := container.get_item(t, key)) is not MISSING:
        return found
    return t.call_slot(container, "__getitem__", [key], "'{}' object is not subscriptable")


@operation
def get_class_item(t: Space, cls_vt: Any, key: VariableTracker) -> OperationSteps:
    if (getter := t.special(cls_vt, "__getitem__")) is MISSING:
        getter = yield from attempt(
            t, AttributeError, None, t.get_attribute, cls_vt, "__class_getitem__"
        )
        getter = None if getter is not None and is_none(getter) else getter
    if getter is None and cls_vt.value is type:  # for which C has a case of its own
        return t.call(BuiltinTracker(vars(list)["__class_getitem__"]), [cls_vt, key])
    if getter is None:
        complain(t, TypeError, "type '", cls_vt.value, "' is not subscriptable")
    return (yield from settle(t.call(getter, [key])))


def equal(t: Space, left: VariableTracker, right: VariableTracker) -> Result:
    """Identity, then `==`, as a Python bool: what containers use (PyObject_RichCompareBool)."""
    numbers = left.is_symbolic or right.is_symbolic  # whose values do as well
    if left is right or (not numbers and same_object(t, left, right)):
        return True
    return after(compare(t, "==", left, right), functools.partial(truth, t))
