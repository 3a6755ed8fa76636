"""When a compiled graph raises: the program itself runs instead and raises, or handles, the error its own way.

Only possible while nothing visible has changed, or where it can be put back: the random state, modes, and the inputs
that the graph writes to, as far as they were copied before it ran (`_rewind.py`). What comes after a write and may
raise because of values (`_hazard.py`) asks for copies each time. Other graphs that write are copied for on their first
run only: an operator that refuses its inputs whatever they hold does so then. Later errors go through as they are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import attrs
import torch
from stator_backends import AmbientState

from stator._hazard import Hazards
from stator._rewind import Saved, is_untouched, save, version
from stator._target import Target
from stator.errors import BackendFailed

if TYPE_CHECKING:
    from stator_subgraphs import CapturedGraph


@attrs.define
class Plainly:
    """Given back by an entry that failed: run `target` natively on `state`."""

    target: Target
    state: tuple[Any, ...]

    def run(self) -> Any:
        """The state is kept neither here nor in this frame: its objects die when the program lets go of them."""
        plain, state = self.target.plain(), list(self.state)
        self.state = ()
        consume = getattr(plain, "consume", None)
        return plain(*state) if consume is None else consume(state)


@attrs.frozen
class Before:
    """What is compared, and put back, when the graph raises. `inputs` are the tensors it may write to."""

    rng: Any
    inputs: tuple[torch.Tensor, ...]
    versions: tuple[int, ...]
    saved: tuple[Saved, ...]


FIRST, EVERY = 2**30, 2**25
"""Bytes that are copied at most: when a graph runs for the first time (or has raised before), and each time. Where the
program may catch the error there is no limit: it would go on with what was written twice, or not at all."""


@attrs.define(eq=False)
class Recovery:
    """What it takes to go back to before the graph ran."""

    target: Target
    ambient: AmbientState
    random: bool
    hazards: Hazards
    failures: list[str]  # the last one
    forgives: bool  # a backend that is at fault
    proven: bool = False  # it has run, and never raised

    @classmethod
    def of(
        cls, captured: CapturedGraph, target: Target, ambient: AmbientState, failures: list[str], forgives: bool
    ) -> Recovery | None:
        """None when what the graph does cannot be taken back."""
        from stator_subgraphs import may_draw

        hazards = Hazards.of(captured)
        if hazards is None:
            return None
        return cls(target, ambient, may_draw(captured.module), hazards, failures, forgives)

    @property
    def looks_before(self) -> bool:
        return self.random or bool(self.hazards.written)

    def before(self, *inputs: torch.Tensor) -> Before:
        rng = torch.get_rng_state() if self.random else None
        hazards = self.hazards
        if hazards.caught:
            chosen, limit = hazards.written, None
        elif self.proven:
            chosen, limit = hazards.repeated, EVERY
        else:
            chosen, limit = hazards.written, FIRST
        self.proven = True  # `after` says when not
        saved = save([inputs[position] for position in chosen], limit) if chosen else ()
        return Before(rng, inputs, tuple(map(version, inputs)) if len(saved) < len(hazards.written) else (), saved)

    def after(self, error: Exception, state: tuple[Any, ...], before: Before | None) -> Plainly:
        """Raises `error` again when something was written that cannot be taken back; or when the backend is at fault,
        and that is not forgiven."""
        self.proven = False
        if isinstance(error, BackendFailed) and not self.forgives:
            raise error
        self.ambient.install()
        with torch.inference_mode(self.ambient.inference):
            if before is not None and not self._put_back(before):
                raise error
        error.__traceback__ = None  # its frames hold what the graph had made, an inference mode say
        self.failures[:] = [f"{type(error).__name__}: {error}"]
        return Plainly(self.target, state)

    def _put_back(self, before: Before) -> bool:
        if before.versions:
            saved = {id(one.tensor) for one in before.saved}
            others = [pair for pair in zip(before.inputs, before.versions, strict=True) if id(pair[0]) not in saved]
            if self.hazards.silent or not is_untouched(others):
                return False
        if not all(one.can_be_restored for one in before.saved):
            return False
        for one in before.saved:
            one.restore()
        if before.rng is not None:
            torch.set_rng_state(before.rng)
        return True
