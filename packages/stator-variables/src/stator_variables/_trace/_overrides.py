"""Overrides of functions of torch by `__torch_function__`, as a trace has them."""

from __future__ import annotations

from typing import Any, ClassVar

import torch
from attrs import Factory, define

from stator_variables._trace._capture_state import CaptureState, Phase


@define(eq=False)
class Overrides(CaptureState):
    """The overrides that are active for functions of torch."""

    phase: ClassVar[Phase] = Phase.FUNCTION_MODES
    may_repeat: ClassVar[bool] = True
    surrounds: ClassVar[bool] = True

    modes: tuple[Any, ...] = ()
    """The modes that are entered, the innermost last."""
    depth: int = 0
    """The number of overrides that are under way."""
    subclasses: bool = False
    """A tensor of a class with an override was met."""
    off: bool = Factory(lambda: not torch._C._is_torch_function_enabled())
    """No override is called."""

    def emit(self, e: Any) -> None:
        for mode in self.modes:
            push = e.capture(torch._C._push_on_torch_function_stack, "push_mode")
            e.lines.append(f"{push}({e.expr(mode)})")

    def refuses_calls_ahead(self) -> bool:
        return bool(self.modes)

    def moment(self) -> tuple[Any, ...] | None:
        return None if self.modes else (self.depth, self.subclasses, self.off)

    def kept_by_body(self) -> tuple[Any, ...]:
        return self.modes
