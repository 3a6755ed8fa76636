"""Run the calls of one compiled object: an entry, what follows its breaks, or the program."""

from __future__ import annotations

from typing import Any

import attrs
from stator_bytecode import Dispatch, FlatState, Goto, Point, drive, passed_over
from stator_guards import Entry
from stator_variables import can_be_taken, give_back, taken

from stator._program._fallback import EagerFallback
from stator._program._traceback import OWN_CODES
from stator._regions._compiled_target import CompiledTarget
from stator._regions._entry_lookup import EntryLookup
from stator._regions._foreign_call import function_mode_count, is_foreign_below
from stator._regions._region import NOTHING, Region
from stator._settings._deferred_warning import RUNNERS, deferred_warnings, show_deferred_warnings
from stator._settings._stance import stance


@attrs.frozen(eq=False)
class RegionRunner:
    """`run(state)` is the compiled function; the wrapper tries the entry in `newest` before."""

    region: Region
    lookup: EntryLookup

    @classmethod
    def of(cls, region: Region) -> RegionRunner:
        return cls(region, EntryLookup.of(region))

    @property
    def newest(self) -> list[Entry]:
        return self.region.newest

    def run(self, state: FlatState) -> Any:
        """Call the compiled function: no entry was found by the fast way."""
        now = stance()
        if now.backend is not None:
            forced = self.lookup.rules.forced_region(now.backend)
            return RegionRunner.of(forced).run_compiled(state)
        if now.name == "force_eager":
            return EagerFallback(self.region.root.target, state).run()
        return self.run_compiled(state)

    def run_compiled(self, state: FlatState) -> Any:
        """Run the entry for a state, and what follows it."""
        result = self.enter(self.region.root, state)
        return self.finish(result, self.region.single_use.dispatch(self, state))

    def finish(self, result: object, dispatch: Dispatch | None = None) -> Any:
        """Drive what an entry returned to the end."""
        if type(result) is Goto:
            result = drive(result.site, result.take(), dispatch or self.dispatch)
        elif type(result) is EagerFallback:
            result = result.run()
        if deferred_warnings.waiting:
            show_deferred_warnings()
        return result

    def dispatch(self, point: Point, state: list[Any]) -> object:
        """Run the continuation at `point`: its value, or the next Goto. Tries the entry used there
        last before all else, as the wrapper does for the root: its guards do not hold under modes
        and in other tracers."""
        values = tuple(state)
        state.clear()
        region = self.region
        place = region.places.get(point) or region.place_of(point)
        last = place.last
        entry = place.expected(last) if last else None
        if entry is None:
            entry = place.newest.get(region.options.key, NOTHING)

        if entry.guards.check(*values) and not entry.data.ends.are_observed(values):
            if last:
                place.follow(last, entry)
            result = entry.run(*values)
        else:
            result = self.enter(place, values, entry)
        del values
        return result.run() if type(result) is EagerFallback else result

    def enter(self, place: CompiledTarget, state: FlatState, failed: Entry = NOTHING) -> object:
        """Run the entry for a state: not `failed`, which does not serve it."""
        if function_mode_count() and can_be_taken() and not is_foreign_below():
            return self._enter_under_modes(place, state)
        return self._run_entry(place, state, failed)

    def _enter_under_modes(self, place: CompiledTarget, state: FlatState) -> Any:
        """An entry puts modes back itself, those that are then entered; what runs plainly finds
        them as they were."""
        with taken() as modes:
            result = self._run_entry(self.region.under_modes(place), state)
            if type(result) is EagerFallback:
                give_back(modes)
            return result

    def _run_entry(
        self, place: CompiledTarget, state: FlatState, failed: Entry = NOTHING
    ) -> object:
        entry, is_new = self.lookup.find(place, state, failed)
        if entry is None:
            return EagerFallback(self.lookup.native(place), state)
        if entry.data.serves_one_call:
            return self.region.single_use.run(entry, state)

        result = _first_run(entry, state) if entry.data.has_begun else entry.run(*state)
        if is_new and place is self.region.root and type(result) is Goto:
            self.region.single_use.begin(entry)
        return result


def _first_run(entry: Entry, state: FlatState) -> object:
    """Run an entry whose trace made calls of cached functions. Its guards hold only then; to check
    them once plans how they are watched, which the second call would have to do."""
    entry.data.has_begun = False
    result = entry.run(*state)
    entry.guards.check(*state)
    return result


_RUNNING = (
    RegionRunner.run,
    RegionRunner.run_compiled,
    RegionRunner.enter,
    RegionRunner._run_entry,
    RegionRunner.finish,
    RegionRunner.dispatch,
)
OWN_CODES.update(passed_over(*_RUNNING, EagerFallback.run))
passed_over(RegionRunner._enter_under_modes, _first_run)
RUNNERS.add(RegionRunner.finish.__code__)
