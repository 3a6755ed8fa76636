"""`torch.autograd.Function`: one node over the graphs of its forward and its backward.

Forward is traced on the arguments themselves, with gradients off; backward, if it may be called,
right after it on gradients like the outputs. Neither may do anything but compute: one that does
runs natively, as does one whose context holds what the substitute (`_function_targets.py`) could
not pass to the original backward.
"""

import inspect
import weakref
from collections.abc import Callable, Generator, Sequence
from typing import Any

import torch
from attrs import Factory, define, evolve
from stator_bytecode import operation, settle
from stator_guards import CapturedSource, Is
from stator_variables import (
    MISSING,
    NONE,
    Args,
    BodyTrace,
    ConstantTracker,
    FunctionTable,
    GraphValue,
    Kwargs,
    NumberTracker,
    Permits,
    Space,
    TensorTracker,
    Transforms,
    TupleTracker,
    VariableTracker,
    attributes_of,
    flatten,
    from_traced,
    get_attribute,
    grad_mode,
    is_a,
    is_none,
    known_value,
    new_object,
    pass_hooks,
    passes_hooks,
    real_of,
    unflatten,
    wrap,
)
from torch.autograd.function import (
    BackwardCFunction,
    Function,
    NestedIOFunction,
    _SingleLevelFunction,
)

from stator_subgraphs._mutation import storage_of
from stator_subgraphs._operators import _applevel
from stator_subgraphs._operators import _function_targets as targets
from stator_subgraphs._torch_compat import FUNCTION_APPLY

handlers = FunctionTable("autograd function")
_OWN = ("needs_input_grad", "to_save", "dirty_tensors", "non_differentiable", "materialize_grads")
_CONTEXTS: weakref.WeakKeyDictionary[type, type] = weakref.WeakKeyDictionary()
Gradients = Generator[Any, Any, Any]
TracedPass = Callable[[BodyTrace], Gradients]


@handlers.handles(_applevel.unknown)
def unknown(t: Space, args: Args, kwargs: Kwargs) -> Any:
    name = args[1].value
    if hasattr(BackwardCFunction, name):
        raise t.unsupported("autograd-function", f"{name} of the context of an autograd.Function")
    return MISSING


@handlers.handles(FUNCTION_APPLY)
@operation
def apply(t: Space, args: Args, kwargs: Kwargs) -> Any:
    if passes_hooks(getattr(args[0], "value", None)):
        return pass_hooks(t, args[1:])
    applying = Applying(t, args[0], [*args[1:]])
    applying.check(kwargs)
    yield from applying.take_defaults()
    return (
        yield from applying.recorded(
            applying.forward, applying.backward if applying.is_executable else None
        )
    )


@handlers.handles(targets.applied)
@operation
def applied_again(t: Space, args: Args, kwargs: Kwargs) -> Any:
    """Record `applied` of a graph that is traced again: its bodies are traced, their inputs and
    outputs are as planned."""
    holder, forward, backward = known_value(t, args[0]), args[1], args[2]
    input_count, lifted = (count.constant() for count in args[3].items)
    inputs, rest = [*args[4 : 4 + input_count]], args[4 + input_count :]
    owner = wrap(t, holder.original, CapturedSource("function", holder.original))
    applying = Applying(t, owner, inputs, plan=holder.plan)
    applying.check_rule()

    def run_forward(body: BodyTrace) -> Gradients:
        with grad_mode(t, False):
            result = yield from body.run(forward, [*inputs, *rest[:lifted]], {})
        applying.note_planned_outputs(result.items)
        return result

    def run_backward(body: BodyTrace) -> Gradients:
        tensors = [*applying.gradients(body), *applying.planned_values(body), *rest[lifted:]]
        with grad_mode(t, False):
            return (yield from body.run(backward, tensors, {}))

    return (yield from applying.recorded(run_forward, None if is_none(backward) else run_backward))


@define(eq=False)
class Applying:
    """One call: its arguments, the outputs of forward and the tensors it saved, and the graphs."""

    t: Space
    owner: Any
    args: list[Any]
    context: Any = None
    outputs: list[Any] = Factory(list)  # tensors or not
    output_tensors: list[Any] = Factory(list)  # the tensors among them
    # saved tensors and numbers that are neither argument nor output
    saved_values: list[Any] = Factory(list)
    is_single: bool = False
    forward_graph: Any = None
    backward_graph: Any = None
    plan: Any = None

    @property
    def cls(self) -> Any:
        return self.owner.value

    @property
    def has_setup(self) -> bool:
        return self.cls.setup_context is not _SingleLevelFunction.setup_context

    @property
    def positions(self) -> list[int]:
        return [index for index, vt in enumerate(self.args) if is_a(vt, TensorTracker)]

    @property
    def inputs(self) -> list[Any]:
        return [self.args[position] for position in self.positions]

    @property
    def is_executable(self) -> bool:
        return torch.is_grad_enabled() and any(vt.example.requires_grad for vt in self.inputs)

    def refuse(self, what: str) -> Exception:
        return self.t.unsupported("autograd-function", f"{self.cls.__qualname__}: {what}")

    def check(self, kwargs: Kwargs) -> None:
        if not isinstance(getattr(self.owner, "value", None), type) or issubclass(
            self.cls, NestedIOFunction
        ):
            raise self.t.unsupported("autograd-function", "apply of something else than a Function")
        if kwargs or getattr(self.cls, "boxed_grads_call", False):
            raise self.refuse("keyword arguments, or gradients in a list")
        self.check_rule()

    def check_rule(self) -> None:
        """Reject a rule of the program's for vmap where it is used: it takes the batches, of which
        a body sees slices."""
        if "vmap" in self.t.state(Transforms).names and self.cls.vmap is not Function.vmap:
            raise self.refuse("a vmap of its own")

    def take_defaults(self) -> Gradients:
        """Append the defaults of forward to the arguments, since with `setup_context` they are
        arguments like others."""
        missing = _defaults_in(self.cls.forward, self.args) if self.has_setup else 0
        if missing:
            if hasattr(self.cls.forward, "__wrapped__"):
                raise self.refuse("a forward with defaults, in a decorator")
            function = yield from settle(get_attribute(self.t, self.owner, "forward"))
            defaults = yield from settle(get_attribute(self.t, function, "__defaults__"))
            self.args += defaults.items[-missing:]

    def recorded(self, forward: TracedPass, backward: TracedPass | None) -> Gradients:
        """The node, over the bodies that these trace."""
        with self.trace("forward", writes=True) as body:
            self.add_inputs(body)
            self.forward_graph, _ = body.flat((yield from forward(body)))
        self.check_writes()
        if backward is not None:
            with self.trace("backward", writes=False) as body:
                self.backward_graph, _ = body.flat((yield from backward(body)))
        return self.record()

    def trace(self, part: str, *, writes: bool) -> BodyTrace:
        is_later = part == "backward"
        permits = Permits(effects=not is_later, writes=writes, aliases=True, later=is_later)
        return BodyTrace(self.t, f"{self.cls.__name__}_{part}", permits)

    # -- forward -----------------------------------------------------------------------------------
    def forward(self, body: BodyTrace) -> Gradients:
        flags = [is_a(vt, TensorTracker) and vt.example.requires_grad for vt in self.args]
        needed = TupleTracker(map(ConstantTracker, flags))
        self.context = body.private = self._new_context({"needs_input_grad": needed})
        function = yield from settle(get_attribute(self.t, self.owner, "forward"))
        with grad_mode(self.t, False):
            if self.has_setup:
                result = yield from body.run(function, self.args, {})
                setup = yield from settle(get_attribute(self.t, self.owner, "setup_context"))
                yield from body.run(setup, [self.context, TupleTracker(self.args), result], {})
            else:
                result = yield from body.run(function, [self.context, *self.args], {})
        body.roots = [self.owner, function, *self.args]  # the context is the body's own
        self.note_outputs(result)
        return TupleTracker([*self.output_tensors, *self.saved_values])

    def add_inputs(self, body: BodyTrace) -> None:
        """Make the arguments themselves the tensors that forward gets."""
        for vt in self.inputs:
            body.recorder.argument(vt.traced)

    def _new_context(self, attributes: dict[str, Any]) -> Any:
        if (cls := _CONTEXTS.get(self.cls)) is None:
            cls = _CONTEXTS[self.cls] = type(
                f"{self.cls.__name__}Backward", (_applevel.Context,), {}
            )
        return new_object(cls, attributes)

    def note_outputs(self, result: Any) -> None:
        """Record the result of forward, and the state that it left on the context."""
        self.is_single = not (is_a(result, TupleTracker) and result.cls is tuple)
        self.outputs = [result] if self.is_single else result.items
        if not all(is_a(vt, TensorTracker) or vt.constant() is not MISSING for vt in self.outputs):
            raise self.refuse("a result that is neither a tensor nor a constant")
        positions = [index for index, vt in enumerate(self.outputs) if is_a(vt, TensorTracker)]
        self.output_tensors = [self.outputs[index] for index in positions]

        stored = attributes_of(self.context)
        saved = self._tuple(stored, "to_save")
        origins = tuple(None if is_none(vt) else self._origin(vt) for vt in saved)
        attributes = tuple(
            self._stored(name, vt) for name, vt in stored.items() if name not in _OWN
        )

        materialize = stored.get("materialize_grads", ConstantTracker(True)).constant()
        self.plan = targets.ApplyPlan(
            positions=tuple(self.positions),
            arguments=len(self.args),
            outputs=tuple(positions),
            output_count=len(self.outputs),
            saved=origins,
            attributes=attributes,
            dirty=self._marked_outputs(stored, "dirty_tensors"),
            non_differentiable=self._marked_outputs(stored, "non_differentiable"),
            materialize=bool(materialize),
        )

    def note_planned_outputs(self, results: list[Any]) -> None:
        """Record the results of forward's body: the outputs, and the other values that outlive
        it."""
        count = len(self.plan.outputs)
        self.outputs = self.output_tensors = results[:count]
        self.saved_values = results[count:]

    def _tuple(self, stored: dict[str, Any], name: str) -> list[Any]:
        if (vt := stored.get(name)) is None:
            return []
        if not is_a(vt, TupleTracker):
            raise self.refuse(f"{name} that is no tuple")
        items: list[Any] = vt.items
        return items

    def _marked_outputs(self, stored: dict[str, Any], name: str) -> tuple[int, ...]:
        indices = [_index(vt, self.output_tensors) for vt in self._tuple(stored, name)]
        if None in indices:
            raise self.refuse(f"{name} with what is no output")
        return tuple(index for index in indices if index is not None)

    def _origin(self, vt: Any) -> targets.Origin:
        """Return the origin, in the substitute, of a tensor or a symbolic number that outlives
        forward."""
        if not is_a(vt, TensorTracker | NumberTracker):
            raise self.refuse(f"a {vt.cls.__name__} that is saved for backward")
        for kind, known in (
            ("input", self.inputs),
            ("output", self.output_tensors),
            ("extra", self.saved_values),
        ):
            if (index := _index(vt, known)) is not None:
                return kind, index
        self.saved_values.append(vt)
        return "extra", len(self.saved_values) - 1

    def _stored(self, name: str, vt: object) -> targets.SavedAttribute:
        """A value on the context: constants, tensors, and containers of these."""
        leaves, spec = flatten(self.t, vt)
        return targets.SavedAttribute(name, spec, tuple(map(self._stored_leaf, leaves)))

    def _stored_leaf(self, vt: Any) -> Any:
        if is_a(vt, TensorTracker | NumberTracker):
            return targets.SavedTensorSlot(self._origin(vt))
        if (value := vt.constant()) is not MISSING:
            return value
        if vt.source is None or real_of(vt) is MISSING:
            raise self.refuse(f"a {vt.cls.__name__} on its context that was made here")
        return self._existing(vt)

    def _existing(self, vt: Any) -> Any:
        """An object from outside (a module, a function): the substitute passes it to the original
        backward as it is, so that the graph keeps it alive."""
        real = real_of(vt)
        self.t.guard(vt.source, Is(real))
        return real

    def check_writes(self) -> None:
        """An argument may be written to, marked or not, where it has memory of its own; anything
        else that is written to is refused, and so is what autograd would make of an output over
        an argument that is not marked."""
        dirty = [_index(self.output_tensors[index], self.inputs) for index in self.plan.dirty]
        unmarked = {*self.forward_graph.written} - {*dirty}
        if not unmarked <= {*range(len(self.inputs))}:
            raise self.refuse("a write to a tensor that is no argument")

        written = [
            self.inputs[position] for position in (*dirty, *unmarked) if position is not None
        ]
        if any(vt.example._is_view() for vt in written):
            raise self.refuse("a write to a view")

        memory = {storage_of(self.inputs[position].example) for position in unmarked}
        if memory & {storage_of(vt.example) for vt in self.output_tensors}:
            raise self.refuse("an output over an argument that is written to and not marked dirty")

    # -- backward ----------------------------------------------------------------------------------
    def backward(self, body: BodyTrace) -> Gradients:
        grads = self.gradients(body)
        grad_of = dict(zip(self.plan.outputs, grads, strict=True))
        output_gradients = [grad_of.get(index, NONE) for index in range(len(self.outputs))]
        context = self._new_context(self._backward_context(body))
        name = "backward" if self.cls.vjp is Function.vjp else "vjp"
        function = yield from settle(get_attribute(self.t, self.owner, name))
        with grad_mode(self.t, False):
            result = yield from body.run(function, [context, *output_gradients], {})
        body.roots = [self.owner, function, *self.args]
        self.plan = evolve(self.plan, reads_saved="_stator_read_saved" in attributes_of(context))
        return TupleTracker(self._input_gradients(result))

    def gradients(self, body: BodyTrace) -> list[Any]:
        """The first inputs of the body of backward: like the outputs."""
        with self.t.graph.fake_mode:
            examples = [
                torch.empty_like(vt.example, requires_grad=False) for vt in self.output_tensors
            ]
        self.plan = evolve(self.plan, gradients=tuple(map(_facts, examples)))
        return [body.argument(example, "grad") for example in examples]

    def planned_values(self, body: BodyTrace) -> list[Any]:
        """The other inputs of that body: the saved tensors, and then those in attributes of the
        context."""
        values = {"input": self.inputs, "output": self.output_tensors, "extra": self.saved_values}
        leaves = [leaf for stored in self.plan.attributes for leaf in stored.leaves]
        kept = [leaf.origin for leaf in leaves if type(leaf) is targets.SavedTensorSlot]
        origins = [
            *((each, "saved") for each in self.plan.saved),
            *((each, "kept") for each in kept),
        ]
        return [
            body.argument(values[each[0]][each[1]].example, hint)
            for each, hint in origins
            if each is not None
        ]

    def _backward_context(self, body: BodyTrace) -> dict[str, Any]:
        """Return the attributes of the context of backward: its tensors are inputs of the body."""
        stored = attributes_of(self.context)
        values = iter(self.planned_values(body))
        saved = [vt if is_none(vt) else next(values) for vt in self._tuple(stored, "to_save")]
        attributes = {name: vt for name, vt in stored.items() if name not in _OWN[1:]}
        for stored_as in self.plan.attributes:
            leaves, spec = flatten(self.t, attributes[stored_as.name])
            again = [
                next(values) if type(leaf) is targets.SavedTensorSlot else vt
                for vt, leaf in zip(leaves, stored_as.leaves, strict=True)
            ]
            attributes[stored_as.name] = unflatten(self.t, again, spec)
        return {**attributes, "saved": TupleTracker(saved)}

    def _input_gradients(self, result: VariableTracker) -> list[Any]:
        items = result.items if is_a(result, TupleTracker) and result.cls is tuple else [result]
        if len(items) < len(self.args) or not all(map(is_none, items[len(self.args) :])):
            raise self.refuse("a backward that gives another number of gradients")
        gradients = [items[position] for position in self.positions]
        if not all(is_a(vt, TensorTracker) or is_none(vt) for vt in gradients):
            raise self.refuse("a gradient that is no tensor")
        return gradients

    # -- the node ----------------------------------------------------------------------------------
    def record(self) -> Any:
        t = self.t
        holder = t.graph.install(
            self.cls.__name__, targets.StandInModule(self.cls, self.plan, self.has_setup)
        )
        forward = t.graph.install(f"{self.cls.__name__}_forward", self.forward_graph.module)
        backward, lifted = None, self.forward_graph.lifted
        after: Sequence[GraphValue] = ()
        if self.backward_graph is not None:
            backward = t.graph.install(f"{self.cls.__name__}_backward", self.backward_graph.module)
            after = self.backward_graph.lifted

        inputs = [vt.traced for vt in self.inputs]
        counts = (len(inputs), len(lifted))
        operands = [holder, forward, backward, counts, *inputs, *lifted, *after]
        traced = t.graph.call(targets.applied, operands, {})
        parts = (t.graph.project(traced, index) for index in range(len(self.output_tensors)))
        results = iter([from_traced(t, part, self.inputs) for part in parts])
        items = [next(results) if is_a(vt, TensorTracker) else vt for vt in self.outputs]
        return items[0] if self.is_single else TupleTracker(items)


def _defaults_in(function: Any, args: Args) -> int:
    """Return the number of arguments that a call takes from defaults; the call itself raises for
    missing ones."""
    try:
        bound = inspect.signature(function).bind(*args)
    except TypeError:
        return 0
    bound.apply_defaults()
    return len(bound.args) - len(args)


def _index(vt: Any, known: list[Any]) -> int | None:
    positions = (
        index
        for index, other in enumerate(known)
        if other.traced.node is getattr(vt, "traced", vt).node
    )
    return next(positions, None)


def _facts(example: Any) -> Any:
    """Return the facts that backward may rely on of a gradient; symbolic sizes are not among
    them."""
    sizes = [
        tuple(size if type(size) is int else None for size in part)
        for part in (example.shape, example.stride())
    ]
    return (example.dtype, *sizes)
