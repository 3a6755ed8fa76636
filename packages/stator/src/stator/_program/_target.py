"""The target of a compilation: a function from its start, or a continuation from the Point of a
break."""

from __future__ import annotations

import builtins
import inspect
import keyword
import re
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from types import CodeType, FunctionType, MappingProxyType
from typing import Any

import attrs
import torch
from stator_bytecode import FlatState, Frame, Point, plain
from stator_guards import CapturedSource, ParameterSource, Source
from stator_variables import (
    Space,
    SymbolicDomain,
    function_frame,
    globals_tracker,
    may_have_observable_end,
    wrap,
    wrap_paths,
)

from stator._program._local_ends import WHILE_TRACED, observed_ends
from stator.errors import SourceSpan


@attrs.frozen(eq=False)
class Root:
    """A function from its first instruction; its state are its parameters, `*args` and `**kwargs`
    as they are bound.

    `fn` is None where functions with the same code share entries: the state begins with the
    function.
    """

    fn: FunctionType | None
    parameters: tuple[str, ...]
    code: CodeType
    namespace: dict[str, Any]
    """The globals of the function."""
    name: str
    """The name in reports and warnings: of a module, that of its class and `forward`."""

    @classmethod
    def of(cls, fn: FunctionType, name: str = "") -> Root:
        code, name = fn.__code__, name or fn.__qualname__
        if "<" in code.co_qualname:  # of a function or a lambda, which makes new ones
            names = (FUNCTION, *parameters_of(code))
            return cls(None, entry_names(names), code, fn.__globals__, name)
        return cls(fn, entry_names(parameters_of(code)), code, fn.__globals__, name)

    @property
    def identity(self) -> tuple[int, int]:
        """A key that is equal for functions which share entries, while this root exists."""
        return (id(self.code) if self.fn is None else id(self.fn)), id(self.namespace)

    def is_stale(self, state: FlatState) -> bool:
        """Return True if the function was given code with another signature: state is bound as it
        was before."""
        code = (self.fn or state[0]).__code__
        return code is not self.code and _signature(code) != _signature(self.code)

    def frames(self, tracing: Space, domain: SymbolicDomain, state: FlatState) -> list[Frame]:
        pairs = zip(state, self.sources(state).values(), strict=True)
        trackers = [wrap(tracing, value, source) for value, source in pairs]
        if self.fn is None:
            function, *trackers = trackers
        else:
            function = wrap(tracing, self.fn, CapturedSource(self.fn.__name__, self.fn))
        frame = function_frame(tracing, function, trackers)
        # made of a module's code: its names are its globals
        if not frame.code.raw.co_flags & inspect.CO_OPTIMIZED:
            frame.names = frame.globals
        return [frame]

    def sources(self, state: FlatState) -> dict[str, Source]:
        """Return the sources of the parameters, by the names that they have in entries."""
        names = parameters_of(self.code)
        if self.fn is None:
            names = (FUNCTION, *names)
        made = _sources_of(self.parameters, lambda: names, _items_of_call(self.code, state))
        return dict(zip(self.parameters, made, strict=True))

    def plain(self) -> Callable[..., Any]:
        """The function itself, called with the flat state."""
        given: tuple[Any, ...] = () if self.fn is None else (self.fn,)
        return partial(_run, self.code, *given)


FUNCTION = "function"
"""The parameter of an entry for the function that runs, where several share the entry."""


def _run(code: CodeType, fn: FunctionType, /, *state: Any) -> Any:
    positional, count = code.co_argcount, code.co_argcount + code.co_kwonlyargcount
    has_args, has_kwargs = (
        code.co_flags & inspect.CO_VARARGS,
        code.co_flags & inspect.CO_VARKEYWORDS,
    )
    rest = state[count:]
    named = dict(zip(code.co_varnames[positional:count], state[positional:], strict=False))
    more = rest[0] if has_args else ()
    extra = rest[-1] if has_kwargs else {}
    return fn(*state[:positional], *more, **named, **extra)


_HAS_MORE = inspect.CO_VARARGS | inspect.CO_VARKEYWORDS


def parameters_of(code: CodeType) -> tuple[str, ...]:
    has_more = code.co_flags & _HAS_MORE
    return code.co_varnames[: code.co_argcount + code.co_kwonlyargcount + has_more.bit_count()]


def _signature(code: CodeType) -> tuple[Any, ...]:
    counts = code.co_posonlyargcount, code.co_argcount, code.co_kwonlyargcount
    return *counts, code.co_flags & _HAS_MORE, parameters_of(code)


@attrs.frozen(eq=False)
class Continuation:
    """The whole frame stack after a break."""

    point: Point
    parameters: tuple[str, ...] = attrs.field(init=False)
    _plain: list[Callable[..., Any]] = attrs.field(factory=list, init=False)

    @parameters.default
    def _parameters(self) -> tuple[str, ...]:
        return entry_names(self.point.parameters)

    @property
    def name(self) -> str:
        frame = self.point.frames[-1]
        line = frame.instruction.positions[0]
        return f"{frame.code.raw.co_qualname} from line {line}"

    def is_stale(self, state: FlatState) -> bool:
        return False

    def frames(self, tracing: Space, domain: SymbolicDomain, state: FlatState) -> list[Frame]:
        ending = observed_ends(state, range(len(state)), WHILE_TRACED)
        tracing.lifetimes.observable = {id(state[place]) for place in ending}
        tracing.lifetimes.local_places = {id(value): place for place, value in enumerate(state)}
        trackers = wrap_paths(tracing, state, [*self.sources(state).values()])

        tracing.lifetimes.stack_only = [
            vt
            for vt, value in zip(trackers, state, strict=True)
            if may_have_observable_end(type(value))
        ]
        return self.point.frames_from(
            trackers,
            domain.make_generator,
            lambda namespace: globals_tracker(tracing, namespace),
            lambda recipe, parts: recipe.tracker(tracing, parts),
        )

    def sources(self, state: FlatState) -> dict[str, Source]:
        """Return the sources of the state, by the names that its values have in entries."""
        made = _sources_of(self.parameters, lambda: self.point.descriptions)
        return dict(zip(self.parameters, made, strict=True))

    def plain(self) -> Callable[..., Any]:
        """Return the native continuation. It is made once, as every call past the recompile limit
        needs it."""
        if not self._plain:
            self._plain.append(plain(self.point))
        return self._plain[0]


Target = Root | Continuation


def start_of(target: Target) -> SourceSpan:
    """The first line of a function; of a continuation, that of its innermost frame's."""
    return SourceSpan.of(
        target.code if isinstance(target, Root) else target.point.frames[-1].code.raw
    )


# What the source of an entry uses for itself: its locals, what it captures, and every builtin.
_OWN_NAMES = re.compile(r"g|before|error|torch|v\d+|r\d+_\d+|\w*_\d+")


def entry_names(names: Iterable[str]) -> tuple[str, ...]:
    """Parameters of an entry, named after the program's, none of them a name that the entry's text
    uses itself."""
    found: list[str] = []
    for index, name in enumerate(names):
        free = name if name.isidentifier() else f"argument{index}"
        while (
            free in found
            or free in vars(builtins)
            or keyword.iskeyword(free)
            or _OWN_NAMES.fullmatch(free)
        ):
            free += "_"
        found.append(free)
    return tuple(found)


def _sources_of(
    parameters: tuple[str, ...],
    descriptions: Callable[[], tuple[str, ...]],
    items: Mapping[int, Mapping[object, str]] = MappingProxyType({}),
) -> list[Source]:
    return [
        ParameterSource(
            name,
            shown=partial(_item_of, descriptions, index),
            shown_items=items.get(index),
        )
        for index, name in enumerate(parameters)
    ]


def _items_of_call(code: CodeType, state: FlatState) -> Mapping[int, Mapping[object, str]]:
    """Return the names that `forward` has for what the call of a module gets as `*args` and
    `**kwargs`."""
    if code is not torch.nn.Module._call_impl.__code__:
        return {}
    forward = getattr(type(state[0]), "forward", None)
    if type(forward) is not FunctionType:
        return {}
    raw = forward.__code__
    count = raw.co_argcount
    positional: dict[object, str] = dict(enumerate(raw.co_varnames[1:count]))
    names = raw.co_varnames[1 : count + raw.co_kwonlyargcount]
    return {1: positional, 2: {name: name for name in names}}


def _item_of(items: Callable[[], tuple[str, ...]], index: int) -> str:
    return items()[index]
