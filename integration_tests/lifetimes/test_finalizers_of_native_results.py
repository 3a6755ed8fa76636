"""An object with `__del__` is made natively, by a break: it is a local value or an operand of what
follows, and dies there as in plain Python, whatever was the last to hold it."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import stator
import torch
from torch import Tensor

Log = list[Any]
PROGRAMS: dict[str, Callable[[Tensor, Log], Any]] = {}


class Loud:
    def __init__(self, log: Log, name: Any = "gone") -> None:
        self.log, self.name = log, name

    def __del__(self) -> None:
        self.log.append(self.name)


class Raising(Loud):
    def __init__(self, log: Log) -> None:
        super().__init__(log)
        raise ValueError


class Manager:
    def __init__(self, log: Log) -> None:
        self.log = log

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *error: object) -> bool:
        self.log.append("out")
        return True

    def __del__(self) -> None:
        self.log.append("gone")


class Giving:
    def __init__(self, log: Log) -> None:
        self.log = log

    @property
    def made(self) -> Loud:
        return Loud(self.log)


class Phoenix:
    saved: list[Any] = []

    def __init__(self, log: Log) -> None:
        self.log = log

    def __del__(self) -> None:
        self.log.append("up")
        Phoenix.saved.append(self)


def program(fn: Callable[[Tensor, Log], Any]) -> Callable[[Tensor, Log], Any]:
    PROGRAMS[fn.__name__.strip("_").replace("_", " ")] = fn
    return fn


def _give(log: Log) -> Loud:
    return Loud(log)


@program
def the_owner_of_an_attribute(x: Tensor, log: Log) -> Any:
    name = Loud(log).name
    log.append("read")
    count = len([Loud(log)])
    log.append("counted")
    return x + count, name


@program
def an_owner_in_a_comprehension(x: Tensor, log: Log) -> Any:
    names = [Loud(log, i).name for i in range(3)]
    log.append("end")
    return x + sum(names)


@program
def a_condition(x: Tensor, log: Log) -> Any:
    if Loud(log):
        log.append("true")
    while Loud(log).name != "gone":
        pass
    log.append("end")
    return x + 1


@program
def what_a_call_gave(x: Tensor, log: Log) -> Any:
    _give(log)
    log.append("dropped")
    name = _give(log).name
    log.append("end")
    return x + 1, name


@program
def what_a_property_gave(x: Tensor, log: Log) -> Any:
    giving = Giving(log)
    giving.made  # noqa: B018
    log.append("dropped")
    name = giving.made.name
    log.append("end")
    return x + 1, name


@program
def an_attribute_of_a_tensor(x: Tensor, log: Log) -> Any:
    y: Any = x + 1
    y.held = Loud(log)
    log.append("set")
    y = None
    log.append("end")
    return x + 1


@program
def a_cell(x: Tensor, log: Log) -> Any:
    def make() -> Callable[[], Any]:
        held = Loud(log)
        return lambda: held.name

    read: Any = make()
    log.append(read())
    read = None
    log.append("end")
    return x + 1


@program
def an_argument_of_an_exception(x: Tensor, log: Log) -> Any:
    try:
        raise ValueError(Loud(log))
    except ValueError:
        log.append("handled")
    log.append("end")
    return x + 1


@program
def an_exception_thrown_into_a_generator(x: Tensor, log: Log) -> Any:
    def give() -> Iterator[int]:
        try:
            yield 1
        finally:
            log.append("closed")

    given: Any = give()
    next(given)
    try:
        given.throw(KeyError(Loud(log)))
    except KeyError:
        log.append("handled")
    log.append("end")
    return x + 1


@program
def a_constructor_that_raises(x: Tensor, log: Log) -> Any:
    try:
        Raising(log)
    except ValueError:
        log.append("handled")
    log.append("end")
    return x + 1


@program
def a_context_manager(x: Tensor, log: Log) -> Any:
    with Manager(log) as manager:
        stator.graph_break()
        log.append("in")
    log.append("after")
    del manager
    log.append("end")
    return x + 1


@program
def a_context_manager_without_a_name(x: Tensor, log: Log) -> Any:
    with Manager(log):
        log.append("in")
        raise ValueError
    log.append("after")
    return x + 1


@program
def what_comes_back(x: Tensor, log: Log) -> Any:
    Phoenix.saved.clear()
    held: Any = [Phoenix(log)]
    stator.graph_break()
    held.clear()
    log.append(len(Phoenix.saved))
    held = Phoenix.saved.pop()
    log.append("again")
    held = None
    log.append("end")
    return x + 1


class Pair(tuple[Any, ...]):
    kept: Any = None


def _first_of(pair: Any, log: Log) -> Any:
    stator.graph_break()
    pair = pair[1:]
    log.append("taken apart")
    return pair


@program
def what_a_tuple_of_a_class_holds(x: Tensor, log: Log) -> Any:
    rest = _first_of(Pair((Loud(log), 1)), log)
    log.append("returned")
    return x + 1, rest


@program
def an_attribute_of_a_tuple_of_a_class(x: Tensor, log: Log) -> Any:
    pair = Pair((1, 2))
    pair.kept = Loud(log)
    held: Any = [pair]
    del pair
    stator.graph_break()
    held = _first_of(held.pop(), log)
    log.append("end")
    return x + 1, held


@program
def a_tuple_of_a_class_with_an_end(x: Tensor, log: Log) -> Any:
    class Ending(Pair):
        def __del__(self) -> None:
            log.append("ended")

    rest = _first_of(Ending((1, 2)), log)
    log.append("end")
    return x + 1, rest


@pytest.mark.parametrize("name", PROGRAMS)
def test_what_was_made_natively_dies_where_it_does_in_plain_python(name: str) -> None:
    plain, compiled = PROGRAMS[name], stator.compile(PROGRAMS[name], backend="eager")
    gc.disable()  # garbage of a trace must not keep it
    try:
        for _ in range(3):
            logs, results = [], []
            for fn in (plain, compiled):
                log: Log = []
                results.append(str(fn(torch.ones(2), log)))
                logs.append([*log])
            assert logs[0] == logs[1]
            assert results[0] == results[1]
    finally:
        gc.enable()


@pytest.mark.parametrize("first_held", [True, False])
def test_a_manager_dies_with_its_statement_where_nothing_else_refers_to_it(
    first_held: bool,
) -> None:
    def fn(x: Tensor, holders: list[Any], log: Log) -> Tensor:
        with holders.pop():
            y = x + 1
            stator.graph_break()
            y = y * 2
        log.append("behind")
        return y - 1

    def logged(call: Callable[..., Any], held: bool) -> tuple[list[float], Log]:
        log: Log = []
        manager = Manager(log)
        holders, kept = [manager], [manager] if held else []
        del manager
        return call(torch.ones(2), holders, log).tolist(), [*log, len(kept)]

    compiled = stator.compile(fn, backend="eager")
    for held in (first_held, not first_held, first_held, not first_held, False, False, True):
        assert logged(compiled, held) == logged(fn, held)


class Watched:
    pass


def test_an_argument_that_its_caller_holds_dies_with_the_caller() -> None:
    def inner(held: list[Any], x: Tensor, log: Log) -> Tensor:
        stator.graph_break()
        log.append(held[0].__class__.__name__)
        return x + 1

    references: list[Any] = []

    def fn(x: Tensor, log: Log, released: bool) -> Tensor:
        watched = Watched()
        references.append(weakref.ref(watched, lambda _: log.append("died")))
        y = inner([watched], x, log)
        log.append("returned")
        if released:
            del watched
            log.append("released")
        log.append(references[-1]() is None)
        return y * 2

    compiled: Any = stator.compile(fn, backend="eager")
    for released in (False, True, False, True, True):
        logs: list[Log] = [[], []]
        for run, log in zip((fn, compiled), logs, strict=True):
            run(torch.ones(2), log, released)
        assert logs[0] == logs[1]
