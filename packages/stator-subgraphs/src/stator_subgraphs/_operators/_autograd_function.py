"""`torch.autograd.Function`: one node over the graphs of its forward and its backward.

Forward is traced on the arguments themselves, with gradients off; backward, if it may be called,
right after it on gradients like the outputs. Neither may do anything but compute: one that does
runs natively, as does one whose context holds what the stand-in (`_function_targets.py`) could not
hand to the original backward.
"""

import inspect
import weakref
from collections.abc import Callable, Generator, Sequence
from typing import Any

import attrs
import stator_variables as variables
import torch
from stator_bytecode import HandlerTable, operation, settle
from stator_guards import CapturedSource, Is
from torch.autograd.function import (
    BackwardCFunction,
    Function,
    NestedIOFunction,
    _SingleLevelFunction,
)

from stator_subgraphs._operators import _applevel
from stator_subgraphs._operators import _function_targets as targets

handlers: HandlerTable[Any, Any] = HandlerTable("autograd function")
_OWN = ("needs_input_grad", "to_save", "dirty_tensors", "non_differentiable", "materialize_grads")
_CONTEXTS: weakref.WeakKeyDictionary[type, type] = weakref.WeakKeyDictionary()
Gradients = Generator[Any, Any, Any]
TracedPass = Callable[[variables.BodyTrace], Gradients]


@handlers.handles(_applevel.unknown)
def unknown(t: variables.Space, args: list[Any], kwargs: dict[str, Any]) -> Any:
    name = args[1].value
    if hasattr(BackwardCFunction, name):
        raise t.unsupported("autograd-function", f"{name} of the context of an autograd.Function")
    return variables.MISSING


@handlers.handles(Function.apply.__func__)  # type: ignore[attr-defined]  # a classmethod
@operation
def apply(t: variables.Space, args: list[Any], kwargs: dict[str, Any]) -> Any:
    if variables.passes_hooks(getattr(args[0], "value", None)):
        return variables.pass_hooks(t, args[1:])
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
def applied_again(t: variables.Space, args: list[Any], kwargs: dict[str, Any]) -> Any:
    """Record `applied` of a graph that is traced again: its bodies are traced, their inputs and
    outputs are as planned."""
    holder, forward, backward = variables.known_value(t, args[0]), args[1], args[2]
    tensors, lifted = (count.constant() for count in args[3].items)
    inputs, rest = [*args[4 : 4 + tensors]], args[4 + tensors :]
    owner = variables.wrap(t, holder.original, CapturedSource("function", holder.original))
    applying = Applying(t, owner, inputs, plan=holder.plan)

    def run_forward(body: variables.BodyTrace) -> Gradients:
        with variables.grad_mode(t, False):
            result = yield from body.run(forward, [*inputs, *rest[:lifted]], {})
        applying.take_planned(result.items)
        return result

    def run_backward(body: variables.BodyTrace) -> Gradients:
        given = [*applying.gradients(body), *applying.planned_values(body), *rest[lifted:]]
        with variables.grad_mode(t, False):
            return (yield from body.run(backward, given, {}))

    return (
        yield from applying.recorded(
            run_forward, None if variables.is_none(backward) else run_backward
        )
    )


@attrs.define(eq=False)
class Applying:
    """One call: its arguments, what forward gave and left on the context, and the graphs."""

    t: variables.Space
    owner: Any
    args: list[Any]
    context: Any = None
    items: list[Any] = attrs.field(factory=list)  # of the output, tensors or not
    tensors: list[Any] = attrs.field(factory=list)  # the tensors among them
    # what outlives forward and is neither argument nor output
    extra: list[Any] = attrs.field(factory=list)
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
        return [
            index
            for index, vt in enumerate(self.args)
            if variables.is_a(vt, variables.TensorTracker)
        ]

    @property
    def inputs(self) -> list[Any]:
        return [self.args[position] for position in self.positions]

    @property
    def is_executable(self) -> bool:
        return torch.is_grad_enabled() and any(vt.example.requires_grad for vt in self.inputs)

    def refuse(self, what: str) -> Exception:
        return self.t.unsupported("autograd-function", f"{self.cls.__qualname__}: {what}")

    def check(self, kwargs: dict[str, Any]) -> None:
        if not isinstance(getattr(self.owner, "value", None), type) or issubclass(
            self.cls, NestedIOFunction
        ):
            raise self.t.unsupported("autograd-function", "apply of something else than a Function")
        if kwargs or getattr(self.cls, "boxed_grads_call", False):
            raise self.refuse("keyword arguments, or gradients in a list")
        if self.cls.vmap is not Function.vmap:
            raise self.refuse("a vmap of its own")

    def take_defaults(self) -> Gradients:
        """Append the defaults of forward to the arguments, since with `setup_context` they are
        arguments like others."""
        missing = _defaults_in(self.cls.forward, self.args) if self.has_setup else 0
        if missing:
            if hasattr(self.cls.forward, "__wrapped__"):
                raise self.refuse("a forward with defaults, in a decorator")
            function = yield from settle(variables.get_attribute(self.t, self.owner, "forward"))
            defaults = yield from settle(variables.get_attribute(self.t, function, "__defaults__"))
            self.args += defaults.items[-missing:]

    def recorded(self, forward: TracedPass, backward: TracedPass | None) -> Gradients:
        """The node, over the bodies that these trace."""
        with self.trace("forward", writes=True) as body:
            self.lend_inputs(body)
            self.forward_graph, _ = body.flat((yield from forward(body)))
        self.check_writes()
        if backward is not None:
            with self.trace("backward", writes=False) as body:
                self.backward_graph, _ = body.flat((yield from backward(body)))
        return self.record()

    def trace(self, part: str, *, writes: bool) -> variables.BodyTrace:
        is_later = part == "backward"
        permits = variables.Permits(
            effects=not is_later, writes=writes, aliases=True, later=is_later
        )
        return variables.BodyTrace(self.t, f"{self.cls.__name__}_{part}", permits)

    # -- forward -----------------------------------------------------------------------------------
    def forward(self, body: variables.BodyTrace) -> Gradients:
        flags = [
            variables.is_a(vt, variables.TensorTracker) and vt.example.requires_grad
            for vt in self.args
        ]
        needed = variables.TupleTracker(map(variables.ConstantTracker, flags), tuple)
        self.context = body.private = self._new_context({"needs_input_grad": needed})
        function = yield from settle(variables.get_attribute(self.t, self.owner, "forward"))
        with variables.grad_mode(self.t, False):
            if self.has_setup:
                result = yield from body.run(function, self.args, {})
                setup = yield from settle(
                    variables.get_attribute(self.t, self.owner, "setup_context")
                )
                yield from body.run(
                    setup, [self.context, variables.TupleTracker(self.args, tuple), result], {}
                )
            else:
                result = yield from body.run(function, [self.context, *self.args], {})
        body.roots = [self.owner, function, *self.args]  # the context is the body's own
        self.take_apart(result)
        return variables.TupleTracker([*self.tensors, *self.extra], tuple)

    def lend_inputs(self, body: variables.BodyTrace) -> None:
        """Make the arguments themselves the tensors that forward gets."""
        for vt in self.inputs:
            body.recorder.argument(vt.traced)

    def _new_context(self, attributes: dict[str, Any]) -> Any:
        if (cls := _CONTEXTS.get(self.cls)) is None:
            cls = _CONTEXTS[self.cls] = type(
                f"{self.cls.__name__}Backward", (_applevel.Context,), {}
            )
        return variables.new_object(cls, attributes)

    def take_apart(self, result: Any) -> None:
        """Record the result of forward, and the state that it left on the context."""
        self.is_single = not (
            variables.is_a(result, variables.TupleTracker) and result.cls is tuple
        )
        self.items = [result] if self.is_single else result.items
        if not all(
            variables.is_a(vt, variables.TensorTracker) or vt.constant() is not variables.MISSING
            for vt in self.items
        ):
            raise self.refuse("a result that is neither a tensor nor a constant")
        outputs = [
            index
            for index, vt in enumerate(self.items)
            if variables.is_a(vt, variables.TensorTracker)
        ]
        self.tensors = [self.items[index] for index in outputs]
        stored = variables.attributes_of(self.context)
        saved = self._tuple(stored, "to_save")
        origins = tuple(None if variables.is_none(vt) else self._origin(vt) for vt in saved)
        attributes = tuple(
            self._stored(name, vt) for name, vt in stored.items() if name not in _OWN
        )
        materialize = stored.get("materialize_grads", variables.ConstantTracker(True)).constant()
        self.plan = targets.ApplyPlan(
            positions=tuple(self.positions),
            arguments=len(self.args),
            outputs=tuple(outputs),
            output_count=len(self.items),
            saved=origins,
            attributes=attributes,
            dirty=self._outputs(stored, "dirty_tensors"),
            non_differentiable=self._outputs(stored, "non_differentiable"),
            materialize=bool(materialize),
        )

    def take_planned(self, results: list[Any]) -> None:
        """Record the results of forward's body: the outputs, and the other values that outlive
        it."""
        count = len(self.plan.outputs)
        self.items = self.tensors = results[:count]
        self.extra = results[count:]

    def _tuple(self, stored: dict[str, Any], name: str) -> list[Any]:
        if (vt := stored.get(name)) is None:
            return []
        if not variables.is_a(vt, variables.TupleTracker):
            raise self.refuse(f"{name} that is no tuple")
        items: list[Any] = vt.items
        return items

    def _outputs(self, stored: dict[str, Any], name: str) -> tuple[int, ...]:
        found = [_index(vt, self.tensors) for vt in self._tuple(stored, name)]
        if None in found:
            raise self.refuse(f"{name} with what is no output")
        return tuple(index for index in found if index is not None)

    def _origin(self, vt: Any) -> targets.Origin:
        """Return the origin, in the stand-in, of a tensor or a symbolic number that outlives
        forward."""
        if not variables.is_a(vt, variables.TensorTracker | variables.NumberTracker):
            raise self.refuse(f"a {vt.cls.__name__} that is saved for backward")
        for kind, known in (
            ("input", self.inputs),
            ("output", self.tensors),
            ("extra", self.extra),
        ):
            if (index := _index(vt, known)) is not None:
                return kind, index
        self.extra.append(vt)
        return "extra", len(self.extra) - 1

    def _stored(self, name: str, vt: object) -> targets.SavedAttribute:
        """A value on the context: constants, tensors, and containers of these."""
        leaves, spec = variables.flatten(self.t, vt)
        return targets.SavedAttribute(name, spec, tuple(map(self._stored_leaf, leaves)))

    def _stored_leaf(self, vt: Any) -> Any:
        if variables.is_a(vt, variables.TensorTracker | variables.NumberTracker):
            return targets.SavedTensorSlot(self._origin(vt))
        if (value := vt.constant()) is not variables.MISSING:
            return value
        if vt.source is None or variables.real_of(vt) is variables.MISSING:
            raise self.refuse(f"a {vt.cls.__name__} on its context that was made here")
        return self._existing(vt)

    def _existing(self, vt: Any) -> Any:
        """An object from outside (a module, a function): the stand-in hands it to the original
        backward as it is, so that the graph keeps it alive."""
        real = variables.real_of(vt)
        self.t.guard(vt.source, Is(real))
        return real

    def check_writes(self) -> None:
        """A write to an argument has to be marked; anything else that is written to is refused."""
        dirty = [_index(self.tensors[index], self.inputs) for index in self.plan.dirty]
        if not {*self.forward_graph.written} <= {*dirty}:
            raise self.refuse("a write to a tensor that is not marked dirty")
        if any(
            position is not None and self.inputs[position].example._is_view() for position in dirty
        ):
            raise self.refuse("a write to a view")

    # -- backward ----------------------------------------------------------------------------------
    def backward(self, body: variables.BodyTrace) -> Gradients:
        grads = self.gradients(body)
        places = dict(zip(self.plan.outputs, grads, strict=True))
        given = [places.get(index, variables.NONE) for index in range(len(self.items))]
        context = self._new_context(self._handed_on(body))
        name = "backward" if self.cls.vjp is Function.vjp else "vjp"
        function = yield from settle(variables.get_attribute(self.t, self.owner, name))
        with variables.grad_mode(self.t, False):
            result = yield from body.run(function, [context, *given], {})
        body.roots = [self.owner, function, *self.args]
        self.plan = attrs.evolve(
            self.plan, asks="_stator_asked" in variables.attributes_of(context)
        )
        return variables.TupleTracker(self._taken_back(result), tuple)

    def gradients(self, body: variables.BodyTrace) -> list[Any]:
        """The first inputs of the body of backward: like the outputs."""
        with self.t.graph.fake_mode:
            examples = [torch.empty_like(vt.example, requires_grad=False) for vt in self.tensors]
        self.plan = attrs.evolve(self.plan, gradients=tuple(map(_facts, examples)))
        return [body.argument(example, "grad") for example in examples]

    def planned_values(self, body: variables.BodyTrace) -> list[Any]:
        """The others: what was saved, and then what the values on the context have in their
        places."""
        known = {"input": self.inputs, "output": self.tensors, "extra": self.extra}
        leaves = [leaf for stored in self.plan.attributes for leaf in stored.leaves]
        kept = [leaf.origin for leaf in leaves if type(leaf) is targets.SavedTensorSlot]
        origins = [
            *((each, "saved") for each in self.plan.saved),
            *((each, "kept") for each in kept),
        ]
        return [
            body.argument(known[each[0]][each[1]].example, hint)
            for each, hint in origins
            if each is not None
        ]

    def _handed_on(self, body: variables.BodyTrace) -> dict[str, Any]:
        """Return the context of backward: its tensors are inputs of the body."""
        stored = variables.attributes_of(self.context)
        values = iter(self.planned_values(body))
        given = [
            vt if variables.is_none(vt) else next(values) for vt in self._tuple(stored, "to_save")
        ]
        found = {name: vt for name, vt in stored.items() if name not in _OWN[1:]}
        for stored_as in self.plan.attributes:
            leaves, spec = variables.flatten(self.t, found[stored_as.name])
            again = [
                next(values) if type(leaf) is targets.SavedTensorSlot else vt
                for vt, leaf in zip(leaves, stored_as.leaves, strict=True)
            ]
            found[stored_as.name] = variables.unflatten(self.t, again, spec)
        return {**found, "saved": variables.TupleTracker(given, tuple)}

    def _taken_back(self, result: variables.VariableTracker) -> list[Any]:
        items = (
            result.items
            if variables.is_a(result, variables.TupleTracker) and result.cls is tuple
            else [result]
        )
        if len(items) < len(self.args) or not all(
            variables.is_none(vt) for vt in items[len(self.args) :]
        ):
            raise self.refuse("a backward that gives another number of gradients")
        found = [items[position] for position in self.positions]
        if not all(
            variables.is_a(vt, variables.TensorTracker) or variables.is_none(vt) for vt in found
        ):
            raise self.refuse("a gradient that is no tensor")
        return found

    # -- the node ----------------------------------------------------------------------------------
    def record(self) -> Any:
        t = self.t
        holder = t.graph.install(
            self.cls.__name__, targets.StandInModule(self.cls, self.plan, self.has_setup)
        )
        forward = t.graph.install(f"{self.cls.__name__}_forward", self.forward_graph.module)
        backward, lifted = None, self.forward_graph.lifted
        after: Sequence[variables.GraphValue] = ()
        if self.backward_graph is not None:
            backward = t.graph.install(f"{self.cls.__name__}_backward", self.backward_graph.module)
            after = self.backward_graph.lifted
        inputs = [vt.traced for vt in self.inputs]
        counts = (len(inputs), len(lifted))
        given = [holder, forward, backward, counts, *inputs, *lifted, *after]
        traced = t.graph.call(targets.applied, given, {})
        parts = (t.graph.project(traced, index) for index in range(len(self.tensors)))
        results = iter([variables.from_traced(t, part, self.inputs) for part in parts])
        items = [
            next(results) if variables.is_a(vt, variables.TensorTracker) else vt
            for vt in self.items
        ]
        return items[0] if self.is_single else variables.TupleTracker(items, tuple)


def _defaults_in(function: Any, args: list[Any]) -> int:
    """Return the number of arguments that a call takes from defaults; the call itself raises for
    missing ones."""
    try:
        bound = inspect.signature(function).bind(*args)
    except TypeError:
        return 0
    bound.apply_defaults()
    return len(bound.args) - len(args)


def _index(vt: Any, known: list[Any]) -> int | None:
    found = (
        index
        for index, other in enumerate(known)
        if other.traced.node is getattr(vt, "traced", vt).node
    )
    return next(found, None)


def _facts(example: Any) -> Any:
    """Return the facts that backward may rely on of a gradient; symbolic sizes are not among
    them."""
    sizes = [
        tuple(size if type(size) is int else None for size in part)
        for part in (example.shape, example.stride())
    ]
    return (example.dtype, *sizes)
