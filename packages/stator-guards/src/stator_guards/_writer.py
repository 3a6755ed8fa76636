"""Turns guards into the lines of a predicate: shared sources become locals, captured objects become
globals.

Every test is one `if not (...): return False`, in an order in which nothing is read before the
guards on what it is read from have passed.
"""

from __future__ import annotations

import builtins
import keyword
import re
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any

from stator_guards._guard import Guard, Kind
from stator_guards._source import LiteralSource, ParameterSource, Source, parents_first

Place = tuple[int, int]
"""The rank at which a source is read, and how deep it lies."""
Places = dict[Source, Place]

LONGEST_EXPRESSION = 200
LONGEST_NAME = 100


def ordered(guards: Iterable[Guard]) -> list[Guard]:
    """The guards without duplicates: parents before children, then the cheap and selective
    first."""
    unique = list(dict.fromkeys(guards))
    own: dict[Source, int] = {}
    read: dict[Source, None] = {}
    for guard in unique:
        kind, source = guard.kind, guard.source
        if source is not None:
            read[source] = None
            if own.get(source, 0) < kind.rank:
                own[source] = kind.rank
        for other in kind.others:
            read[other] = None

    places: Places = {}
    below: Places = {}
    for source in parents_first(read):
        children = source.children
        rank, depth = places[source] = (
            below[children[0]] if len(children) == 1 else _highest(below, children)
        )
        below[source] = (max(rank, own.get(source, 0)), depth + 1)

    keys = [_key(guard, places) for guard in unique]
    return [unique[i] for i in sorted(range(len(unique)), key=keys.__getitem__)]


def _key(guard: Guard, places: Places) -> Place:
    """The rank at which a guard may run (no lower than that of any guard above it), and how deep
    its sources lie."""
    kind, source = guard.kind, guard.source
    above, depth = (
        _highest(places, guard.sources) if source is None or kind.others else places[source]
    )
    return (kind.rank if kind.rank > above else above), depth


def _highest(places: Places, sources: Iterable[Source]) -> Place:
    found = [places[source] for source in sources]
    return max((rank for rank, _ in found), default=0), max(
        (depth for _, depth in found), default=0
    )


def uses(
    guards: Iterable[Guard], is_local: Callable[[Source], bool] = lambda source: False
) -> Counter[Source]:
    """Count how often each source would be written out, unless it is a local; more than once makes
    it one."""
    count: Counter[Source] = Counter()
    for guard in guards:
        if guard.source is not None and not is_local(guard.source):
            count[guard.source] += guard.kind.reads
        count.update(other for other in guard.kind.others if not is_local(other))
    return with_wholes(count)


def with_wholes(count: Counter[Source]) -> Counter[Source]:
    """The count, with what each source is read from counted too."""
    for source in parents_first(list(count)):
        count.update(source.children)
    return count


class Writer:
    """Collects the lines of one function body, and the objects it refers to; the Renderer of
    sources and kinds."""

    def __init__(self, names: Names, count: Counter[Source]) -> None:
        self.lines: list[str] = []
        self.capture, self.once, self.kinds = names.capture, names.once, names.kinds
        self._names = names
        self._count = count
        self._bound: dict[Source, str] = {}

    def value(self, source: Source) -> str:
        """The local or expression for a source; what it is read from is written first, without
        recursion."""
        pending = [source]
        while pending:
            missing = [child for child in self._reads(pending[-1]) if child not in self._bound]
            if missing and pending[-1] not in self._bound:
                pending += missing
            else:
                self._bind(pending.pop())
        return self._bound[source]

    def _reads(self, source: Source) -> tuple[Source, ...]:
        """The sources that the text of a source is made from."""
        return source.children

    def _bind(self, source: Source) -> None:
        if source in self._bound:
            return
        text = source.expression(self)
        shared = self._count[source] > 1 or len(text) > LONGEST_EXPRESSION
        if (
            shared
            and not isinstance(source, ParameterSource | LiteralSource)
            and not text.isidentifier()
        ):
            name = self._names.fresh(source.label)
            self.lines.append(f"{name} = {text}")
            text = name
        self._bound[source] = text

    def take(self, sources: Sequence[Source]) -> str:
        """Give each source a name of its own, for a line that assigns them all."""
        for source in sources:
            self._bound[source] = self._names.fresh(source.label)
        return ", ".join([self._bound[source] for source in sources])

    def arguments(self, sources: Sequence[Source]) -> str:
        return ", ".join(map(self.value, sources))

    def kept(self, fn: Callable[..., object], sources: Sequence[Source]) -> list[str]:
        name = self.capture(fn, getattr(fn, "__name__", "fn"))
        return [f"{name}({self.arguments(sources)})"] if sources else []

    def proven(self, sources: Sequence[Source], kind: type) -> list[Source]:
        return []

    def require(self, test: str, comment: str) -> None:
        line = f"if not ({test}): return False"
        comment = " ".join(comment.splitlines())  # the name of a file may have several
        self.lines.append(f"{line}  # {comment}" if comment else line)

    def write(self, guards: Sequence[Guard]) -> None:
        """Write the tests of ordered guards; kinds that can check several at once do so at their
        first guard."""
        done: set[type[Kind]] = set()
        for guard in guards:
            kind = type(guard.kind)
            if (loop := guard.kind.loop) is not None:
                self._write_loop(*loop)
            elif not kind.batched:
                self._write_one(guard)
            elif kind not in done:
                done.add(kind)
                self.require(
                    kind.test_all([other for other in guards if type(other.kind) is kind], self), ""
                )

    def _write_loop(self, each: Source, objects: Sequence[Source], guards: Sequence[Guard]) -> None:
        """Write the tests of guards that hold for each of several objects."""
        body = Writer(self._names, uses(guards, lambda source: source is each))
        name = body.take([each])
        body.write(guards)
        self.lines.append(f"for {name} in ({', '.join(map(self.value, objects))},):")
        self.lines += [f"    {line}" for line in body.lines]

    def _write_one(self, guard: Guard) -> None:
        value = "" if guard.source is None else self.value(guard.source)
        line = "" if guard.where.line is None else f", {guard.where.filename}:{guard.where.line}"
        name = guard.name if guard.source is None else guard.source.name
        name = name.replace("\n", " ")
        name = name if len(name) <= LONGEST_NAME else f"...{name[-LONGEST_NAME:]}"
        self.require(guard.kind.test(value, self), f"{name}{line}")


class Names:
    """Names of one generated module: no two things share one, one object has one."""

    def __init__(self, taken: Iterable[str], kinds: Iterable[type[Kind]] = ()) -> None:
        self.kinds = frozenset(kinds)
        self.objects: dict[str, object] = {}
        self._taken = set(taken)
        self._by_id: dict[int, str] = {}
        self._made: dict[Hashable, Any] = {}
        self._numbers: Counter[str] = Counter()

    def copy(self) -> Names:
        """The same names so far; what is named from now on is named there only."""
        made = Names(self._taken, self.kinds)
        made.objects, made._by_id = dict(self.objects), dict(self._by_id)
        made._made, made._numbers = self._made, Counter(self._numbers)
        return made

    def once(self, key: Hashable, make: Callable[[], Any]) -> object:
        if key not in self._made:
            self._made[key] = make()
        return self._made[key]

    def capture(self, obj: object, hint: str) -> str:
        """Return the one name of an object; a builtin that nothing hides keeps its own."""
        if id(obj) not in self._by_id:
            is_builtin = vars(builtins).get(hint) is obj and hint not in self._taken
            name = self._by_id[id(obj)] = hint if is_builtin else self.fresh(hint)
            self._taken.add(name)
            self.objects[name] = obj
        return self._by_id[id(obj)]

    def fresh(self, hint: str) -> str:
        stem = re.sub(r"\W+", "_", hint).strip("_")[:40] or "v"
        stem = (
            f"v_{stem}"
            if stem[0].isdigit() or keyword.iskeyword(stem) or stem in vars(builtins)
            else stem
        )
        name = stem
        while name in self._taken:
            self._numbers[stem] += 1
            name = f"{stem}_{self._numbers[stem]}"
        self._taken.add(name)
        return name
