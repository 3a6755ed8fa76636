"""`guard_filter_fn`: the program decides which guards are checked, with torch's filters or its
own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import stator
import torch
from stator_backends import CountingBackend

X = torch.arange(3.0)
compiler: Any = torch.compiler
SCALE = 2.0


class Layer(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(3, 3)
        self.scale = 2.0

    def forward(self, x: torch.Tensor) -> Any:
        return self.linear(x) * self.scale


def scaled(x: torch.Tensor) -> torch.Tensor:
    return x * SCALE


def counted(subject: Any, keeps: Callable[..., Any]) -> tuple[Any, CountingBackend]:
    counting = CountingBackend()
    made = stator.compile(subject, backend=counting, options={"guard_filter_fn": keeps})
    return made, counting


def kinds_kept(subject: Any, keeps: Callable[..., Any], *args: Any) -> set[str]:
    compiled, _ = counted(subject, keeps)
    compiled(*args)
    found = {type(guard.kind).__name__ for guard in compiled.report.guards}
    return found - {"AllDistinct"}  # what the guards on several tensors imply


def test_filter_gets_what_torch_gives() -> None:
    seen: list[Any] = []

    def keeps(entries: list[Any]) -> list[bool]:
        seen.extend(entries)
        return [True for _ in entries]

    layer = Layer()
    compiled, _ = counted(layer, keeps)
    compiled(X)
    assert len(seen) > 50
    by_type = {entry.guard_type: entry for entry in seen}
    assert {"TENSOR_MATCH", "GLOBAL_STATE", "ID_MATCH", "TYPE_MATCH"} <= by_type.keys()
    tensors = [entry.value for entry in seen if entry.guard_type == "TENSOR_MATCH"]
    assert any(value is layer.linear.weight for value in tensors)
    assert not by_type["GLOBAL_STATE"].has_value
    builtin = [
        entry.name for entry in seen if entry.orig_guard.source.is_unspecialized_builtin_nn_module()
    ]
    assert any("_backward_hooks" in name for name in builtin)
    assert not any("scale" in name for name in builtin)


@pytest.mark.parametrize("filtered", [False, True])
def test_guards_on_modules_are_skipped(filtered: bool) -> None:
    def keep_all(entries: list[Any]) -> list[bool]:
        return [True] * len(entries)

    keeps = compiler.skip_guard_on_all_nn_modules_unsafe if filtered else keep_all
    layer = Layer()
    compiled, counting = counted(layer, keeps)
    before = compiled(X)
    layer.scale = 3.0
    assert torch.equal(compiled(X), before if filtered else layer(X))
    compiled(X.double().float())
    assert len(counting.graphs) == (1 if filtered else 2)


def test_guards_on_layers_of_torch_are_skipped() -> None:
    layer = Layer()
    compiled, counting = counted(layer, compiler.skip_guard_on_inbuilt_nn_modules_unsafe)
    before = compiled(X)
    setattr(layer.linear, "forward", lambda x: x)
    assert torch.equal(compiled(X), before)
    layer.scale = 3.0
    compiled(X)
    assert len(counting.graphs) == 2


def test_guards_on_globals_are_skipped(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled, _ = counted(scaled, compiler.skip_guard_on_globals_unsafe)
    assert torch.equal(compiled(X), X * 2)
    monkeypatch.setitem(globals(), "SCALE", 5.0)
    assert torch.equal(compiled(X), X * 2)
    stator.reset()
    assert torch.equal(compiled(X), X * 5)


def test_only_guards_on_tensors_are_kept() -> None:
    assert kinds_kept(Layer(), compiler.keep_tensor_guards_unsafe, X) == {"TensorMatch"}
    portable = kinds_kept(Layer(), compiler.keep_portable_guards_unsafe, X)
    assert portable == {"TensorMatch", "GlobalState"}


def test_all_guards_are_skipped() -> None:
    compiled, counting = counted(scaled, compiler.skip_all_guards_unsafe)
    assert torch.equal(compiled(X), X * 2)
    assert torch.equal(compiled(torch.ones(2, 2)), torch.full((2, 2), 2.0))
    assert len(counting.graphs) == 1
    assert not compiled.report.guards


def test_filter_that_returns_too_few_flags_is_an_error() -> None:
    compiled, _ = counted(scaled, lambda entries: [True])
    with pytest.raises(stator.InvalidUse, match="guard_filter_fn returned 1 flags for"):
        compiled(X)


def test_what_a_filter_raises_reaches_the_caller() -> None:
    def keeps(entries: list[Any]) -> list[bool]:
        raise ValueError("of the filter")

    compiled, _ = counted(scaled, keeps)
    with pytest.raises(ValueError, match="of the filter"):
        compiled(X)


def test_filter_that_is_no_function_is_an_error() -> None:
    with pytest.raises(stator.InvalidOption, match="guard_filter_fn=3 is not valid"):
        stator.compile(scaled, options={"guard_filter_fn": 3})


def test_objects_with_other_filters_share_nothing() -> None:
    unfiltered = stator.compile(scaled, backend="eager")
    unfiltered(X)
    keeps = {"guard_filter_fn": compiler.skip_all_guards_unsafe}
    filtered = stator.compile(scaled, backend="eager", options=keeps)
    filtered(X)
    assert unfiltered.report.guards
    assert not filtered.report.guards
