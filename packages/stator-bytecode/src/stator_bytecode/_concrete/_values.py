"""Operators, items, iteration and building of the concrete domain."""

import importlib
import operator
import sys
from collections.abc import Callable, Sequence
from itertools import zip_longest
from types import CoroutineType, GeneratorType
from typing import Any

from stator_bytecode._codec._rules import COMPARISONS, CONVERTERS, OPERATOR_NAMES
from stator_bytecode._machine._frame import NULL

_UNARY: dict[str, Callable[[Any], Any]] = {
    "-": operator.neg,
    "+": operator.pos,
    "~": operator.invert,
}
_COMPARISONS = (operator.lt, operator.le, operator.eq, operator.ne, operator.gt, operator.ge)
_BINARY: dict[str, Callable[[Any, Any], Any]] = {
    **dict(zip(COMPARISONS, _COMPARISONS, strict=True)),
    **{symbol: getattr(operator, f"__{name}__") for symbol, name in OPERATOR_NAMES.items()},
    **{symbol + "=": getattr(operator, f"__i{name}__") for symbol, name in OPERATOR_NAMES.items()},
}


def natively(function: Callable[..., Any]) -> Callable[..., Any]:
    """An operation that is a function of C. It runs in a frame of the operations', since what it
    raises is the program's."""

    def operation(self: object, *args: Any) -> Any:
        return function(*args)

    return operation


class Values:
    truth = natively(bool)
    length = natively(len)
    get_item = natively(operator.getitem)
    set_item = natively(operator.setitem)
    delete_item = natively(operator.delitem)
    get_iterator = natively(iter)
    build_tuple = list_to_tuple = natively(tuple)
    build_set = natively(set)
    build_string = natively("".join)
    list_append = natively(list.append)
    set_add = natively(set.add)
    set_update = natively(set.update)
    map_add = natively(dict.__setitem__)

    def unary(self, operator: str, value: Any) -> Any:
        return _UNARY[operator](value)

    def binary(self, operator: str, left: Any, right: Any) -> Any:
        return _BINARY[operator](left, right)

    compare = binary

    def contains(self, container: Any, item: Any, invert: bool) -> bool:
        return (item in container) is not invert

    def identical(self, left: Any, right: Any, invert: bool) -> bool:
        return (left is right) is not invert

    def from_bool(self, value: bool) -> bool:
        return value

    def is_none(self, value: Any) -> bool:
        return value is None

    # iteration

    def send(self, receiver: Any, value: Any) -> tuple[Any, Any]:
        try:
            if value is None and hasattr(type(receiver), "__next__"):
                return next(receiver), NULL
            return receiver.send(value), NULL
        except StopIteration as stop:
            return NULL, stop.value

    def yield_from_iterator(self, value: Any) -> Any:
        if type(value) is GeneratorType:
            return value
        if type(value) is CoroutineType:
            raise TypeError("cannot 'yield from' a coroutine object in a non-coroutine generator")
        return iter(value)

    # building

    def build_list(self, items: list[Any]) -> list[Any]:
        return items

    def build_map(self, keys: Sequence[Any], values: list[Any]) -> dict[Any, Any]:
        return dict(zip(keys, values, strict=True))

    build_const_key_map = build_map

    def build_slice(self, parts: list[Any]) -> slice:
        return slice(*parts)

    def list_extend(self, target: list[Any], iterable: Any) -> None:
        target += [*iterable]  # which raises the same error as CPython here

    def dict_update(self, target: dict[Any, Any], mapping: Any) -> None:
        target.update({**mapping})

    def dict_merge(self, target: dict[Any, Any], mapping: Any, function: Any) -> None:
        if not isinstance(mapping, dict) and not hasattr(mapping, "keys"):
            what = spread_text(function, "**")
            raise TypeError(f"{what} must be a mapping, not {type(mapping).__name__}")
        for key in mapping if isinstance(mapping, dict) else mapping.keys():
            if key in target:
                raise TypeError(
                    f"{shown(function)} got multiple values for keyword argument '{key}'"
                )
            target[key] = mapping[key]

    def format_value(self, value: Any, conversion: str, spec: str | None) -> str:
        converted = CONVERTERS[conversion](value) if conversion else value
        return format(converted, "" if spec is None else spec)

    def build_interpolation(
        self, value: Any, text: str, conversion: str, spec: str | None
    ) -> object:
        kind = _template_module().Interpolation
        return kind(value, text, conversion or None, "" if spec is None else spec)

    def build_template(self, strings: Sequence[str], interpolations: Sequence[Any]) -> object:
        pairs = zip_longest(strings, interpolations)
        parts = [part for pair in pairs for part in pair if part is not None]
        return _template_module().Template(*parts)


def _template_module() -> Any:
    """Return the module of template strings, which CPython has since 3.14."""
    return importlib.import_module("string.templatelib")


def spread_text(function: Any, stars: str) -> str:
    """Return the words of an error for what is spread in a call."""
    return f"Value after {stars}" if _NAMELESS else f"{shown(function)} argument after {stars}"


_NAMELESS = sys.version_info >= (3, 15)


def is_iterable(value: Any) -> bool:
    return hasattr(type(value), "__iter__") or hasattr(type(value), "__getitem__")


def shown(function: Any) -> str:
    """Return the name of a function as CPython's errors of calls spell it."""
    if (qualname := getattr(function, "__qualname__", None)) is None:
        return str(function)
    module = getattr(function, "__module__", None)
    return f"{qualname}()" if module in (None, "builtins") else f"{module}.{qualname}()"
