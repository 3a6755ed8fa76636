"""f-strings, `format`, `%` and `join`: on constants at once, else through `__format__`, `__str__`, `__repr__`."""

import _string  # type: ignore[import-not-found]  # CPython's own parser; typeshed has no stub of it
import re
from typing import Any

from stator_bytecode import operation, settle

from stator_variables import _kinds as k
from stator_variables._builtin._arity import ANY_COUNT
from stator_variables._builtin._method_table import MethodTable
from stator_variables._model import _attributes, _calls, _iteration
from stator_variables._model._lookup import guarded_lookup
from stator_variables._model._raising import throw
from stator_variables._torch import _torch_calls
from stator_variables._tracing import Tracing
from stator_variables._tracker import MISSING, VariableTracker

methods = MethodTable("string method")
Fields = tuple[Any, ...]
_CONVERSIONS = {"s": "__str__", "r": "__repr__"}


def build_string(t: Tracing, parts: list[Any]) -> Any:
    return k.ConstantTracker("".join(_known(t, part) for part in parts))


def _known(t: Tracing, vt: Any) -> str:
    value = vt.constant()
    if not isinstance(value, str):
        raise t.unsupported("string-of-unknown", "a string made of parts that are not known while tracing")
    return value


@operation
def format_value(t: Tracing, value: Any, conversion: str, spec: Any) -> Any:
    """`format(convert(value), spec)`."""
    if conversion:
        value = yield from settle(convert(t, value, conversion))
    if isinstance(value, k.NumberTracker):
        value = k.ConstantTracker(_torch_calls.specialised(t, value))
    text = "" if spec is None else spec.constant()
    if value.constant() is not MISSING and not isinstance(value, k.ClassTracker):
        return _calls.fold(t, format, [value, k.ConstantTracker(text)], {})
    method = _attributes.special(t, value, "__format__")
    return (yield from settle(_calls.call(t, method, [k.ConstantTracker(text)], {})))


def convert(t: Tracing, value: Any, conversion: str) -> Any:
    """str(), repr() or ascii() of a value: a Result."""
    if isinstance(value, k.NumberTracker):
        value = k.ConstantTracker(_torch_calls.specialised(t, value))
    if value.constant() is not MISSING:
        function = {"s": str, "r": repr, "a": ascii}[conversion]
        return _calls.fold(t, function, [value], {})
    if isinstance(value, k.ClassTracker) and type(value.value).__repr__ is type.__repr__:
        return k.ConstantTracker(repr(value.value))
    if isinstance(value, k.BuiltinTracker) and "at 0x" not in repr(value.value):
        return k.ConstantTracker(repr(value.value))
    if conversion == "a":
        return _ascii(t, value)
    name = _CONVERSIONS[conversion]
    return _converted(t, _calls.call(t, _attributes.special(t, value, name), [], {}), name)


@operation
def _ascii(t: Tracing, value: Any) -> Any:
    text = yield from settle(convert(t, value, "r"))
    return k.ConstantTracker(ascii(_Shown(_known(t, text))))


class _Shown:
    def __init__(self, text: str) -> None:
        self.text = text

    def __repr__(self) -> str:
        return self.text


def _converted(t: Tracing, result: Any, name: str) -> Any:
    if isinstance(result, k.ConstantTracker) and isinstance(result.value, str):
        return result
    return _checked_string(t, result, name)


@operation
def _checked_string(t: Tracing, result: Any, name: str) -> Any:
    found = yield from settle(result)
    if not issubclass(found.cls, str):
        throw(TypeError, f"{name} returned non-string (type {found.cls.__name__})")
    return found


@methods.handles(format)
def handle_format(t: Tracing, value: Any, spec: Any = None) -> Any:
    if spec is not None and not isinstance(spec.constant(), str):
        raise t.unsupported("bad-arguments", "a call of format() that it does not accept")
    return format_value(t, value, "", spec)


# -- join -------------------------------------------------------------------------------------------------------------
@methods.handles(str.join, bytes.join)
@operation
def join(t: Tracing, separator: Any, iterable: Any) -> Any:
    items = yield from settle(_iteration.drain(t, iterable))
    method = bytes.join if separator.cls is bytes else str.join
    folded = _calls.fold(t, method, [separator, k.TupleTracker(items, tuple)], {})
    if folded is not MISSING:
        return folded
    wrong = [i for i, item in enumerate(items) if not issubclass(item.cls, str)]
    if wrong and separator.cls is str:
        throw(TypeError, f"sequence item {wrong[0]}: expected str instance, {items[wrong[0]].cls.__name__} found")
    raise t.unsupported("string-of-unknown", "join() of parts that are not known while tracing")


# -- % ----------------------------------------------------------------------------------------------------------------
_PERCENT = re.compile(
    r"%(?:\((?P<key>[^()]*)\))?(?P<flags>[#0\- +]*)(?P<width>\*|\d*)(?:\.(?P<digits>\*|\d*))?[hlL]?(?P<verb>.)", re.S
)


@methods.handles(str.__mod__)
@operation
def percent(t: Tracing, template: Any, given: Any) -> Any:
    """Values that are not constants are turned into text first; then the real operator has only constants left."""
    text = _known(t, template)
    is_mapping = not isinstance(given, k.TupleTracker) and guarded_lookup(t, given.cls, "__getitem__") is not MISSING
    values = list(given.items) if isinstance(given, k.TupleTracker) else [given]
    prepared: list[Any] = []
    parts: list[str] = []
    last = 0
    for match in _PERCENT.finditer(text):
        parts.append(text[last : match.start()])
        last = match.end()
        if match["verb"] == "%" or "*" in (match["width"], match["digits"]):
            if match["verb"] != "%":
                raise t.unsupported("string-of-unknown", "a % format with * over values that are not constants")
            parts.append("%%")
            continue
        if match["key"] is not None:
            if not is_mapping:
                throw(TypeError, "format requires a mapping")
            value = yield from settle(_iteration.get_item(t, given, k.ConstantTracker(match["key"])))
        elif not values:
            throw(TypeError, "not enough arguments for format string")
        else:
            value = values.pop(0)
        spec = match["flags"] + match["width"] + ("" if match["digits"] is None else "." + match["digits"])
        verb = match["verb"]
        prepared.append((yield from _percent_value(t, value, verb)))
        parts.append(f"%{spec}{'s' if verb in 'sra' else verb}")
    parts.append(text[last:])
    if values and not is_mapping:
        throw(TypeError, "not all arguments converted during string formatting")
    folded = _calls.fold(t, str.__mod__, [k.ConstantTracker("".join(parts)), k.TupleTracker(prepared, tuple)], {})
    assert folded is not MISSING
    return folded


def _percent_value(t: Tracing, value: Any, verb: str) -> Any:
    if verb in "sra":
        return k.ConstantTracker(_known(t, (yield from settle(convert(t, value, verb)))))
    if isinstance(value, k.NumberTracker):
        return k.ConstantTracker(_torch_calls.specialised(t, value))
    if value.constant() is MISSING:
        raise t.unsupported("string-of-unknown", f"%{verb} of a {value.cls.__name__} that is not known while tracing")
    return value


# -- str.format -------------------------------------------------------------------------------------------------------
@methods.handles(str.format, takes=(0, ANY_COUNT), named=None)
def format_(t: Tracing, template: Any, /, *args: Any, **kwargs: Any) -> Any:
    return _format(t, _known(t, template), args, kwargs, [0], 2)


@methods.handles(str.format_map, takes=1)
def format_map(t: Tracing, template: Any, mapping: Any) -> Any:
    return _format(t, _known(t, template), (), mapping, [0], 2)


@operation
def _format(t: Tracing, template: str, args: Fields, named: Any, counter: list[int], depth: int) -> Any:
    if depth < 0:
        throw(ValueError, "Max string recursion exceeded")
    texts: list[str] = []
    try:
        fields = list(_string.formatter_parser(template))
    except ValueError as error:
        throw(ValueError, *error.args)
    for literal, name, spec, conversion in fields:
        texts.append(literal)
        if name is None:
            continue
        value = yield from _field(t, name, args, named, counter)
        inner = yield from settle(_format(t, spec or "", args, named, counter, depth - 1))
        texts.append(_known(t, (yield from settle(format_value(t, value, conversion or "", inner)))))
    return k.ConstantTracker("".join(texts))


def _field(t: Tracing, name: str, args: Fields, named: Any, counter: list[int]) -> Any:
    try:
        first, rest = _string.formatter_field_name_split(name)
        rest = list(rest)
    except ValueError as error:
        throw(ValueError, *error.args)
    if first == "":
        first, counter[0] = counter[0], counter[0] + 1
    elif (isinstance(first, int) and counter[0]) or (isinstance(first, int) and isinstance(named, VariableTracker)):
        raise t.unsupported("bad-arguments", "a format that switches between numbered and automatic fields")
    value = yield from _first(t, first, args, named)
    for is_attribute, part in rest:
        if is_attribute:
            value = yield from settle(_attributes.get_attribute(t, value, part))
        else:
            value = yield from settle(_iteration.get_item(t, value, k.ConstantTracker(part)))
    return value


def _first(t: Tracing, first: Any, args: Fields, named: Any) -> Any:
    if isinstance(first, int):
        if first >= len(args):
            throw(IndexError, f"Replacement index {first} out of range for positional args tuple")
        return args[first]
    if isinstance(named, VariableTracker):
        return (yield from settle(_iteration.get_item(t, named, k.ConstantTracker(first))))
    if first not in named:
        throw(KeyError, first)
    return named[first]
