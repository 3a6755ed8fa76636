"""The cache of traces on disk: what a process interpreted, later ones take from a file.

    key       code of the function, versions, options, state of the process, properties of arguments
    file      a record of the trace, and the objects that it refers to
    lookup    files of the key, latest first: authenticated, objects found and compared, guards held

The entry is then made as from a trace: the backend gets the graph, and compiles it or finds it in
its own cache. What cannot be found again, or could change without being noticed, is not written;
the report has the reason for each entry.
"""

from __future__ import annotations

import contextlib
import json
import pickle
from collections.abc import Iterator
from hashlib import sha256
from types import CodeType
from typing import TYPE_CHECKING, Any, Protocol

import attrs
import torch
from stator_bytecode import FlatState, FrameLayout
from stator_guards import Entry, compile_guards

from stator._capture._trace import TraceResult, trace
from stator._disk_cache._archive import Archive, ArchiveReader, ArchiveWriter, Differs, read_archive
from stator._disk_cache._artifact import record_artifact
from stator._disk_cache._fingerprint import (
    NotCached,
    digest,
    of_arguments,
    of_code,
    of_options,
    of_point,
    of_policy,
    of_state,
    versions,
)
from stator._disk_cache._process_lock import ProcessLock
from stator._disk_cache._store import Refused, Store, folder
from stator._disk_cache._trace_record import TraceRecord, check_codes
from stator._entries._entry import make_entry
from stator._program._local_ends import WHILE_TRACED, observed_ends
from stator._program._target import Continuation, Root, Target
from stator._settings._deferred_warning import defer_warning
from stator._settings._options import Options

if TYPE_CHECKING:
    from stator_variables import Policy

FROM_CACHE = "from the cache"
"""The note of an entry for which nothing was interpreted."""
MOST_FILES = 8
"""The files of one key that a lookup reads."""


class EntryFiles(Protocol):
    """The files of entries, as a lookup reads them: a `Store`, or a file with many."""

    def names(self, place: str, prefix: str = "") -> list[str]: ...

    def read(self, place: str, name: str) -> bytes: ...

    def use(self, place: str, name: str) -> None: ...


@attrs.frozen(eq=False)
class EntryFile:
    """The file of one entry."""

    files: EntryFiles
    place: str
    name: str

    def read(self) -> bytes:
        """Return the data. Raises Refused, or OSError."""
        return self.files.read(self.place, self.name)


@attrs.define(eq=False)
class Lookup:
    """The lookup of one call, and what is to be written when there is no file for it.

    `notes` are the lines for the report.
    """

    store: EntryFiles | None
    target: Target
    options: Options
    parts: dict[str, str]
    """All that a trace may rely on beside guards, by name, but for the arguments."""
    exact: str = ""
    """A fingerprint of the arguments."""
    loose: str = ""
    """The same, whatever sizes and numbers are."""
    observed: frozenset[int] = frozenset()
    """The locals whose ends the program can observe."""
    notes: list[str] = attrs.field(factory=list)
    archive: Archive | None = None
    is_symbolic: bool = False
    """The file to be written serves calls with other sizes or numbers."""
    is_found: bool = False
    file: EntryFile | None = None
    """The file that was read or written."""
    seen: list[str] = attrs.field(factory=list)
    """The files that the lookup has read."""
    lock: ProcessLock | None = None
    """Held from a lookup that found nothing until the entry is written."""

    @property
    def place(self) -> str:
        """The name of the folder for a target, whatever its code is."""
        return place_name(self.target)

    def decide(self, policy: Policy) -> None:
        """Look for files that were made with the decisions of this policy."""
        if self.parts:
            self.parts["decisions"] = of_policy(policy)

    def prefix(self, arguments: str) -> str:
        """Return how the names of the files begin that serve calls with such arguments."""
        return digest([*self.parts.items(), arguments])

    def traced(self, state: FlatState, policy: Policy) -> TraceResult:
        """Return the result of a trace, which is made if no file has one."""
        found = self.find(state, policy) or self._find_when_alone(state, policy)
        return trace(self.target, state, self.options, policy) if found is None else found

    def entry(self, traced: TraceResult, *facts: Any) -> Entry:
        """Make the entry of a result, and write what was not found."""
        if not self.is_found:
            self.keep(traced, facts[0].policy)
        entry = make_entry(traced, *facts)
        self.write()
        entry.data.cache_notes, entry.data.file = tuple(self.notes), self.file
        return entry

    # -- reading -----------------------------------------------------------------------------------
    def find(self, state: FlatState, policy: Policy) -> TraceResult | None:
        """Return the result of a trace by another process that holds for this call."""
        if self.store is None:
            return None

        names = self._files(self.store)
        self.seen = names

        for name in names:
            try:
                found = self._read(self.store, name, state, policy)
            except Differs as difference:
                self.notes.append(f"a file does not fit: {difference}")
            except (Refused, OSError) as refusal:
                self._refuse(str(refusal))
            else:
                self._use(self.store, name)
                self.notes.append(FROM_CACHE)
                self.is_found = True
                self.file = EntryFile(self.store, self.place, name)
                return found

        if not names:
            self.notes += self._differences(self.store)
        return None

    def _find_when_alone(self, state: FlatState, policy: Policy) -> TraceResult | None:
        """Wait for a process that makes the entry of such a call; return what it has written since
        this one has looked."""
        if not isinstance(self.store, Store) or _is_in_group():  # nothing else is written to
            return None
        lock = self.store.lock(self.prefix(self.exact))
        if not lock.acquire():
            return None

        self.lock = lock
        if self._files(self.store) == self.seen:
            return None
        self.notes.clear()
        return self.find(state, policy)

    def end(self) -> None:
        """Release the lock: the entry is written, or will not be."""
        if self.lock is not None:
            self.lock.release()

    def _use(self, files: EntryFiles, name: str) -> None:
        files.use(self.place, name)
        if isinstance(files, Store):
            with contextlib.suppress(OSError):  # another process may have removed it
                record_artifact(files, self.place, name)

    def _files(self, store: EntryFiles) -> list[str]:
        """Return the files for calls like this one, before those for calls with other sizes."""
        exact, loose = self.prefix(self.exact), self.prefix(self.loose)
        names = store.names(self.place)
        found = [name for name in names if name.startswith(exact)]
        others = [name for name in names if name.startswith(loose)]
        return [*found[:MOST_FILES], *others[:MOST_FILES]]

    def _read(self, store: EntryFiles, name: str, state: FlatState, policy: Policy) -> TraceResult:
        data = store.read(self.place, name)
        archive = read_archive(data[_header_end(data) :])
        named = dict(zip(self.target.parameters, state, strict=True))
        reader = ArchiveReader(
            _function(self.target, state), codes_of(self.target), self.target.sources(state), named
        )
        record: TraceRecord = reader.read(archive)
        if not self.observed.isdisjoint(record.ended):
            raise Differs("the end of a local can be observed")

        guards = compile_guards(record.guards, self.target.parameters, watch=False)
        record.check(guards, named, state)
        return record.result_for(named, self.options, policy)

    def _refuse(self, text: str) -> None:
        self.notes.append(text)
        defer_warning(UserWarning(f"the cache of {self.target.name}: {text}"))

    def _differences(self, store: EntryFiles) -> Iterator[str]:
        """Yield in which parts the latest file of the function has another key."""
        for name in store.names(self.place)[:1]:
            try:
                before = header_of(store.read(self.place, name))
            except (Refused, OSError) as refusal:
                self._refuse(str(refusal))
                return
            now = {**self.parts, "arguments": self.exact}
            names = [part for part in now if before.get(part) != now[part]]
            yield f"no file fits, other than the latest one in: {', '.join(names)}"

    # -- writing -----------------------------------------------------------------------------------
    def keep(self, traced: TraceResult, policy: Policy) -> None:
        """Keep the result of a trace, before the backend gets its graph. `policy` repeats its
        decisions."""
        if self.store is None:
            return
        try:
            self.archive = self._archive(traced, policy)
        except NotCached as reason:
            self.notes.append(f"not written to the cache: {reason}")
            self.end()  # other processes have nothing to wait for

    def _archive(self, traced: TraceResult, policy: Policy) -> Archive:
        record, target = TraceRecord.of(traced, policy), self.target
        root = target.fn if isinstance(target, Root) else None
        writer = ArchiveWriter(record.guards, root or target, codes_of(target))
        archive = writer.write(record)
        check_codes(traced.calls.entered, writer.kept, codes_of(target))
        self.is_symbolic = record.graph.is_symbolic
        return archive

    def write(self) -> None:
        """Write what was kept, after the entry was made of it."""
        if not isinstance(self.store, Store) or self.archive is None:
            return
        arguments = self.loose if self.is_symbolic else self.exact
        header = json.dumps({**self.parts, "arguments": arguments}).encode()
        data = len(header).to_bytes(4, "big") + header + pickle.dumps(self.archive, protocol=5)
        name = f"{self.prefix(arguments)}-{sha256(data).hexdigest()[:16]}"
        try:
            self.store.write(self.place, name, data)
            record_artifact(self.store, self.place, name)
        except OSError as error:
            self.notes.append(f"not written to the cache: {error}")
        else:
            self.file = EntryFile(self.store, self.place, name)
            self.notes.append("written to the cache")


def check_named(data: bytes) -> None:
    """Raise Differs where code or an object that a file refers to by name has changed, without a
    call."""
    reader = ArchiveReader(None, (), {}, {})
    for row in read_archive(data[_header_end(data) :]).table:
        reader.check_named(row)


def _header_end(data: bytes) -> int:
    return 4 + int.from_bytes(data[:4], "big")


def header_of(data: bytes) -> dict[str, str]:
    """Return the parts of the key that a file was written for."""
    found: dict[str, str] = json.loads(data[4 : _header_end(data)])
    return found


def lookup_for(
    target: Target,
    state: FlatState,
    options: Options,
    policy: Policy,
    files: EntryFiles | None = None,
) -> Lookup:
    """Return the lookup for a call, in the folder of the cache or in other files."""
    made = Lookup(None, target, options, {})
    try:
        made.parts = _parts(target, options, policy)
        made.exact, made.loose = of_arguments(state), of_arguments(state, is_loose=True)
        made.store = Store.of(folder()) if files is None else files
    except NotCached as reason:
        made.notes.append(f"not written to the cache: {reason}")
    except (Refused, OSError) as refusal:
        made._refuse(str(refusal))
    if isinstance(target, Continuation):
        made.observed = frozenset(observed_ends(state, range(len(state)), WHILE_TRACED))
    return made


def _parts(target: Target, options: Options, policy: Policy) -> dict[str, str]:
    return {
        **versions(),
        **of_options(options),
        "code": of_code(target.code) if isinstance(target, Root) else of_point(target.point),
        "state of the process": of_state(),
        "decisions": of_policy(policy),
    }


def place_name(target: Target) -> str:
    """Return the name of the folder for a target, whatever its code is."""
    return digest(_names(target))


def _names(target: Target) -> tuple[object, ...]:
    """Return the names of a target, whatever its code is."""
    if isinstance(target, Root):
        return target.namespace.get("__name__"), target.name, target.parameters
    frames = target.point.frames
    names = [(frame.globals.get("__name__"), frame.raw.co_qualname) for frame in frames]
    return "behind a break", *names


def _is_in_group() -> bool:
    """Return True in a process that others may wait for, in an operation of all of them."""
    distributed = torch.distributed
    return distributed.is_available() and distributed.is_initialized()


def _function(target: Target, state: FlatState) -> object:
    if isinstance(target, Root):
        return target.fn or state[0]
    return None


def codes_of(target: Target) -> list[CodeType]:
    """Return the code of a function, or of the frames of a continuation."""
    if isinstance(target, Root):
        return [target.code]
    layouts = (*target.point.frames, *target.point.carried)
    return [layout.raw for layout in layouts if isinstance(layout, FrameLayout)]
