"""Binding of the arguments of a call to the slots of a frame, by CPython's rules, over opaque
values.

`bind_arguments` gives one value per parameter in slot order (positional, keyword-only, `*args`,
`**kwargs`), or raises `BindingError` with CPython's own text; `new_frame` puts them, and the cells
of the closure, into a frame.
"""

from collections.abc import Callable, Mapping, Sequence
from types import CodeType, FunctionType
from typing import Any

from stator_bytecode._codec._decode import decode
from stator_bytecode._machine._frame import NULL, Frame
from stator_bytecode.errors import InternalError

V = Any
VARARGS, VARKEYWORDS = 0x04, 0x08
_NOTHING = (lambda: None).__code__


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
    extra = dict(kwargs)
    fits = _bind_keywords(code, slots, extra) and (given <= count or bool(flags & VARARGS))
    _fill_defaults(code, slots, defaults, kwdefaults)
    if not fits or any(value is NULL for value in slots):
        raise BindingError(_complaint(code, name, len(defaults), kwdefaults, args, kwargs))

    if flags & VARARGS:
        slots.append(pack_args(list(args[count:])))
    if flags & VARKEYWORDS:
        slots.append(pack_kwargs(extra))
    return slots


def _bind_keywords(code: CodeType, slots: list[V], extra: dict[str, V]) -> bool:
    """Move arguments by name from `extra` to `slots`; return whether all of them fit.

    What no parameter takes is left over for `**kwargs`.
    """
    is_free = True
    for slot in range(code.co_posonlyargcount, len(slots)):
        if (parameter := code.co_varnames[slot]) in extra:
            is_free = is_free and slots[slot] is NULL
            slots[slot] = extra.pop(parameter)
    takes_rest = bool(code.co_flags & VARKEYWORDS) and all(isinstance(key, str) for key in extra)
    return is_free and (takes_rest or not extra)


def _fill_defaults(
    code: CodeType, slots: list[V], defaults: Sequence[V], kwdefaults: Mapping[str, V]
) -> None:
    required = code.co_argcount - len(defaults)
    for slot, value in enumerate(slots):
        if value is not NULL:
            continue
        if slot >= code.co_argcount:
            slots[slot] = kwdefaults.get(code.co_varnames[slot], NULL)
        elif slot >= required:
            slots[slot] = defaults[slot - required]


def _complaint(
    code: CodeType,
    name: str,
    defaults: int,
    kwdefaults: Mapping[str, V],
    args: Sequence[V],
    kwargs: Mapping[str, V],
) -> str:
    """Return the text of CPython for such a call: that of a function with these parameters which
    does nothing."""
    rest = code.co_flags & (VARARGS | VARKEYWORDS)
    names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount + rest.bit_count()]
    body = _NOTHING.replace(
        co_argcount=code.co_argcount,
        co_posonlyargcount=code.co_posonlyargcount,
        co_kwonlyargcount=code.co_kwonlyargcount,
        co_nlocals=len(names),
        co_varnames=names,
        co_flags=_NOTHING.co_flags | rest,
    )

    function = FunctionType(body, {}, None, (None,) * defaults)
    function.__kwdefaults__ = dict.fromkeys(kwdefaults)
    function.__qualname__ = name
    try:
        function(*args, **kwargs)
    except TypeError as error:
        return str(error)
    raise InternalError(f"CPython binds a call of {name} that was refused")


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
