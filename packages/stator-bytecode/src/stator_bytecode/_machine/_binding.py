"""Binding of the arguments of a call to the slots of a frame, by CPython's rules, over opaque
values.

`bind_arguments` gives one value per parameter in slot order (positional, keyword-only, `*args`,
`**kwargs`), or raises `BindingError` with CPython's own text; `new_frame` puts them, and the cells
of the closure, into a frame.
"""

import contextlib
import importlib
from collections.abc import Callable, Mapping, Sequence
from types import CodeType
from typing import Any

from stator_bytecode._codec._decode import decode
from stator_bytecode._machine._frame import NULL, Frame

_suggest: Callable[[list[str], str], str | None] | None = None
# since CPython 3.13 an unexpected keyword is answered with a suggestion
with contextlib.suppress(ImportError):
    _suggest = importlib.import_module("_suggestions")._generate_suggestions

V = Any
VARARGS, VARKEYWORDS = 0x04, 0x08


class BindingError(Exception):
    """The arguments do not fit; the text is that of the TypeError to raise."""


def bind_arguments(  # the parts of a call, in its own order
    code: CodeType,
    name: str,
    defaults: Sequence[V],
    kwdefaults: Mapping[str, V],
    args: Sequence[V],
    kwargs: Mapping[str, V],
    pack_args: Callable[[list[V]], V] = tuple,
    pack_kwargs: Callable[[dict[str, V]], V] = dict,
) -> list[V]:
    """The parameters' values. `name` is the function's qualified name; the packers build `*args`
    and `**kwargs`."""
    count, given = code.co_argcount, len(args)
    total = count + code.co_kwonlyargcount
    flags = code.co_flags
    if not kwargs and given == count == total and not flags & (VARARGS | VARKEYWORDS):
        return list(args)
    slots = [*args[:count], *[NULL] * (total - min(given, count))]
    extra = _bind_keywords(code, name, slots, kwargs) if kwargs else {}
    if given > count and not flags & VARARGS:
        raise BindingError(_too_many(code, name, given, len(defaults), slots))
    _fill_defaults(code, name, slots, defaults, kwdefaults)
    if flags & VARARGS:
        slots.append(pack_args(list(args[count:])))
    if flags & VARKEYWORDS:
        slots.append(pack_kwargs(extra))
    return slots


def _bind_keywords(
    code: CodeType, name: str, slots: list[V], kwargs: Mapping[str, V]
) -> dict[str, V]:
    """Fill `slots` by name; what no parameter takes is left over for `**kwargs`."""
    first = code.co_posonlyargcount
    names = code.co_varnames[first : len(slots)]
    extra = {}
    for key, value in kwargs.items():
        if not isinstance(key, str):
            raise BindingError("keywords must be strings")
        if key not in names:
            if not code.co_flags & VARKEYWORDS:
                raise BindingError(_unexpected(code, name, names, key, kwargs))
            extra[key] = value
            continue
        slot = first + names.index(key)
        if slots[slot] is not NULL:
            raise BindingError(f"{name}() got multiple values for argument '{key}'")
        slots[slot] = value
    return extra


def _unexpected(
    code: CodeType, name: str, names: tuple[str, ...], key: str, kwargs: Mapping[str, V]
) -> str:
    if positional := [
        other for other in code.co_varnames[: code.co_posonlyargcount] if other in kwargs
    ]:
        return (
            f"{name}() got some positional-only arguments passed as keyword arguments: "
            f"'{', '.join(positional)}'"
        )
    text = f"{name}() got an unexpected keyword argument '{key}'"
    suggestion = _suggest(list(names), key) if _suggest is not None else None
    return text if suggestion is None else f"{text}. Did you mean '{suggestion}'?"


def _fill_defaults(
    code: CodeType, name: str, slots: list[V], defaults: Sequence[V], kwdefaults: Mapping[str, V]
) -> None:
    count, names = code.co_argcount, code.co_varnames
    required = count - len(defaults)
    if missing := [names[i] for i in range(required) if slots[i] is NULL]:
        raise BindingError(_missing(name, missing, "positional"))
    for i in range(max(required, 0), count):
        if slots[i] is NULL:
            slots[i] = defaults[i - required]
    for i in range(count, len(slots)):
        if slots[i] is NULL:
            slots[i] = kwdefaults.get(names[i], NULL)
    if missing := [names[i] for i in range(count, len(slots)) if slots[i] is NULL]:
        raise BindingError(_missing(name, missing, "keyword-only"))


def _missing(name: str, missing: list[str], kind: str) -> str:
    quoted = [repr(parameter) for parameter in missing]
    if len(quoted) > 2:
        quoted = [", ".join(quoted[:-1]) + ",", quoted[-1]]
    count = len(missing)
    return f"{name}() missing {count} required {kind} argument{_s(count)}: {' and '.join(quoted)}"


def _too_many(code: CodeType, name: str, given: int, defaults: int, slots: list[V]) -> str:
    count = code.co_argcount
    keywords = sum(value is not NULL for value in slots[count:])
    plural = "" if count == 1 and not defaults else "s"
    accepts = f"from {count - defaults} to {count}" if defaults else str(count)
    besides = ""
    if keywords:
        besides = (
            f" positional argument{_s(given)} (and {keywords} keyword-only argument{_s(keywords)})"
        )
    was = "was" if given == 1 and not keywords else "were"
    return f"{name}() takes {accepts} positional argument{plural} but {given}{besides} {was} given"


def _s(count: int) -> str:
    return "" if count == 1 else "s"


def new_frame(  # the parts of a function, then of a frame
    code: CodeType,
    arguments: Sequence[V],
    closure: Sequence[V],
    globals: V,
    builtins: V,
    function: V = None,
    names: V = None,
    hidden: bool = False,
) -> Frame:
    """A frame before its first instruction. `arguments` are `bind_arguments`'s, `closure` the
    function's cells.

    Cells of its own are made by the frame's MAKE_CELL instructions; those of the closure are in
    place from the start.
    """
    decoded = decode(code)
    free = len(decoded.slots) - len(arguments) - len(closure)
    slots = [*arguments, *[NULL] * free, *closure]
    return Frame(decoded, globals, builtins, slots, names=names, function=function, hidden=hidden)
