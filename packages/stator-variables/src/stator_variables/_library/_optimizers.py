"""Steps of `torch.optim` as a compiler takes them.

torch.optim branches on `torch.compiler.is_compiling()` in many places. Three things it leaves to
the compiler:

    adam(..., capturable=False)    capturable=True: nothing on the way to the parameters is read
                                   from a tensor
    torch._dynamo.graph_break()    no break: nothing before it belongs to the graph of the step
    self._init_group(...)          state that is missing is made at once, so that one graph serves
                                   the first step and all others
"""

import types
from collections.abc import Iterator
from itertools import chain
from typing import Any

import torch
from stator_bytecode import Invoke, Result
from stator_guards import Custom, Equals
from torch import Tensor
from torch.optim.adam import adam
from torch.optim.optimizer import Optimizer

from stator_variables._handler_keys import REQUESTED_BREAK
from stator_variables._protocols import _calls
from stator_variables._space import Space
from stator_variables._trace._optimizer_state import MadeState, MadeStates
from stator_variables._tracker import (
    MISSING,
    Args,
    FunctionTable,
    Kwargs,
    VariableTracker,
    is_a,
    is_pending,
)
from stator_variables._trackers import NONE, ConstantTracker, FunctionTracker, is_none

handlers = FunctionTable("optimizer")
_FUNCTIONAL_CODE = adam.__code__
"""The wrapper that the functional form of each optimizer has; under `is_compiling()` it requires
`capturable` of tensors on accelerators."""


@handlers.handles(_FUNCTIONAL_CODE)
def functional(t: Space, args: Args, kwargs: Kwargs) -> Result:
    """Call the functional form of an optimizer with `capturable`, as torch.compile does
    (torch.optim.optimizer, Note [torch.compile x capturable]).

    A warm-up begins with a rate of 0, by which the loop of `adam` over parameters then divides:
    NaN, where a gradient is 0. Its `foreach` form does not, and moves no parameter either.
    """
    function, *rest = args
    if not is_a(function, FunctionTracker) or "capturable" not in kwargs:
        return MISSING
    given = {**kwargs, "capturable": ConstantTracker(True)}
    if function.real is adam and _may_be_zero(t, kwargs["lr"]):
        given["foreach"] = ConstantTracker(kwargs["fused"].constant() is not True)
    return Invoke(_calls.frame_for(t, function, rest, given))


def _may_be_zero(t: Space, rate: VariableTracker) -> bool:
    """Return True for a rate of 0, and for one that the region computes from numbers that change.
    Whether a symbolic one from outside is 0 is guarded."""
    if rate.constant() is not MISSING or rate.cls is not float:
        return bool(rate.constant() == 0)
    if rate.source is None:
        return True
    t.guard(rate.source, Equals(0.0) if rate.real == 0 else NOT_ZERO)
    return bool(rate.real == 0)


NOT_ZERO = Custom("{value} != 0", bool, "a number that is not 0")


@handlers.handles(REQUESTED_BREAK)
def separation(t: Space, args: Args, kwargs: Kwargs) -> Any:
    """Ignore the breaks of torch.optim around a step, which are there for the benefit of
    AOTAutograd; where it turned out to need them, keep those that have a step before them."""
    if t.policy.separates_steps and not t.graph.is_pure:
        return MISSING
    caller = None if t.frame is None else t.frame.globals.real.get("__name__")
    return NONE if caller == Optimizer.__module__ else MISSING


def _codes_of_init_group() -> Iterator[types.CodeType]:
    """Yield the codes of `_init_group` of the optimizers of torch."""
    for cls in vars(torch.optim).values():
        if isinstance(cls, type) and issubclass(cls, Optimizer) and "_init_group" in vars(cls):
            yield vars(cls)["_init_group"].__code__


@handlers.handles(*_codes_of_init_group())
def state_first(t: Space, args: Args, kwargs: Kwargs) -> Any:
    """Make the state that a step would make, before `_init_group` is traced.

    The step that is being traced is about to make it. Where it has changed what that depends on,
    the graph makes the state.
    """
    function, owner, *rest = args
    optimizer = owner.real
    if not isinstance(optimizer, Optimizer) or not _is_untouched(t, optimizer):
        return MISSING

    gradients = {
        each: _gradient(t, each) for group in optimizer.param_groups for each in group["params"]
    }
    made = MadeState.of(optimizer, function.real, gradients, len(rest[1:]))
    if made and owner.source is not None:
        state = t.state(MadeStates)
        t.journal.assign(state, made=(*state.made, (owner.source, made)))
    return MISSING


def _gradient(t: Space, parameter: Tensor) -> Tensor | None:
    """Return the `.grad` of a parameter, or something like the one that the graph gives it."""
    tracker: Any = t.heap.trackers.get(id(parameter))
    if tracker is None or is_pending(tracker) or tracker.grad is MISSING:
        return parameter.grad
    return None if is_none(tracker.grad) else parameter.detach()


def _is_untouched(t: Space, optimizer: Optimizer) -> bool:
    """Return True if the trace has not read the state, and changed nothing that it depends on."""
    state = t.heap.trackers.get(id(optimizer.state))
    if state is not None and not is_pending(state):
        return False

    groups = optimizer.param_groups
    if any(
        id(t.heap.trackers.get(id(part))) in t.heap.changed for part in (optimizer, groups, *groups)
    ):
        return False
    parameters = chain(*(group["params"] for group in groups))
    trackers: Iterator[Any] = map(t.heap.trackers.get, map(id, parameters))
    return all(vt is None or is_pending(vt) or vt.data is MISSING for vt in trackers)
