"""Which operators may raise for the values that they are given."""

from __future__ import annotations

import operator
from typing import Any

import pytest
import torch
from stator_subgraphs import may_raise
from torch import Tensor, fx
from torch.fx.experimental.symbolic_shapes import ShapeEnv

EXAMPLES: dict[str, Any] = {
    "floats": torch.ones(3),
    "ints": torch.ones(3, dtype=torch.int64),
    "mask": torch.ones(3, dtype=torch.bool),
}


def node_of(target: Any, *operands: Any, gives: Any = EXAMPLES["floats"]) -> fx.Node:
    """Return a call of `target`: operands that are names stand for the examples of that name."""
    graph = fx.Graph()
    inputs = {name: graph.placeholder(name) for name in EXAMPLES}
    for name, node in inputs.items():
        node.meta["example_value"] = EXAMPLES[name]
    args = tuple(inputs.get(each, each) if isinstance(each, str) else each for each in operands)
    op = graph.call_method if isinstance(target, str) else graph.call_function
    node = op(target, args)
    node.meta["example_value"] = gives
    return node


@pytest.mark.parametrize(
    ("target", "operands", "expected"),
    [
        (operator.getitem, ("floats", "ints"), True),
        (operator.getitem, ("floats", "mask"), False),
        (operator.getitem, ("floats", 1), False),
        (operator.setitem, ("floats", "ints", 1.0), True),
        (operator.setitem, ("floats", "mask", "floats"), True),  # of another number of items
        ("index_select", ("floats", 0, "ints"), True),
        ("scatter_add_", ("floats", 0, "ints", "floats"), True),
        (torch.nn.functional.embedding, ("ints", "floats"), True),
        (torch.nn.functional.cross_entropy, ("floats", "ints"), True),
        (torch.ops.aten.nll_loss_forward.default, ("floats", "ints", None, 1, -100), True),
        (torch.quantile, ("floats", "floats"), True),
        (torch.linalg.inv, ("floats",), True),
        (torch.nn.functional.linear, ("floats", "floats"), False),
        ("sum", ("floats",), False),
        ("add_", ("floats", 1), False),
    ],
)
def test_operators_on_tensors(target: Any, operands: tuple[Any, ...], expected: bool) -> None:
    assert may_raise(node_of(target, *operands)) is expected


@pytest.mark.parametrize("target", ["remainder", torch.floor_divide, operator.floordiv])
@pytest.mark.parametrize(
    ("operands", "gives", "expected"),
    [
        (("ints", "ints"), "ints", True),
        (("ints", 0), "ints", True),
        (("ints", 2), "ints", False),
        ((7, "ints"), "ints", True),
        (("floats", "floats"), "floats", False),
        (("floats", 0), "floats", False),
    ],
)
def test_division_by_zero(
    target: Any, operands: tuple[Any, ...], gives: str, expected: bool
) -> None:
    assert may_raise(node_of(target, *operands, gives=EXAMPLES[gives])) is expected


@pytest.mark.parametrize(
    ("target", "operands", "expected"),
    [
        (operator.add, ("floats", 2), False),
        (operator.mul, ("floats", "floats"), False),
        ("item", ("floats",), False),
        (operator.truediv, ("floats", 2), False),
        (operator.truediv, ("floats", "floats"), True),
        (operator.mod, ("floats", 0), True),
        (operator.floordiv, (7, "floats"), True),
        (operator.pow, ("floats", -1), True),
        (torch.sym_int, ("floats",), True),  # of infinity
        (torch._sym_sqrt, ("floats",), True),
    ],
)
def test_operators_on_numbers(target: Any, operands: tuple[Any, ...], expected: bool) -> None:
    number = ShapeEnv().create_unbacked_symfloat()
    assert may_raise(node_of(target, *operands, gives=number)) is expected


def test_operators_in_a_body_count() -> None:
    def body_of(fn: Any) -> fx.GraphModule:
        return fx.symbolic_trace(fn)

    for fn, expected in ((lambda x: x.gather(0, x), True), (lambda x: x.sin(), False)):
        root = torch.nn.Module()
        root.body = body_of(fn)
        graph = fx.Graph()
        x, body = graph.placeholder("x"), graph.get_attr("body")
        node = graph.call_function(torch.ops.higher_order.wrap, (body, x))
        _ = fx.GraphModule(root, graph)
        assert may_raise(node) is expected


def test_operator_of_another_library() -> None:
    with torch.library._scoped_library("value_check", "DEF") as library:
        library.define("own(Tensor x) -> Tensor")
        assert may_raise(node_of(torch.ops.value_check.own.default, "floats"))


def test_table_names_operators_of_torch() -> None:
    """A name that torch does not have would be a slip."""
    from stator_subgraphs._value_check import VALUE_CHECKED_OPS

    homes = (torch, torch.nn.functional, Tensor, torch.ops.aten, torch.nn.utils.rnn)

    def is_found(name: str) -> bool:
        return any(hasattr(home, each) for home in homes for each in (name, f"_{name}", f"{name}_"))

    assert [name for name in sorted(VALUE_CHECKED_OPS) if not is_found(name)] == []
