"""Warnings of hooks in a compiled segment, at the line of the program that eager autograd names.

    warnings.warn("old", stacklevel=5)      # in a hook: the engine is 2, who called it 3, and so on

A trace has functions of its own between the hook and the segment, and a captured backward has
others between the segment and the engine.
"""

import sys
import warnings
from types import FrameType

from torch.autograd.graph import _engine_run_backward


def warn_below_engine(text: str, category: type[Warning], level: int) -> None:
    """Warn about a caller of the engine; `level` is 1 for the first of them."""
    depth = _depth_of_engine(sys._getframe(1))
    warnings.warn(text, category, stacklevel=level + depth + 2)


def _depth_of_engine(frame: FrameType | None) -> int:
    """Return how many calls below a frame the engine was entered; 0 if it was not by torch."""
    depth = 0
    while frame is not None:
        if frame.f_code is _engine_run_backward.__code__:
            return depth
        frame = frame.f_back
        depth += 1
    return 0
