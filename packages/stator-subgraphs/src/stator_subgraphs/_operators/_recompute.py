"""What a checkpointed body is run under, forward and once more in backward: the same random numbers both times.

The operator itself keeps none of torch's promises about random state: it relies on compilers that make randomness part
of the graph. A graph that is run as it is needs the state put back, as `checkpoint` does it in plain Python.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

import attrs
import torch
from torch._guards import TracingContext
from torch.utils.checkpoint import CheckpointPolicy, create_selective_checkpoint_contexts

selective: Any = create_selective_checkpoint_contexts  # untyped, as is the next
in_use: Any = torch.cuda.is_initialized
Contexts = tuple[AbstractContextManager[Any], AbstractContextManager[Any]]


def recompute(*args: Any, **kwargs: Any) -> CheckpointPolicy:
    """The policy for every operator: keep nothing."""
    return CheckpointPolicy.PREFER_RECOMPUTE


def same_random_numbers() -> Contexts:
    """A `context_fn`. A compiler that looks at the body sees what it sees without."""
    if TracingContext.try_get() is not None:
        contexts: Contexts = selective(recompute)
        return contexts
    forward = Forward()
    return forward, Again(forward)


same_random_numbers.cache_hash = "stator: same random numbers"  # type: ignore[attr-defined]  # AOTAutograd's cache asks


@attrs.define(slots=False)
class Forward(AbstractContextManager[None]):
    """Notes the random state at the start. The operator hangs an attribute of its own on it."""

    before: Any = None

    def __enter__(self) -> None:
        self.before = streams()

    def __exit__(self, *error: object) -> None:
        pass


@attrs.define
class Again(AbstractContextManager[None]):
    """The same state, for a while."""

    forward: Forward
    now: Any = None

    def __enter__(self) -> None:
        self.now = streams()
        set_streams(self.forward.before)

    def __exit__(self, *error: object) -> None:
        set_streams(self.now)


def streams() -> tuple[Any, list[Any]]:
    """The states of the CPU's generator and, when in use, of every GPU's."""
    return torch.get_rng_state(), torch.cuda.get_rng_state_all() if in_use() else []


def set_streams(states: tuple[Any, list[Any]]) -> None:
    torch.set_rng_state(states[0])
    if states[1]:
        torch.cuda.set_rng_state_all(states[1])
