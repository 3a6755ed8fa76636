"""The part of `torch.inference_mode` that an entry has; `_library/_inference.py` enters it.

Leaving it restores the state before it was entered, which is more than gradients: autocast, too, is
a bit of the dispatch keys that `c10::InferenceMode` saves and restores. So the entry enters it in
the modes that the program entered it in, and then sets those that the program set inside.
"""

import contextlib
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import Any, ClassVar

import attrs
import torch
from torch.autograd import grad_mode

from stator_variables._emitter import Emitter
from stator_variables._runtime._support import as_inference
from stator_variables._space import Space
from stator_variables._tensors._global_mode import GRAD, GlobalModes, Setting, put
from stator_variables._trace._capture_state import ModeState, Phase
from stator_variables._tracker import VariableTracker

ENTER: Any = grad_mode._enter_inference_mode
EXIT: Any = grad_mode._exit_inference_mode


class InferenceTracker(VariableTracker):
    """One entered `torch.inference_mode`: the modes before, and those inside when it was left."""

    cls: type = torch._C._InferenceMode

    def __init__(self, mode: bool, modes: dict[Setting, Any]) -> None:
        self.before = torch.is_inference_mode_enabled(), torch.is_grad_enabled()
        self.mode = mode
        self.modes = modes
        self.inside: dict[Setting, Any] = {}

    def enter(self) -> None:
        self._context = ENTER(self.mode)

    def leave(self) -> None:
        EXIT(self._context)

    @contextlib.contextmanager
    def outside(self) -> Iterator[None]:
        """Restore the state before this was entered, inside the block."""
        with torch.inference_mode(self.before[0]), torch.set_grad_enabled(self.before[1]):
            yield

    def rebuild(self, e: Emitter) -> str:
        modes = e.t.state(InferenceModes)
        around = [*modes.entered, *modes.left]
        is_entered = any(self is entered for entered in around)
        if is_entered:
            while around[-1] is not self:
                around.pop()
            for outer in around[:-1]:
                e.expr(outer)
            e.lines += [
                setting.statement(self.modes.get(setting, start), e.capture)
                for setting, start in _starts(e.t).items()
            ]

        name = e.bind(self, f"{e.capture(ENTER, 'enter_inference_mode')}({self.mode})")
        if not is_entered:  # C makes none that was not entered
            e.lines.append(f"{e.capture(EXIT, 'exit_inference_mode')}({name})")
        return name


@attrs.define(eq=False)
class InferenceModes(ModeState):
    """The modes that were entered while tracing."""

    phase: ClassVar[Phase] = Phase.OUTER_MODES

    entered: list[InferenceTracker] = attrs.Factory(list)
    """The modes that are not left, outermost first."""
    ever: bool = False
    """Some were entered."""
    left: list[InferenceTracker] = attrs.Factory(list)
    """The modes that the end of the graph left, for the entry to enter."""

    def outside(self) -> AbstractContextManager[None]:
        return self.entered[0].outside() if self.entered else nullcontext()

    def refuses_calls_ahead(self) -> bool:
        return self.ever

    def restore(self) -> None:
        while self.entered:
            self.entered.pop().leave()

    def moment(self) -> tuple[Any, ...]:
        return len(self.entered), len(self.left), self.ever

    def bound_to_process(self) -> str:
        return "it is in inference mode" if self.ever else ""

    def emit(self, e: Emitter) -> None:
        """Leave the modes that are still entered in the graph, and enter them again in the
        entry."""
        if self.ever:
            e.marking.append(partial(_marks, e))
        t, still = e.t, list(self.entered)
        while self.entered:
            leave_mode(t)
        self.left += still
        t.journal.record(self.left.clear)
        for entered in self.left:
            e.expr(entered)
        inside = self.left[-1].inside if self.left else {}
        e.lines += [setting.statement(value, e.capture) for setting, value in inside.items()]
        t.state(GlobalModes).are_set = frozenset(inside)


def _marks(e: Emitter) -> list[str]:
    """Return the line that marks results as inference tensors: the graph only has gradients
    switched off."""
    examples = [traced.example for traced in e.outputs]
    tensors = [(i, made) for i, made in enumerate(examples) if isinstance(made, torch.Tensor)]
    made = [i for i, example in tensors if example.is_inference()]
    plain = [i for i, example in tensors if i not in made and not example.requires_grad]
    if not (made or plain):
        return []
    return [f"g = {e.capture(as_inference)}(g, {made}, {plain})"]


def kept_modes(t: Space) -> dict[Setting, Any]:
    """The modes that it keeps and puts back."""
    autocast = {
        setting: setting.now
        for setting in t.state(GlobalModes).starts
        if setting.read is torch.is_autocast_enabled
    }
    # its own setting: that of a body that was run before is no node
    return {GRAD: GRAD.now} | autocast


def leave_mode(t: Space) -> None:
    modes = t.state(InferenceModes).entered
    entered = modes.pop()
    inside = entered.inside = kept_modes(t)
    entered.leave()

    def undo() -> None:
        entered.enter()
        modes.append(entered)
        for setting, value in inside.items():
            setting.set(value)

    t.journal.record(undo)
    starts = t.state(GlobalModes).starts
    for setting, value in inside.items():
        before = entered.modes.get(setting, starts[setting])
        if setting == GRAD or value != before:
            put(t, setting, before)


def _starts(t: Space) -> dict[Setting, Any]:
    starts = t.state(GlobalModes).starts
    return {setting: starts[setting] for setting in kept_modes(t)}
