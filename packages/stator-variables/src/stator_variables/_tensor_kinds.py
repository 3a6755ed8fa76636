"""The trackers of tensors, of arrays over the memory of tensors, and of their storages."""

import operator
from collections.abc import Callable
from types import NoneType
from typing import Any

import torch
from stator_bytecode import Result, Unsupported

from stator_variables._emitter import Emitter, StaysInGraph, filled
from stator_variables._runtime._support import as_subclass
from stator_variables._space import Space
from stator_variables._trace._graph import GraphValue
from stator_variables._trace._overrides import Overrides
from stator_variables._tracker import MISSING, ArgumentOf, VariableTracker


class TensorTracker(VariableTracker, references=("grad", "node", "tangent")):
    """A tensor: the node that computes it and the fake tensor that it evaluates to.

    - `grad` and `data`: the values assigned to these attributes, a tracker and a `GraphValue`.
    - `had_grad`: if the program found a `.grad`, None until it reads it; `drops_grad`: it was set
      to None unread, ahead of all operations.
    - `history`: the `grad_fn` that the fake of an existing tensor began with.
    - `connect`: of a leaf that the region makes (`is_new`), gives the value for operators.
    - `begun`: what the Machine saved ahead of the operator, for a result that stays in the graph.
    - `connected`: its data, these with its history, and the number of writes to them by then.
    """

    base = torch.Tensor
    may_hold = False
    history: object = None
    is_late = False  # read after the graph: see `_entry_values`
    grad: Any = MISSING
    had_grad: bool | None = None
    drops_grad: bool = False
    data: Any = MISSING
    # what the Machine saved ahead of a hook: a compiled graph may not use it from there on
    node: object = None  # a tracker of its autograd node, where the program may read that
    tangent: Any = None  # the tracker of what `make_dual` was given
    connect: Callable[[Space, Any], GraphValue] | None = None
    begun: Any = None
    connected: tuple[GraphValue, GraphValue, int] | None = None

    def __init__(self, traced: GraphValue, cls: type) -> None:
        self.before = traced
        self.cls = cls

    def get_attribute(self, t: Space, name: str) -> Result:
        return MISSING if t.state(Overrides).modes else t.read_tensor(self, name)

    def iter(self, t: Space) -> Any:
        return MISSING if t.state(Overrides).modes else t.iterate_tensor(self)

    def length(self, t: Space) -> Result:
        return MISSING if t.state(Overrides).modes else t.length_of_tensor(self)

    def get_item(self, t: Space, key: VariableTracker) -> Result:
        return MISSING if t.state(Overrides).modes else t.record_item(self, key)

    def set_item(self, t: Space, key: VariableTracker, new: VariableTracker) -> Result:
        return self.operate(t, operator.setitem, self, key, new)

    def operate(self, t: Space, function: Callable[..., Any], *operands: VariableTracker) -> Result:
        return t.operate_in_graph(function, *operands)

    def in_graph(self, t: Space, part: ArgumentOf) -> Any:
        return self.traced if self.connect is None else self.connect(t, self)

    @property
    def is_new(self) -> bool:
        return self.connect is not None

    @property
    def traced(self) -> GraphValue:
        if (
            self.data is not MISSING
            and self.before.example.requires_grad
            and torch.is_grad_enabled()
        ):
            raise Unsupported(
                "tensor-attribute-write", "a tensor with gradients whose data was replaced before"
            )
        return self.shown

    @property
    def shown(self) -> GraphValue:
        """The value for autograd and metadata. Replaced data has no history in the graph, so
        autograd must not see it."""
        return self.before if self.data is MISSING else self.data

    @property
    def example(self) -> Any:
        return self.shown.example

    def rebuild(self, e: Emitter) -> str:
        if self.begun is not None:
            raise StaysInGraph(self.begun, e.refuse(self))
        text = e.output(self.traced)
        return (
            filled(e, self, e.bind(self, text))
            if self.namespace is not None and self.namespace.entries
            else text
        )

    def replay(self, e: Emitter) -> None:
        if self.data is not MISSING:
            # written to since, with gradients: an assignment does not bring them
            if self.data.example.requires_grad:
                raise e.refuse(self)
            e.lines.append(f"{e.expr(self)}.data = {e.output(self.data)}")
        if self.drops_grad:  # where the program does: its memory is there for the graph
            e.early.append(f"{e.expr(self)}.grad = None")
        if self.grad is not MISSING:
            self._replay_grad(e)

    def _replay_grad(self, e: Emitter) -> None:
        is_none = self.grad.cls is NoneType
        if is_none and (self.had_grad is False or self.drops_grad):
            return

        if not is_none and self.grad.example.shape != self.example.shape:
            raise e.t.unsupported(
                "tensor-attribute-write", "a gradient that no longer fits its tensor"
            )
        e.gradients.append(self.source)
        e.lines.append(f"{e.expr(self)}.grad = {e.expr(self.grad)}")


class SubclassTracker(VariableTracker, references=("tensor",)):
    """A tensor of a subclass with overrides in Python: a plain tensor over its memory, and the
    class."""

    def __init__(self, tensor: TensorTracker, cls: type) -> None:
        self.tensor = tensor
        self.cls = cls

    def rebuild(self, e: Emitter) -> str:
        made = e.capture(as_subclass)
        return filled(
            e, self, e.bind(self, f"{made}({e.expr(self.tensor)}, {e.capture(self.cls)})")
        )


class ArrayTracker(VariableTracker, references=("tensor",)):
    """A NumPy array, by a tensor over its memory; or a number of NumPy that the graph computes
    (`cls` its class).

    `flipped` are the dimensions that the array goes through backwards, which tensors cannot.
    `owns_memory`: NumPy made it, and not as a view; `needs_own_memory`: it has to be such an array
    when it becomes an object.
    """

    owns_memory = False
    needs_own_memory = False

    def __init__(self, tensor: TensorTracker, cls: type, flipped: tuple[int, ...] = ()) -> None:
        self.tensor = tensor
        self.cls = cls
        self.flipped = flipped

    def iter(self, t: Space) -> Any:
        return t.iterate_array(self)

    def get_item(self, t: Space, key: VariableTracker) -> Result:
        return t.operate_on_arrays(operator.getitem, self, key)

    def set_item(self, t: Space, key: VariableTracker, new: VariableTracker) -> Result:
        return t.operate_on_arrays(operator.setitem, self, key, new)

    def operate(self, t: Space, function: Callable[..., Any], *operands: VariableTracker) -> Result:
        return t.operate_on_arrays(function, *operands)

    def in_graph(self, t: Space, part: ArgumentOf) -> Any:
        number = t.number_of_array(self)
        return MISSING if number is self else part(number)

    def rebuild(self, e: Emitter) -> str:
        """An array over the memory of the tensor; what is no array is its one item."""
        if self.tensor.example.requires_grad or self.tensor.example.device.type != "cpu":
            raise e.refuse(self)
        part = "" if self.cls.__name__ == "ndarray" else "[()]"
        if self.flipped:
            dims = range(self.tensor.example.dim())
            part = f"[{', '.join('::-1' if i in self.flipped else ':' for i in dims)}]"
        if self.needs_own_memory and self.owns_memory:
            part += ".copy()"
        return e.bind(self, f"{e.output(self.tensor.traced)}.numpy(){part}")


class StorageTracker(VariableTracker, references=("tensor", "known")):
    """The untyped storage of a tensor; `known` is an input over it, where its size or address is
    read."""

    cls = torch.UntypedStorage

    def __init__(self, tensor: TensorTracker, known: TensorTracker | None = None) -> None:
        self.tensor = tensor
        self.known = known

    def rebuild(self, e: Emitter) -> str:
        return e.bind(self, f"{e.expr(self.tensor)}.untyped_storage()")
