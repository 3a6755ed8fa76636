"""The methods of `str`: `join`, `+`, `%`, `format`; all others are pure functions, and folded."""

import _string  # type: ignore[import-not-found]  # CPython's own parser; typeshed has no stub of it
import collections
import operator
import re
import sys
from collections.abc import Iterator
from typing import Any

from stator_bytecode import OperationSteps, Result, operation, settle

from stator_variables._applevel import _methods
from stator_variables._objects import _new_values, _number
from stator_variables._objects._arity import ANY_COUNT
from stator_variables._objects._lookup import guarded_lookup
from stator_variables._objects._method_table import MethodTable, app_level
from stator_variables._objects._program_error import complain, throw
from stator_variables._objects._text import known_text, text_of, text_of_number
from stator_variables._objects._tuple import TupleTracker
from stator_variables._space import Space
from stator_variables._tracker import MISSING, VariableTracker, is_a
from stator_variables._trackers import ConstantTracker

methods = MethodTable("string method")
Fields = tuple[Any, ...]


# -- join ------------------------------------------------------------------------------------------
@methods.handles(str.join, bytes.join)
@operation
def join(t: Space, separator: VariableTracker, iterable: VariableTracker) -> OperationSteps:
    items = yield from settle(t.drain(iterable, error_text="can only join an iterable"))
    if separator.cls is bytes:
        folded = t.fold(bytes.join, [separator, TupleTracker(items)], {})
        if folded is MISSING:
            raise t.unsupported(
                "string-of-unknown", "join() of parts that are not known while tracing"
            )
        return folded

    if wrong := [i for i, item in enumerate(items) if not issubclass(item.cls, str)]:
        complain(
            t,
            TypeError,
            f"sequence item {wrong[0]}: expected str instance, ",
            items[wrong[0]].cls,
            " found",
        )
    if len(items) == 1 and items[0].cls is str:
        return items[0]
    return text_of(t, [part for item in items for part in (separator, item)][1:])


# -- + ---------------------------------------------------------------------------------------------
@methods.handles(str.translate)
def translate(t: Space, vt: VariableTracker, table: VariableTracker) -> Result:
    if not isinstance(vt.constant(), str):
        raise t.unsupported(
            "string-of-unknown", "str.translate of a text that is not known while tracing"
        )
    return app_level(t, _methods.translated, [ConstantTracker(str.__str__(vt.constant())), table])


@methods.handles(str.__add__)
def add(t: Space, left: VariableTracker, right: VariableTracker) -> VariableTracker:
    if not issubclass(right.cls, str):
        complain(t, TypeError, 'can only concatenate str (not "', right.cls, '") to str')
    return text_of(t, [left, right])


# -- % ---------------------------------------------------------------------------------------------
_PERCENT = re.compile(
    r"%(?:\((?P<key>[^()]*)\))?(?P<flags>[#0\- +]*)(?P<width>\*|\d*)"
    r"(?:\.(?P<digits>\*|\d*))?[hlL]?(?P<verb>.)",
    re.S,
)


_OF_SEQUENCES = (MISSING, collections.deque.__getitem__)
"""Special methods of objects that are no mappings for C (`PyMapping_Check`)."""


@methods.handles(str.__mod__)
@operation
def percent(t: Space, template: VariableTracker, given: Any) -> OperationSteps:
    """Piece by piece: each value by the real operator, once it is a constant or a text."""
    text = known_text(t, template)
    getter = guarded_lookup(t, given.cls, "__getitem__")
    is_mapping = all(getter is not known for known in _OF_SEQUENCES) and not issubclass(
        given.cls, tuple | str
    )
    values = list(given.items) if given.base is tuple else [given]
    count = len(values)
    parts: list[Any] = []
    last = 0

    for match in _PERCENT.finditer(text):
        parts.append(_new_values.computed(t, operator.mod, text[last : match.start()], ()))
        last = match.end()
        if "*" in (match["width"], match["digits"]):
            raise t.unsupported(
                "string-of-unknown", "a % format with * over values that are not constants"
            )
        if match["verb"] == "%":
            parts.append("%")
            continue

        if match["key"] is not None:
            if not is_mapping:
                throw(TypeError, "format requires a mapping")
            value = yield from settle(t.get_item(given, ConstantTracker(match["key"])))
        elif not values:
            throw(TypeError, f"not enough arguments for format string{_counts(got=count)}")
        else:
            value = values.pop(0)
        parts.append((yield from _percent_value(t, value, match)))

    parts.append(_new_values.computed(t, operator.mod, text[last:], ()))
    if values and not is_mapping:
        counts = _counts(required=count - len(values), got=count)
        throw(TypeError, f"not all arguments converted during string formatting{counts}")
    return template if text == parts[0].constant() != "" else text_of(t, parts)


def _counts(**counts: int) -> str:
    """Return the end of the message about a wrong number of arguments (3.15)."""
    shown = ", ".join(f"{name} {count}" for name, count in counts.items())
    return f" ({shown})" if sys.version_info >= (3, 15) else ""


def _percent_value(t: Space, value: VariableTracker, match: re.Match[str]) -> OperationSteps:
    flags, width, digits, verb = match.group("flags", "width", "digits", "verb")
    if verb not in "diouxXeEfFgGcrsa":
        shown = verb if 31 <= ord(verb) < 126 else "?"
        throw(
            ValueError,
            f"unsupported format character '{shown}' ({ord(verb):#x}) at index {match.end() - 1}",
        )

    if verb in "sra":
        value, verb = (yield from settle(t.convert(value, verb))), "s"
        if not (flags or width or digits):
            return value
    elif value.is_symbolic:
        if (spec := _as_specification(value.cls, match)) is not None:
            return text_of_number(t, value, spec)
        value = ConstantTracker(_number.specialised(t, value))

    if (constant := value.constant()) is MISSING:
        raise t.unsupported(
            "string-of-unknown",
            f"%{verb} of a {value.cls.__name__} that is not known while tracing",
        )
    spec = f"%{flags}{width}{'' if digits is None else '.' + digits}{verb}"
    return _new_values.computed(t, operator.mod, spec, (constant,))


def _as_specification(cls: type, match: re.Match[str]) -> str | None:
    """Return the specification with which format() gives what `%` gives for such a number."""
    flags, width, digits, verb = match.group("flags", "width", "digits", "verb")
    if verb in "diu" and cls is int and digits is None:
        verb = "d"
    elif verb not in "eEfFgG" or cls is bool:
        return None
    aligned = "<" if "-" in flags else ""
    sign = next((each for each in "+ " if each in flags), "")
    filled = "0" if "0" in flags and not aligned else ""
    places = "" if digits is None else f".{digits or 0}"
    return f"{aligned}{sign}{'#' if '#' in flags else ''}{filled}{width}{places}{verb}"


# -- str.format ------------------------------------------------------------------------------------
@methods.handles(str.format, takes=(0, ANY_COUNT), named=None)
def format_(
    t: Space, template: VariableTracker, /, *args: VariableTracker, **kwargs: VariableTracker
) -> Result:
    return _formatted(t, template, args, kwargs)


@methods.handles(str.format_map, takes=1)
def format_map(t: Space, template: VariableTracker, mapping: VariableTracker) -> Result:
    return _formatted(t, template, (), mapping)


def _formatted(t: Space, template: VariableTracker, args: Fields, named: Any) -> Result:
    """Return the text; the template itself where it has no fields, as C does."""
    text = known_text(t, template)
    if text != "" and not set(text) & {"{", "}"}:
        return template
    return _format(t, text, args, named, [0], 2)


@operation
def _format(
    t: Space, template: str, args: Fields, named: Any, counter: list[int], depth: int
) -> OperationSteps:
    if depth < 0:
        throw(ValueError, "Max string recursion exceeded")
    texts: list[Any] = []
    for literal, name, spec, conversion in _parsed(_string.formatter_parser(template)):
        texts.append(literal)
        if name is None:
            continue
        value = yield from _field(t, name, args, named, counter)
        if conversion and conversion not in "sra":
            raise t.unsupported("bad-arguments", "a format with a conversion that does not exist")
        if conversion:
            value = yield from settle(t.convert(value, conversion))
        inner = yield from settle(_format(t, spec or "", args, named, counter, depth - 1))
        texts.append((yield from settle(t.format_value(value, "", inner))))
    return text_of(t, texts)


def _parsed(parts: Iterator[Any]) -> Iterator[Any]:
    """Yield the parts one by one: C evaluates those before an invalid one."""
    try:
        yield from parts
    except ValueError as error:
        throw(ValueError, *error.args)


def _parts_of_name(name: str) -> Iterator[Any]:
    first, rest = _string.formatter_field_name_split(name)
    yield first
    yield from rest


def _field(t: Space, name: str, args: Fields, named: Any, counter: list[int]) -> OperationSteps:
    """Return the value of a field; `counter` is negative after numbered ones."""
    parts = _parsed(_parts_of_name(name))
    first = next(parts)
    kind = 1 if first == "" else -isinstance(first, int)
    if kind and (is_a(named, VariableTracker) or kind * counter[0] < 0):
        raise t.unsupported("bad-arguments", "a format with a field that it does not accept")

    if kind > 0:
        first = counter[0]
    counter[0] += kind
    value = yield from _first(t, first, args, named)
    for is_attribute, part in parts:
        if is_attribute:
            value = yield from settle(t.get_attribute(value, part))
        else:
            value = yield from settle(t.get_item(value, ConstantTracker(part)))
    return value


def _first(t: Space, first: object, args: Fields, named: Any) -> OperationSteps:
    if isinstance(first, int):
        if first >= len(args):
            throw(IndexError, f"Replacement index {first} out of range for positional args tuple")
        return args[first]
    if is_a(named, VariableTracker):
        return (yield from settle(t.get_item(named, ConstantTracker(first))))
    if first not in named:
        throw(KeyError, first)
    return named[first]
