"""`stator.capture`: what a captured call consists of, and what it leaves undone."""

from __future__ import annotations

import functools
from typing import Any

import pytest
import stator
import torch
from torch.export import Dim

X = torch.arange(6.0).reshape(2, 3)


class Scaled(torch.nn.Module):
    count: torch.Tensor

    def __init__(self) -> None:
        super().__init__()
        self.layer = torch.nn.Linear(3, 3)
        self.register_buffer("count", torch.zeros(()))
        self.offset = torch.ones(3)
        self.last: Any = None

    def forward(self, x: torch.Tensor, *, scale: Any = None) -> Any:
        self.count += 1
        self.last = x
        made = self.layer(x) + self.offset
        return {"made": made if scale is None else made * scale, "x": x, "name": "scaled"}


def test_inputs_have_kinds_names_and_targets() -> None:
    captured = stator.capture(Scaled(), (X,), {"scale": X[0]})
    found = {spec.source: (spec.kind, spec.target) for spec in captured.inputs}
    layer = "self._modules['layer']._parameters"
    assert found == {
        "x": ("user input", None),
        "scale": ("user input", None),
        "self._buffers['count']": ("buffer", "count"),
        f"{layer}['weight']": ("parameter", "layer.weight"),
        f"{layer}['bias']": ("parameter", "layer.bias"),
        "self.offset": ("constant", None),
    }
    assert list(captured.sources) == [spec.name for spec in captured.inputs]


def test_outputs_have_the_structure_of_the_result() -> None:
    captured = stator.capture(Scaled(), (X,))
    computed, given, constant = captured.outputs
    assert computed == stator.CapturedOutput("computed", 0)
    assert given == stator.CapturedOutput("input", "x")
    assert constant == stator.CapturedOutput("constant", "scaled")
    assert torch.utils._pytree.tree_unflatten([1, 2, 3], captured.out_spec) == {
        "made": 1,
        "x": 2,
        "name": 3,
    }


def test_effects_are_listed_and_not_done() -> None:
    module = Scaled()
    captured = stator.capture(module, (X,))
    assert [line for line in captured.side_effects if "'last'" in line]
    assert module.last is None
    assert module.count == 0


def test_graph_computes_what_the_function_does() -> None:
    def fn(x: torch.Tensor, rest: Any) -> Any:
        return x @ rest["weight"] + rest["items"][1]

    rest: Any = {"weight": torch.ones(3, 2), "items": [X, 2 * torch.ones(2)]}
    captured = stator.capture(fn, (X, rest))
    values = {"x": X, "rest['weight']": rest["weight"], "rest['items'][1]": rest["items"][1]}
    inputs = [values[source] for source in captured.sources.values()]
    (found,) = captured.graph(*inputs)
    torch.testing.assert_close(found, fn(X, rest))


@pytest.mark.parametrize(
    "shapes", [{"x": {0: Dim.DYNAMIC}}, ({0: Dim("rows")}, None), [{0: Dim.AUTO}, None]]
)
def test_named_dimensions_are_symbols(shapes: Any) -> None:
    captured = stator.capture(lambda x, n: x.reshape(-1) * n, (X, 3), dynamic_shapes=shapes)
    sizes = [source for source in captured.sources.values() if "size" in source]
    assert sizes == ["x.size(0)"]
    assert "n" not in captured.sources.values()


def test_number_is_an_input_where_it_is_named() -> None:
    captured = stator.capture(lambda x, n: x * n, (X, 3), dynamic_shapes={"n": Dim.DYNAMIC})
    assert set(captured.sources.values()) == {"x", "n"}


def test_condition_on_sizes_is_a_guard_with_its_line() -> None:
    def fn(x: torch.Tensor, y: torch.Tensor) -> Any:
        return x if x.shape[0] < y.shape[0] else y

    shapes = {"x": {0: Dim.DYNAMIC}, "y": {0: Dim.DYNAMIC}}
    captured = stator.capture(fn, (X, torch.ones(4, 3)), dynamic_shapes=shapes)
    (guard,) = [guard for guard in captured.guards if str(guard).count(".size(0)") == 2]
    assert guard.where.line == fn.__code__.co_firstlineno + 1


def add(x: torch.Tensor, *more: torch.Tensor, **named: torch.Tensor) -> Any:
    return x + sum(more) + sum(named.values())


class Adding:
    def add(self, x: torch.Tensor) -> Any:
        return x + 1

    def __call__(self, x: torch.Tensor) -> Any:
        return x + 2


@pytest.mark.parametrize(
    ("fn", "args", "kwargs"),
    [
        (add, (X, X + 1, X + 2), {"z": X + 3}),
        (Adding().add, (X,), {}),
        (Adding(), (X,), {}),
        (functools.partial(add, X), (X + 1,), {}),
        (torch.sin, (X,), {}),
        (stator.compile(Adding().add, backend="eager"), (X,), {}),
        (stator.compile(torch.nn.Linear(3, 2), backend="eager"), (X,), {}),
    ],
)
def test_callables_of_every_kind_are_captured(fn: Any, args: Any, kwargs: Any) -> None:
    captured = stator.capture(fn, args, kwargs)
    assert [spec.kind for spec in captured.outputs] == ["computed"]


def test_names_of_gathered_arguments_are_numbered() -> None:
    captured = stator.capture(add, (X, X + 1, X + 2), {"z": X + 3})
    assert sorted(captured.sources.values()) == ["more_0", "more_1", "x", "z"]


def test_break_is_an_error_with_its_line() -> None:
    def fn(x: torch.Tensor) -> Any:
        stator.graph_break()
        return x

    with pytest.raises(stator.Unsupported) as caught:
        stator.capture(fn, (X,))
    assert caught.value.where.line == fn.__code__.co_firstlineno + 1


@pytest.mark.parametrize(
    ("fn", "args", "kwargs", "text"),
    [
        (3, (), {}, "it is not callable"),
        (add, [X], {}, "not a tuple"),
        (add, (), {}, "missing a required argument"),
        (add, (X,), {"in": X}, "no identifier"),
        (lambda x: 1 // x.dim().__index__() // 0, (X,), {}, "raises"),
    ],
)
def test_wrong_use_is_rejected(fn: Any, args: Any, kwargs: Any, text: str) -> None:
    with pytest.raises(stator.InvalidUse, match=text):
        stator.capture(fn, args, kwargs)


def test_number_drawn_at_random_is_rejected() -> None:
    import random

    with pytest.raises(stator.Unsupported, match="drawn in every call"):
        stator.capture(lambda x: x * random.random(), (X,))
