"""The transforms of torch.func: one node each, over the graph that their function becomes.

    torch.func.grad(f)(x)  ->  def body(x): ...                   # f, traced with x as f sees it
                               value_and_grads(body, (0,), 1, x)  # the real transform, over that

The function is traced as a body: its inputs are the arguments that the transform would pass (a
slice of a batch, a tensor to be differentiated), and no level of the interpreter stack is entered
while tracing. A break in it, and what is refused here, is a break at the transform.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Generator, Sequence
from typing import Any

import torch
from attrs import Factory, define, frozen
from stator_bytecode import OperationSteps, Raised, operation, settle
from stator_variables import (
    EVERYTHING,
    LEAF,
    MISSING,
    NONE,
    Args,
    BodyTrace,
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
    argument,
    broadcast,
    dict_items,
    flatten,
    from_traced,
    grad_mode,
    in_transform,
    is_a,
    record,
    unflatten,
)
from torch._functorch import eager_transforms, vmap
from torch.nn.utils import stateless

from stator_subgraphs._operators import _applevel
from stator_subgraphs._operators import _transform_targets as targets

handlers = FunctionTable("transform")
CALLED_ONCE = Permits(effects=True, aliases=True)
See = Callable[[Any], Any]
"""A function from the example of an input to the body's example."""


def sliced(dim: int) -> See:
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
class Transformed:
    """A transform under way: `outer` are its inputs, `inner` what the body was given for them;
    `results` and `others` what the function gave, and gave besides, with their structures."""

    t: Space
    name: str
    body: BodyTrace
    outer: list[Any] = Factory(list)
    inner: list[Any] = Factory(list)
    handed: list[Any] = Factory(list)
    results: list[Any] = Factory(list)
    others: list[Any] = Factory(list)
    spec: Spec = LEAF
    aux_spec: Spec | None = None
    graph: Any = None

    @classmethod
    def of(cls, t: Space, name: str, permits: Permits = CALLED_ONCE) -> Transformed:
        return cls(t, name, BodyTrace(t, f"{name}_body", permits))

    def refuse(self, why: str) -> Exception:
        return self.t.unsupported("transform", f"{self.name} of {why}")

    def give(self, vt: Any, see: See) -> Any:
        """The body's own value for a tensor that is an input of the transform."""
        if see is differentiable and not (
            vt.example.is_floating_point() or vt.example.is_complex()
        ):
            raise self.refuse(f"a tensor of {vt.example.dtype}")
        with self.t.graph.fake_mode:
            given = self.body.argument(see(vt.example))
        self.outer.append(vt)
        self.inner.append(given)
        return given

    def give_all(self, vt: Any, see: See) -> Any:
        """A copy of a structure, around what the body is given for its tensors."""
        leaves, spec = flatten(self.t, vt)
        given = [
            self.give(leaf, see) if is_a(leaf, TensorTracker) else self.hand(leaf)
            for leaf in leaves
        ]
        return unflatten(self.t, given, spec)

    def hand(self, vt: Any) -> Any:
        """Record a value that the body gets unchanged."""
        self.handed.append(vt)
        return vt

    def run(self, function: Any, args: Args, kwargs: Kwargs) -> OperationSteps:
        self.body.touched.clear()  # what was made to be handed in
        with in_transform(self.t, self.name):
            result = yield from self.body.run(function, args, kwargs)
        self.body.roots = [function, *self.handed]  # the structures around are the body's own
        return result

    def close(self, result: Any, has_aux: bool = False) -> None:
        """The body gives the tensors of what the function gave: a result, or with `has_aux` one and
        more besides."""
        if has_aux:
            if not is_a(result, TupleTracker) or len(result.items) != 2:
                raise self.refuse("a function that gives no pair")
            result, aux = result.items
            self.others, self.aux_spec = flatten(self.t, aux)
        self.results, self.spec = flatten(self.t, result)
        tensors = [*self.results, *self.others]
        if not all(is_a(vt, TensorTracker) for vt in tensors):
            raise self.refuse("a function that gives more than tensors")
        self.graph, _ = self.body.flat(TupleTracker(tensors))

    def record(self, target: Any, options: Sequence[Any], extra: Sequence[Any] = ()) -> GraphValue:
        """The node, outside of the body."""
        module = self.t.graph.install(self.body.name, self.graph.module)
        inputs = [argument(self.t, vt) for vt in (*self.outer, *extra)]
        return self.t.graph.call(target, [module, *options, *inputs, *self.graph.lifted], {})

    def result(self, traced: GraphValue) -> Any:
        """The result, of a tuple of its tensors."""
        return unflatten(self.t, self.parts(traced, self.results), self.spec)

    def besides(self, traced: GraphValue) -> list[Any]:
        """Return the auxiliary output of the function, if it has one."""
        return (
            []
            if self.aux_spec is None
            else [unflatten(self.t, self.parts(traced, self.others), self.aux_spec)]
        )

    def parts(self, traced: GraphValue, given: Sequence[Any] = ()) -> list[Any]:
        """Trackers of a tuple of tensors; one that the body was given is the outer tracker."""
        outside = dict(zip(map(id, self.inner), self.outer, strict=True))
        sources = [[outside.get(id(vt), vt)] for vt in given] or [[]] * len(traced.example)
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


def pair(*items: Any) -> Any:
    return TupleTracker(items)


# -- vmap ------------------------------------------------------------------------------------------
@handlers.handles(vmap.vmap_impl)
@operation
def vmap_impl(t: Space, args: Args, kwargs: Kwargs) -> Any:
    """`vmap_impl(function, in_dims, out_dims, randomness, chunk_size, *args, **kwargs)`"""
    function, in_dims, out_dims, randomness, chunk_size, *positional = args
    mode, chunk = options(t, randomness, chunk_size)
    leaves, spec = flatten(t, pair(*positional))
    call = _Call(function, spec, _dims(t, in_dims, spec), out_dims, mode, kwargs)
    if chunk is None:
        results, spec, _ = yield from _mapped(t, call, leaves)
    else:
        results, spec = yield from _in_chunks(t, call, leaves, chunk)
    return unflatten(t, results, spec)


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
    transformed = Transformed.of(t, "vmap", EVERYTHING)
    with transformed.body:
        pairs = list(zip(leaves, call.dims, strict=True))
        for leaf, dim in pairs:
            if dim is not None:
                _length(t, leaf, dim)
        inner = [
            transformed.hand(leaf) if dim is None else transformed.give(leaf, sliced(dim))
            for leaf, dim in pairs
        ]
        transformed.handed += call.kwargs.values()
        given = unflatten(t, inner, call.spec).items
        transformed.close((yield from transformed.run(call.function, given, call.kwargs)))
    out_dims, spec = call.out_dims, transformed.spec
    if spec == LEAF and is_a(out_dims, TupleTracker) and len(out_dims.items) == 1:
        out_dims = out_dims.items[0]  # as vmap has it, for a function that gives one tensor
    placed = _dims(t, out_dims, spec)
    used = tuple(dim for dim in call.dims if dim is not None)
    traced = transformed.record(targets.vmapped, [used, tuple(placed), call.randomness])
    return transformed.parts(traced, transformed.results), spec, placed


def _dims(t: Space, vt: Any, spec: Spec) -> list[int | None]:
    if (found := broadcast(t, vt, spec)) is None:
        raise t.unsupported("transform", "vmap with dimensions of another structure")
    dims = options(t, *found)
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
class _Chosen:
    """The arguments of a body, which of its flat inputs are differentiated, and the structure that
    these form."""

    args: list[Any]
    places: tuple[int, ...]
    spec: Spec


def _choose(transformed: Transformed, argnums: Any, args: Args, see: See) -> _Chosen:
    (numbers,) = options(transformed.t, argnums)
    chosen = (
        range(len(args)) if numbers is None else _argument_numbers(transformed, numbers, len(args))
    )
    given, places = [], {}
    for number, vt in enumerate(args):
        start = len(transformed.outer)
        given.append(transformed.give_all(vt, see if number in chosen else constant))
        places[number] = range(start, len(transformed.outer))
    specs = tuple(_all_tensors(transformed, args[number]) for number in chosen)
    spec = specs[0] if type(numbers) is int else Spec(tuple, (), specs)
    return _Chosen(given, tuple(place for number in chosen for place in places[number]), spec)


def _argument_numbers(transformed: Transformed, numbers: Any, count: int) -> list[int]:
    listed = numbers if type(numbers) is tuple else (numbers,)
    found = [number + count if number < 0 else number for number in listed]
    if not found or len({*found}) != len(found) or not all(0 <= number < count for number in found):
        raise transformed.refuse("arguments that do not exist")
    return found


def _all_tensors(transformed: Transformed, vt: Any) -> Spec:
    leaves, spec = flatten(transformed.t, vt)
    if not leaves or not all(is_a(leaf, TensorTracker) for leaf in leaves):
        raise transformed.refuse("an argument that is not made of tensors")
    return spec


# -- grad ------------------------------------------------------------------------------------------
@handlers.handles(eager_transforms.grad_and_value_impl)
@operation
def grad_and_value_impl(t: Space, args: Args, kwargs: Kwargs) -> Any:
    """`grad_and_value_impl(function, argnums, has_aux, args, kwargs)`"""
    function, argnums, aux_flag, positional, named = args
    (has_aux,) = options(t, aux_flag)
    transformed = Transformed.of(t, "grad")
    with transformed.body:
        chosen = _choose(transformed, argnums, positional.items, differentiable)
        keywords = {
            key.value: transformed.give_all(vt, constant) for key, vt in dict_items(t, named)
        }
        # reverse mode turns them on around the function, whatever the mode outside is
        with grad_mode(t, True):
            result = yield from transformed.run(function, chosen.args, keywords)
        transformed.close(result, has_aux)
        if transformed.spec != LEAF or transformed.results[0].example.dim() != 0:
            raise transformed.refuse("a function that gives no scalar")
    traced = transformed.record(targets.value_and_grads, [chosen.places, len(transformed.outer)])
    grads, values, rest = (t.graph.project(traced, index) for index in range(3))
    gradients, value = unflatten(t, transformed.parts(grads), chosen.spec), from_traced(t, values)
    return pair(gradients, pair(value, *transformed.besides(rest)) if has_aux else value)


# -- vjp -------------------------------------------------------------------------------------------
@handlers.handles(eager_transforms._vjp_with_argnums)
@operation
def vjp_with_argnums(t: Space, args: Args, kwargs: Kwargs) -> Any:
    """`_vjp_with_argnums(function, *primals, argnums=None, has_aux=False)`"""
    function, *primals = args
    (has_aux,) = options(t, kwargs.get("has_aux", ConstantTracker(False)))
    begun, transformed = t.machine.save(), Transformed.of(t, "vjp")
    with transformed.body:
        chosen = _choose(transformed, kwargs.get("argnums", NONE), primals, differentiable)
        with grad_mode(t, True):
            result = yield from transformed.run(function, chosen.args, {})
        transformed.close(result, has_aux)
        if not transformed.results:
            raise transformed.refuse("a function that gives nothing")
    flags = [chosen.places, len(transformed.outer), len(transformed.results)]
    traced = transformed.record(targets.pulled_back, flags)
    out, rest, pull = (t.graph.project(traced, index) for index in range(3))
    run = functools.partial(
        _call_later, targets.cotangents_pulled, pull, transformed.spec, chosen.spec
    )
    pulling = yield from settle(app_level(t, _applevel.pulling, [GraphFunction(pull, run, begun)]))
    return pair(transformed.result(out), pulling, *transformed.besides(rest))


def _call_later(
    target: Any,
    made: GraphValue,
    taken: Spec,
    given: Spec,
    t: Space,
    args: Args,
    kwargs: Kwargs,
) -> Any:
    """A function of a transform: of tensors in the structure `taken` to such in `given`."""
    leaves, spec = flatten(t, args[0])
    if spec != taken or not all(is_a(leaf, TensorTracker) for leaf in leaves):
        raise t.unsupported("transform", "tangents, or cotangents, of another structure")
    traced = t.graph.call(
        target, [made, *options(t, *args[1:]), *(leaf.traced for leaf in leaves)], {}
    )
    return unflatten(t, from_traced(t, traced).items, given)


# -- jvp -------------------------------------------------------------------------------------------
@handlers.handles(eager_transforms._jvp_with_argnums)
@operation
def jvp_with_argnums(t: Space, args: Args, kwargs: Kwargs) -> Any:
    """`_jvp_with_argnums(function, primals, tangents, argnums, *, strict=False, has_aux)`"""
    function, primals, tangents, *rest = args
    argnums = rest[0] if rest else kwargs["argnums"]
    strict, has_aux = options(t, kwargs.get("strict", ConstantTracker(False)), kwargs["has_aux"])
    transformed = Transformed.of(t, "jvp")
    if not is_a(primals, TupleTracker):
        raise transformed.refuse("primals that are no tuple")
    with transformed.body:
        chosen = _choose(transformed, argnums, primals.items, constant)
        directions, spec = flatten(t, tangents)
        if not _same_structure(spec, chosen.spec) or not all(
            is_a(vt, TensorTracker) for vt in directions
        ):
            raise transformed.refuse("tangents of another structure")
        transformed.close((yield from transformed.run(function, chosen.args, {})), has_aux)
    flags = [chosen.places, len(transformed.outer), len(transformed.results), strict]
    traced = transformed.record(targets.pushed_forward, flags, directions)
    out, pushed, rest_of = (t.graph.project(traced, index) for index in range(3))
    made = [unflatten(t, transformed.parts(part), transformed.spec) for part in (out, pushed)]
    return pair(*made, *transformed.besides(rest_of))


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
    begun, transformed = t.machine.save(), Transformed.of(t, "linearize", Permits(aliases=True))
    with transformed.body:
        chosen = _choose(transformed, NONE, primals, constant)
        transformed.close((yield from transformed.run(function, chosen.args, {})))
    traced = transformed.record(targets.linearized, [len(transformed.outer)])
    out, push = (t.graph.project(traced, index) for index in range(2))
    if any(part.requires_grad for part in out.example):
        raise transformed.refuse("what requires gradients")
    run = functools.partial(
        _call_later, targets.tangents_pushed, push, chosen.spec, transformed.spec
    )
    pushing = yield from settle(app_level(t, _applevel.pushing, [GraphFunction(push, run, begun)]))
    return pair(transformed.result(out), pushing)


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
