"""State of optimizers that a trace makes ahead of the step that would make it, for one graph to
serve the first step and all others; and how the code and the settings of optimizers are known."""

import types
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from typing import Any, ClassVar

import attrs
from stator_bytecode import Frame
from stator_guards import Source
from torch import Tensor
from torch.optim.optimizer import Optimizer

from stator_variables._trace._capture_state import CaptureState, CaptureStates
from stator_variables._tracker import real_of


def is_of_optimizer(frame: Frame) -> bool:
    """Return True for a method of an optimizer, and for a function of `torch.optim`."""
    own = real_of(frame.slots[0]) if frame.slots else None
    module = str(frame.globals.real.get("__name__", ""))
    return isinstance(own, Optimizer) or module.startswith("torch.optim.")


def is_scheduled(group: object) -> bool:
    """Return True for a group of parameters whose SCHEDULED setting a scheduler writes: it has put
    `initial_lr` beside it."""
    return isinstance(group, dict) and dict.__contains__(group, "initial_lr")


SCHEDULED = "lr"


@attrs.frozen
class MadeState:
    """The state that a trace made for an optimizer: for which of its parameters, in their order,
    and by which code, with how many lists to be filled."""

    parameters: tuple[bool, ...]
    code: types.CodeType = attrs.field(eq=False)
    lists: int

    @classmethod
    def of(
        cls,
        optimizer: Optimizer,
        function: Any,
        gradients: Mapping[Tensor, Tensor | None],
        lists: int,
    ) -> "MadeState | None":
        """Make what is missing, for parameters that have gradients; None where nothing is."""
        has_gradient = tuple(gradient is not None for gradient in gradients.values())
        is_made = _make(optimizer, function, gradients, lists)
        return cls(has_gradient, function.__code__, lists) if is_made else None

    def make(self, optimizer: Any) -> Callable[[], None] | None:
        """Make the same for another optimizer, and return what takes that back; None where it
        cannot be made."""
        if not isinstance(optimizer, Optimizer):
            return None
        function: Any = getattr(type(optimizer), "_init_group", None)
        parameters = [each for group in optimizer.param_groups for each in group["params"]]
        if getattr(function, "__code__", None) is not self.code:
            return None
        if len(parameters) != len(self.parameters):
            return None

        before = [*optimizer.state]
        pairs = zip(parameters, self.parameters, strict=True)
        gradients = {each: each.detach() if has else None for each, has in pairs}
        _make(optimizer, function, gradients, self.lists)
        return lambda: _forget(optimizer, before)


@attrs.define(eq=False)
class MadeStates(CaptureState):
    """The states of optimizers that a trace made, by the sources of the optimizers."""

    may_repeat: ClassVar[bool] = True

    made: tuple[tuple[Source, MadeState], ...] = ()


def states_made(states: CaptureStates) -> tuple[tuple[Source, MadeState], ...]:
    """Return the states of optimizers that a trace has made."""
    state = states.made.get(MadeStates)
    return state.made if isinstance(state, MadeStates) else ()


def _make(
    optimizer: Optimizer, function: Any, gradients: Mapping[Tensor, Tensor | None], lists: int
) -> bool:
    """Make the state that is missing, of groups with such a parameter; return False if there is
    none."""
    is_made = False
    for group in optimizer.param_groups:
        given = {each: gradients[each] for each in group["params"]}
        if any(given[each] is not None and not optimizer.state.get(each) for each in given):
            is_made = True
            # RuntimeError: gradients that it refuses, for which the traced call raises it
            with _with_gradients(given), suppress(RuntimeError):
                function(optimizer, group, *([] for _ in range(lists)))
    return is_made


def _forget(optimizer: Optimizer, before: list[Any]) -> None:
    """Drop the state of the parameters that are not among `before`."""
    kept = set(map(id, before))
    for parameter in [*optimizer.state]:
        if id(parameter) not in kept:
            del optimizer.state[parameter]


@contextmanager
def _with_gradients(gradients: Mapping[Tensor, Tensor | None]) -> Iterator[None]:
    """Give parameters these gradients for a while; no state depends on the numbers in them."""
    with ExitStack() as stack:
        for parameter, gradient in gradients.items():
            stack.callback(setattr, parameter, "grad", parameter.grad)
            parameter.grad = gradient
        yield
