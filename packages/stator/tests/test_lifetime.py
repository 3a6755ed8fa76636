"""Nothing is kept alive by having been compiled, also while the collector is off."""

from __future__ import annotations

import gc
import linecache
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import stator
import torch
from stator._entries._entry_pool import forget_pools

Compile = Callable[..., Any]


@pytest.fixture(autouse=True)
def _without_collector() -> Iterator[None]:
    gc.collect()
    gc.disable()
    yield
    gc.enable()


class Holder:
    def __init__(self) -> None:
        self.tensor = torch.randn(3)


def function(held: Any) -> Any:
    y = held.tensor.sin() + 1
    stator.graph_break()
    return y * 2


def test_inputs_die(compile_: Compile) -> None:
    compiled, held = compile_(function), Holder()
    compiled(held)
    dead: list[weakref.ref[Any]] = [weakref.ref(held), weakref.ref(held.tensor)]
    del held
    assert [each() for each in dead] == [None, None]


def test_compiled_function_dies_with_all_it_made(compile_: Compile) -> None:
    before = {name for name in linecache.cache if name.startswith("<stator")}
    compiled = compile_(lambda x: x.sin() + 1)
    compiled(torch.ones(3))
    dead = [
        weakref.ref(compiled),
        weakref.ref(compiled.__wrapped__),
        weakref.ref(compiled.report._region),
    ]
    del compiled
    assert [each() for each in dead] == [None, None, None]
    forget_pools()  # which has the entries for the next function with this code
    assert {name for name in linecache.cache if name.startswith("<stator")} <= before


def test_module_dies_while_its_compiled_call_lives(compile_: Compile) -> None:
    module = torch.nn.Linear(3, 3)
    compiled = compile_(module)
    compiled(torch.ones(3))
    call = compiled._stator_call
    dead = [weakref.ref(module), weakref.ref(compiled), weakref.ref(module.weight)]
    del module, compiled
    assert [each() for each in dead] == [None, None, None]
    assert torch.equal(call(torch.nn.Identity(), torch.ones(3)), torch.ones(3))


def test_module_compiled_in_place_dies() -> None:
    module = stator.compile_in_place(torch.nn.Linear(3, 3), backend="eager")
    module(torch.ones(3))
    dead = weakref.ref(module)
    del module
    assert dead() is None


def test_module_in_a_closure_dies(compile_: Compile) -> None:
    module = torch.nn.Linear(3, 3)
    dead = weakref.ref(module)

    def through(x: Any, module: Any = module) -> Any:
        return module(x) + 1

    compiled = compile_(through)
    compiled(torch.ones(3))
    del module, through, compiled
    assert dead() is None
