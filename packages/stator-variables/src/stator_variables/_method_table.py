"""Handlers of C methods, with the check of their arguments that C does first.

A call that C would refuse (too many arguments, an unknown keyword, a receiver of another class) runs natively, so that
the error is CPython's own.
"""

from __future__ import annotations

import inspect
import types
from collections.abc import Callable, Collection
from typing import Any

import attrs
from stator_bytecode import HandlerTable

from stator_variables import _calls
from stator_variables import _kinds as k
from stator_variables._tracing import Tracing
from stator_variables._tracker import MISSING

Args = list[Any]
Kwargs = dict[str, Any]
Method = Callable[[Tracing, Args, Kwargs], Any]
ANY_COUNT = 1 << 30


@attrs.frozen
class Arity:
    """How many positional arguments (the receiver included) and which keywords C takes; None: any keyword."""

    least: int
    most: int
    named: frozenset[str] | None = frozenset()

    def accepts(self, args: Args, kwargs: Kwargs) -> bool:
        if not self.least <= len(args) <= self.most:
            return False
        return not kwargs or self.named is None or kwargs.keys() <= self.named


@attrs.define
class MethodTable:
    """`handles(list.pop)` reads the arity from the signature; `takes=(0, 1)` states it, beyond the receiver."""

    what: str
    handlers: HandlerTable[Any, Method] = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self.handlers = HandlerTable(self.what)

    def handles(
        self, *targets: Any, takes: int | tuple[int, int] | None = None, named: Collection[str] | None = ()
    ) -> Callable[[Method], Method]:
        def register(handler: Method) -> Method:
            for target in targets:
                arity = signature_arity(target) if takes is None else _stated(target, takes, named)
                self.handlers.handles(target)(_checked(target, arity, handler))
            return handler

        return register


def signature_arity(target: Any) -> Arity:
    parameters = inspect.signature(target).parameters.values()
    kinds = inspect.Parameter
    positional = [p for p in parameters if p.kind in (kinds.POSITIONAL_ONLY, kinds.POSITIONAL_OR_KEYWORD)]
    least = sum(p.kind is kinds.POSITIONAL_ONLY and p.default is kinds.empty for p in positional)
    any_count = any(p.kind is kinds.VAR_POSITIONAL for p in parameters)
    any_name = any(p.kind is kinds.VAR_KEYWORD for p in parameters)
    names = frozenset(p.name for p in parameters if p.kind in (kinds.POSITIONAL_OR_KEYWORD, kinds.KEYWORD_ONLY))
    return Arity(least, ANY_COUNT if any_count else len(positional), None if any_name else names)


def _stated(target: Any, takes: int | tuple[int, int], named: Collection[str] | None) -> Arity:
    least, most = (takes, takes) if isinstance(takes, int) else takes
    receiver = int(hasattr(target, "__objclass__"))
    return Arity(least + receiver, most + receiver, None if named is None else frozenset(named))


def _checked(target: Any, arity: Arity, handler: Method) -> Method:
    owner = getattr(target, "__objclass__", object)
    if isinstance(target, types.ClassMethodDescriptorType):
        owner = object

    def run(t: Tracing, args: Args, kwargs: Kwargs) -> Any:
        if not arity.accepts(args, kwargs) or not issubclass(args[0].cls, owner):
            raise t.unsupported("bad-arguments", f"a call of {target.__qualname__} that it does not accept")
        if type(args[0]) is k.ObjectTracker and owner is not object:
            raise t.unsupported("foreign-object", f"{target.__qualname__} of an existing {args[0].cls.__name__}")
        if isinstance(args[0], k.ConstantTracker) and owner is not object:
            folded = _calls.fold(t, target, args, kwargs)
            if folded is not MISSING:
                return folded
            args = [_opened(args[0]), *args[1:]]
        return handler(t, args, kwargs)

    run.__qualname__ = handler.__qualname__
    run.__module__ = handler.__module__
    return run


def _opened(vt: Any) -> Any:
    """A constant tuple (a torch.Size) as a tracker with items."""
    if isinstance(vt.value, tuple):
        return k.TupleTracker([k.ConstantTracker(item) for item in vt.value], vt.cls)
    return vt
