"""The stance of this moment, as it concerns one compiled object: which backend compiles it, and
whether a call may be compiled."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any

import attrs
from stator_backends import interrupts_compilation
from stator_bytecode import FlatState

from stator._capture._compilation_flag import is_compiling
from stator._regions._compiled_target import CompiledTarget
from stator._regions._foreign_call import has_others, is_foreign_call
from stator._regions._recompile_limit import recompiled
from stator._regions._region import Region
from stator._settings._options import disabled_by_environment, with_backend
from stator._settings._stance import stance
from stator._settings._torch_settings import setting


@attrs.frozen(eq=False)
class StanceRules:
    """The rules for the calls of one compiled object."""

    region: Region

    def forced_region(self, backend: str | Callable[..., Any]) -> Region:
        """Return the region that takes the place of this one while a stance forces a backend."""
        region = self.region
        options = with_backend(region.options, backend)
        if options.key not in region.forced:
            region.forced[options.key] = Region.of(region.pool.root, options)
        return region.forced[options.key]

    def permit(self, place: CompiledTarget, state: FlatState, key: Hashable) -> bool:
        """Return True if a call that no entry accepts is compiled. Raises InvalidUse where that is
        an error."""
        is_off = interrupts_compilation() or disabled_by_environment()
        if is_off or _runs_eagerly(place, state):
            return False

        self.region.follow_settings()
        name = stance().name
        is_recompile = bool(place.cache.entries(key)) and setting("error_on_recompile")
        if name == "fail_on_recompile" or is_recompile:
            raise recompiled(place.cache, key, state)

        delays = name.endswith("eager_then_compile") and place is self.region.root
        if delays and not place.shared.ran_eagerly:
            place.shared.ran_eagerly = True
            named = zip(place.target.parameters, state, strict=True)
            place.shared.shapes.observe(dict(named))
            return False
        return name != "eager_on_recompile"


def _runs_eagerly(place: CompiledTarget, state: FlatState) -> bool:
    """Return True for a call that no entry accepts, in a place or a moment without compilation."""
    return bool(
        place.shared.refused
        or place.target.is_stale(state)
        or is_compiling()
        or is_foreign_call()
        or has_others()
    )
