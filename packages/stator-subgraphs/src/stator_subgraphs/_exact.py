"""Symbolic numbers as constants. What floats give depends on the order of operations, and `ShapeEnv` reorders them: so
a float is computed again, node by node as Python would, once each symbol in it has been fixed."""

from typing import Any

import torch
from stator_variables import Traced
from torch import fx
from torch.utils._sympy.symbol import SymT, symbol_is_type

from stator_subgraphs._state import GraphState
from stator_subgraphs._structure import rebuild
from stator_subgraphs._symbol import SymbolicTypes, expression_of, symbols_of


def constant_of(state: GraphState, traced: Traced) -> Any:
    """The number, guarded to stay what it is. Raises what `ShapeEnv` raises for one that data decides."""
    example, expression = traced.example, expression_of(traced.example)
    if not isinstance(example, torch.SymFloat) and (expression is None or not has_floats(expression)):
        return example.node.pytype(example)
    for symbol in symbols_of(example):
        bound = state.current.symbol(symbol)
        if bound is not None:
            bound.example.node.pytype(bound.example)
    return _value(traced.node)


def truth_of(state: GraphState, traced: Traced) -> bool:
    """A comparison of a float symbol with a number is exact; of a sum of several it need not be."""
    expression = expression_of(traced.example)
    if expression is None and any(_is_float(node) for node in traced.node.all_input_nodes):
        return bool(_value(traced.node))  # its symbols are fixed already, and sympy multiplied them
    if expression is None or not has_floats(expression) or all(map(_is_exact, expression.args)):
        return bool(traced.example)
    return bool(constant_of(state, traced))


def _is_float(node: fx.Node) -> bool:
    return isinstance(node.meta.get("example_value"), torch.SymFloat)


def _is_exact(expression: Any) -> bool:
    if expression.is_Add or expression.is_Mul:
        return False
    return all(part.is_Symbol or part.is_number for part in expression.args or (expression,))


def has_floats(expression: Any) -> bool:
    return any(symbol_is_type(symbol, SymT.FLOAT) for symbol in expression.free_symbols)


def _value(node: fx.Node) -> Any:
    example = node.meta["example_value"]
    if not isinstance(example, SymbolicTypes):
        return example
    inputs = [source.meta["example_value"] for source in node.all_input_nodes]
    if node.op != "call_function" or any(isinstance(value, torch.Tensor) for value in inputs):
        return example.node.pytype(example)
    args = rebuild(node.args, lambda item: _value(item) if isinstance(item, fx.Node) else item)
    return node.target(*args)  # type: ignore[operator]  # no str: it is no method
