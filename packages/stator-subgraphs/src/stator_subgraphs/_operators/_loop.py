"""Operators that repeat a body: `while_loop`, `scan`, `map`, `associative_scan`.

torch's functions of these names are interpreted as they are when compiled: they check and flatten,
and call the operator. Whatever cannot be captured in them is a break at their call. The body takes
explicit inputs, made up from the first round's, then what it uses besides; it gives tensors and
ints.
"""

from collections.abc import Generator, Sequence
from typing import Any

import attrs
import torch
from stator_bytecode import Invoke, operation
from stator_guards import CapturedSource
from stator_variables import (
    NOTHING,
    Args,
    BodyGraph,
    BodyTrace,
    ConstantTracker,
    FunctionTable,
    GraphValue,
    Kwargs,
    NumberTracker,
    Permits,
    Space,
    Spec,
    TensorTracker,
    VariableTracker,
    frame_for,
    from_traced,
    is_a,
    leaf_of,
    unflatten,
    wrap,
)
from torch._higher_order_ops import InvokeQuant
from torch._higher_order_ops.associative_scan import associative_scan, associative_scan_op
from torch._higher_order_ops.map import map as map_function
from torch._higher_order_ops.map import map_impl
from torch._higher_order_ops.scan import scan, scan_op
from torch._higher_order_ops.while_loop import while_loop, while_loop_op, while_loop_stack_output_op
from torch.nn.attention.flex_attention import flex_attention
from torch.utils.checkpoint import checkpoint_sequential

from stator_subgraphs._mutation import storage_of
from stator_subgraphs._operators._cond import refuse_overlap

handlers = FunctionTable("higher-order operator")


@handlers.handles_each(
    (
        while_loop,
        scan,
        map_function,
        associative_scan,
        checkpoint_sequential,
        InvokeQuant.__call__,
        flex_attention,
    )
)
@operation
def as_a_whole(t: Space, args: Args, kwargs: Kwargs, of: Any) -> Any:
    """A function of torch that leads to an operator: it is interpreted, and breaks at its call."""
    known = wrap(t, of, CapturedSource(of.__name__, of))
    return (yield Invoke(frame_for(t, known, args, kwargs)))


@handlers.handles_each((while_loop_op, while_loop_stack_output_op))
@operation
def record_while_loop(t: Space, args: Args, kwargs: Kwargs, of: object) -> Any:
    test, step, carried, *rest = args[0], args[1], args[2].items, *_additional(args[3:])
    examples = [_next_round(t, value) for value in carried]
    with BodyTrace(t, "cond_fn") as inner:
        result = yield from inner.run(test, [*map(inner.argument, examples), *rest], {})
        condition = inner.alone(result)
    # in bodies, compilers lose them
    permits = Permits(writes=not (torch.is_grad_enabled() or t.touched))
    body, spec = yield from _body(t, "body_fn", step, examples, permits, rest)
    lifted = t.graph.merge([condition, body])
    if any(position < len(carried) for position in body.written):
        raise t.unsupported("write-in-body", "an in-place write to what a loop carries")

    refuse_overlap(t, [body], [*(vt.traced for vt in carried if is_a(vt, TensorTracker)), *lifted])
    bodies = t.graph.install("cond_fn", condition.module), t.graph.install("body_fn", body.module)
    written = {"mutated_arg_indices": ",".join(map(str, body.written))} if body.written else {}
    return _record(
        t,
        of,
        (*bodies, tuple(leaf_of(t, value) for value in carried), lifted),
        spec,
        written,
    )


@handlers.handles(map_impl)
def record_map(t: Space, args: Args, kwargs: Kwargs) -> Any:
    function, mapped, *rest = args
    return _repeated(t, map_impl, "map_body", function, _first(t, mapped.items), [mapped], rest)


@handlers.handles(scan_op)
def record_scan(t: Space, args: Args, kwargs: Kwargs) -> Any:
    combine, init, scanned, *rest = args
    examples = [*_again(t, init.items), *_first(t, scanned.items)]
    return _repeated(t, scan_op, "scan_combine_fn", combine, examples, [init, scanned], rest)


@handlers.handles(associative_scan_op)
def record_associative_scan(t: Space, args: Args, kwargs: Kwargs) -> Any:
    combine, scanned, *rest = args
    examples = [*_first(t, scanned.items), *_first(t, scanned.items)]
    return _repeated(
        t, associative_scan_op, "associative_scan_combine_fn", combine, examples, [scanned], rest
    )


@operation
def _repeated(
    t: Space,
    target: object,
    name: str,
    function: VariableTracker,
    examples: list[Any],
    lists: list[Any],
    rest: list[Any],
) -> Any:
    """The node `target(body, *lists, lifted)`."""
    body, spec = yield from _body(t, name, function, examples, rest=_additional(rest))
    operands = [[vt.traced for vt in given.items] for given in lists]
    return _record(
        t, target, (t.graph.install(name, body.module), *operands, list(body.lifted)), spec
    )


def _additional(args: Args) -> list[Any]:
    """Return the additional inputs of a body that is traced again; torch's functions have none."""
    return [vt for given in args for vt in given.items]


def _body(
    t: Space,
    name: str,
    function: VariableTracker,
    examples: Sequence[Any],
    permits: Permits = NOTHING,
    rest: Sequence[Any] = (),
) -> Generator[Any, Any, tuple[BodyGraph, Spec]]:
    with BodyTrace(t, name, permits) as body:
        result = yield from body.run(function, [*map(body.argument, examples), *rest], {})
        return body.flat(result)


def _record(
    t: Space,
    target: object,
    args: tuple[object, ...],
    spec: Spec,
    options: dict[str, Any] | None = None,
) -> Any:
    given = t.graph.call(target, args if options else _apart(t, args), options or {})
    spec = attrs.evolve(spec, cls=_GIVEN.get(target, spec.cls))
    return unflatten(
        t, [from_traced(t, t.graph.project(given, index)) for index in range(spec.leaf_count)], spec
    )


_GIVEN: dict[object, type] = {scan_op: tuple, associative_scan_op: list}
"""The sequences that operators return, whatever their bodies do."""


def _apart(t: Space, args: tuple[object, ...]) -> tuple[Any, ...]:
    """Return the operands without shared memory, as compilers require: nothing is written to, so a
    copy is equivalent."""
    seen: set[int] = set()

    def operand(value: object) -> Any:
        if not isinstance(value, GraphValue) or not isinstance(value.example, torch.Tensor):
            return value
        storage = storage_of(value.example)
        fresh = storage not in seen
        seen.add(storage)
        return value if fresh else t.graph.call(torch.clone, (value,), {})

    return tuple(
        type(arg)(map(operand, arg)) if isinstance(arg, tuple | list) else arg for arg in args
    )


# -- what a body is traced with --------------------------------------------------------------------
def _again(t: Space, values: Sequence[Any]) -> list[Any]:
    """Return the values in memory of their own: a write to one is not a write to the other."""
    return [_copy(t, vt.example) if is_a(vt, TensorTracker) else leaf_of(t, vt) for vt in values]


def _first(t: Space, values: Sequence[Any]) -> list[Any]:
    """The first of the slices."""
    if not all(is_a(vt, TensorTracker) for vt in values):
        raise t.unsupported("higher-order-operator", "a scanned value that is no tensor")
    with t.graph.fake_mode:
        return [_copy(t, vt.example.select(0, 0)) for vt in values]


def _next_round(t: Space, vt: Any) -> Any:
    """A number that changes from round to round is not known in any."""
    if is_a(vt, TensorTracker):
        return _copy(t, vt.example)
    if is_a(vt, NumberTracker) or (is_a(vt, ConstantTracker) and type(vt.value) is int):
        with t.graph.shape_env.ignore_fresh_unbacked_symbols():
            return t.graph.shape_env.create_unbacked_symint()
    raise t.unsupported("higher-order-operator", f"a loop that carries a {vt.cls.__qualname__}")


def _copy(t: Space, example: torch.Tensor) -> torch.Tensor:
    with t.graph.fake_mode:
        return example.clone()
