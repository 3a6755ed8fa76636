"""Handlers of C functions and methods, with the check of their arguments that C does first, and
what they give back.

A call that C would refuse (too many arguments, an unknown keyword, a receiver of another class)
runs natively, so that the error is CPython's own.
"""

import collections
import functools
import operator
import types
from collections.abc import Callable, Collection, Generator, Iterable, Mapping
from typing import Any, TypeVar

import attrs
from stator_bytecode import HandlerTable, Result, after, settle
from stator_guards import CapturedSource

from stator_variables._objects import _number
from stator_variables._objects._arity import Arity, signature_arity
from stator_variables._objects._tuple import TupleTracker
from stator_variables._space import Space
from stator_variables._tracker import MISSING, Args, Kwargs, VariableTracker, is_a
from stator_variables._trackers import NONE, ConstantTracker, ObjectTracker

Method = Callable[..., Any]
"""Gets the tracing, the receiver and the arguments in their places: `pop(t, vt, index=None)`."""
F = TypeVar("F", bound=Method)


@attrs.define
class MethodTable:
    """`handles(list.pop)` reads the arity from the signature; `takes=(0, 1)` states it, beyond the
    receiver."""

    what: str
    handlers: HandlerTable[Any, Callable[[Space, Args, Kwargs], Any]] = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self.handlers = HandlerTable(self.what)

    def handles(
        self,
        *targets: object,
        takes: int | tuple[int, int] | None = None,
        named: Collection[str] | None = (),
    ) -> Callable[[F], F]:
        def register(handler: F) -> F:
            for target in targets:
                if takes is None and not getattr(target, "__text_signature__", None):
                    raise ValueError(f"{target!r} has no signature: state what it takes")
                stated = None if takes is None else _stated(target, takes, named)
                self.handlers.handles(target)(_checked(target, stated, handler))
            return handler

        return register

    def handles_each(self, family: Mapping[Any, Any], **stated: Any) -> Callable[[F], F]:
        """Register one handler for several functions; `of` is what the family has for the one that
        is called."""

        def register(handler: F) -> F:
            for target, fact in family.items():
                bound = functools.partial(handler, of=fact)
                self.handles(target, **stated)(functools.update_wrapper(bound, handler))
            return handler

        return register


def _stated(target: object, takes: int | tuple[int, int], named: Collection[str] | None) -> Arity:
    least, most = (takes, takes) if isinstance(takes, int) else takes
    receiver = int(hasattr(target, "__objclass__"))
    return Arity(least + receiver, most + receiver, None if named is None else frozenset(named))


def _checked(
    target: Any, stated: Arity | None, handler: Method
) -> Callable[[Space, Args, Kwargs], Any]:
    owner = getattr(target, "__objclass__", object)
    if isinstance(target, types.ClassMethodDescriptorType):
        owner = object
    unordered = getattr(target, "__name__", "") in vars(collections.OrderedDict)

    def run(t: Space, args: Args, kwargs: Kwargs) -> Result:
        arity = stated or signature_arity(target)
        if not arity.accepts(args, kwargs) or not (
            owner is object or issubclass(args[0].cls, owner)
        ):
            raise t.unsupported(
                "bad-arguments", f"a call of {target.__qualname__} that it does not accept"
            )
        if owner is object:
            return handler(t, *args, **kwargs)

        if owner is dict and unordered and issubclass(args[0].cls, collections.OrderedDict):
            raise t.unsupported(
                "bad-arguments", f"a call of {target.__qualname__}, which ignores the order"
            )
        if type(args[0]) is ObjectTracker:
            raise t.unsupported(
                "foreign-object", f"{target.__qualname__} of an existing {args[0].cls.__name__}"
            )

        if is_a(args[0], ConstantTracker) and not _number.has_texts([*args, *kwargs.values()]):
            folded = t.fold(target, args, kwargs)
            if folded is not MISSING:
                return folded
        args = [opened(args[0]), *args[1:]]
        return handler(t, *args, **kwargs)

    run.__qualname__ = handler.__qualname__
    run.__module__ = handler.__module__
    return run


def opened(vt: VariableTracker) -> Any:
    """A constant tuple (a member of an Enum of tuples) as a tracker with items."""
    if is_a(vt, ConstantTracker) and issubclass(vt.cls, tuple):
        return TupleTracker([ConstantTracker(item) for item in vt.value], vt.cls)
    return vt


# What handlers give back: a call of our own Python in place of C, a settled bool, None, a folded
# constant.


def app_level(t: Space, function: Any, args: Args, kwargs: Kwargs | None = None) -> Result:
    """Call a Python function of ours in place of a C one."""
    return t.call(t.wrap(function, CapturedSource(function.__qualname__, function)), args, kwargs)


def as_constant(result: Result) -> Result:
    return after(result, ConstantTracker)


def then(result: Result, value: VariableTracker = NONE) -> Result:
    """`value`, once `result` is there."""
    return after(result, lambda _: value)


def settle_all(results: Iterable[Any]) -> Generator[Any, Any, list[Any]]:
    """Return the values of several Results, each evaluated after those before it."""
    found = []
    for result in results:
        found.append((yield from settle(result)))
    return found


def folded(t: Space, function: Any, args: Args, kwargs: Kwargs) -> Result:
    if (found := t.fold(function, args, kwargs)) is MISSING:
        raise t.unsupported(
            "builtin", f"{function.__name__}() of values that are not known while tracing"
        )
    return found


COMPARISONS = {
    "<": ("__lt__", "__gt__", operator.lt),
    "<=": ("__le__", "__ge__", operator.le),
    "==": ("__eq__", "__eq__", operator.eq),
    "!=": ("__ne__", "__ne__", operator.ne),
    ">": ("__gt__", "__lt__", operator.gt),
    ">=": ("__ge__", "__le__", operator.ge),
}


def comparisons(*classes: type) -> dict[Any, str]:
    """Return the symbols of the methods by which these classes compare."""
    return {
        getattr(cls, name): symbol for symbol, (name, *_) in COMPARISONS.items() for cls in classes
    }
