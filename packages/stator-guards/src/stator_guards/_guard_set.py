"""The compiled form of a set of guards: a generated predicate, its text, and a slow mirror that
explains itself."""

import itertools
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property, partial

import attrs

from stator_guards._dispatch import Discriminants, discriminants
from stator_guards._equal_roots import EqualRoots, expanded
from stator_guards._guard import Failure, Guard, Kind
from stator_guards._loads import Loads
from stator_guards._memory import ObjectLayout, layout
from stator_guards._plan import Plan
from stator_guards._source import Source, State, parents_first
from stator_guards._walk import Predicate, Walk, load_source, predicate_text
from stator_guards._watch import Watching, is_worth_watching
from stator_guards._watched_writer import write_watched
from stator_guards._writer import Names, ordered
from stator_guards.errors import InvalidUse

_numbers = itertools.count()


@attrs.define(eq=False)
class GuardSet:
    """Compiled guards: `check(*state)` returns True if all hold. Immutable but for the state of its
    watches."""

    tested: tuple[Guard, ...]
    """The guards in the order they are tested, implied ones included; one for the equal facts about
    several objects."""
    parameters: tuple[str, ...]
    check: Predicate
    walk: Walk
    watched: str = ""
    """The text of the predicate that reads memory words, once there is one."""
    watching: Watching | None = None

    @property
    def guards(self) -> tuple[Guard, ...]:
        """The guards with one for each fact and object."""
        return tuple(expanded(self.tested))

    @property
    def filename(self) -> str:
        return self.walk.filename

    @property
    def source(self) -> str:
        """The text of the function that may run as `check`, written on demand."""
        return "\n\n".join(filter(None, (self.walk.source(), self.watched)))

    def state(self, values: Sequence[object]) -> State:
        return self.walk.state(values)

    @cached_property
    def discriminants(self) -> Discriminants:
        """Cases that exclude this set, see `_dispatch`."""
        return discriminants(self.tested)

    def serve(self, loads: Loads) -> None:
        """Give values that the watched predicate has read to `loads`, whose call follows a
        check."""
        if self.watching is not None:
            self.watching.loads.append(loads)

    def mirror(self, *state: object) -> bool:
        """Evaluate the guards one by one, without generated code."""
        named = self.state(state)
        return all(guard.holds(named) for guard in self.tested)

    def explain(self, *state: object) -> list[Failure]:
        """Explain why `check(*state)` is False, most informative failure first; empty only when it
        is True."""
        named = self.state(state)
        failures = [guard.explain(named) for guard in _failing(self.tested, named)]
        if not failures and not self.check(*state):
            failures = [Guard(None, Unexplained()).explain(named)]
        return failures

    def mend(self, *state: object) -> bool:
        """Mend the guards that fail; return whether all hold then. See `Kind.mend`."""
        if all(guard.kind.turn is None for guard in self.tested):
            return False
        named = self.state(state)
        for _ in self.tested:
            failing = list(_failing(self.tested, named))
            if not failing or any(guard.kind.turn is None for guard in failing):
                return not failing and self.check(*state)
            # one at a time: others may depend on it
            if not min(failing, key=lambda guard: guard.kind.turn or 0).mend(named):
                return False
        return False

    @property
    def is_gone(self) -> bool:
        """True if the set can never hold again, because an object it is about died."""
        return any(guard.kind.is_gone for guard in self.tested)


def _failing(guards: Iterable[Guard], state: State) -> Iterator[Guard]:
    """Yield the guards that fail.

    Guards on parts of a value that failed itself are skipped: it may be an iterator that was a
    dict.
    """
    other: set[Source] = set()
    for guard in guards:
        if other and not other.isdisjoint(parents_first(guard.sources)):
            continue
        if isinstance(guard.kind, EqualRoots):
            for failing in _failing(guard.kind.failing(state), state):
                other.update(failing.sources)
                yield failing
        elif not guard.holds(state):
            other.update(guard.sources)
            yield guard


@attrs.frozen
class Unexplained(Kind):
    """The predicate failed while every guard holds by now: the state changed in between."""

    needs = "a state in which all guards hold"
    finds = "one in which they did not hold a moment ago"
    fix = "do not change the inputs from another thread during the call"


def compile_guards(
    guards: Iterable[Guard],
    parameters: Sequence[str],
    *,
    watch: bool = True,
    is_lasting: Callable[[object], bool] = lambda value: True,
) -> GuardSet:
    """Compile guards over an entry's parameters into a predicate with readable source.

    With `watch`, guards on what rarely changes are verified by memory words where the interpreter
    has them; those on a root object that the next call is likely to replace, one that is not
    `is_lasting`, are tested unless there are many.
    """
    _check_parameters(parameters)
    given = ordered(guards)
    names = Names([*parameters, "check", "watched_check"], {type(guard.kind) for guard in given})
    implied = _implied(given, names)
    walk = Walk(given, implied, tuple(parameters), names, f"<stator guards {next(_numbers)}>")
    guard_set = GuardSet((*given, *implied), tuple(parameters), walk, walk)
    walk.on_written = partial(_install, weakref.ref(guard_set))
    known = layout()
    if watch and known is not None and is_worth_watching(given):
        _watch(guard_set, given, names, known, is_lasting)
    return guard_set


def _install(owner: Callable[[], GuardSet | None], written: Predicate) -> None:
    """Install the predicate as `check`, without a call between, if nothing is watched.

    The set is referred to weakly, since its lifetime must not depend on its predicate.
    """
    guard_set = owner()
    if guard_set is not None and guard_set.check is guard_set.walk:
        guard_set.check = written


def _watch(
    guard_set: GuardSet,
    guards: list[Guard],
    names: Names,
    known: ObjectLayout,
    is_lasting: Callable[[object], bool],
) -> None:
    walk, filename, parameters = (
        guard_set.walk,
        f"{guard_set.filename[:-1]}, watched>",
        guard_set.parameters,
    )
    owner = weakref.ref(guard_set)

    def install(watching: Watching, plan: Plan | None) -> None:
        # weakly: the watching belongs to the set, and what guards refer to is to die with it
        target = owner()
        if target is None:
            return
        if plan is None:
            target.check, target.watched = walk.settled(), ""
            return
        own = names.copy()  # a cycle otherwise: `watching`, the walk, `names`
        lines = write_watched(plan, watching, own)
        target.watched = predicate_text("watched_check", parameters, lines, own)
        target.check = load_source(target.watched, filename, own.objects, target)["watched_check"]

    guard_set.watching = Watching(walk, guards, known, install, is_lasting)
    guard_set.check = guard_set.watching.first


def _check_parameters(parameters: Sequence[str]) -> None:
    if bad := [name for name in parameters if not name.isidentifier()]:
        raise InvalidUse(f"parameters of a predicate must be identifiers, not {bad}", "rename them")


def _implied(guards: list[Guard], names: Names) -> list[Guard]:
    """Guards for what native checks of batched kinds test besides; made now, while the objects they
    are about live."""
    found: list[Guard] = []
    for kind in dict.fromkeys(type(guard.kind) for guard in guards):
        if kind.batched:
            batch = [guard for guard in guards if type(guard.kind) is kind]
            found += kind.implied(batch, names.once)
    return found
