"""Attributes of modules are looked up in one step; what is seen, and what an entry relies on, is as
if interpreted."""

from __future__ import annotations

import collections
from typing import Any

import pytest
import stator
import torch
from torch import nn


class Parts(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(3))
        self.register_buffer("scale", torch.full((3,), 2.0))
        self.inner = nn.Linear(3, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.inner(x * self.weight) + self.scale


class Hooked(Parts):
    def __getattr__(self, name: str) -> Any:
        if name == "bonus":
            return torch.full((3,), 5.0)
        return super().__getattr__(name)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return super().forward(x) + self.bonus


def same(model: nn.Module, compiled: Any) -> None:
    x = torch.randn(3)
    torch.testing.assert_close(compiled(x), model(x))


@pytest.mark.parametrize("cls", [Parts, Hooked])
def test_parameters_buffers_and_modules_are_found_and_followed(cls: type[Parts]) -> None:
    model = cls()
    compiled = stator.compile(model, backend="eager", fullgraph=True)
    for _ in range(6):
        same(model, compiled)
    model.weight = nn.Parameter(torch.full((3,), 3.0))
    same(model, compiled)
    model.scale = torch.zeros(3)
    same(model, compiled)
    model.inner = nn.Linear(3, 3)
    same(model, compiled)


def test_a_parameter_goes_before_a_buffer_of_the_same_name() -> None:
    model = Parts()
    compiled = stator.compile(model, backend="eager")
    same(model, compiled)
    model._parameters["scale"] = nn.Parameter(torch.full((3,), 7.0))
    same(model, compiled)
    model.__dict__["scale"] = torch.full((3,), 9.0)
    same(model, compiled)


def test_a_table_of_another_class_is_read_too() -> None:
    model = Parts()
    model._buffers = collections.OrderedDict(model._buffers)
    same(model, stator.compile(model, backend="eager"))


def test_what_is_missing_is_an_attribute_error_with_the_words_of_torch() -> None:
    model = Parts()
    compiled = stator.compile(model, backend="eager")
    del model._buffers["scale"]
    with pytest.raises(AttributeError, match="'Parts' object has no attribute 'scale'"):
        compiled(torch.randn(3))
