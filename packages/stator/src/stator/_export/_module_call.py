"""Calls of submodules whose signature an exported program keeps.

Hooks mark both ends of a call while it is traced. A mark is a node through which the tensors of
the arguments, or of the result, pass; when the graph runs for torch.export, the hooks that it has
put on the submodule get them in their structure.
"""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any

import attrs
import torch
from stator_bytecode import HandlerTable
from stator_variables import (
    MISSING,
    Space,
    Spec,
    TensorTracker,
    flatten,
    from_traced,
    is_a,
    unflatten,
)

handlers: HandlerTable[Any, Any] = HandlerTable("mark of a call")
INPUTS, OUTPUTS = "inputs", "outputs"


@attrs.frozen(eq=False)
class CallEnd:
    """One end of a call: a target of nodes that returns its tensors. `leaves` has the constants of
    the structure, MISSING for tensors."""

    end: str
    path: str
    spec: Spec
    leaves: tuple[Any, ...]
    __name__ = "end_of_call"

    def __call__(self, *tensors: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return tensors

    def value(self, tensors: Sequence[Any]) -> Any:
        """Return the structure around these tensors."""
        rest = iter(tensors)
        leaves = (next(rest) if leaf is MISSING else leaf for leaf in self.leaves)
        return self.spec.filled(leaves)

    def tensors(self, value: Any) -> tuple[Any, ...]:
        leaves = torch.utils._pytree.tree_leaves(value)
        return tuple(leaf for leaf in leaves if isinstance(leaf, torch.Tensor | torch.SymInt))


def mark(end: str, path: str, value: Any) -> Any:
    """Return the value: code that is traced has a mark there."""
    return value


@handlers.handles(mark)
def mark_traced(t: Space, args: list[Any], kwargs: dict[str, Any]) -> Any:
    end, path, value = args
    leaves, spec = flatten(t, value)
    constants = [MISSING if is_a(leaf, TensorTracker) else leaf.constant() for leaf in leaves]
    places = [index for index, leaf in enumerate(leaves) if is_a(leaf, TensorTracker)]
    if constants.count(MISSING) > len(places):
        detail = f"a value other than a tensor among the {end.constant()} of {path.constant()}"
        raise t.unsupported("unrepresentable-argument", detail)

    target = CallEnd(end.constant(), path.constant(), spec, tuple(constants))
    traced = t.graph.call(target, [leaves[place].traced for place in places], {})
    for index, place in enumerate(places):
        leaves[place] = from_traced(t, t.graph.project(traced, index))
    return unflatten(t, leaves, spec)


def _before(path: str, module: Any, args: Any, kwargs: Any) -> Any:
    return mark(INPUTS, path, (args, kwargs))


def _behind(path: str, module: Any, args: Any, result: Any) -> Any:
    return mark(OUTPUTS, path, result)


@contextmanager
def marked_calls(module: torch.nn.Module, paths: Sequence[str]) -> Iterator[None]:
    """Put the marks on these submodules."""
    with ExitStack() as stack:
        for path in paths:
            submodule = module.get_submodule(path)
            before, behind = partial(_before, path), partial(_behind, path)
            handle = submodule.register_forward_pre_hook(before, with_kwargs=True)
            stack.callback(handle.remove)
            stack.callback(submodule.register_forward_hook(behind).remove)
        yield


@attrs.define(eq=False)
class MarkedCalls:
    """The marked calls of a module that are under way in a run, by path."""

    module: torch.nn.Module
    inputs: dict[str, Any] = attrs.field(factory=dict)

    def reach(self, end: CallEnd, tensors: Sequence[Any]) -> tuple[Any, ...]:
        """Run the hooks that were put on the submodule last. Returns the tensors they give."""
        submodule, value = self.module.get_submodule(end.path), end.value(tensors)
        if end.end == INPUTS:
            hook = [*submodule._forward_pre_hooks.values()][-1]
            found = self.inputs[end.path] = hook(submodule, *value)
        else:
            after: Any = [*submodule._forward_hooks.values()][-1]
            found = after(submodule, *self.inputs.pop(end.path), value)
        return end.tensors(found)
