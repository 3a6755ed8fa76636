"""The transforms of torch.func: one node each, over the graph that their function becomes.

    torch.func.grad(f)(x)  ->  def body(x): ...                   # f, traced with x as f sees it
                               value_and_grads(body, (0,), 1, x)  # the real transform, over that

The function is traced as a body: its inputs are the arguments that the transform would pass (a
slice of a batch, a tensor to be differentiated), and no level of the interpreter stack is entered
while tracing. A break in it, and what is refused here, is a break at the transform.
"""

from __future__ import annotations

import functools
from collections.abc import Generator, Sequence
from typing import Any

import torch
from attrs import frozen
from stator_bytecode import Raised, operation, settle
from stator_guards import CallSource, Truth
from stator_variables import (
    EVERYTHING,
    LEAF,
    NONE,
    Args,
    ConstantTracker,
    FunctionTable,
    GraphFunction,
    GraphValue,
    Kwargs,
    Permits,
    Space,
    Spec,
    TensorTracker,
    TupleTracker,
    app_level,
    broadcast,
    dict_items,
    flatten_tree,
    from_traced,
    grad_mode,
    is_a,
    record,
    unflatten_tree,
)
from torch._functorch import eager_transforms, vmap
from torch.nn.utils import stateless

from stator_subgraphs._operators import _applevel
from stator_subgraphs._operators import _transform_targets as targets
from stator_subgraphs._operators._transform_body import (
    ExampleOf,
    TransformBody,
    constant,
    differentiable,
    options,
    sliced,
)

handlers = FunctionTable("transform")


def pair(*items: Any) -> Any:
    return TupleTracker(items)


# -- vmap ------------------------------------------------------------------------------------------
@handlers.handles(vmap.vmap_impl)
@operation
def vmap_impl(t: Space, args: Args, kwargs: Kwargs) -> Any:
    """`vmap_impl(function, in_dims, out_dims, randomness, chunk_size, *args, **kwargs)`"""
    function, in_dims, out_dims, randomness, chunk_size, *positional = args
    mode, chunk = options(t, randomness, chunk_size)
    leaves, spec = yield from flatten_tree(t, pair(*positional))
    _check_steps(t, spec)
    dims = yield from _dims(t, in_dims, spec)
    call = _Call(function, spec, dims, out_dims, mode, kwargs)
    if chunk is None:
        results, spec, _ = yield from _mapped(t, call, leaves)
    else:
        results, spec = yield from _in_chunks(t, call, leaves, chunk)
    return (yield from unflatten_tree(t, results, spec))


@handlers.handles_each(
    {
        targets.vmapped: _applevel.mapped,
        targets.value_and_grads: _applevel.value_and_grads,
        targets.pulled_back: _applevel.pulled_back,
    }
)
def transformed_again(t: Space, args: Args, kwargs: Kwargs, of: Any) -> Any:
    """Trace a node of a captured graph again: its steps call primitives that are not traced
    into."""
    return app_level(t, of, args, kwargs)


@frozen(eq=False)
class _Call:
    """A call of a mapped function. `dims` has a dimension, or None, for each leaf of the
    arguments."""

    function: Any
    spec: Spec
    dims: list[int | None]
    out_dims: Any
    randomness: str
    kwargs: Kwargs


def _mapped(
    t: Space, call: _Call, leaves: list[Any]
) -> Generator[Any, Any, tuple[list[Any], Spec, list[int | None]]]:
    body = TransformBody.of(t, "vmap", EVERYTHING)

    with body.trace:
        pairs = list(zip(leaves, call.dims, strict=True))
        for leaf, dim in pairs:
            if dim is not None:
                _length(t, leaf, dim)
        body_leaves = [
            body.pass_unchanged(leaf) if dim is None else body.add_input(leaf, sliced(dim))
            for leaf, dim in pairs
        ]
        body.unchanged += call.kwargs.values()
        args = (yield from unflatten_tree(t, body_leaves, call.spec)).items
        yield from body.set_outputs((yield from body.run(call.function, args, call.kwargs)))

    out_dims, spec = call.out_dims, body.output_spec
    if spec == LEAF and is_a(out_dims, TupleTracker) and len(out_dims.items) == 1:
        out_dims = out_dims.items[0]  # as vmap has it, for a function that gives one tensor
    placed = yield from _dims(t, out_dims, spec)
    _check_steps(t, spec)
    used = tuple(dim for dim in call.dims if dim is not None)
    traced = body.record(targets.vmapped, [used, tuple(placed), call.randomness])
    return body.tensors(traced, body.outputs), spec, placed


def _check_steps(t: Space, spec: Spec) -> None:
    """Reject nodes of registered classes where a library has replaced steps of `vmap`, as it does
    to map its own classes in another way."""
    if not spec.has_registered:
        return
    if not steps_are_torchs():
        raise t.unsupported("pytree-class", "vmap, with steps that a library has replaced")
    t.guard(CallSource(steps_are_torchs), Truth(True))


def steps_are_torchs() -> bool:
    """Return True if the functions that flatten and wrap for `vmap` are those of torch."""
    steps = (vmap._process_batched_inputs, vmap._create_batched_inputs, vmap._unwrap_batched)
    return all(step.__module__ == vmap.__name__ for step in steps)


def _dims(t: Space, vt: Any, spec: Spec) -> Generator[Any, Any, list[int | None]]:
    given, outline = yield from flatten_tree(t, vt)
    if (leaves := broadcast(given, outline, spec)) is None:
        raise t.unsupported("transform", "vmap with dimensions of another structure")
    dims = options(t, *leaves)
    if not all(dim is None or type(dim) is int for dim in dims):
        raise t.unsupported("transform", "vmap with dimensions that are no integers")
    return dims


def _in_chunks(
    t: Space, call: _Call, leaves: list[Any], size: int
) -> Generator[Any, Any, tuple[list[Any], Spec]]:
    """The function is called once for each chunk, as it is natively."""
    lengths = {
        _fixed(t, leaf, dim) for leaf, dim in zip(leaves, call.dims, strict=True) if dim is not None
    }
    if len(lengths) != 1 or lengths == {0} or call.randomness == "same":
        raise t.unsupported(
            "transform", "vmap in chunks of unequal batches, of none, or with randomness='same'"
        )

    (length,) = lengths
    collected: list[list[Any]] = []
    for start in range(0, length, size):
        part = (start, min(size, length - start))
        parts = [_part(t, leaf, dim, part) for leaf, dim in zip(leaves, call.dims, strict=True)]
        results, spec, placed = yield from _mapped(t, call, parts)
        collected.append(results)
    return [
        _joined(t, parts, dim)
        for parts, dim in zip(zip(*collected, strict=True), placed, strict=True)
    ], spec


def _length(t: Space, leaf: Any, dim: int) -> Any:
    if not is_a(leaf, TensorTracker) or not -leaf.example.dim() <= dim < leaf.example.dim():
        raise t.unsupported("transform", f"vmap over dimension {dim} of a {leaf.cls.__name__}")
    return leaf.example.shape[dim]


def _fixed(t: Space, leaf: Any, dim: int) -> int:
    """Return the length as a constant: the program depends on the number of chunks."""
    if isinstance(length := _length(t, leaf, dim), int):
        return length
    return t.graph.constant_of(t.graph.call("size", [leaf.traced, dim], {}))  # type: ignore[no-any-return]


def _part(t: Space, leaf: Any, dim: int | None, part: tuple[int, int]) -> Any:
    return (
        leaf
        if dim is None
        else record(t, torch.narrow, [leaf, *map(ConstantTracker, (dim, *part))], {})
    )


def _joined(t: Space, parts: Sequence[Any], dim: int | None) -> Any:
    if dim is None:
        raise t.unsupported("transform", "vmap in chunks with a result that has no batch dimension")
    return record(t, torch.cat, [pair(*parts), ConstantTracker(dim)], {})


# -- what is differentiated ------------------------------------------------------------------------
@frozen(eq=False)
class _Differentiated:
    """The arguments of a body, which of its flat inputs are differentiated, and the structure that
    these form."""

    args: list[Any]
    positions: tuple[int, ...]
    spec: Spec


def _differentiated(
    body: TransformBody, argnums: Any, args: Args, example_of: ExampleOf
) -> Generator[Any, Any, _Differentiated]:
    (numbers,) = options(body.t, argnums)
    selected = range(len(args)) if numbers is None else _argument_numbers(body, numbers, len(args))

    body_args: list[Any] = []
    positions: dict[int, range] = {}
    spec_of: dict[int, Spec] = {}

    for number, vt in enumerate(args):
        start = len(body.inputs)
        leaves, spec_of[number] = yield from flatten_tree(body.t, vt)
        if number in selected:
            _check_all_tensors(body, leaves)

        passed = example_of if number in selected else constant
        body_args.append((yield from body.add_inputs(leaves, spec_of[number], passed)))
        positions[number] = range(start, len(body.inputs))

    specs = tuple(spec_of[number] for number in selected)
    spec = specs[0] if type(numbers) is int else Spec(tuple, (), specs)
    flat = tuple(position for number in selected for position in positions[number])
    return _Differentiated(body_args, flat, spec)


def _argument_numbers(body: TransformBody, numbers: Any, count: int) -> list[int]:
    listed = numbers if type(numbers) is tuple else (numbers,)
    positions = [number + count if number < 0 else number for number in listed]
    are_distinct = positions and len({*positions}) == len(positions)
    if not are_distinct or not all(0 <= position < count for position in positions):
        raise body.refuse("arguments that do not exist")
    return positions


def _check_all_tensors(body: TransformBody, leaves: Sequence[Any]) -> None:
    if not leaves or not all(is_a(leaf, TensorTracker) for leaf in leaves):
        raise body.refuse("an argument that is not made of tensors")


# -- grad ------------------------------------------------------------------------------------------
@handlers.handles(eager_transforms.grad_and_value_impl)
@operation
def grad_and_value_impl(t: Space, args: Args, kwargs: Kwargs) -> Any:
    """`grad_and_value_impl(function, argnums, has_aux, args, kwargs)`"""
    function, argnums, aux_flag, positional, named = args
    (has_aux,) = options(t, aux_flag)
    body = TransformBody.of(t, "grad")
    with body.trace:
        primal = yield from _differentiated(body, argnums, positional.items, differentiable)
        keywords: dict[str, Any] = {}
        for key, vt in dict_items(t, named):
            leaves, spec = yield from flatten_tree(t, vt)
            keywords[key.value] = yield from body.add_inputs(leaves, spec, constant)

        # reverse mode turns them on around the function, whatever the mode outside is
        with grad_mode(t, True):
            result = yield from body.run(function, primal.args, keywords)
        yield from body.set_outputs(result, has_aux)
        if body.output_spec != LEAF or body.outputs[0].example.dim() != 0:
            raise body.refuse("a function that gives no scalar")
    traced = body.record(targets.value_and_grads, [primal.positions, len(body.inputs)])
    grads, values, rest = (t.graph.project(traced, index) for index in range(3))
    gradients = yield from unflatten_tree(t, body.tensors(grads), primal.spec)
    value, aux = from_traced(t, values), (yield from body.aux_output(rest))
    return pair(gradients, pair(value, *aux) if has_aux else value)


# -- vjp -------------------------------------------------------------------------------------------
@handlers.handles(eager_transforms._vjp_with_argnums)
@operation
def vjp_with_argnums(t: Space, args: Args, kwargs: Kwargs) -> Any:
    """`_vjp_with_argnums(function, *primals, argnums=None, has_aux=False)`"""
    function, *primals = args
    (has_aux,) = options(t, kwargs.get("has_aux", ConstantTracker(False)))
    begun, body = t.machine.save(), TransformBody.of(t, "vjp")
    with body.trace:
        primal = yield from _differentiated(
            body, kwargs.get("argnums", NONE), primals, differentiable
        )
        with grad_mode(t, True):
            result = yield from body.run(function, primal.args, {})
        yield from body.set_outputs(result, has_aux)
        if not body.outputs:
            raise body.refuse("a function that gives nothing")

    flags = [primal.positions, len(body.inputs), len(body.outputs)]
    traced = body.record(targets.pulled_back, flags)
    out, rest, pull = (t.graph.project(traced, index) for index in range(3))
    run = functools.partial(
        _call_linear, targets.cotangents_pulled, pull, body.output_spec, primal.spec
    )
    pulling = yield from settle(app_level(t, _applevel.pulling, [GraphFunction(pull, run, begun)]))
    output, aux = (yield from body.output(out)), (yield from body.aux_output(rest))
    return pair(output, pulling, *aux)


@operation
def _call_linear(
    target: Any,
    linear: GraphValue,
    input_spec: Spec,
    output_spec: Spec,
    t: Space,
    args: Args,
    kwargs: Kwargs,
) -> Any:
    """Call the linear function that a transform returned, with tensors in one structure, for such
    in another."""
    leaves, spec = yield from flatten_tree(t, args[0])
    if spec != input_spec or not all(is_a(leaf, TensorTracker) for leaf in leaves):
        raise t.unsupported("transform", "tangents, or cotangents, of another structure")

    tensors = [leaf.traced for leaf in leaves]
    traced = t.graph.call(target, [linear, *options(t, *args[1:]), *tensors], {})
    return (yield from unflatten_tree(t, from_traced(t, traced).items, output_spec))


# -- jvp -------------------------------------------------------------------------------------------
@handlers.handles(eager_transforms._jvp_with_argnums)
@operation
def jvp_with_argnums(t: Space, args: Args, kwargs: Kwargs) -> Any:
    """`_jvp_with_argnums(function, primals, tangents, argnums, *, strict=False, has_aux)`"""
    function, primals, tangents, *rest = args
    argnums = rest[0] if rest else kwargs["argnums"]
    strict, has_aux = options(t, kwargs.get("strict", ConstantTracker(False)), kwargs["has_aux"])
    body = TransformBody.of(t, "jvp")
    if not is_a(primals, TupleTracker):
        raise body.refuse("primals that are no tuple")

    with body.trace:
        primal = yield from _differentiated(body, argnums, primals.items, constant)
        directions, spec = yield from flatten_tree(t, tangents)
        if not _same_structure(spec, primal.spec) or not all(
            is_a(vt, TensorTracker) for vt in directions
        ):
            raise body.refuse("tangents of another structure")
        yield from body.set_outputs((yield from body.run(function, primal.args, {})), has_aux)

    flags = [primal.positions, len(body.inputs), len(body.outputs), strict]
    traced = body.record(targets.pushed_forward, flags, directions)
    out, pushed, rest_of = (t.graph.project(traced, index) for index in range(3))
    outputs: list[Any] = []
    for part in (out, pushed):
        outputs.append((yield from unflatten_tree(t, body.tensors(part), body.output_spec)))
    aux = yield from body.aux_output(rest_of)
    return pair(*outputs, *aux)


def _same_structure(tangents: Spec, primals: Spec) -> bool:
    """`argnums` that is one number still has its tangents in a tuple."""
    return tangents == primals or tangents == Spec(tuple, (), (primals,))


# -- linearize -------------------------------------------------------------------------------------
@handlers.handles(eager_transforms.linearize)
@operation
def linearize(t: Space, args: Args, kwargs: Kwargs) -> Any:
    """`linearize(function, *primals)`: natively the function is called twice, without gradients of
    what it gives."""
    function, *primals = args
    begun, body = t.machine.save(), TransformBody.of(t, "linearize", Permits(aliases=True))
    with body.trace:
        primal = yield from _differentiated(body, NONE, primals, constant)
        yield from body.set_outputs((yield from body.run(function, primal.args, {})))
    traced = body.record(targets.linearized, [len(body.inputs)])
    out, push = (t.graph.project(traced, index) for index in range(2))
    if any(part.requires_grad for part in out.example):
        raise body.refuse("what requires gradients")
    run = functools.partial(
        _call_linear, targets.tangents_pushed, push, primal.spec, body.output_spec
    )
    pushing = yield from settle(app_level(t, _applevel.pushing, [GraphFunction(push, run, begun)]))
    output = yield from body.output(out)
    return pair(output, pushing)


@handlers.handles(targets.linearized)
def linearize_again(t: Space, args: Args, kwargs: Kwargs) -> Any:
    """Record `linearized` of a graph that is traced again."""
    return app_level(t, _applevel.linearized, args, kwargs)


# -- functional_call -------------------------------------------------------------------------------
@handlers.handles(stateless._untie_named_tensors_map)
@operation
def untie_named_tensors(t: Space, args: Args, kwargs: Kwargs) -> Any:
    try:
        return (yield from settle(app_level(t, _applevel.untie_named_tensors, args, kwargs)))
    except Raised:
        raise t.unsupported(
            "transform", "functional_call with several values for one tied tensor"
        ) from None
