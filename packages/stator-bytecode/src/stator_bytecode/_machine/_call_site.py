"""Call sites: which function was called from which instruction.

Frames of the Machine and layouts of a Point have the same key for one call, so what was learned
about a call while tracing is found again for a continuation.

    frames f (parked at instruction 7), g, h (parked by g at 3)  =>  (f, 7, g), (g, 3, h)
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import Protocol, TypeAlias

from stator_bytecode._codec._instruction import Code

CallSite: TypeAlias = tuple[Code, int, Code]
"""The caller, its instruction, and the function that the instruction called or resumed. Codes
compare by identity."""


class HasCode(Protocol):
    """A frame, or the layout of one."""

    @property
    def code(self) -> Code: ...

    @property
    def pc(self) -> int: ...


def call_sites(frames: Sequence[HasCode]) -> list[CallSite]:
    """Return the call of each frame but the outermost."""
    return [(caller.code, caller.pc, callee.code) for caller, callee in pairwise(frames)]
