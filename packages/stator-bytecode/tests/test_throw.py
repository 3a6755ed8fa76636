"""`Site.throw`: an exception object raised where the innermost frame stands, instead of running its
instruction.

The oracle is the program itself with a `native` that raises the same exception.
"""

from __future__ import annotations

import contextlib
import gc
import pathlib
import sys
import traceback
import weakref
from collections.abc import Iterator
from typing import Any

import pytest
import stator_bytecode
from stator_bytecode._breaks._plain import plain
from stator_bytecode._breaks._point import Point, layout_of
from stator_bytecode._breaks._site import Site, drive
from stator_bytecode._concrete._interpreter import ConcreteDomain
from stator_bytecode._machine._frame import Frame, GeneratorStatus
from stator_bytecode._machine._outcome import Broke
from stator_bytecode.errors import Unsupported

OURS = str(pathlib.Path(stator_bytecode.__file__).parent)
LOG: list[Any] = []
RAISED: list[BaseException] = []


def native() -> Any:
    """A call of this is where the programs break. Plain Python raises here."""
    LOG.append("native")
    raise RAISED[-1]


class Domain(ConcreteDomain):
    def frame_of(self, function: Any, args: Any, kwargs: Any) -> Frame:
        frame = super().frame_of(function, args, kwargs)
        frame.hidden = function.__name__.startswith("hidden_")
        return frame

    def call(self, function: Any, args: Any, kwargs: Any) -> Any:
        if function is native:
            raise Unsupported("test")
        return super().call(function, args, kwargs)


class Thrower(Site):
    """Throws the first value of its state."""

    def step(self, *state: Any) -> Any:
        try:
            return self.throw(*state)
        finally:
            state = ()


def broken(fn: Any) -> tuple[Point, list[Any]]:
    """The place of the first call of `native` in `fn`, and its state."""
    domain = Domain()
    outcome = domain.active.run([domain.call(fn, (), {}).frame])
    assert isinstance(outcome, Broke)
    point, values = layout_of(outcome.snapshot, domain.generator_state, lambda state: state.globals)
    for state in outcome.snapshot.frames:
        if state.generator is not None:
            state.generator.status = GeneratorStatus.CLOSED  # the point has taken it over
    return point, values


def plainly(fn: Any, error: BaseException) -> Any:
    RAISED.append(error)
    try:
        return fn()
    finally:
        RAISED.pop()


def go_on(point: Point, state: list[Any]) -> Any:
    return plain(point).consume(state)


def thrown(fn: Any, error: BaseException) -> Any:
    """`fn` broken at its first `native`, where `error` is thrown, and native from there on."""
    point, values = broken(fn)
    RAISED.append(error)  # of a later `native`
    try:
        return drive(Thrower(point), [error, *values], go_on)
    finally:
        RAISED.pop()


def entries(error: BaseException | None) -> list[tuple[str, int]]:
    """Names and lines of the traceback, without the functions of this test, and those that run
    differently."""
    assert error is not None
    found = traceback.extract_tb(error.__traceback__)
    ours = (
        "native",
        "plainly",
        "thrown",
        "seen_of",
        "step",
        "go_on",
        "hidden_call",
        "manager",
        "_drive",
    )
    return [(entry.name, entry.lineno or 0) for entry in found if entry.name not in ours]


def seen_of(run: Any, fn: Any, make: Any) -> dict[str, Any]:
    """Everything that a program can see: its result or exception, tracebacks and contexts, and what
    it logged."""
    LOG.clear()
    error = make()
    try:
        result = run(fn, error)
    except BaseException as raised:
        seen = {"raised": repr(raised), "is it": raised is error, "entries": entries(raised)}
        seen["context"] = repr(raised.__context__)
        seen["cause"] = repr(raised.__cause__)
    else:
        seen = {"result": repr(result)}
    log = [one for one in LOG if one != "native"]
    return {**seen, "log": log, "error": entries(error), "handled": sys.exc_info()[1]}


def nested() -> Any:
    x = 1
    return [x, inner(x)]


def inner(x: int) -> Any:
    y = x + 1
    return native(), y


def caught_inside() -> Any:
    return [caught()]


def caught() -> Any:
    try:
        return native()
    except ValueError as error:
        LOG.append((repr(error), repr(error.__context__)))
        return "inside"


def caught_outside() -> Any:
    try:
        return nested()
    except ValueError as error:
        LOG.append((repr(error), entries(error)))
        return "outside"


def finally_runs() -> Any:
    try:
        return inner(1)
    finally:
        LOG.append(repr(sys.exc_info()[1]))


@contextlib.contextmanager
def manager(swallows: bool) -> Iterator[None]:
    try:
        yield
    except ValueError as error:
        LOG.append(repr(error))
        if not swallows:
            raise


class Managed:
    def __enter__(self) -> Managed:
        return self

    def __exit__(self, *raised: Any) -> None:
        LOG.append(repr(raised[1]))


def in_with() -> Any:
    with Managed():
        return native()


def in_swallowing_with() -> Any:
    with manager(True):
        native()
    return "after"


def in_passing_with() -> Any:
    with manager(False):
        native()
    return "after"


def while_handling() -> Any:
    try:
        raise KeyError("handled")
    except KeyError:
        return inner(1)


def while_handling_caught() -> Any:
    try:
        raise KeyError("handled")
    except KeyError as handled:
        try:
            native()
        except ValueError as error:
            LOG.append((error.__context__ is handled, repr(sys.exc_info()[1])))
        return repr(sys.exc_info()[1])


def reraised_with_cause() -> Any:
    try:
        native()
    except Exception as error:
        raise RuntimeError("outer") from error


def counted() -> Iterator[int]:
    yield 1
    try:
        native()
    finally:
        LOG.append("generator ends")
    yield 2


def in_generator() -> Any:
    return [*map(abs, [item for item in counted()])]


def generator_handles() -> Iterator[Any]:
    try:
        native()
    except ValueError:
        LOG.append("handled in generator")
    yield "next"


def in_handling_generator() -> Any:
    found = []
    for item in generator_handles():
        found.append(item)
    return found


def hidden_call(fn: Any) -> Any:
    return fn()


def in_hidden() -> Any:
    try:
        return hidden_call(native)
    except ValueError as error:
        return entries(error)


def in_loop() -> Any:
    found = []
    for number in range(3):
        try:
            found.append(native())
        except ValueError:
            continue
        finally:
            found.append(number)
    return found


PROGRAMS = [
    *(
        nested,
        caught_inside,
        caught_outside,
        finally_runs,
        in_with,
        in_swallowing_with,
        in_passing_with,
    ),
    *(while_handling, while_handling_caught, reraised_with_cause),
    *(in_generator, in_handling_generator, in_hidden, in_loop),
]


@pytest.mark.parametrize("fn", PROGRAMS, ids=lambda fn: fn.__name__)
@pytest.mark.parametrize("kind", [ValueError, StopIteration, KeyboardInterrupt, AttributeError])
def test_a_thrown_exception_goes_where_a_raised_one_goes(fn: Any, kind: Any) -> None:
    def make() -> BaseException:
        error: BaseException = kind("thrown")
        return error

    assert seen_of(thrown, fn, make) == seen_of(plainly, fn, make)


def tail() -> None:
    raise ValueError("with a traceback")


def test_the_traceback_of_the_exception_is_the_tail() -> None:
    with pytest.raises(ValueError, match="with a traceback") as original:
        tail()
    error = original.value
    last = error.__traceback__.tb_next  # type: ignore[union-attr]
    error.__traceback__ = last
    with pytest.raises(ValueError, match="with a traceback") as caught:
        thrown(nested, error)
    assert caught.value is error
    found = [entry.name for entry in traceback.extract_tb(error.__traceback__)]
    assert found[-3:] == ["nested", "inner", "tail"]
    assert not [
        entry
        for entry in traceback.extract_tb(error.__traceback__)
        if entry.filename.startswith(OURS)
    ]


def test_the_context_that_the_exception_has_is_kept_without_a_handled_one() -> None:
    error = ValueError("thrown")
    error.__context__ = context = KeyError("before")
    with pytest.raises(ValueError, match="thrown"):
        thrown(nested, error)
    assert error.__context__ is context


def test_a_thrown_exception_does_not_run_the_instruction() -> None:
    LOG.clear()
    thrown(caught_inside, ValueError("thrown"))
    assert "native" not in LOG


def test_a_site_throws_and_steps_in_turn() -> None:
    point, values = broken(caught_inside)
    site = Site(point)
    for _ in range(3):
        after, state = site.throw(ValueError("thrown"), *values)
        assert plain(after)(*state) == ["inside"]
        RAISED.append(ValueError("raised"))
        after, state = site.step(*values)
        RAISED.pop()
        assert plain(after)(*state) == ["inside"]


def test_a_thrown_exception_keeps_nothing_alive() -> None:
    class Box:
        pass

    point, values = broken(caught_inside)
    held = [ValueError("thrown")]  # no frame has it by name: the traceback holds the frames
    held[0].box = box = Box()  # type: ignore[attr-defined]
    reference = weakref.ref(box)
    del box
    values.insert(0, held.pop())
    gc.disable()
    try:
        assert drive(Thrower(point), values, go_on) == ["inside"]
        assert reference() is None
    finally:
        gc.enable()
