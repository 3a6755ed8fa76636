"""Nothing lives longer for having been compiled: with the collector off, things die as they do in plain Python.

Each program is given objects of `Mark`, and leaves some; plainly and compiled, on first and later calls, the same of
them are alive after the call and after its result is dropped; and a compiled function dies with all it made.
"""

from __future__ import annotations

import gc
import linecache
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import stator
import torch
from torch import Tensor

PROGRAMS: dict[str, Callable[[Tensor, Marks], Any]] = {}


class Mark:
    """An object that can be watched, and that a program can do something with."""

    def __init__(self, factor: int = 2) -> None:
        self.factor = factor
        self.tensor = torch.ones(2)


class Marks:
    """Makes marks and knows which of them are alive."""

    def __init__(self) -> None:
        self.made: list[weakref.ref[Any]] = []
        self.kept: list[Any] = []
        self.given = self.watch(Mark())

    def watch(self, thing: Any) -> Any:
        self.made.append(weakref.ref(thing))
        return thing

    def alive(self) -> list[bool]:
        return [ref() is not None for ref in self.made]


def program(fn: Callable[[Tensor, Marks], Any]) -> Callable[[Tensor, Marks], Any]:
    PROGRAMS[fn.__name__.replace("_", " ")] = fn
    return fn


@program
def an_object_of_its_own(x: Tensor, marks: Marks) -> Any:
    mark = marks.watch(Mark(3))
    return x * mark.factor


@program
def an_object_that_is_returned(x: Tensor, marks: Marks) -> Any:
    mark = marks.watch(Mark(3))
    return x * mark.factor, mark


@program
def an_object_that_is_kept(x: Tensor, marks: Marks) -> Any:
    marks.kept.append(marks.watch(Mark(4)))
    return x * marks.kept[-1].factor


@program
def a_module_made_inside(x: Tensor, marks: Marks) -> Any:
    module = marks.watch(torch.nn.Linear(2, 2))
    return module(x) * 2


@program
def an_argument_that_is_let_go(x: Tensor, marks: Marks) -> Any:
    y = x * marks.given.factor
    marks.given = None
    return y


@program
def a_tensor_that_is_let_go(x: Tensor, marks: Marks) -> Any:
    y = marks.given.tensor + x
    marks.made.append(weakref.ref(marks.given.tensor))
    marks.given.tensor = None
    return y


@program
def a_local_that_is_deleted_early(x: Tensor, marks: Marks) -> Any:
    mark = marks.watch(Mark(5))
    y = x * mark.factor
    del mark
    return y, marks.alive()[-1]


@program
def a_closure_that_escapes(x: Tensor, marks: Marks) -> Any:
    mark = marks.watch(Mark(3))
    return lambda y: y * mark.factor


@program
def a_generator_that_escapes(x: Tensor, marks: Marks) -> Any:
    mark = marks.watch(Mark(3))
    parts = (x * i * mark.factor for i in range(3))
    next(parts)
    return parts


@program
def a_generator_with_clean_up(x: Tensor, marks: Marks) -> Any:
    def produce() -> Iterator[Tensor]:
        mark = marks.watch(Mark(3))
        try:
            yield x * mark.factor
        finally:
            marks.kept.append("closed")

    return next(produce())


@program
def an_exception_that_leaves(x: Tensor, marks: Marks) -> Any:
    mark = marks.watch(Mark(3))
    raise ValueError(x * mark.factor, mark)


@program
def an_exception_with_a_suspended_generator(x: Tensor, marks: Marks) -> Any:
    def produce() -> Iterator[Tensor]:
        mark = marks.watch(Mark(3))
        try:
            yield x * mark.factor
        finally:
            marks.kept.append("closed")

    parts = produce()
    raise ValueError(next(parts))


@program
def an_exception_that_is_handled(x: Tensor, marks: Marks) -> Any:
    try:
        raise ValueError(marks.watch(Mark(3)))
    except ValueError as error:
        return x * error.args[0].factor


@program
def an_operator_that_fails(x: Tensor, marks: Marks) -> Any:
    mark = marks.watch(Mark(3))
    return x @ mark.tensor.repeat(mark.factor)


@pytest.fixture(autouse=True)
def _without_collector() -> Iterator[None]:
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def observed(fn: Callable[[Tensor, Marks], Any]) -> list[Any]:
    """Who is alive, and what happened, at each stage of three calls."""
    stages: list[Any] = []
    for _ in range(3):
        marks = Marks()
        try:
            result = fn(torch.ones(2), marks)
            stages.append(marks.alive())
            del result
        except Exception as error:
            stages.append((type(error), marks.alive()))
        stages.append((marks.alive(), [kept for kept in marks.kept if isinstance(kept, str)]))
        marks.kept.clear()
        stages.append(marks.alive())
    return stages


@pytest.mark.parametrize("title", PROGRAMS)
def test_objects_die_as_they_do_plainly(title: str) -> None:
    fn = PROGRAMS[title]
    assert observed(stator.compile(fn, backend="eager")) == observed(fn)


@pytest.mark.parametrize("title", PROGRAMS)
def test_compiled_function_dies_with_all_it_made(title: str) -> None:
    before = {name for name in linecache.cache if name.startswith("<stator")}
    compiled = stator.compile(PROGRAMS[title], backend="eager")
    observed(compiled)
    dead = [weakref.ref(compiled), weakref.ref(compiled.report._region)]
    del compiled
    assert [each() for each in dead] == [None, None]
    assert {name for name in linecache.cache if name.startswith("<stator")} <= before


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_module_with_its_parameters_dies(backend: str) -> None:
    module = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.BatchNorm1d(2))
    compiled = stator.compile(module, backend=backend)
    compiled(torch.ones(3, 2)).sum().backward()
    dead = [weakref.ref(part) for part in (*module.modules(), *module.parameters(), *module.buffers())]
    del module, compiled
    assert not any(each() is not None for each in dead)
