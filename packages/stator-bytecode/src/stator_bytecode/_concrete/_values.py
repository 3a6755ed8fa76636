"""Operators, items, iteration and building of the concrete domain."""

import operator
from collections.abc import Callable
from types import CoroutineType, GeneratorType
from typing import Any

from stator_bytecode._codec._rules import COMPARISONS, OPERATOR_NAMES
from stator_bytecode._machine._frame import NULL

_UNARY: dict[str, Callable[[Any], Any]] = {"-": operator.neg, "+": operator.pos, "~": operator.invert}
_COMPARISONS = (operator.lt, operator.le, operator.eq, operator.ne, operator.gt, operator.ge)
_COMPARE: dict[str, Callable[[Any, Any], Any]] = dict(zip(COMPARISONS, _COMPARISONS, strict=True))
_BINARY: dict[str, Callable[[Any, Any], Any]] = {
    **{symbol: getattr(operator, f"__{name}__") for symbol, name in OPERATOR_NAMES.items()},
    **{symbol + "=": getattr(operator, f"__i{name}__") for symbol, name in OPERATOR_NAMES.items()},
}
_CONVERT: dict[str, Callable[[Any], str]] = {"s": str, "r": repr, "a": ascii}


class Values:
    def unary(self, operator: str, value: Any) -> Any:
        return _UNARY[operator](value)

    def binary(self, operator: str, left: Any, right: Any) -> Any:
        return _BINARY[operator](left, right)

    def compare(self, operator: str, left: Any, right: Any) -> Any:
        return _COMPARE[operator](left, right)

    def contains(self, container: Any, item: Any, invert: bool) -> bool:
        return (item in container) is not invert

    def identical(self, left: Any, right: Any, invert: bool) -> bool:
        return (left is right) is not invert

    def truth(self, value: Any) -> bool:
        return bool(value)

    def from_bool(self, value: bool) -> bool:
        return value

    def is_none(self, value: Any) -> bool:
        return value is None

    def get_item(self, container: Any, key: Any) -> Any:
        return container[key]

    def set_item(self, container: Any, key: Any, new: Any) -> None:
        container[key] = new

    def delete_item(self, container: Any, key: Any) -> None:
        del container[key]

    def length(self, value: Any) -> int:
        return len(value)

    # iteration

    def get_iterator(self, value: Any) -> Any:
        return iter(value)

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

    def build_tuple(self, items: list[Any]) -> tuple[Any, ...]:
        return tuple(items)

    def build_list(self, items: list[Any]) -> list[Any]:
        return items

    def build_set(self, items: list[Any]) -> set[Any]:
        return set(items)

    def build_map(self, keys: list[Any], values: list[Any]) -> dict[Any, Any]:
        return dict(zip(keys, values, strict=True))

    def build_const_key_map(self, keys: tuple[Any, ...], values: list[Any]) -> dict[Any, Any]:
        return dict(zip(keys, values, strict=True))

    def build_string(self, parts: list[str]) -> str:
        return "".join(parts)

    def build_slice(self, parts: list[Any]) -> slice:
        return slice(*parts)

    def list_append(self, target: list[Any], item: Any) -> None:
        target.append(item)

    def list_extend(self, target: list[Any], iterable: Any) -> None:
        target += [*iterable]  # which says what is wrong with it as CPython does here

    def list_to_tuple(self, target: list[Any]) -> tuple[Any, ...]:
        return tuple(target)

    def set_add(self, target: set[Any], item: Any) -> None:
        target.add(item)

    def set_update(self, target: set[Any], iterable: Any) -> None:
        target.update(iterable)

    def map_add(self, target: dict[Any, Any], key: Any, value: Any) -> None:
        target[key] = value

    def dict_update(self, target: dict[Any, Any], mapping: Any) -> None:
        target.update({**mapping})

    def dict_merge(self, target: dict[Any, Any], mapping: Any, function: Any) -> None:
        if not isinstance(mapping, dict) and not hasattr(mapping, "keys"):
            raise TypeError(f"{shown(function)} argument after ** must be a mapping, not {type(mapping).__name__}")
        for key in mapping if isinstance(mapping, dict) else mapping.keys():
            if key in target:
                raise TypeError(f"{shown(function)} got multiple values for keyword argument '{key}'")
            target[key] = mapping[key]

    def format_value(self, value: Any, conversion: str, spec: str | None) -> str:
        converted = _CONVERT[conversion](value) if conversion else value
        return format(converted, "" if spec is None else spec)


def is_iterable(value: Any) -> bool:
    return hasattr(type(value), "__iter__") or hasattr(type(value), "__getitem__")


def shown(function: Any) -> str:
    """How CPython's errors of calls name a function."""
    if (qualname := getattr(function, "__qualname__", None)) is None:
        return str(function)
    module = getattr(function, "__module__", None)
    return f"{qualname}()" if module in (None, "builtins") else f"{module}.{qualname}()"
