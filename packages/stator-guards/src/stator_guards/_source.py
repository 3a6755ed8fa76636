"""Places that values are read from: the base of all sources, and the sources a chain starts from.

A source is a small immutable tree. It renders to a Python expression over the parameters of an
entry and captured objects, and can be evaluated directly, which is what the slow mirror of a
predicate does. Start with `Source`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, Protocol, TypeAlias, TypeVar

import attrs
from stator_bytecode import is_own_module

from stator_guards._cells import Cells
from stator_guards._object_ref import ObjectRef

F = TypeVar("F", bound=Callable[..., object])

State = Mapping[str, object]
"""The values of an entry's parameters, by name."""
Once: TypeAlias = Callable[[Hashable, Callable[[], Any]], Any]
"""Called with a key and a function: what the function makes, once per key however often the guards
are written out."""


def parents_first(sources: Iterable[Source]) -> dict[Source, None]:
    """The sources and all they read from, each after what it reads from."""
    found: dict[Source, None] = {}
    pending = [*sources][::-1]
    while pending:
        source = pending[-1]
        missing = [child for child in source.children if child not in found]
        if missing and source not in found:
            pending += missing
        else:
            found[pending.pop()] = None
    return found


def shown_as(words: str) -> Callable[[F], F]:
    """Set the words by which messages call what a function gives, since the program does not call
    it.

    `{0}` is replaced by the name of the first argument, `{all}` for the names of all.
    """

    def mark(fn: F) -> F:
        setattr(fn, "shown_as", words)
        return fn

    return mark


class Renderer(Protocol):
    """The services that a source or a kind needs while it is rendered as text."""

    def value(self, source: Source) -> str:
        """An expression (often a local name) for the value of `source`."""

    def capture(self, obj: object, hint: str) -> str:
        """A name by which the generated code reaches `obj`."""

    def arguments(self, sources: Sequence[Source]) -> str:
        """The values of `sources` as arguments of a call, in order."""

    @property
    def once(self) -> Once: ...

    @property
    def kinds(self) -> frozenset[type]:
        """The kinds of all guards that are tested together."""


class GuardRenderer(Renderer, Protocol):
    """A renderer of predicates, which may keep values of sources that are watched."""

    def kept(self, fn: Callable[..., object], sources: Sequence[Source]) -> list[str]:
        """Return expressions for `fn` of the values, in parts; computed once where the sources are
        watched."""

    def proven(self, sources: Sequence[Source], kind: type) -> list[Source]:
        """Return the sources of which words of memory prove a guard of this kind."""


class Source:
    """A place a value is read from. Two equal sources always give the same value; `name` is for
    people."""

    __slots__ = ("_hash",)
    __match_args__: ClassVar[tuple[str, ...]] = ()

    _hash: int

    @property
    def identity(self) -> tuple[Hashable, ...]:
        """The fields, which identify a place among the sources of one class."""
        return tuple(getattr(self, field) for field in self.__match_args__)

    def __eq__(self, other: object) -> bool:
        # chains are shared, so comparing identities first keeps this from walking down to the
        # parameter
        if self is other:
            return True
        if (
            type(self) is not type(other)
            or not isinstance(other, Source)
            or hash(self) != hash(other)
        ):
            return False
        return self.identity == other.identity

    def __hash__(self) -> int:
        try:
            return self._hash
        except AttributeError:
            object.__setattr__(self, "_hash", hash((type(self), *self.identity)))
            return self._hash

    @property
    def base(self) -> Source | None:
        """The source this one reads from, None at the start of a chain."""
        return None

    def steps(self) -> Iterator[Source]:
        """Yield this source, the one it reads from, and so on to the start of the chain."""
        step: Source | None = self
        while step is not None:
            yield step
            step = step.base

    @property
    def children(self) -> tuple[Source, ...]:
        """All sources this one reads from."""
        return (self.base,) if self.base is not None else ()

    @property
    def name(self) -> str:
        raise NotImplementedError

    @property
    def description(self) -> str:
        """The name in the words of the program, for messages: no parameter or function of generated
        code."""
        return self.name

    def described_item(self, key: object) -> str | None:
        """Return the program's own name for an item; None where it has none."""
        return None

    @property
    def label(self) -> str:
        """The last part of the name, to name a local after."""
        return self.name

    def expression(self, render: Renderer) -> str:
        raise NotImplementedError

    def evaluate(self, state: State) -> Any:
        raise NotImplementedError

    def watch(self, whole: object, value: object, cells: Cells) -> bool:
        """Watch that reading from `whole` keeps giving `value`; False when it must be read on every
        call."""
        return False

    def __str__(self) -> str:
        return self.description


@attrs.frozen(eq=False)
class ParameterSource(Source):
    """A parameter of the entry; `shown` gives the words for it when a message needs them, and
    `shown_items` those for its items, where the program has other names for them."""

    parameter: str
    shown: Callable[[], str] | None = attrs.field(default=None, kw_only=True, repr=False)
    shown_items: Mapping[object, str] | None = attrs.field(default=None, kw_only=True, repr=False)

    @property
    def name(self) -> str:
        return self.parameter

    @property
    def description(self) -> str:
        return self.parameter if self.shown is None else self.shown()

    def described_item(self, key: object) -> str | None:
        return None if self.shown_items is None else self.shown_items.get(key)

    def expression(self, render: Renderer) -> str:
        return self.parameter

    def evaluate(self, state: State) -> Any:
        return state[self.parameter]


@attrs.frozen(eq=False, init=False)
class CapturedSource(Source):
    """An object the predicate itself refers to: a globals dict, a class, a function.

    A weak one that died reads as GONE, which no guard accepts.
    """

    text: str
    held: ObjectRef
    is_scope: bool = attrs.field(default=False, kw_only=True)
    """The object is a namespace whose names the program writes without it: globals or builtins."""

    def __init__(
        self, label: str, obj: object, *, weak: bool = False, is_scope: bool = False
    ) -> None:
        self.__attrs_init__(label, ObjectRef.of(obj, weak=weak), is_scope=is_scope)

    @property
    def name(self) -> str:
        return self.text

    def expression(self, render: Renderer) -> str:
        if self.held.weak:
            return f"{render.capture(self.held.get, 'get_' + self.text)}()"
        return render.capture(self.held.get(), self.text)

    def evaluate(self, state: State) -> Any:
        return self.held.get()

    def watch(self, whole: object, value: object, cells: Cells) -> bool:
        return not self.held.weak


@attrs.frozen(eq=False)
class LiteralSource(Source):
    """A number or text that is known, as an argument of a function: equal ones are the same
    place."""

    value: bool | int | float | str | None

    @property
    def identity(self) -> tuple[Hashable, ...]:
        return type(self.value).__name__, repr(self.value)

    @property
    def name(self) -> str:
        return repr(self.value)

    def expression(self, render: Renderer) -> str:
        is_written = not isinstance(self.value, float) or math.isfinite(self.value)
        return repr(self.value) if is_written else render.capture(self.value, "number")

    def evaluate(self, state: State) -> Any:
        return self.value


@attrs.frozen(eq=False, init=False)
class CallSource(Source):
    """The result of a pure captured function on other sources: an iterator's state, the length of a
    deque."""

    fn: Callable[..., object]
    arguments: tuple[Source, ...]

    @property
    def identity(self) -> tuple[Hashable, ...]:
        return (id(self.fn), self.arguments)

    def __init__(self, fn: Callable[..., object], *arguments: Source) -> None:
        self.__attrs_init__(fn, arguments)
        # now, while those of the arguments are known: later it would recurse along the chain
        hash(self)

    @property
    def base(self) -> Source | None:
        return self.arguments[0] if self.arguments else None

    @property
    def children(self) -> tuple[Source, ...]:
        return self.arguments

    @property
    def label(self) -> str:
        return getattr(self.fn, "__name__", "call")

    @property
    def name(self) -> str:
        return f"{self.label}({', '.join(source.name for source in self.arguments)})"

    @property
    def description(self) -> str:
        """The call as text; of a function of ours, the words that `shown_as` gave it."""
        given = [source.description for source in self.arguments]
        words: str | None = getattr(self.fn, "shown_as", None)
        if words is not None:
            return words.format(*given, all=" and ".join(given))
        if not _is_internal(self.fn):
            return f"{self.label}({', '.join(given)})"
        return f"a property of {' and '.join(given)}" if given else "the state of the process"

    def expression(self, render: Renderer) -> str:
        return (
            f"{render.capture(self.fn, self.label)}({', '.join(map(render.value, self.arguments))})"
        )

    def evaluate(self, state: State) -> Any:
        return self.fn(*(source.evaluate(state) for source in self.arguments))


def _is_internal(fn: Callable[..., object]) -> bool:
    """Return True for a function that the program cannot name: of these packages, or without a
    name."""
    module = getattr(fn, "__module__", None) or ""
    has_name = str(getattr(fn, "__name__", "")).isidentifier()
    return not has_name or is_own_module(module)
