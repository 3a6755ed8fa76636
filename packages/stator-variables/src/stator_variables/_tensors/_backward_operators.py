"""The operators of a graph that show how it is differentiated: backward passes and checkpoints."""

from typing import ClassVar

import attrs

from stator_variables._trace._capture_state import CaptureState


@attrs.define(eq=False)
class Differentiated(CaptureState):
    """The kinds of such operators in the graph so far, those of bodies included."""

    may_repeat: ClassVar[bool] = True

    has_backward: bool = False
    has_checkpoint: bool = False
    has_reentrant: bool = False
    """A checkpoint is a reentrant one."""
