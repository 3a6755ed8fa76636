"""Calls that read the autograd history of values inside the graph before them.

Where a compiler makes one autograd function of the graph, the results depend on the inputs alone,
there are no second derivatives, and hooks of values between do not run. Where the calls are not
part of the graph themselves (`_backward.py`), the handlers here record that it must keep its
history; then the calls are handled like any other.
"""

import inspect
from collections.abc import Callable, Mapping
from typing import Any

import torch
from stator_bytecode import Result

from stator_variables._objects._tuple import SequenceTracker
from stator_variables._space import Space
from stator_variables._tensors import _backward, _new_leaves, _tensor_attributes
from stator_variables._tracker import MISSING, Args, FunctionTable, Kwargs, VariableTracker, is_a
from stator_variables._trackers import ConstantTracker, TensorTracker

handlers = FunctionTable("differentiation")


def _register(
    function: Callable[..., Any], roots: str, capture: Callable[[Space, Any], Result]
) -> None:
    signature = inspect.signature(function)

    @handlers.handles(function)
    def note(t: Space, args: Args, kwargs: Kwargs) -> Result:
        given = signature.bind(*args, **kwargs).arguments
        captured: Result = MISSING
        try:
            captured = capture(t, given)
            return captured
        finally:
            if captured is MISSING:
                _note_native(t, given, roots)


def _note_native(t: Space, given: Mapping[str, Any], roots: str) -> None:
    """Note what a call does, which runs natively, to the history of the graph before it."""
    creates = given.get("create_graph")
    if creates is not None and creates.constant() is not False:
        t.graph.keep_history()
    keep_history_for(t, given.get("inputs"))
    for root in _tensors_in(given[roots]):
        t.graph.end_with_backward(root.shown)


def keep_history_for(t: Space, subject: Any) -> None:
    """Keep tensors that the graph made apart from what it computes of them, for a call about their
    gradients."""
    if is_a(subject, SequenceTracker):
        for item in subject.items:
            keep_history_for(t, item)
    elif is_a(subject, TensorTracker) and subject.source is None:
        t.graph.keep_apart(subject.shown)


_WITH_FLAG = inspect.signature(lambda self, requires_grad=None: None)


@handlers.handles(torch.Tensor.requires_grad_)
def require_gradients(t: Space, args: Args, kwargs: Kwargs) -> Result:
    try:
        tensor, flag = map(
            _WITH_FLAG.bind(*args, **kwargs).arguments.get, ("self", "requires_grad")
        )
    except TypeError:  # the program's mistake, raised by the call
        return MISSING
    requires = ConstantTracker(True) if flag is None else flag
    if _tensor_attributes.has_flag(t, tensor, requires):
        return tensor
    if requires.constant() is not True or type(tensor) is not TensorTracker:
        return MISSING
    return _new_leaves.become_leaf(t, tensor) or MISSING


def _tensors_in(given: VariableTracker) -> list[Any]:
    items = given.items if is_a(given, SequenceTracker) else [given]
    return [item for item in items if is_a(item, TensorTracker) and item.source is None]


_register(torch.autograd.grad, "outputs", _backward.capture_grad)
_register(torch.autograd.backward, "tensors", _backward.capture_backward)
