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
from torch.fx import Graph

from stator_variables._space import Space
from stator_variables._tensors._global_mode import Setting

ENTER: Any = torch._C._enter_dual_level
EXIT: Any = torch._C._exit_dual_level
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


def set_level(is_open: bool) -> None:
    """Enter the level, or leave it, unless that is so already."""
    if is_level_open() is not is_open:
        ENTER() if is_open else EXIT(level=0)


LEVEL = Setting(is_level_open, set_level, "set_dual_level")
"""The level as a mode, to leave it when a graph has raised. It is none of a space's modes: to leave
it for a moment would end all tangents."""


def enters_level(graph: Graph, *, and_stays: bool = False) -> bool:
    """Return True if a graph enters a level; with `and_stays`, if it does not leave it either."""
    targets = [node.target for node in graph.nodes]
    return targets.count(ENTER) > (targets.count(EXIT) if and_stays else 0)


def mark_levels(graph: Graph) -> None:
    """Mark the operators of a graph that run under a level: a compiler takes all of them, or none,
    as no tangent crosses the border of a graph."""
    is_inside = False
    for node in graph.nodes:
        is_inside = is_inside or node.target is ENTER
        if is_inside:
            node.meta["level"] = True
        is_inside = is_inside and node.target is not EXIT
