"""The cache of traces on disk: what a process interpreted, later ones take from a file.

    key       code of the function, versions, options, state of the process, properties of arguments
    file      a record of the trace, and the objects that it refers to
    lookup    files of the key, latest first: authenticated, objects found and compared, guards held

The entry is then made as from a trace: the backend gets the graph, and compiles it or finds it in
its own cache. What cannot be found again, or could change without being noticed, is not written;
the report has the reason for each entry.
"""

from __future__ import annotations

import json
import os
import pickle
import sys
from collections.abc import Iterator, Sequence
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs
from stator_bytecode import FlatState
from stator_guards import Entry, compile_guards, expanded

from stator._capture._trace import TraceResult, trace
from stator._disk_cache._archive import Archive, ArchiveReader, ArchiveWriter, Differs, read_archive
from stator._disk_cache._fingerprint import (
    NotCached,
    digest,
    of_arguments,
    of_code,
    of_options,
    of_state,
    versions,
)
from stator._disk_cache._store import Refused, Store
from stator._disk_cache._trace_record import TraceRecord, check_codes
from stator._entries._entry import make_entry
from stator._program._target import Root
from stator._settings._deferred_warning import defer_warning
from stator._settings._options import Options

if TYPE_CHECKING:
    from stator_variables import Policy

FROM_CACHE = "from the cache"
"""The note of an entry for which nothing was interpreted."""
MOST_FILES = 8
"""The files of one key that a lookup reads."""


@attrs.define(eq=False)
class Lookup:
    """The lookup of one call, and what is to be written when there is no file for it.

    `notes` are the lines for the report.
    """

    store: Store | None
    root: Root
    options: Options
    parts: dict[str, str]
    notes: list[str] = attrs.field(factory=list)
    archive: Archive | None = None
    is_found: bool = False

    @property
    def place(self) -> str:
        """The name of the folder for a function, whatever its code is."""
        return digest((self.root.namespace.get("__name__"), self.root.name, self.root.parameters))

    @property
    def prefix(self) -> str:
        return digest(self.parts.items())

    def traced(self, state: FlatState, policy: Policy) -> TraceResult:
        """Return the result of a trace, which is made if no file has one."""
        found = self.find(state, policy)
        return trace(self.root, state, self.options, policy) if found is None else found

    def entry(self, traced: TraceResult, *facts: Any) -> Entry:
        """Make the entry of a result, and write what was not found."""
        if not self.is_found:
            self.keep(traced)
        entry = make_entry(traced, *facts)
        self.write()
        entry.data.cache_notes = tuple(self.notes)
        return entry

    # -- reading -----------------------------------------------------------------------------------
    def find(self, state: FlatState, policy: Policy) -> TraceResult | None:
        """Return the result of a trace by another process that holds for this call."""
        if self.store is None:
            return None
        names = self.store.names(self.place, self.prefix)

        for name in names[:MOST_FILES]:
            try:
                found = self._read(self.store, name, state, policy)
            except Differs as difference:
                self.notes.append(f"a file does not fit: {difference}")
            except (Refused, OSError) as refusal:
                self._refuse(str(refusal))
            else:
                self.store.use(self.place, name)
                self.notes.append(FROM_CACHE)
                self.is_found = True
                return found

        if not names:
            self.notes += self._differences(self.store)
        return None

    def _read(self, store: Store, name: str, state: FlatState, policy: Policy) -> TraceResult:
        data = store.read(self.place, name)
        archive = read_archive(data[_header_end(data) :])
        named = dict(zip(self.root.parameters, state, strict=True))
        parameters = self.root.sources(state)
        function = self.root.fn or state[0]
        record: TraceRecord = ArchiveReader(function, parameters, named).read(archive)

        guards = compile_guards(record.guards, self.root.parameters, watch=False)
        if not guards.check(*state):
            failures = guards.explain(*state)
            raise Differs(str(failures[0]) if failures else "a guard did not hold")
        return record.result_for(named, self.options, policy)

    def _refuse(self, text: str) -> None:
        self.notes.append(text)
        defer_warning(UserWarning(f"the cache of {self.root.name}: {text}"))

    def _differences(self, store: Store) -> Iterator[str]:
        """Yield in which parts the latest file of the function has another key."""
        for name in store.names(self.place)[:1]:
            try:
                before = json.loads(_header(store.read(self.place, name)))
            except (Refused, OSError) as refusal:
                self._refuse(str(refusal))
                return
            names = [part for part in self.parts if before.get(part) != self.parts[part]]
            yield f"no file fits, other than the latest one in: {', '.join(names)}"

    # -- writing -----------------------------------------------------------------------------------
    def keep(self, traced: TraceResult) -> None:
        """Keep the result of a trace, before the backend gets its graph."""
        if self.store is None:
            return
        try:
            self.archive = self._archive(traced)
        except NotCached as reason:
            self.notes.append(f"not written to the cache: {reason}")

    def _archive(self, traced: TraceResult) -> Archive:
        record = TraceRecord.of(traced)
        writer = ArchiveWriter([*expanded(traced.guards)], self.root.fn or self.root)
        archive = writer.write(record)
        check_codes(traced.calls.entered, writer.kept, self.root)
        return archive

    def write(self) -> None:
        """Write what was kept, after the entry was made of it."""
        if self.store is None or self.archive is None:
            return
        header = json.dumps(self.parts).encode()
        data = len(header).to_bytes(4, "big") + header + pickle.dumps(self.archive, protocol=5)
        name = f"{self.prefix}-{sha256(data).hexdigest()[:16]}"
        try:
            self.store.write(self.place, name, data)
        except OSError as error:
            self.notes.append(f"not written to the cache: {error}")
        else:
            self.notes.append("written to the cache")


def _header_end(data: bytes) -> int:
    return 4 + int.from_bytes(data[:4], "big")


def _header(data: bytes) -> bytes:
    return data[4 : _header_end(data)]


def lookup_for(target: Root, state: FlatState, options: Options) -> Lookup:
    """Return the lookup for a call."""
    made = Lookup(None, target, options, {})
    try:
        made.parts = _parts(target, state, options)
        made.store = Store.of(folder())
    except NotCached as reason:
        made.notes.append(f"not written to the cache: {reason}")
    except (Refused, OSError) as refusal:
        made._refuse(str(refusal))
    return made


def _parts(target: Root, state: Sequence[object], options: Options) -> dict[str, str]:
    return {
        **versions(),
        **of_options(options),
        "code": of_code(target.code),
        "state of the process": of_state(),
        "arguments": of_arguments(state),
    }


def folder() -> Path:
    """Return the folder of the cache: `STATOR_CACHE_DIR`, else beside those of other programs."""
    if chosen := os.environ.get("STATOR_CACHE_DIR"):
        return Path(chosen)
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA", Path.home())) / "stator"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "stator"
