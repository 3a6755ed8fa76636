"""The layers and tables of a compilation: one's own merged with the public defaults."""

from __future__ import annotations

import math
from typing import Any

import pytest
import stator
import torch
from stator_backends import BackendSpec
from stator_bytecode import HandlerTable
from stator_guards import Source, TypeIs
from stator_variables import (
    DEFAULT_HANDLERS,
    BuilderTable,
    ConstantTracker,
    Emitter,
    Space,
    SymbolicDomain,
)
from stator_variables import VariableTracker as Tracker

X = torch.arange(3.0)


class Opaque:
    """A class whose instances have a tracker of their own."""

    def __init__(self, factor: float) -> None:
        self.factor = factor


def handle_dist(t: Space, args: list[Any], kwargs: dict[str, Any]) -> Any:
    return ConstantTracker(7.0)


def test_handlers_are_merged_with_the_defaults() -> None:
    def fn(x: torch.Tensor) -> torch.Tensor:
        return x * math.dist((0.0,), (2.0,)) + len([1, 2])

    table: HandlerTable[Any, Any] = HandlerTable("callable", {math.dist: handle_dist})
    stack = stator.Stack(handlers=lambda: stator.default_handlers().merged_with(table))
    compiled = stator.compile(fn, backend="eager", stack=stack, fullgraph=True)
    assert torch.equal(compiled(X), X * 7 + 2)


def test_handler_of_the_defaults_is_overridden_by_name() -> None:
    def fn(x: torch.Tensor) -> torch.Tensor:
        return x * math.gcd(4, 6)

    own: HandlerTable[Any, Any] = HandlerTable("callable", {len: handle_dist})
    stack = stator.Stack(handlers=lambda: stator.default_handlers().overridden_by(own))
    compiled = stator.compile(
        lambda x: x * len([1]), backend="eager", stack=stack, isolate_recompiles=True
    )
    assert torch.equal(compiled(X), X * 7)


def test_builders_take_precedence() -> None:
    builders = BuilderTable()

    class OpaqueTracker(Tracker):
        cls = Opaque

        def rebuild(self, e: Emitter) -> str:
            raise AssertionError("only existing ones are tracked")

    @builders.by_base.handles(Opaque)
    def build(t: Space, real: Any, source: Source) -> Tracker:
        t.guard(source, TypeIs(Opaque))
        return OpaqueTracker()

    table: HandlerTable[Any, Any] = HandlerTable("callable", {math.dist: handle_dist})
    stack = stator.Stack(
        builders=lambda: stator.default_builders().merged_with(builders),
        handlers=lambda: stator.default_handlers().merged_with(table),
    )

    def fn(x: torch.Tensor, opaque: Any) -> torch.Tensor:
        return x * math.dist(opaque, opaque)

    compiled = stator.compile(fn, backend="eager", stack=stack, fullgraph=True)
    for factor in (1.0, 2.0):
        assert torch.equal(compiled(X, Opaque(factor)), X * 7)
    assert compiled.report.graph_count == 1


def test_domain_with_an_operation_of_another_meaning() -> None:
    class Adding(SymbolicDomain):
        def binary(self, operator: str, left: Any, right: Any) -> Any:
            return super().binary("+" if operator == "*" else operator, left, right)

    stack = stator.Stack(domain=Adding)
    compiled = stator.compile(lambda x: x * 2, backend="eager", stack=stack)
    assert torch.equal(compiled(X), X + 2)


def test_domain_with_an_unknown_operation_is_an_error() -> None:
    with pytest.raises(TypeError, match="no operations of a domain are called binray"):
        type("Misspelt", (SymbolicDomain,), {"binray": None, "_helper": None})


def test_backend_without_symbolic_sizes_is_named_where_they_are_requested() -> None:
    shapes: list[Any] = []

    class Static:
        spec = BackendSpec("static", symbolic_shapes=False)

        def __call__(self, graph: Any, inputs: Any) -> Any:
            shapes.append(inputs[-1].shape)
            return graph.forward

    compiled = stator.compile(lambda x: x * 2, backend=Static(), dynamic=True)
    with pytest.warns(UserWarning, match="dynamic=True has no effect: 'static' takes no"):
        compiled(X)
    for size in (4, 5):
        assert torch.equal(compiled(torch.ones(size)), torch.full((size,), 2.0))
    assert shapes == [(3,), (4,), (5,)]
    marked = torch.ones(6)
    stator.mark_dynamic(marked, 0)
    assert torch.equal(compiled(marked), torch.full((6,), 2.0))
    assert len(shapes) == 3
    assert any("symbolic sizes" in each.reason for each in compiled.report.uncompiled)


def test_default_tables_are_merged_once_for_all_compilations() -> None:
    first, second = stator.Stack(), stator.Stack()
    assert first.tables()[0] is second.tables()[0]
    assert first.tables()[1] is second.tables()[1]

    own = stator.Stack(handlers=lambda: stator.default_handlers())
    assert own.tables()[0] is own.tables()[0]
    assert own.tables()[0] is not first.tables()[0]
    assert own.tables()[0] == first.tables()[0]


def test_handlers_that_are_added_later_are_used() -> None:
    def fn(x: torch.Tensor) -> torch.Tensor:
        return x * math.dist((0.0,), (2.0,))

    stator.compile(lambda x: x + 1, backend="eager")(X)
    DEFAULT_HANDLERS.handles(math.dist)(handle_dist)
    try:
        compiled = stator.compile(fn, backend="eager", fullgraph=True, isolate_recompiles=True)
        assert torch.equal(compiled(X), X * 7)
    finally:
        del DEFAULT_HANDLERS._handlers[math.dist]
    compiled = stator.compile(fn, backend="eager", isolate_recompiles=True)
    assert torch.equal(compiled(X), X * 2)
