"""Symbolic numbers as constants, and their truth.

What floats give depends on the order of operations, and `ShapeEnv` reorders them; and products
beyond a machine word are infinite to it. So these are computed again, node by node as Python would,
once each symbol in them has been fixed.
"""

from typing import Any

import sympy  # type: ignore[import-untyped]
import torch
from stator_variables import GraphValue
from torch.fx import Node
from torch.utils._sympy.functions import PowByNatural
from torch.utils._sympy.symbol import SymT, symbol_is_type

from stator_subgraphs._outer_value import symbol_value
from stator_subgraphs._state import GraphState
from stator_subgraphs._structure import rebuild
from stator_subgraphs._symbol import SymbolicTypes, expression_of, symbols_of


def constant_of(state: GraphState, traced: GraphValue) -> object:
    """The number, guarded to stay what it is. Raises what `ShapeEnv` raises for one that data
    decides."""
    example, expression = traced.example, expression_of(traced.example)
    inexact = expression is not None and (has_floats(expression) or _overflows(example, expression))
    if not isinstance(example, torch.SymFloat) and not inexact:
        return example.node.pytype(example)
    for symbol in symbols_of(example):
        if (bound := symbol_value(state.current, symbol)) is not None:
            bound.example.node.pytype(bound.example)
    return _value(traced.node, {})


def truth_of(state: GraphState, traced: GraphValue) -> bool:
    """A comparison of a float symbol with a number is exact; of a sum of several it need not be."""
    expression = expression_of(traced.example)
    if expression is None and any(map(_is_float, traced.node.all_input_nodes)):
        # its symbols are fixed already, and sympy multiplied them
        return bool(_value(traced.node, {}))
    return bool(traced.example if is_decided_exactly(traced) else constant_of(state, traced))


def is_decided_exactly(traced: GraphValue) -> bool:
    """Return whether `ShapeEnv` decides a condition as Python does, in a guard as well."""
    if (expression := expression_of(traced.example)) is None:
        return True
    if has_floats(expression) and not all(map(_is_exact, expression.args)):
        return False
    return not _overflows(traced.example, expression)


def _is_float(node: Node) -> bool:
    return isinstance(node.meta.get("example_value"), torch.SymFloat)


def _is_exact(expression: Any) -> bool:
    if expression.is_Add or expression.is_Mul:
        return False
    return all(part.is_Symbol or part.is_number for part in expression.args or (expression,))


def has_floats(expression: Any) -> bool:
    return any(symbol_is_type(symbol, SymT.FLOAT) for symbol in expression.free_symbols)


def _overflows(example: Any, expression: object) -> bool:
    """Return True if a product of several symbolic factors may exceed `sys.maxsize`.

    Bounds of such numbers are infinite, and so equal. Products with constants are bounded exactly.
    """
    products = [part for part in sympy.preorder_traversal(expression) if _is_nonlinear(part)]
    if not products:
        return False
    hints, known = example.node.shape_env.backed_var_to_val, dict[Any, int]()
    return any(_bits(part, hints, known) > _SAFE for part in products)


_SAFE = 60  # bits: what expanding adds stays within a word


def _is_nonlinear(part: Any) -> bool:
    if part.is_Mul:
        return sum(bool(factor.free_symbols) for factor in part.args) > 1
    return part.is_Pow or isinstance(part, PowByNatural)


def _bits(part: object, hints: object, known: dict[Any, int]) -> int:
    """Return an upper bound of the bits of the number, and of all its parts."""
    if part not in known:
        known[part] = _counted(part, hints, known)
    return known[part]


def _counted(part: Any, hints: Any, known: dict[Any, int]) -> int:
    if not part.args:
        value = hints.get(part, 0) if part.is_Symbol else part
        return (
            int(abs(value)).bit_length()
            if getattr(value, "is_Integer", isinstance(value, int))
            else 0
        )
    bits = [_bits(inner, hints, known) for inner in part.args]
    if part.is_Mul:
        return sum(bits)
    if part.is_Pow or isinstance(part, PowByNatural):
        exponent = part.args[1].xreplace(hints)  # without a hint, data decides it
        return bits[0] * max(1, int(exponent)) if exponent.is_Integer else bits[0]
    return max(bits) + bool(part.is_Add)


def _value(node: Node, known: dict[Node, Any]) -> object:
    if node not in known:
        known[node] = _computed(node, known)
    return known[node]


def _computed(node: Node, known: dict[Node, Any]) -> Any:
    if not isinstance(example := node.meta["example_value"], SymbolicTypes):
        return example
    inputs = [source.meta["example_value"] for source in node.all_input_nodes]
    if node.op != "call_function" or any(isinstance(value, torch.Tensor) for value in inputs):
        return example.node.pytype(example)
    args = rebuild(node.args, lambda item: _value(item, known) if isinstance(item, Node) else item)
    return node.target(*args)  # type: ignore[operator]  # no str: it is no method
