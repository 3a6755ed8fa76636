"""Steps of a program: one begins with each call of a compiled function.

CUDA graphs reuse the memory of results of earlier steps. torch's trees read the step from
`GenerationTracker.generation`, ours from `current_step`; `torch.compiler.cudagraph_mark_step_begin`
takes the place of both.
"""

import itertools
import sys
from typing import Any

from ._backend import Backend

_numbers = itertools.count(1)
_current = [0]


def uses_steps(backend: Backend) -> bool:
    """Return True for a backend with CUDA graphs, for which entries begin steps."""
    return bool(getattr(backend, "uses_steps", False))


def begin_step() -> None:
    """Begin a step, for torch's trees as well, if they are loaded."""
    _current[0] = next(_numbers)
    module: Any = sys.modules.get("torch._dynamo.mutation_guard")
    if module is not None:
        module.GenerationTracker.generation += 1


def current_step() -> int:
    """Return the number of the present step; negative where the program marks its steps itself."""
    trees: Any = sys.modules.get("torch._inductor.cudagraph_trees")
    marked: int = 0 if trees is None else trees.MarkStepBox.mark_step_counter
    return marked or _current[0]
