"""Tangents of tensors that a region finds under a level of forward-mode derivatives.

What a compiler makes of a graph has no tangents, so it runs as it is there; operators see those of
the real tensors. Which tensors have one is found while tracing, for `unpack_dual` and the history
of results.
"""

import enum
import functools
from typing import Any

import torch
from stator_guards import Custom, Source
from torch import Tensor
from torch.autograd import forward_ad

from stator_variables._space import Space

_make_dual: Any = torch._VF._make_dual
_unpack_dual: Any = torch._VF._unpack_dual


class Tangent(enum.Enum):
    """The tangent of a tensor, as far as results of operators depend on it."""

    NONE = "no tangent"
    LIKE = "a tangent like it"
    DIFFERENTIABLE = "a tangent like it that requires gradients"
    OTHER = "a tangent with another layout"


def is_under_level() -> bool:
    """Return True if the program entered a level before the region."""
    return forward_ad._current_level >= 0


def is_level_open() -> bool:
    """Return True if a level is entered, be it for the trace alone."""
    probe = torch.ones(())
    try:
        _make_dual(probe, probe, level=0)
    except RuntimeError:
        return False
    return True


def tangent_of(tensor: Tensor) -> Tangent:
    tangent = _unpack_dual(tensor, level=0)[1]
    if tangent is None:
        return Tangent.NONE
    is_like = tangent.stride() == tensor.stride() and not tangent._is_zerotensor()
    if not is_like or type(tangent) is not Tensor:
        return Tangent.OTHER
    return Tangent.DIFFERENTIABLE if tangent.requires_grad else Tangent.LIKE


def guard_tangent(t: Space, real: Tensor, source: Source) -> None:
    """Guard whether an input has a tangent, if there is a level."""
    if not is_under_level():
        return
    tangent = tangent_of(real)
    if tangent is Tangent.OTHER:
        raise t.unsupported("forward-derivatives", f"{source} has {tangent.value}")
    t.guard(source, _has(tangent))


@functools.cache
def _has(tangent: Tangent) -> Custom:
    return Custom("{fn}({value})", lambda value: tangent_of(value) is tangent, tangent.value)


def with_tangent(fake: Any, real: Tensor) -> Any:
    """Return the fake of an input with a tangent, if `real` has one."""
    tangent = tangent_of(real)
    if tangent is Tangent.NONE:
        return fake
    with fake.fake_mode:
        made = torch.empty_like(fake, requires_grad=tangent is Tangent.DIFFERENTIABLE)
        return _make_dual(fake, made, level=0)
