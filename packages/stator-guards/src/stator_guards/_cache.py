"""The entries of one compiled object: found by their guards, made once under concurrent calls, and
limited in number.

A hit takes no lock: it reads an immutable decision (`_dispatch`) and checks the few entries that it
leaves; where no fact distinguishes them they are scanned, most recently used first. Everything that
changes entries holds the cache's own lock, so calls of different compiled objects never wait for
each other.
"""

import threading
import warnings
from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from typing import Any, Protocol

from attrs import Factory, define, field, frozen

from stator_guards._dispatch import Decision, decide
from stator_guards._guard import Failure
from stator_guards._source import State


class Checked(Protocol):
    """The part of a guard set that a cache needs; any guard compiler's result will do."""

    @property
    def check(self) -> Callable[..., bool]: ...

    @property
    def is_gone(self) -> bool: ...

    def explain(self, *state: object) -> list[Failure]: ...

    def mend(self, *state: object) -> bool: ...

    def state(self, values: Sequence[object]) -> State: ...


@define(eq=False)
class Entry:
    """One specialised version: `run` may be called with a state for which `guards.check` holds."""

    guards: Checked
    run: Callable[..., Any]
    source: str = ""
    """The text that `run` was made from, for people."""
    backend_key: Hashable = None
    data: Any = None
    """Data of the upper layer: graph, report, sites."""
    hits: int = 0


@frozen
class RecompileReason:
    """The reasons why an entry could not be used for a state."""

    entry: Entry
    failures: tuple[Failure, ...]

    def __str__(self) -> str:
        return "\n".join(map(str, self.failures))


def _firsts(reasons: Sequence[RecompileReason]) -> tuple[Failure, ...]:
    return tuple(reason.failures[0] for reason in reasons)


def _decision(entries: tuple[Entry, ...]) -> object:
    """Decide how entries are found for a state; another guard compiler need not give
    discriminants."""
    sets: list[Any] = [entry.guards for entry in entries]
    facts = [getattr(guards, "discriminants", {}) for guards in sets]
    parameters = next(
        (guards.parameters for guards, found in zip(sets, facts, strict=True) if found), ()
    )
    return decide([*zip(entries, facts, strict=True)], parameters)


class RecompileLimitWarning(UserWarning):
    """A function was specialised so often that it now runs without being specialised."""


@define(eq=False)
class Cache:
    """Entries by backend key.

    `limit` bounds the live ones per key, `total_limit` all that were ever made; past one of them
    `warn` is called, once, as the function runs eagerly from then on (None: no warning).
    """

    name: str = "the function"
    limit: int = 8
    total_limit: int = 64
    warn: Callable[[Warning], None] | None = lambda warning: warnings.warn(warning, stacklevel=6)
    history: list[tuple[Failure, ...]] = Factory(list)
    """The first failed guard of each earlier entry, for each entry that was made."""
    _entries: dict[Hashable, tuple[Entry, ...]] = Factory(dict)
    _decisions: dict[Hashable, Any] = Factory(dict)
    """A `Decision`, or a tuple of entries to scan, for each key."""
    _full: set[Hashable] = Factory(set)
    _making: set[Hashable] = Factory(set)
    """The cases for which the thread that has the lock makes an entry: the key, with the identities
    of the objects, which live until then."""
    _lock: Any = field(factory=threading.RLock, repr=False)

    def lookup(
        self, backend_key: Hashable, state: Sequence[object], failed: Entry | None = None
    ) -> Entry | None:
        """The first entry whose guards hold; those of `failed` are known not to.

        A caller that expected `failed` has an order of its own: that of the cache is kept.
        """
        decision = self._decisions.get(backend_key, ())
        is_scan = type(decision) is not Decision
        entries = decision if is_scan else decision.candidates(state)
        for entry in entries:
            if entry is not failed and entry.guards.check(*state):
                entry.hits += 1
                if is_scan and entry is not entries[0] and failed not in entries:
                    self._promote(entry)
                return entry  # type: ignore[no-any-return]
        return None

    def get_or_make(
        self, backend_key: Hashable, state: Sequence[object], make: Callable[[], Entry | None]
    ) -> Entry | None:
        """The entry for `state`, made if there is none; None past the limit, or when `make` gives
        None.

        Threads that miss together make one entry. `make` may call back into this cache, and so may
        a signal handler meanwhile; for the same objects that makes none, as it is being made.
        """
        if (entry := self.lookup(backend_key, state)) is not None or backend_key in self._full:
            return entry
        with self._lock:
            case = (backend_key, *map(id, state))
            if case in self._making:
                return self.lookup(backend_key, state)
            self._making.add(case)
            try:
                return self._found_or_made(backend_key, state, make)
            finally:
                self._making.discard(case)

    def _found_or_made(
        self, backend_key: Hashable, state: Sequence[object], make: Callable[[], Entry | None]
    ) -> Entry | None:
        entry = self.lookup(backend_key, state)
        if entry is not None or self._is_past_limit(backend_key, state):
            return entry
        if (entry := self._mended(backend_key, state)) is not None:
            # past the limit it would be done in vain where another guard fails then
            return entry
        reasons = self.reasons(state, backend_key)
        before = self._entries.get(backend_key, ())
        made = make()
        # A call from within may have made one for other objects that serves these as well. Guards
        # are not evaluated for nothing: while tracing, the program's caches have been filled.
        is_changed = self._entries.get(backend_key, ()) is not before
        entry = self.lookup(backend_key, state) if made is not None and is_changed else None
        if entry is not None:
            return entry
        if made is not None:
            self.insert(made, reasons)
        return made

    def _mended(self, backend_key: Hashable, state: Sequence[object]) -> Entry | None:
        return next(
            (entry for entry in self.entries(backend_key) if entry.guards.mend(*state)), None
        )

    def insert(self, entry: Entry, reasons: Sequence[RecompileReason] = ()) -> None:
        """Put a new entry first; entries that can never hold again are dropped.

        It may be here already: another compiled object, or a signal handler, made it.
        """
        with self._lock:
            old = self._entries.get(entry.backend_key, ())
            if entry in old:
                return
            entries = (entry, *(other for other in old if not other.guards.is_gone))
            self._entries[entry.backend_key] = entries
            self._decisions[entry.backend_key] = _decision(entries)
            self.history.append(_firsts(reasons))

    def release_in_child(self) -> None:
        """Release the lock in a process that was forked while another thread made an entry."""
        self._making.clear()
        self._lock._at_fork_reinit()

    def remove(self, entry: Entry) -> None:
        """Drop an entry: the next state that it would have served makes another."""
        with self._lock:
            old = self._entries.get(entry.backend_key, ())
            entries = tuple(other for other in old if other is not entry)
            self._entries[entry.backend_key] = entries
            self._decisions[entry.backend_key] = _decision(entries)

    def entries(self, backend_key: Hashable = None) -> tuple[Entry, ...]:
        """The entries of one key, most recently used first as far as they are scanned, newest first
        otherwise."""
        return self._entries.get(backend_key, ())

    def all_entries(self) -> tuple[Entry, ...]:
        return tuple(entry for entries in tuple(self._entries.values()) for entry in entries)

    def is_full(self, backend_key: Hashable = None) -> bool:
        """Return whether the limit was passed: states that no entry accepts run eagerly from now
        on."""
        return backend_key in self._full

    def reasons(
        self, state: Sequence[object], backend_key: Hashable = None
    ) -> list[RecompileReason]:
        """Explain why each entry cannot be used for `state`; entries that can be are left out."""
        found = [
            (entry, tuple(entry.guards.explain(*state))) for entry in self.entries(backend_key)
        ]
        return [RecompileReason(entry, failures) for entry, failures in found if failures]

    def _promote(self, entry: Entry) -> None:
        if not self._lock.acquire(blocking=False):
            return  # the order is only a matter of speed
        try:
            old = self._entries.get(entry.backend_key, ())
            if entry in old:
                ordered = (entry, *(other for other in old if other is not entry))
                self._entries[entry.backend_key] = self._decisions[entry.backend_key] = ordered
        finally:
            self._lock.release()

    def _is_past_limit(self, backend_key: Hashable, state: Sequence[object]) -> bool:
        if backend_key in self._full:
            return True
        live = [entry for entry in self.entries(backend_key) if not entry.guards.is_gone]
        if len(live) < self.limit and len(self.history) < self.total_limit:
            return False
        self._full.add(backend_key)
        if self.warn is not None:
            self.warn(self._past_limit(self.reasons(state, backend_key)))
        return True

    def _past_limit(self, reasons: Sequence[RecompileReason]) -> RecompileLimitWarning:
        """Names the guard that most often was the first to fail."""
        firsts = [failure for failures in (*self.history, _firsts(reasons)) for failure in failures]
        blamed = Counter((failure.source, failure.where) for failure in firsts).most_common(1)
        example = (
            next((str(f) for f in reversed(firsts) if (f.source, f.where) == blamed[0][0]), "")
            if blamed
            else ""
        )
        return RecompileLimitWarning(
            f"{self.name} was compiled {len(self.history)} times and now runs plainly "
            f"for further inputs; the guard to blame: {example}"
        )
