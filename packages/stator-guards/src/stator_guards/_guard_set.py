"""The compiled form of a set of guards: a generated predicate, its text, and a slow mirror that explains itself."""

from __future__ import annotations

import itertools
import linecache
import weakref
from collections.abc import Callable, Iterable, Sequence

import attrs

from stator_guards._kind import CANNOT_READ, Failure, Guard, Kind
from stator_guards._memory import Layout, layout
from stator_guards._plan import Plan
from stator_guards._source import State
from stator_guards._watch import Watching, is_worth_watching
from stator_guards._watched_writer import write_watched
from stator_guards._writer import Names, Writer, ordered, uses
from stator_guards.errors import InvalidUse

Predicate = Callable[..., bool]

_numbers = itertools.count()


@attrs.define(eq=False)
class GuardSet:
    """`check(*state)` says whether all guards hold. Immutable but for what its watches remember."""

    guards: tuple[Guard, ...]
    """The guards in the order they are tested, implied ones included."""
    parameters: tuple[str, ...]
    check: Predicate
    source: str
    filename: str

    def state(self, values: Sequence[object]) -> State:
        return dict(zip(self.parameters, values, strict=True))

    def mirror(self, *state: object) -> bool:
        """What `check` gives, evaluated one by one without generated code."""
        named = self.state(state)
        return all(guard.holds(named) for guard in self.guards)

    def explain(self, *state: object) -> list[Failure]:
        """Why `check(*state)` is False, most telling failure first; empty only when it is True."""
        named = self.state(state)
        failures = [guard.explain(named) for guard in self.guards if not guard.holds(named)]
        if not failures and not self.check(*state):
            failures = [Guard(None, Unexplained()).explain(named)]
        return failures

    @property
    def is_gone(self) -> bool:
        """Whether the set can never hold again, because an object it is about died."""
        return any(guard.kind.is_gone for guard in self.guards)


@attrs.frozen
class Unexplained(Kind):
    """The predicate failed while every guard holds by now: the state changed in between."""

    @property
    def needed(self) -> str:
        return "a state in which all guards hold"

    def found(self, value: object, state: State) -> str:
        return "one in which they did not hold a moment ago"

    @property
    def fix(self) -> str:
        return "do not change the inputs from another thread during the call"


def compile_guards(guards: Iterable[Guard], parameters: Sequence[str], *, watch: bool = True) -> GuardSet:
    """Compile guards over an entry's parameters into a predicate with readable source.

    With `watch`, guards on what rarely changes are verified by memory words where the interpreter has them.
    """
    _check_parameters(parameters)
    given = ordered(guards)
    names = Names([*parameters, "check", "watched_check"])
    writer = Writer(names, uses(given))
    writer.write(given)
    source = _function("check", parameters, writer.lines, names.capture(CANNOT_READ, "CANNOT_READ"))
    filename = f"<stator guards {next(_numbers)}>"
    walk = load(source, filename, names.objects)["check"]
    guard_set = GuardSet(tuple(_with_implied(given)), tuple(parameters), walk, source, filename)
    weakref.finalize(guard_set, linecache.cache.pop, filename, None).atexit = False
    known = layout()
    if watch and known is not None and is_worth_watching(given):
        _watch(guard_set, given, names, known)
    return guard_set


def _watch(guard_set: GuardSet, guards: list[Guard], names: Names, known: Layout) -> None:
    walk, walk_source = guard_set.check, guard_set.source
    cannot_read = names.capture(CANNOT_READ, "CANNOT_READ")

    parameters, filename, owner = guard_set.parameters, guard_set.filename, weakref.ref(guard_set)

    def state(values: Sequence[object]) -> State:
        return dict(zip(parameters, values, strict=True))

    def install(watching: Watching, plan: Plan | None) -> None:
        target = owner()  # weakly: the watching belongs to the set, and what guards refer to is to die with it
        if target is None:
            return
        if plan is None:
            target.check, target.source = walk, walk_source
            return
        lines = write_watched(plan, watching, names, parameters)
        target.source = f"{walk_source}\n\n{_function('watched_check', parameters, lines, cannot_read)}"
        target.check = load(target.source, filename, names.objects)["watched_check"]

    guard_set.check = Watching(walk, guards, state, known, install).first


def _check_parameters(parameters: Sequence[str]) -> None:
    if bad := [name for name in parameters if not name.isidentifier()]:
        raise InvalidUse(f"parameters of a predicate must be identifiers, not {bad}", "rename them")


def _with_implied(guards: list[Guard]) -> list[Guard]:
    kinds = dict.fromkeys(type(guard.kind) for guard in guards)
    implied = [extra for kind in kinds for extra in kind.implied([g for g in guards if type(g.kind) is kind])]
    return [*guards, *implied]


def _function(name: str, parameters: Sequence[str], lines: Sequence[str], cannot_read: str) -> str:
    body = "".join(f"        {line}\n" for line in lines)
    return (
        f"def {name}({', '.join(parameters)}):\n"
        f"    try:\n{body}        return True\n"
        f"    except {cannot_read}:\n        return False\n"
    )


def load(source: str, filename: str, objects: dict[str, object]) -> dict[str, Predicate]:
    """Run generated source whose lines debuggers and tracebacks can show."""
    linecache.cache[filename] = (len(source), None, source.splitlines(keepends=True), filename)
    made: dict[str, Predicate] = {}
    # Apart from their globals: a function that can be found in its own globals dies only when the collector comes by.
    exec(compile(source, filename, "exec"), {**objects}, made)
    return made
