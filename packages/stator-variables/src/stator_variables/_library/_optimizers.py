"""Steps of `torch.optim` as a compiler takes them.

torch.optim branches on `torch.compiler.is_compiling()` in many places. Three things it leaves to
the compiler:

    adam(..., capturable=False)    capturable=True: nothing on the way to the parameters is read
                                   from a tensor
    torch._dynamo.graph_break()    no break: nothing before it belongs to the graph of the step
    self._init_group(...)          state that is missing is made at once, so that one graph serves
                                   the first step and all others
"""

from contextlib import suppress
from itertools import chain
from typing import Any

from stator_bytecode import Invoke, Result
from torch.optim.adam import adam
from torch.optim.optimizer import Optimizer

from stator_variables._objects import _inlining
from stator_variables._protocols import _calls
from stator_variables._space import Space
from stator_variables._tracker import MISSING, Args, Kwargs, VariableTracker, is_pending
from stator_variables._trackers import NONE, ConstantTracker, FunctionTracker

_FUNCTIONAL_CODE = adam.__code__
"""The wrapper that the functional form of each optimizer has; under `is_compiling()` it requires
`capturable` of tensors on accelerators."""


def functional(t: Space, function: FunctionTracker, args: Args, kwargs: Kwargs) -> Result:
    """Call the functional form of an optimizer with `capturable`, as torch.compile does
    (torch.optim.optimizer, Note [torch.compile x capturable])."""
    if function.code is not _FUNCTIONAL_CODE or "capturable" not in kwargs:
        return MISSING
    given = {**kwargs, "capturable": ConstantTracker(True)}
    return Invoke(_calls.frame_for(t, function, args, given))


def separation(t: Space, function: VariableTracker, args: Args, kwargs: Kwargs) -> Any:
    """Ignore the breaks of torch.optim around a step, which are there for the benefit of
    AOTAutograd; where it turned out to need them, keep those that have a step before them."""
    if not _inlining.is_graph_break(function.real):
        return MISSING
    if t.policy.separates_steps and not t.graph.is_pure:
        return MISSING
    caller = None if t.frame is None else t.frame.globals.real.get("__name__")
    return NONE if caller == Optimizer.__module__ else MISSING


def state_first(t: Space, function: FunctionTracker, args: Args, kwargs: Kwargs) -> Any:
    """Make the state that a step would make, before `_init_group` is traced.

    The step that is being traced is about to make it. Where it has changed what that depends on,
    the graph makes the state.
    """
    if function.code.co_name != "_init_group" or function.real is MISSING:
        return MISSING
    optimizer = args[0].real
    is_of_torch = str(function.real.__module__).startswith("torch.optim.")
    if not is_of_torch or not isinstance(optimizer, Optimizer) or not _is_untouched(t, optimizer):
        return MISSING

    lists = [()] * len(args[2:])
    for group in optimizer.param_groups:
        if any(each.grad is not None and not optimizer.state.get(each) for each in group["params"]):
            with suppress(RuntimeError):  # of gradients that it refuses: the traced call raises it
                function.real(optimizer, group, *map(list, lists))
    return MISSING


def _is_untouched(t: Space, optimizer: Optimizer) -> bool:
    """Return True if the trace has not read the state, and changed nothing that it depends on."""
    state = t.heap.trackers.get(id(optimizer.state))
    if state is not None and not is_pending(state):
        return False
    groups = optimizer.param_groups
    parts = [optimizer, groups, *groups, *chain(*(group["params"] for group in groups))]
    return all(id(t.heap.trackers.get(id(part))) not in t.heap.changed for part in parts)
