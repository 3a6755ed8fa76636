"""f-strings, `format`, `%`, `+` and `join`: on constants at once, else through `__format__`,
`__str__`, `__repr__`.

A text made of symbolic numbers is not made (`TextTracker`) until it is read:

    name = f"layer_{n}"      entry: 'layer_{}'.format(n)
    name == "layer_4"        n is a constant, which is guarded
"""

import _string  # type: ignore[import-not-found]  # CPython's own parser; typeshed has no stub of it
import collections
import functools
import operator
import re
from collections.abc import Iterable
from typing import Any

from stator_bytecode import OperationSteps, Result, after, operation, settle

from stator_variables._applevel import _methods
from stator_variables._objects import _symbolic_numbers
from stator_variables._objects._arity import ANY_COUNT
from stator_variables._objects._lookup import guarded_lookup, overrides
from stator_variables._objects._method_table import MethodTable, app_level
from stator_variables._objects._plain_value import plain_if_inherited
from stator_variables._objects._program_error import complain, throw
from stator_variables._objects._tuple import TupleTracker
from stator_variables._protocols import _attributes, _folding
from stator_variables._space import Space
from stator_variables._tracker import MISSING, VariableTracker, is_a
from stator_variables._trackers import BuiltinTracker, ConstantTracker, TextTracker

methods = MethodTable("string method")
Fields = tuple[Any, ...]
_CONVERSIONS = {"s": "__str__", "r": "__repr__"}


def text_of(t: Space, parts: Iterable[Any]) -> ConstantTracker:
    """The string that these make: strings, trackers of strings, and numbers with how to format
    them."""
    found: list[Any] = []
    for part in parts:
        if is_a(part, TextTracker):
            found += part.parts
        else:
            found.append(part if isinstance(part, str | tuple) else _known(t, part))
    if all(isinstance(part, str) for part in found):
        return ConstantTracker("".join(found))
    return TextTracker(found, functools.partial(_symbolic_numbers.specialised, t))


def _of_number(t: Space, vt: Any, spec: str = "") -> VariableTracker:
    """`format(number, spec)`.

    Of a float that the graph computes the last digit may differ.
    """
    stays = vt.cls is not float or vt.example.node.expr.is_symbol
    is_exact = stays or t.graph.text_of(vt.traced, lambda source: source.name) is not None
    if not is_exact or re.search(r"[{}]|c$", spec):  # a character code may be too large
        return ConstantTracker(_formatted(vt.cls(_symbolic_numbers.specialised(t, vt)), spec))
    _formatted(vt.cls(1), spec)
    return text_of(t, [(vt, spec)])


def _formatted(value: object, spec: str) -> str:
    try:
        return format(value, spec)
    except (ValueError, OverflowError) as error:
        throw(type(error), *error.args)


def _known(t: Space, vt: VariableTracker) -> str:
    if not isinstance(value := vt.constant(), str):
        raise t.unsupported(
            "string-of-unknown", "a string made of parts that are not known while tracing"
        )
    return value


@operation
def format_value(
    t: Space, value: VariableTracker, conversion: str, spec: VariableTracker | None
) -> OperationSteps:
    """`format(convert(value), spec)`."""
    if conversion:
        value = yield from settle(convert(t, value, conversion))
    text = "" if spec is None else spec.constant()
    if value.is_symbolic:
        return _of_number(t, value, text)
    if is_a(value, TextTracker) and not text:
        return value
    folded = t.fold(format, [value, ConstantTracker(text)], {})
    if folded is not MISSING and value.base is not type:
        return folded
    if not text and value.is_known and not overrides(t, value.cls, "__format__"):
        return (yield from settle(convert(t, value, "s")))
    plain = plain_if_inherited(t, value, "__format__", "__str__", "__repr__")
    if plain is not value:
        return (yield from settle(format_value(t, plain, "", spec)))
    method = t.special(value, "__format__")
    found = yield from settle(t.call(method, [ConstantTracker(text)]))
    if not issubclass(found.cls, str):
        complain(t, TypeError, "__format__ must return a str, not ", found.cls)
    return found


def convert(t: Space, value: Any, conversion: str) -> Result:
    """str(), repr() or ascii() of a value: a Result."""
    if value.is_symbolic:
        return _of_number(t, value)
    if is_a(value, TextTracker) and conversion == "s":
        return value
    if (
        folded := t.fold({"s": str, "r": repr, "a": ascii}[conversion], [value], {})
    ) is not MISSING:
        return folded
    names = ("__str__", "__repr__") if conversion == "s" else ("__repr__",)
    if value.base is type and not any(overrides(t, value.cls, name) for name in names):
        return ConstantTracker(repr(value.value))
    if is_a(value, BuiltinTracker) and "at 0x" not in repr(value.value):
        return ConstantTracker(repr(value.value))
    plain = plain_if_inherited(t, value, "__str__", "__repr__")
    if plain is not value:
        return convert(t, plain, conversion)
    if conversion == "a":
        return after(
            convert(t, value, "r"), lambda text: ConstantTracker(_escaped(_known(t, text)))
        )
    name = _CONVERSIONS[conversion]
    if name == "__repr__" and _attributes.may_refuse(t, guarded_lookup(t, value.cls, name)):
        raise t.unsupported(
            "identity-number", "a `__repr__` that a descriptor of the program's provides"
        )
    result = t.call(t.special(value, name), [])
    return after(result, functools.partial(_checked_string, t, name))


def _escaped(text: str) -> str:
    """Return a `repr` as `ascii` escapes it."""
    return text.encode("ascii", "backslashreplace").decode("ascii")


def _checked_string(t: Space, name: str, found: VariableTracker) -> VariableTracker:
    if not issubclass(found.cls, str):
        complain(t, TypeError, f"{name} returned non-string (type ", found.cls, ")")
    return found


@methods.handles(format)
def handle_format(t: Space, value: VariableTracker, spec: VariableTracker | None = None) -> Result:
    if spec is not None and not isinstance(spec.constant(), str):
        raise t.unsupported("bad-arguments", "a call of format() that it does not accept")
    return format_value(t, value, "", spec)


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
    text = _known(t, template)
    getter = guarded_lookup(t, given.cls, "__getitem__")
    is_mapping = all(getter is not known for known in _OF_SEQUENCES) and not issubclass(
        given.cls, tuple | str
    )
    values = list(given.items) if given.base is tuple else [given]
    parts: list[Any] = []
    last = 0
    for match in _PERCENT.finditer(text):
        parts.append(_folding.folded(t, operator.mod, text[last : match.start()], ()))
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
            throw(TypeError, "not enough arguments for format string")
        else:
            value = values.pop(0)
        parts.append((yield from _percent_value(t, value, match)))
    parts.append(_folding.folded(t, operator.mod, text[last:], ()))
    if values and not is_mapping:
        throw(TypeError, "not all arguments converted during string formatting")
    return template if text == parts[0].constant() != "" else text_of(t, parts)


def _percent_value(t: Space, value: VariableTracker, match: re.Match[str]) -> OperationSteps:
    flags, width, digits, verb = match.group("flags", "width", "digits", "verb")
    if verb not in "diouxXeEfFgGcrsa":
        shown = verb if 31 <= ord(verb) < 126 else "?"
        throw(
            ValueError,
            f"unsupported format character '{shown}' ({ord(verb):#x}) at index {match.end() - 1}",
        )
    if verb in "sra":
        value, verb = (yield from settle(convert(t, value, verb))), "s"
        if not (flags or width or digits):
            return value
    elif value.is_symbolic:
        if (spec := _as_specification(value.cls, match)) is not None:
            return _of_number(t, value, spec)
        value = ConstantTracker(_symbolic_numbers.specialised(t, value))
    if (constant := value.constant()) is MISSING:
        raise t.unsupported(
            "string-of-unknown",
            f"%{verb} of a {value.cls.__name__} that is not known while tracing",
        )
    spec = f"%{flags}{width}{'' if digits is None else '.' + digits}{verb}"
    return _folding.folded(t, operator.mod, spec, (constant,))


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
    return (
        template
        if _has_no_field(t, template)
        else _format(t, _known(t, template), args, kwargs, [0], 2)
    )


@methods.handles(str.format_map, takes=1)
def format_map(t: Space, template: VariableTracker, mapping: VariableTracker) -> Result:
    return (
        template
        if _has_no_field(t, template)
        else _format(t, _known(t, template), (), mapping, [0], 2)
    )


def _has_no_field(t: Space, template: VariableTracker) -> bool:
    """Return True for a template without fields, which C returns itself."""
    text = _known(t, template)
    return text != "" and not set(text) & {"{", "}"}


@operation
def _format(
    t: Space, template: str, args: Fields, named: Any, counter: list[int], depth: int
) -> OperationSteps:
    if depth < 0:
        throw(ValueError, "Max string recursion exceeded")
    texts: list[Any] = []
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
        texts.append((yield from settle(format_value(t, value, conversion or "", inner))))
    return text_of(t, texts)


def _field(t: Space, name: str, args: Fields, named: Any, counter: list[int]) -> OperationSteps:
    try:
        first, rest = _string.formatter_field_name_split(name)
        rest = list(rest)
    except ValueError as error:
        throw(ValueError, *error.args)
    if first == "":
        first, counter[0] = counter[0], counter[0] + 1
    elif isinstance(first, int) and (counter[0] or is_a(named, VariableTracker)):
        raise t.unsupported(
            "bad-arguments", "a format that switches between numbered and automatic fields"
        )
    value = yield from _first(t, first, args, named)
    for is_attribute, part in rest:
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
