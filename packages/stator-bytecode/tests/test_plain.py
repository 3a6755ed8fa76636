"""Native continuations and rebuilt generators, where breaking everywhere does not look."""

from __future__ import annotations

import gc
import inspect
import weakref
from collections.abc import Iterator
from typing import Any

import pytest
from stator_bytecode._breaks._layout import NULL_KIND, VALUE, FrameLayout, ThenLayout
from stator_bytecode._breaks._plain import plain
from stator_bytecode._breaks._point import Point
from stator_bytecode._breaks._rebuild import GeneratorFactory, closed_generator
from stator_bytecode._codec._decode import decode
from stator_bytecode._codec._tables import OPCODES
from stator_bytecode._machine._frame import GeneratorStatus
from stator_bytecode.errors import Unsupported


def talking(n: int) -> Iterator[Any]:
    got = []
    try:
        for i in range(n):
            got.append((yield i))
    except KeyError as error:
        yield ("caught", error.args, got)
    finally:
        got.append("closed")
    return got


def layout_at(fn: Any, pc: int, **changes: Any) -> FrameLayout:
    code = decode(fn.__code__)
    slots = tuple(VALUE if name in changes.pop("bound", ()) else NULL_KIND for name in code.slots)
    return FrameLayout(
        code, pc, **{"slots": slots, "stack": (), "globals": fn.__globals__, **changes}
    )


def suspended(n: int, i: int) -> Any:
    """`talking(n)` after it yielded `i`."""
    code = decode(talking.__code__)
    (pc,) = [
        at.index
        for at in code.instructions
        if at.op == "YIELD_VALUE" and at.positions[0] == line_of_yield()
    ]
    # The bound method `got.append` and the loop's iterator lie on the stack.
    got: list[Any] = []
    methods = (NULL_KIND, VALUE) if code.null_first else (VALUE, NULL_KIND)
    loop = (VALUE, NULL_KIND)[: OPCODES.dialect.iterator_slots]
    iterator = iter(range(n))
    for _ in range(i + 1):
        next(iterator)
    bound = ("n", "got", "i")
    slots = tuple(VALUE if name in bound else NULL_KIND for name in code.slots)
    layout = FrameLayout(
        code,
        pc + 1,
        slots,
        loop + methods,
        talking.__globals__,
        generator=GeneratorStatus.SUSPENDED,
    )
    values = {"n": n, "got": got, "i": i}
    return GeneratorFactory(layout)(
        [*(values[name] for name in code.slots if name in values), iterator, got.append]
    )


def line_of_yield() -> int:
    return talking.__code__.co_firstlineno + 4


def test_a_rebuilt_generator_stands_where_it_stood() -> None:
    generator = suspended(3, 0)
    assert inspect.getgeneratorstate(generator) == inspect.GEN_SUSPENDED
    assert generator.gi_frame.f_lineno == line_of_yield()
    assert (generator.__name__, generator.__qualname__, generator.gi_code.co_name) == (
        "talking",
    ) * 3
    assert inspect.getgeneratorlocals(generator)["n"] == 3


def test_a_rebuilt_generator_takes_values_exceptions_and_close() -> None:
    generator = suspended(3, 0)
    assert generator.send("a") == 1
    assert generator.throw(KeyError("k")) == ("caught", ("k",), ["a"])
    with pytest.raises(StopIteration) as stop:
        next(generator)
    assert stop.value.value == ["a", "closed"]
    closing = suspended(3, 1)
    got = closing.gi_frame.f_locals["got"]
    closing.close()
    assert got == ["closed"]


def test_a_generator_that_has_not_started_is_rebuilt_unstarted() -> None:
    code = decode(talking.__code__)
    slots = tuple(VALUE if name == "n" else NULL_KIND for name in code.slots)
    created = next(at.index for at in code.instructions if at.op == "RETURN_GENERATOR") + 1
    layout = FrameLayout(
        code, created, slots, (), talking.__globals__, generator=GeneratorStatus.CREATED
    )
    generator = GeneratorFactory(layout)([2])
    assert inspect.getgeneratorstate(generator) == inspect.GEN_CREATED
    with pytest.raises(TypeError, match="just-started"):
        generator.send(1)
    assert list(generator) == [0, 1]


def test_a_factory_assembles_its_code_once() -> None:
    code = decode(talking.__code__)
    make = GeneratorFactory(layout_at(talking, 0, bound=("n",), generator=GeneratorStatus.CREATED))
    first, second = make((2,)), make((1,))
    assert first.gi_code is second.gi_code
    assert (list(first), list(second)) == ([0, 1], [0])
    assert first.gi_code.co_name == code.raw.co_name


def test_a_closed_generator_is_an_exhausted_one_of_the_same_name() -> None:
    generator = closed_generator(layout_at(talking, 0, generator=GeneratorStatus.RUNNING))(())
    assert generator.__name__ == "talking"
    assert inspect.getgeneratorstate(generator) == inspect.GEN_CLOSED
    assert list(generator) == []


class Dying:
    pass


def lets_go(thing: Any) -> Any:
    reference = weakref.ref(thing)
    del thing
    return reference() is None


def test_what_is_consumed_dies_when_the_program_lets_go_of_it() -> None:
    code = decode(lets_go.__code__)
    start = next(at.index for at in code.instructions if at.op == "LOAD_GLOBAL")
    point = Point((FrameLayout(code, start, (VALUE, NULL_KIND), (), lets_go.__globals__),))
    gc.disable()
    state = [Dying()]
    assert plain(point).consume(state) is True
    gc.enable()
    assert state == []


def test_what_cannot_be_entered_is_refused() -> None:
    waiting = layout_at(lets_go, 2, then=ThenLayout("of another domain"))
    with pytest.raises(Unsupported, match="of another domain"):
        plain(Point((waiting, layout_at(lets_go, 0))))
