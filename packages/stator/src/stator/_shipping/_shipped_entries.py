"""Entries from a shipped file, in the place of traces.

A call for which the file has no entry is an error that names the difference, or is compiled as
without the file, if the program permits that.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import attrs
from stator_bytecode import FlatState
from stator_guards import Entry

from stator._capture._trace import TraceResult
from stator._disk_cache._disk_cache import Lookup, header_of, lookup_for
from stator._disk_cache._lookup import TraceSource, lookup
from stator._program._target import Target
from stator._settings._deferred_warning import defer_warning
from stator._settings._options import Options
from stator._shipping._shipped_file import ShippedFile
from stator.errors import InvalidUse, Unsupported

if TYPE_CHECKING:
    from stator_variables import Policy

HINT = "save it again as the program is now, or load it with recompile=True"
_FLAGS = ("unbacked_numbers", "separates_steps", "hides_floats")
"""Decisions of a policy that the backend may have required in the process that saved."""


@attrs.frozen(eq=False)
class ShippedEntries:
    """The source of all entries of one object of `load`. `recompile` permits traces."""

    file: ShippedFile
    recompile: bool

    def source(
        self, target: Target, state: FlatState, options: Options, policy: Policy
    ) -> TraceSource:
        """Return what gives the entry of a call."""
        found = lookup_for(target, state, options, policy, self.file)
        if "stator" in found.parts:  # whose content was compared when the file was loaded
            found.parts["stator"] = self.file.header["versions"]["stator"]
        return ShippedLookup(found, self)


@attrs.define(eq=False)
class ShippedLookup:
    """The lookup of one call in a shipped file."""

    inner: Lookup
    shipped: ShippedEntries
    other: TraceSource | None = None
    """The source of the trace where the file has no entry."""

    def traced(self, state: FlatState, policy: Policy) -> TraceResult:
        for each in _variants(policy):
            self.inner.decide(each)
            if (found := self.inner.find(state, each)) is not None:
                return found

        plain = self.shipped.file.header["plain"].get(self.inner.place)
        if plain is not None:
            raise Unsupported(*plain)
        self.inner.decide(policy)
        problem = "; ".join(dict.fromkeys(self._differences()))
        name, path = self.inner.target.name, self.shipped.file.path.name
        text = f"{path} has no entry for this call of {name}: {problem}"
        if not self.shipped.recompile:
            raise InvalidUse(text, HINT)

        defer_warning(UserWarning(f"{text}; it is compiled afresh"))
        options = attrs.evolve(self.inner.options, shipped=None)
        self.other = lookup(self.inner.target, state, options, policy)
        return self.other.traced(state, policy)

    def entry(self, traced: TraceResult, *facts: Any) -> Entry:
        return (self.other or self.inner).entry(traced, *facts)

    def end(self) -> None:
        (self.other or self.inner).end()

    def _differences(self) -> Iterator[str]:
        yield from (note.removeprefix("a file does not fit: ") for note in self._refusals())
        file, lookup = self.shipped.file, self.inner
        names = file.names(lookup.place)
        if not names:
            yield "nothing was saved for it"
            return

        now = {**lookup.parts, "arguments": lookup.exact}
        parts = [header_of(file.read(lookup.place, name)) for name in names]
        nearest = min(parts, key=lambda before: len(_changed(before, now)))
        yield from differences(nearest, now)

    def _refusals(self) -> list[str]:
        """Return why files that have the key of the call were not used."""
        return [note for note in self.inner.notes if not note.startswith("no file fits")]


def _variants(policy: Policy) -> Iterator[Policy]:
    """Yield a policy, and those that differ in what a backend may require."""
    values = [getattr(policy, flag) for flag in _FLAGS]
    for changes in itertools.product((False, True), repeat=len(_FLAGS)):
        flags = {
            flag: value != is_changed
            for flag, value, is_changed in zip(_FLAGS, values, changes, strict=True)
        }
        yield attrs.evolve(policy, **flags)


# -- texts -----------------------------------------------------------------------------------------
def differences(before: Mapping[str, str], now: Mapping[str, str]) -> Iterator[str]:
    """Yield a text for each part that was another one when the file was made."""
    for name in _changed(before, now):
        one, other = str(before.get(name)), str(now.get(name))
        if name in _DIGESTS:
            yield _DIGESTS[name]
        elif name == "state of the process":
            yield from _state_differences(one, other)
        else:
            yield f"{name} was {_short(one)} and is {_short(other)}"


_DIGESTS = {
    "code": "the code of the function has changed",
    "arguments": "no call with such arguments was saved",
    "decisions": "the backend or the program has decided otherwise before",
    "stator": "the files of stator are others",
}


def _changed(before: Mapping[str, str], now: Mapping[str, str]) -> list[str]:
    """Return the names of the parts that differ. A symbolic entry has other arguments anyway."""
    changed = [name for name in now if before.get(name) != now[name]]
    others = [name for name in changed if name != "arguments"]
    return others or changed


def _state_differences(before: str, now: str) -> Iterator[str]:
    """Yield the settings that differ, of the text that `of_state` gives."""
    one, other = _settings_in(before), _settings_in(now)
    for name in [name for name in other if one.get(name) != other[name]]:
        yield f"{name} was {_short(one.get(name))} and is {_short(other[name])}"


def _settings_in(text: str) -> dict[str, Any]:
    native, end = json.JSONDecoder().raw_decode(text)
    return {**native, "other modes": text[end:].strip()}


def _short(value: object) -> str:
    text = str(value)
    return text if len(text) < 120 else f"{text[:117]}..."
