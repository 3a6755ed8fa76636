"""The arguments that a C function accepts, checked before its handler runs, as C does.

A call that C would reject (too many arguments, an unknown keyword) runs natively, so that the error
is CPython's own.
"""

import collections
import functools
import inspect
import itertools
import operator
import types
from types import GeneratorType, MappingProxyType
from typing import Any

import attrs
import torch
from stator_bytecode import HandlerTable, Result

from stator_variables._objects._late_name import LateName
from stator_variables._objects._recipe import KEY_WRAPPER
from stator_variables._space import Space
from stator_variables._tracker import Args, Kwargs

ANY_COUNT = 1 << 30


@attrs.frozen
class Arity:
    """The number of positional arguments (the receiver included) and the keywords that C accepts;
    None: any keyword.

    `required` are the positions and names of parameters that may be passed either way, but must be.
    """

    least: int
    most: int
    named: frozenset[str] | None = frozenset()
    required: tuple[tuple[int, str], ...] = ()

    def accepts(self, args: Args, kwargs: Kwargs) -> bool:
        if not self.least <= len(args) <= self.most:
            return False
        if kwargs and self.named is not None and not kwargs.keys() <= self.named:
            return False
        return all((index < len(args)) is not (name in kwargs) for index, name in self.required)


# run at the first call of `target`: reading hundreds of signatures would slow the import down
@functools.cache
def signature_arity(target: Any) -> Arity:
    """Return the arity of the signature of `target`. Raises ValueError when it has none."""
    parameters = inspect.signature(target, follow_wrapped=False).parameters.values()
    kinds = inspect.Parameter
    positional = [
        p for p in parameters if p.kind in (kinds.POSITIONAL_ONLY, kinds.POSITIONAL_OR_KEYWORD)
    ]
    least = sum(p.kind is kinds.POSITIONAL_ONLY and p.default is kinds.empty for p in positional)
    any_count = any(p.kind is kinds.VAR_POSITIONAL for p in parameters)
    any_name = any(p.kind is kinds.VAR_KEYWORD for p in parameters)

    names = frozenset(
        p.name for p in parameters if p.kind in (kinds.POSITIONAL_OR_KEYWORD, kinds.KEYWORD_ONLY)
    )
    required = tuple(
        (index, p.name)
        for index, p in enumerate(positional)
        if p.kind is kinds.POSITIONAL_OR_KEYWORD and p.default is kinds.empty
    )
    return Arity(
        least, ANY_COUNT if any_count else len(positional), None if any_name else names, required
    )


def _takes(least: int, most: int, *named: str) -> Arity:
    return Arity(least, most, frozenset(named))


GENERIC = (list, dict, tuple, set, frozenset, collections.deque, collections.defaultdict)
"""Classes that are subscripted by C; those below them do as they do."""

STATED: dict[Any, Arity] = {
    **dict.fromkeys((dict, collections.OrderedDict), Arity(0, 1, None)),
    **dict.fromkeys((iter, next), _takes(1, 2)),
    **dict.fromkeys((operator.itemgetter, operator.attrgetter), _takes(1, ANY_COUNT)),
    **{
        cls.__call__: _takes(2, 2)
        for cls in (operator.itemgetter, operator.attrgetter, operator.methodcaller)
    },
    **dict.fromkeys((classmethod, staticmethod), _takes(1, 1)),
    filter: _takes(2, 2),
    super: _takes(0, 2),
    range: _takes(1, 3),
    slice: _takes(1, 3),
    zip: _takes(0, ANY_COUNT, "strict"),
    map: _takes(2, ANY_COUNT),
    functools.partial: Arity(1, ANY_COUNT, None),
    functools.cmp_to_key: Arity(0, 1, frozenset({"mycmp"}), ((0, "mycmp"),)),
    KEY_WRAPPER.__call__: Arity(1, 2, frozenset({"obj"}), ((1, "obj"),)),
    operator.methodcaller: Arity(1, ANY_COUNT, None),
    GeneratorType.send: _takes(2, 2),
    GeneratorType.throw: _takes(2, 4),
    GeneratorType.close: _takes(1, 1),
    MappingProxyType: _takes(1, 1),
    types.MethodType: _takes(2, 2),
    types.SimpleNamespace.__init__: Arity(1, 1, None),
    BaseException.add_note: _takes(2, 2),
    BaseException.with_traceback: _takes(2, 2),
    **{getattr(property, name): _takes(2, 2) for name in ("getter", "setter", "deleter")},
    **{vars(cls)["__class_getitem__"]: _takes(2, 2) for cls in GENERIC},
    **{
        getattr(MappingProxyType, name): _takes(1, 1)
        for name in ("keys", "values", "items", "copy")
    },
    **dict.fromkeys(
        (MappingProxyType.__reversed__, range.__reversed__, torch.Size.numel), _takes(1, 1)
    ),
    MappingProxyType.get: _takes(2, 3),
    torch.autocast_increment_nesting: _takes(0, 0),
    torch.autocast_decrement_nesting: _takes(0, 0),
    torch.clear_autocast_cache: _takes(0, 0),
    torch._C._push_on_torch_function_stack: _takes(1, 1),
    torch.device.__enter__: _takes(1, 1),
    torch.device.__exit__: _takes(1, 4),
    itertools.chain: _takes(0, ANY_COUNT),
    itertools.islice: _takes(2, 4),
}
"""The arities of functions without a signature."""


def checked(table: HandlerTable[Any, Any]) -> HandlerTable[Any, Any]:
    """Return the table with a check of the arguments before each handler of a C function whose
    arity is known.

    A function in Python that does not accept them is interpreted, and raises itself.
    """
    made: HandlerTable[Any, Any] = HandlerTable(table.what)
    for target, handler in table.items():
        made.handles(target)(
            handler
            if isinstance(target, types.FunctionType | LateName)
            else _checking(target, handler)
        )
    return made


@functools.cache
def _arity_of(target: object) -> Arity | None:
    """Return the arity of a function; None if it is unknown."""
    if target in STATED:
        return STATED[target]
    try:
        return signature_arity(target)
    except (ValueError, TypeError):
        return None


def _checking(target: Any, handler: Any) -> Any:
    def run(t: Space, args: Args, kwargs: Kwargs) -> Result:
        if (arity := _arity_of(target)) is not None and not arity.accepts(args, kwargs):
            raise t.unsupported(
                "bad-arguments", f"a call of {target.__qualname__} that it does not accept"
            )
        return handler(t, args, kwargs)

    run.__qualname__ = handler.__qualname__
    run.__module__ = handler.__module__
    return run
