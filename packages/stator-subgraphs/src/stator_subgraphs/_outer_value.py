"""Values of the graphs around, and of bodies that were left, as values of one graph.

A value of an outer graph that is used inside becomes a placeholder of every tracer on the way, once
each; so do the symbols in its shape. A value of a body that was left is what it was lifted from, or
a part of what the operator gives.
"""

from __future__ import annotations

import operator
from typing import Any

import torch
from stator_bytecode.errors import InternalError, Unsupported
from stator_variables import GraphValue
from torch.fx.experimental.symbolic_shapes import CallMethodKey, ConvertIntKey, DivideByKey
from torch.utils import _pytree as pytree

from stator_subgraphs._symbol import Symbol, number_for, symbols_of
from stator_subgraphs._tracer import SubgraphTracer, plain_symbol

_CHOICE: Any = torch.sym_ite  # torch leaves it without types


# -- values of the graphs around -------------------------------------------------------------------
def local_value(tracer: SubgraphTracer, traced: GraphValue) -> GraphValue:
    """`traced` as a value of this graph: itself, or the placeholder it is lifted to."""
    graph = traced.node.graph
    if graph is tracer.graph:
        return traced
    if graph in tracer.bodies:
        return _seen_outside(tracer.bodies[graph], traced)
    if tracer.parent is None:
        raise InternalError(f"{traced.node} belongs to a body that was left")
    outer = local_value(tracer.parent, traced)
    found = tracer.lifted.get(outer.node) or _bound(tracer, outer.example)
    return found if found is not None else _lift(tracer, outer)


def _bound(tracer: SubgraphTracer, example: object) -> GraphValue | None:
    return None if (symbol := plain_symbol(example)) is None else tracer.symbols.get(symbol)


def _lift(tracer: SubgraphTracer, outer: GraphValue) -> GraphValue:
    if outer.node.op == "get_attr":
        return _copy_attribute(tracer, outer)
    if isinstance(outer.example, torch.SymFloat):
        return _lift_float(tracer, outer)
    if isinstance(outer.example, torch.SymBool):
        return _lift_bool(tracer, outer)
    if plain_symbol(outer.example) is None:
        for symbol in symbols_of(outer.example):
            symbol_value(tracer, symbol)
    traced = tracer.placeholder(outer.node.name, outer.example)
    tracer.adopt(outer, traced)
    tracer.outer.append(outer)
    # what a closed one did not use is dropped
    tracer.journal.record(lambda: tracer.closed or tracer.outer.pop())
    return traced


def _lift_float(tracer: SubgraphTracer, outer: GraphValue) -> GraphValue:
    """Most operators take no floats: it goes in as a tensor, and is read in here."""
    assert tracer.parent is not None
    box = local_value(tracer, _box(tracer.parent, outer))
    traced = tracer.derived(box, "call_method", "item", (box.node,), outer.example)
    tracer.note_box(traced, box)
    tracer.adopt(outer, traced)
    return traced


def _lift_bool(tracer: SubgraphTracer, outer: GraphValue) -> GraphValue:
    """Likewise, as an int."""
    assert tracer.parent is not None
    number = _CHOICE(outer.example, 1, 0)
    given = tracer.parent.derived(outer, "call_function", _CHOICE, (outer.node, 1, 0), number)
    inner = local_value(tracer, given)
    traced = tracer.derived(inner, "call_function", operator.eq, (inner.node, 1), outer.example)
    tracer.adopt(outer, traced)
    return traced


def _box(tracer: SubgraphTracer, number: GraphValue) -> GraphValue:
    """A float of this graph as a tensor without dimensions. Compilers follow floats through
    arithmetic alone."""
    if number.node not in tracer.boxes:
        with tracer.world.mode:
            one = torch.ones((), dtype=torch.float64, device="cpu")
            example = one * number.example
        unit = tracer.derived(number, "call_function", torch.ones, ((),), one)
        unit.node.kwargs = {"dtype": torch.float64, "device": "cpu"}
        tracer.note_box(
            number,
            tracer.derived(number, "call_function", torch.mul, (unit.node, number.node), example),
        )
    return tracer.boxes[number.node]


def _copy_attribute(tracer: SubgraphTracer, outer: GraphValue) -> GraphValue:
    """Copy an attribute, which needs no input: each module that uses it has it."""
    node = tracer.node("get_attr", outer.node.target, (), {})
    node.meta.update(outer.node.meta)
    traced = tracer.memoize(GraphValue(node, outer.example))
    tracer.adopt(outer, traced)
    return traced


# -- symbols ---------------------------------------------------------------------------------------
def symbol_value(tracer: SubgraphTracer, symbol: Symbol) -> GraphValue | None:
    """A value of this graph that equals `symbol`, lifted if need be; None when no graph around
    binds it."""
    if symbol in tracer.symbols:
        return tracer.symbols[symbol]
    if symbol in tracer.unbacked:
        return _read_unbacked(tracer, symbol)
    outer = None if tracer.parent is None else symbol_value(tracer.parent, symbol)
    return None if outer is None else local_value(tracer, outer)


def _read_unbacked(tracer: SubgraphTracer, symbol: Symbol) -> GraphValue:
    traced, path = tracer.unbacked[symbol]
    for key in path:
        traced = _step(tracer, traced, key)
    if plain_symbol(traced.example) is None:  # made of a bool
        traced.node.meta["example_value"] = number = number_for(tracer.world.env, symbol)
        traced = tracer.memoize(GraphValue(traced.node, number))
    tracer.bind(symbol, traced)
    return traced


def _step(tracer: SubgraphTracer, traced: GraphValue, key: Any) -> GraphValue:
    """One key of a path that torch reports: how to get nearer to a symbol that an operator made
    up."""
    value = key.get(traced.example)
    if isinstance(key, CallMethodKey):
        return tracer.known("call_method", key.name, (traced.node,), value)
    function, rest = _read_by(key)
    return tracer.known("call_function", function, (traced.node, *rest), value)


def _read_by(key: object) -> tuple[Any, tuple[Any, ...]]:
    """The function, and its arguments after the value, that reads what `key` names."""
    if isinstance(key, pytree.SequenceKey):
        return operator.getitem, (key.idx,)
    if isinstance(key, pytree.MappingKey):
        return operator.getitem, (key.key,)
    if isinstance(key, DivideByKey):
        return operator.floordiv, (key.divisor,)
    if isinstance(key, ConvertIntKey):
        return _CHOICE, (1, 0)
    raise InternalError(f"an unbacked symbol behind an unknown key, {key!r}")


# -- a body that was left --------------------------------------------------------------------------
def _outer_of(tracer: SubgraphTracer, traced: GraphValue) -> GraphValue | None:
    """Return the outer graph's value for a value of this one, if it is not computed here."""
    assert tracer.parent is not None
    if isinstance(traced.example, torch.SymInt) and not symbols_of(traced.example):
        # What needed it to be the same in every call has guarded it.
        return tracer.parent.known(
            "call_function", torch.sym_int, (int(traced.example),), traced.example
        )
    local = local_value(tracer, traced)
    symbol = plain_symbol(local.example)
    if symbol is not None and (known := symbol_value(tracer.parent, symbol)) is not None:
        return known
    return next(
        (tracer.parent.values[node] for node, inner in tracer.lifted.items() if inner is local),
        None,
    )


def is_computed(tracer: SubgraphTracer, traced: GraphValue) -> bool:
    """Return True if a node here makes the value, and the outer graph does not have it."""
    return traced.node.graph is tracer.graph and _outer_of(tracer, traced) is None


def _seen_outside(tracer: SubgraphTracer, traced: GraphValue) -> GraphValue:
    """A value of this body, for the graph around: what it was lifted from, or a part of what
    the operator gives."""
    if (outer := _outer_of(tracer, traced)) is not None:
        return outer
    if tracer.call is None or tracer.parent is None:
        raise InternalError(
            f"{traced.node} belongs to a body that was left, and no operator gives it"
        )
    if (index := tracer.given.get(local_value(tracer, traced).node)) is None:
        raise Unsupported("value-of-a-body", f"{traced.node}, which stayed in a body that was left")
    return part_of(tracer.parent, tracer.call, index)


def part_of(tracer: SubgraphTracer, traced: GraphValue, index: object) -> GraphValue:
    """A `getitem` node for part of a result; the example is at hand, so nothing runs."""
    local = local_value(tracer, traced)
    key = (local.node, index)
    if (found := tracer.parts.get(key)) is None:
        found = tracer.derived(
            local, "call_function", operator.getitem, (local.node, index), local.example[index]
        )
        tracer.journal.put(tracer.parts, key, found)
        if "source_fn_stack" in local.node.meta:
            found.node.meta["source_fn_stack"] = [
                *tracer.function_stack,
                (found.node.name, operator.getitem),
            ]
    return found
