"""Operators that give what their one body gives: `wrap`, `hints_wrapper`, `strict_mode`, and all
with torch's base."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import fields, is_dataclass
from typing import Any

import stator_variables as variables
import sympy  # type: ignore[import-untyped]
import torch
from stator_bytecode import OperationSteps, operation, settle
from stator_guards import CapturedSource
from stator_variables import Args, FunctionTable, Kwargs
from torch._higher_order_ops import run_const_graph
from torch._higher_order_ops.base_hop import BaseHOP
from torch._higher_order_ops.foreach_map import _foreach_map, foreach_map
from torch._higher_order_ops.hints_wrap import hints_wrapper
from torch._higher_order_ops.strict_mode import strict_mode, strict_mode_op
from torch._ops import _higher_order_ops

from stator_subgraphs._operators._applevel import each_of_lists
from stator_subgraphs._symbol import expression_of, sizes_of, symbols_of

handlers = FunctionTable("higher-order operator")


@handlers.handles(torch.ops.higher_order.wrap)
def wrap(t: variables.Space, args: Args, kwargs: Kwargs) -> Any:
    return variables.wrapped(t, torch.ops.higher_order.wrap, "wrap_body", args[0], args[1:], kwargs)


def hinted(
    body: torch.fx.GraphModule, inputs: Sequence[Any], kwargs: Kwargs, hints: dict[str, Any]
) -> Any:
    """`hints_wrapper`, which takes no symbols, for inputs some of which are."""
    sizes = {
        expression_of(size)
        for value in inputs
        if isinstance(value, torch.Tensor)
        for size, *_ in sizes_of(value)
    }
    ways = [_passed(value, sizes) for value in inputs]

    def run(*taken: Any) -> Any:
        rest = iter(taken)
        return body(*(read(rest) for _, read in ways))

    return hints_wrapper(
        run, tuple(operand for operands, _ in ways for operand in operands), kwargs, hints=hints
    )


def _passed(
    value: object, sizes: set[Any]
) -> tuple[tuple[Any, ...], Callable[[Iterator[Any]], Any]]:
    """Return the arguments that pass a value, and a function that reads it inside.

    The sizes of the tensors among the arguments are available inside without passing them.
    """
    if not isinstance(value, torch.SymInt):
        return (value,), next
    if sizes.issuperset(symbols_of(value)) and not value.node.expr.has(sympy.Piecewise):
        return (), lambda rest: value
    return (torch.ones((), dtype=torch.int64) * value,), lambda rest: next(rest).item()


@handlers.handles(hints_wrapper, hinted)
@operation
def hints(t: variables.Space, args: Args, kwargs: Kwargs) -> Any:
    """`hints_wrapper(body, args, {}, hints=...)`."""
    named = dict(zip(("body_fn", "args", "kwargs", "hints"), args, strict=False)) | kwargs
    hints = _constants(t, named["hints"])
    with variables.BodyTrace(t, "hints_wrapper_body", variables.Permits(effects=True)) as body:
        result = yield from body.run(named["body_fn"], variables.flatten(t, named["args"])[0], {})
        graph = body.wrapping(result)

    inputs = [traced for traced in (*graph.arguments, *graph.lifted) if traced is not None]
    symbolic = any(isinstance(traced.example, torch.SymInt) for traced in inputs)
    target = hinted if symbolic else hints_wrapper
    return variables.record_wrapping(
        t,
        target,
        graph,
        "hints_wrapper_body",
        result,
        operands=lambda held, inputs: (held, inputs, {}),
        hints=hints,
    )


@handlers.handles_each(
    {strict_mode_op: strict_mode_op, strict_mode: strict_mode_op, run_const_graph: run_const_graph}
)
def strict(t: variables.Space, args: Args, kwargs: Kwargs, of: Any) -> Any:
    """An operator over a function and a tuple of its operands."""
    function, operands = *args, *kwargs.values()
    return variables.wrapped(
        t,
        of,
        f"{of.__name__}_body",
        function,
        operands.items,
        {},
        variables.NOTHING,
        operands=lambda held, inputs: (held, inputs),
    )


for _name in list(_higher_order_ops):
    # stored there by the first read, which must not be the program's
    getattr(torch.ops.higher_order, _name)


@handlers.handles_each(
    [operator for operator in _higher_order_ops.values() if isinstance(operator, BaseHOP)]
)
@operation
def base(t: variables.Space, args: Args, kwargs: Kwargs, of: BaseHOP) -> Any:
    """An operator with torch's base: `operator(body, *operands, **options)`, the options constants
    or records of constants."""
    options = {}
    for name, value in kwargs.items():
        options[name] = (
            (yield from _record(t, value)) if is_dataclass(value.cls) else _constant(t, value)
        )

    result = yield from settle(
        variables.wrapped(
            t, of, f"{of._name}_body", args[0], args[1:], {}, variables.NOTHING, **options
        )
    )
    if any(
        isinstance(value, variables.GraphValue) for value in options.values()
    ) and _has_gradients(t, result):
        # Compilers keep tensors and numbers from forward to backward, and no record.
        raise t.unsupported(
            "higher-order-operator", f"gradients through {of._name} with such an option"
        )

    return result


@handlers.handles(foreach_map)
def map_lists(t: variables.Space, args: Args, kwargs: Kwargs) -> Any:
    """`foreach_map(function, *lists, **options)`: the body goes through the lists."""
    function = variables.wrap(t, each_of_lists, CapturedSource("each_of_lists", each_of_lists))
    return base(t, [function, *args], kwargs, _foreach_map)


def _has_gradients(t: variables.Space, result: object) -> bool:
    return any(
        variables.is_a(vt, variables.TensorTracker) and vt.example.requires_grad
        for vt in variables.flatten(t, result)[0]
    )


def _record(t: variables.Space, vt: Any) -> OperationSteps:
    """A dataclass is made anew by the graph, as `fx` writes one."""
    values = {}
    for field in fields(vt.cls):
        values[field.name] = _constant(
            t, (yield from settle(variables.get_attribute(t, vt, field.name)))
        )
    return t.graph.call(vt.cls, (), values, example=vt.cls(**values))


def _constant(t: variables.Space, vt: Any) -> Any:
    if (value := vt.constant()) is variables.MISSING:
        raise t.unsupported("higher-order-operator", f"an option that is a {vt.cls.__qualname__}")
    return value


def _constants(t: variables.Space, vt: object) -> Any:
    """A dict of constants."""
    leaves, spec = variables.flatten(t, vt)
    return dict(zip(spec.keys, [_constant(t, leaf) for leaf in leaves], strict=True))
