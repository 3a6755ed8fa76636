"""Attributes that classes and metaclasses of the program compute are read when the program reads
them, never by us."""

from __future__ import annotations

import contextlib
import copy
import pathlib
from collections.abc import Callable
from typing import Any

import pytest
import stator
import torch
from torch import Tensor

READ: list[str] = []


class Meta(type):
    def __getattr__(cls, name: str) -> Any:
        READ.append(f"class: {name}")
        raise AttributeError(name)


class Thing(metaclass=Meta):
    def __init__(self, factor: Any = 2) -> None:
        self.factor = factor

    def __getattr__(self, name: str) -> Any:
        READ.append(name)
        raise AttributeError(name)


class Pair(tuple[Any, ...], metaclass=Meta):
    pass


class Table(dict[str, Any], metaclass=Meta):
    pass


def reads_an_attribute(x: Tensor, thing: Any) -> Any:
    return x * thing.factor


def looks_for_an_attribute(x: Tensor, thing: Any) -> Any:
    return x * 2 if hasattr(thing, "missing") else x * getattr(thing, "other", 3)


def looks_for_one_of_the_class(x: Tensor, thing: Any) -> Any:
    return x * getattr(type(thing), "other", 3)


def makes_one(x: Tensor, thing: Any) -> Any:
    return x * Thing(3).factor


def holds_one_over_a_break(x: Tensor, thing: Any) -> Any:
    made = Thing(x + 1)
    print(end="")
    return made.factor * 2


def makes_containers(x: Tensor, thing: Any) -> Any:
    return Pair((x, 1)), Table(a=x)


def is_not_a_function(x: Tensor, thing: Any) -> Any:
    return thing(x)


def copies_one(x: Tensor, thing: Any) -> Any:
    return x * copy.copy(thing).factor


PROGRAMS = [
    *(reads_an_attribute, looks_for_an_attribute, looks_for_one_of_the_class, makes_one),
    *(holds_one_over_a_break, makes_containers, is_not_a_function, copies_one),
]


def attributes_read(fn: Callable[..., Any]) -> list[str]:
    READ.clear()
    with contextlib.suppress(TypeError):
        fn(torch.ones(2), Thing())
    return READ[:]


@pytest.mark.parametrize("fn", PROGRAMS, ids=lambda fn: fn.__name__)
def test_a_program_reads_the_same_attributes_compiled(fn: Callable[..., Any]) -> None:
    attributes_read(fn)  # `copyreg` keeps the slots of a class
    expected = attributes_read(fn)
    compiled = stator.compile(fn, backend="eager")
    assert [attributes_read(compiled) for _ in range(3)] == [expected] * 3


@pytest.mark.parametrize("fn", PROGRAMS, ids=lambda fn: fn.__name__)
def test_writing_and_reading_a_file_of_the_cache_reads_no_more_attributes(
    fn: Callable[..., Any], tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STATOR_CACHE_DIR", str(tmp_path))
    attributes_read(fn)
    expected = attributes_read(fn)
    for _ in range(2):
        stator.reset()
        compiled = stator.compile(fn, backend="eager", options={"cache": True})
        assert attributes_read(compiled) == expected


def test_compiling_a_module_reads_no_attribute_of_its_class() -> None:
    class Layer(torch.nn.Module, metaclass=Meta):
        def forward(self, x: Tensor) -> Tensor:
            return x * 2

    layer = Layer()
    READ.clear()
    compiled = stator.compile(layer, backend="eager")
    assert READ == []
    assert torch.equal(compiled(torch.ones(2)), torch.ones(2) * 2)
