"""The body of a transform of torch.func: the function that it transforms, traced with the inputs
that the transform would pass to it."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from typing import Any

from attrs import Factory, define
from stator_bytecode import OperationSteps
from stator_variables import (
    LEAF,
    MISSING,
    Args,
    BodyTrace,
    GraphValue,
    Kwargs,
    Permits,
    Space,
    Spec,
    TensorTracker,
    TupleTracker,
    argument,
    flatten_tree,
    from_traced,
    in_transform,
    is_a,
    unflatten_tree,
)

CALLED_ONCE = Permits(effects=True, aliases=True)
ExampleOf = Callable[[Any], Any]
"""A function from the example of an input of the transform to that of the input of its body."""
Built = Generator[Any, Any, Any]
"""Steps that build a structure, and return it."""


def sliced(dim: int) -> ExampleOf:
    def like_a_slice(example: Any) -> Any:  # `select` needs one to be there, `vmap` does not
        left = [axis for axis in range(example.dim()) if axis != dim % example.dim()]
        sizes, strides = ([of[axis] for axis in left] for of in (example.shape, example.stride()))
        return example.new_empty_strided(sizes, strides)

    return like_a_slice


def constant(example: Any) -> Any:
    return example.detach()


def differentiable(example: Any) -> Any:
    return example.detach().requires_grad_()


@define(eq=False)
class TransformBody:
    """The body, with the inputs of its transform and the outputs of its function.

    Each tensor in `inputs` is another value in the body, at the same position of `body_inputs`:
    a slice of a batch, a tensor that is differentiated. What is in `unchanged` is the same there.
    """

    t: Space
    name: str
    trace: BodyTrace
    inputs: list[Any] = Factory(list)
    body_inputs: list[Any] = Factory(list)
    unchanged: list[Any] = Factory(list)
    outputs: list[Any] = Factory(list)
    output_spec: Spec = LEAF
    aux_outputs: list[Any] = Factory(list)
    aux_spec: Spec | None = None
    """The structure of the auxiliary outputs; None for a function that has none."""
    graph: Any = None

    @classmethod
    def of(cls, t: Space, name: str, permits: Permits = CALLED_ONCE) -> TransformBody:
        return cls(t, name, BodyTrace(t, f"{name}_body", permits))

    def refuse(self, why: str) -> Exception:
        return self.t.unsupported("transform", f"{self.name} of {why}")

    # -- inputs ------------------------------------------------------------------------------------
    def add_input(self, vt: Any, example_of: ExampleOf) -> Any:
        """Add a tensor to the inputs of the transform; return its value in the body."""
        example = vt.example
        if example_of is differentiable and not (
            example.is_floating_point() or example.is_complex()
        ):
            raise self.refuse(f"a tensor of {example.dtype}")

        with self.t.graph.fake_mode:
            body_input = self.trace.argument(example_of(example))
        self.inputs.append(vt)
        self.body_inputs.append(body_input)
        return body_input

    def add_inputs(self, leaves: Sequence[Any], spec: Spec, example_of: ExampleOf) -> Built:
        """Return a copy of a structure for the body, in which its tensors are inputs."""
        body_leaves = [
            self.add_input(leaf, example_of)
            if is_a(leaf, TensorTracker)
            else self.pass_unchanged(leaf)
            for leaf in leaves
        ]
        return (yield from unflatten_tree(self.t, body_leaves, spec))

    def pass_unchanged(self, vt: Any) -> Any:
        """Record a value that is the same in the body."""
        self.unchanged.append(vt)
        return vt

    # -- the function ------------------------------------------------------------------------------
    def run(self, function: Any, args: Args, kwargs: Kwargs) -> OperationSteps:
        self.trace.touched.clear()  # the structures that were made for the arguments
        with in_transform(self.t, self.name):
            result = yield from self.trace.run(function, args, kwargs)
        self.trace.roots = [function, *self.unchanged]  # the structures around are the body's own
        return result

    # -- outputs -----------------------------------------------------------------------------------
    def set_outputs(self, result: Any, has_aux: bool = False) -> Generator[Any, Any, None]:
        """End the body with the tensors that its function returned; with `has_aux` that is a pair
        of outputs and auxiliary outputs."""
        if has_aux:
            if not is_a(result, TupleTracker) or len(result.items) != 2:
                raise self.refuse("a function that gives no pair")
            result, aux = result.items
            self.aux_outputs, self.aux_spec = yield from flatten_tree(self.t, aux)

        self.outputs, self.output_spec = yield from flatten_tree(self.t, result)
        tensors = [*self.outputs, *self.aux_outputs]
        if not all(is_a(vt, TensorTracker) for vt in tensors):
            raise self.refuse("a function that gives more than tensors")
        self.graph, _ = self.trace.flat(TupleTracker(tensors))

    def record(self, target: Any, options: Sequence[Any], extra: Sequence[Any] = ()) -> GraphValue:
        """Record the node of the transform, outside of the body."""
        module = self.t.graph.install(self.trace.name, self.graph.module)
        inputs = [argument(self.t, vt) for vt in (*self.inputs, *extra)]
        return self.t.graph.call(target, [module, *options, *inputs, *self.graph.lifted], {})

    def output(self, traced: GraphValue) -> Built:
        """Return the output of the function, of the tuple of its tensors."""
        tensors = self.tensors(traced, self.outputs)
        return (yield from unflatten_tree(self.t, tensors, self.output_spec))

    def aux_output(self, traced: GraphValue) -> Generator[Any, Any, list[Any]]:
        """Return the auxiliary output of the function, if it has one."""
        if self.aux_spec is None:
            return []
        tensors = self.tensors(traced, self.aux_outputs)
        return [(yield from unflatten_tree(self.t, tensors, self.aux_spec))]

    def tensors(self, traced: GraphValue, outputs: Sequence[Any] = ()) -> list[Any]:
        """Return the trackers of a tuple of tensors, which may be these outputs of the body: one
        that is an input of the body is the input of the transform."""
        inputs = dict(zip(map(id, self.body_inputs), self.inputs, strict=True))
        sources = [[inputs.get(id(vt), vt)] for vt in outputs] or [[]] * len(traced.example)
        parts = [self.t.graph.project(traced, index) for index in range(len(traced.example))]
        return [
            from_traced(self.t, part, source) for part, source in zip(parts, sources, strict=True)
        ]


def options(t: Space, *vts: Any) -> list[Any]:
    """Return the constants of options, which are not traced: they have to be known."""
    values = [vt.constant() for vt in vts]
    if any(value is MISSING for value in values):
        raise t.unsupported("transform", "an option of a transform that is not known while tracing")
    return values
