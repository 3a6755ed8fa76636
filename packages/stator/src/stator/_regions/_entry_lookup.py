"""Find the entry of a call: in the cache of its place, or compiled for it."""

from __future__ import annotations

from collections.abc import Hashable
from functools import partial
from typing import Any

import attrs
from stator_bytecode import FlatState, passed_over
from stator_guards import Entry

from stator._capture._trace import SKIPPED
from stator._program._callees import NativeTarget
from stator._program._lazy import make_parameters
from stator._program._traceback import OWN_CODES
from stator._regions._compilations import found_or_made
from stator._regions._compiled_target import CompiledTarget
from stator._regions._entry_compiler import EntryCompiler
from stator._regions._recompile_limit import past_limit
from stator._regions._region import NOTHING, Region
from stator._regions._stance_rules import StanceRules
from stator._settings._torch_settings import setting


@attrs.frozen(eq=False)
class EntryLookup:
    """The lookup of entries in one region."""

    region: Region
    rules: StanceRules
    compiler: EntryCompiler

    @classmethod
    def of(cls, region: Region) -> EntryLookup:
        return cls(region, StanceRules(region), EntryCompiler(region))

    def find(
        self, place: CompiledTarget, state: FlatState, failed: Entry = NOTHING
    ) -> tuple[Entry | None, bool]:
        """Return the entry for a state, but not `failed`, which does not serve it; and True if it
        was compiled for this call. None: the call runs eagerly."""
        region = self.region
        key = region.key_of(place, state) if place.shared.ending else region.options.key
        entry = place.cache.lookup(key, state, failed)
        is_new = entry is None
        if entry is None and not place.cache.is_full(key) and self.rules.permit(place, state, key):
            entry = self._compiled(place, state, key)

        if entry is None:
            self._check_limit(place, state, key)
            return None, False
        region.expect(place, key, entry)
        return entry, is_new

    def _compiled(self, place: CompiledTarget, state: FlatState, key: Hashable) -> Entry | None:
        region = self.region
        if place is region.root:
            make_parameters(place.target, state)
        compile_entry = partial(self.compiler.compile, place, state, key)
        entry = found_or_made(
            place.cache, key, state, compile_entry, waits=not region.options.tiered
        )

        place.forget_dropped()
        place.served = ()
        if entry is not None and not entry.data.has_begun and not entry.guards.check(*state):
            # while it was made, another thread or the collector changed what it stands on
            return None
        return entry

    def _check_limit(self, place: CompiledTarget, state: FlatState, key: Hashable) -> None:
        """Raise where it is an error that a place has as many entries as it may have."""
        raises = self.region.refuses_breaks(place) or setting("fail_on_recompile_limit_hit")
        if raises and place.cache.is_full(key):
            raise past_limit(place.cache, key, state)

    def native(self, place: CompiledTarget) -> Any:
        """Return what runs where no entry does."""
        skips = any(refusal.reason == SKIPPED for refusal in place.shared.refused)
        if skips and self.region.callees is not None:
            return NativeTarget(place.target, self.region.callees)
        return place.target


OWN_CODES.update(passed_over(make_parameters))
passed_over(EntryLookup.find, EntryLookup._compiled)
