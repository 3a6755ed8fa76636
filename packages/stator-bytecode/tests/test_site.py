"""One native step: what the user's code sees of it, where exceptions go, and which instructions
have none."""

from __future__ import annotations

import inspect
import pathlib
import sys
import time
import traceback
import warnings
from collections.abc import Iterator
from typing import Any

import pytest
import stator_bytecode
from stator_bytecode._breaks._plain import plain
from stator_bytecode._breaks._point import layout_of
from stator_bytecode._breaks._shape import shapes_of
from stator_bytecode._breaks._shuffle import NO_STEP, shuffles
from stator_bytecode._breaks._site import Goto, Site, drive
from stator_bytecode._codec._stack_effect import EFFECTS
from stator_bytecode._concrete._interpreter import ConcreteDomain
from stator_bytecode._handlers._all import DEFAULT
from stator_bytecode._machine._frame import Frame, GeneratorStatus
from stator_bytecode._machine._machine import Machine
from stator_bytecode._machine._outcome import Broke
from stator_bytecode.errors import Unsupported


def native(value: Any = None) -> Any:
    """A call of this is where the programs break; a test says what it does."""
    return ACTION[-1](value)


OURS = str(pathlib.Path(stator_bytecode.__file__).parent)
ACTION: list[Any] = []


class Domain(ConcreteDomain):
    def frame_of(self, function: Any, args: Any, kwargs: Any) -> Frame:
        frame = super().frame_of(function, args, kwargs)
        frame.hidden = function.__name__.startswith("hidden_")
        return frame

    def call(self, function: Any, args: Any, kwargs: Any) -> Any:
        if function is native:
            raise Unsupported("test")
        return super().call(function, args, kwargs)


def broken(fn: Any, *args: Any) -> tuple[Site, tuple[Any, ...]]:
    """The first call of `native` in `fn`."""
    domain = Domain()
    outcome = domain.active.run([domain.call(fn, args, {}).frame])
    assert isinstance(outcome, Broke)
    point, values = layout_of(outcome.snapshot, domain.generator_state, lambda state: state.globals)
    for state in outcome.snapshot.frames:
        if state.generator is not None:
            state.generator.status = GeneratorStatus.CLOSED  # the point has taken it over
    return Site(point), tuple(values)


def step(action: Any, fn: Any, *args: Any) -> Any:
    site, state = broken(fn, *args)
    ACTION.append(action)
    try:
        return site.step(*state)
    finally:
        ACTION.pop()


def in_one_go(action: Any, fn: Any, *args: Any) -> Any:
    """`fn` broken at its first `native`, and native from there on."""
    site, state = broken(fn, *args)
    ACTION.append(action)
    try:
        return drive(site, list(state), lambda point, values: plain(point).consume(values))
    finally:
        ACTION.pop()


def outermost(x: int) -> Any:
    y = x + 1
    return [y, middle(y)]


def middle(z: int) -> Any:
    cell = z

    def inner() -> int:
        return cell

    return native(inner), z


def hidden_map(fn: Any, items: Any) -> Any:
    return [fn(item) for item in items]


def hidden_call(fn: Any) -> Any:
    return fn(7)


def handling() -> Any:
    try:
        raise KeyError("handled")
    except KeyError:
        return native()


def with_handler(x: int) -> Any:
    try:
        return outermost(x)
    except ValueError as error:
        return error


def test_the_native_stack_shows_the_users_frames() -> None:
    def look(value: Any) -> Any:
        frames = inspect.stack()[2:]  # without this function and `native`
        return [
            (frame.function, frame.lineno, frame.filename) for frame in frames[:2]
        ], sys._getframe(2).f_locals

    _, state = step(look, outermost, 1)
    (seen, local_values) = state[-1]
    assert [entry[0] for entry in seen] == ["middle", "outermost"]
    assert [entry[1] for entry in seen] == [
        middle.__code__.co_firstlineno + 6,
        outermost.__code__.co_firstlineno + 2,
    ]
    assert local_values["cell"] == local_values["z"] == 2
    assert set(local_values) == {"cell", "z", "inner"}


def test_a_warning_is_attributed_to_the_users_caller() -> None:
    with pytest.warns(UserWarning, match="look here") as caught:
        step(lambda value: warnings.warn("look here", stacklevel=3), outermost, 1)
    assert caught[0].lineno == middle.__code__.co_firstlineno + 6


def test_cells_are_the_very_cells() -> None:
    def write(inner: Any) -> None:
        inner.__closure__[0].cell_contents = 50

    assert in_one_go(lambda inner: write(inner) or inner(), outermost, 1) == [2, (50, 2)]


def test_a_hidden_frame_is_not_seen() -> None:
    def look(value: Any) -> Any:
        return sys._getframe(2).f_code.co_name

    assert in_one_go(look, calls_hidden) == "calls_hidden"
    point, state = step(look, calls_hidden)
    assert [layout.raw.co_name for layout in point.frames][:2] == ["calls_hidden", "hidden_call"]
    assert state[-1] == "calls_hidden"


def calls_hidden() -> Any:
    return hidden_call(native)


def test_the_handled_exception_is_seen_and_left_again() -> None:
    assert repr(in_one_go(lambda value: sys.exc_info()[1], handling)) == "KeyError('handled')"
    step(lambda value: None, handling)
    assert sys.exc_info() == (None, None, None)


def raise_value_error(value: Any) -> None:
    raise ValueError("native")


def test_an_exception_raised_while_handling_has_its_context_and_the_users_traceback_only() -> None:
    with pytest.raises(ValueError, match="native") as caught:
        in_one_go(raise_value_error, handling)
    assert isinstance(caught.value.__context__, KeyError)
    names = [entry.name for entry in traceback.extract_tb(caught.value.__traceback__)]
    assert names[-3:] == ["handling", "native", "raise_value_error"]
    assert not [
        entry for entry in traceback.extract_tb(caught.tb) if entry.filename.startswith(OURS)
    ]
    assert sys.exc_info() == (None, None, None)


def test_an_exception_goes_to_the_handler_of_an_outer_frame() -> None:
    point, state = step(raise_value_error, with_handler, 1)
    assert [layout.raw.co_name for layout in point.frames] == ["with_handler"]
    (error,) = [value for value in state if isinstance(value, ValueError)]
    names = [entry.name for entry in traceback.extract_tb(error.__traceback__)]
    assert names == ["with_handler", "outermost", "middle", "native", "raise_value_error"]
    assert plain(point)(*state) is error


def test_drive_does_not_nest() -> None:
    site, state = broken(outermost, 1)
    depths: list[int] = []

    def dispatch(point: Any, values: list[Any]) -> Any:
        depths.append(len(inspect.stack()))
        return Goto(site, state) if len(depths) < 50 else "end"

    ACTION.append(lambda value: None)
    assert drive(site, list(state), dispatch) == "end"
    ACTION.pop()
    assert len(set(depths)) == 1


def test_a_crossing_takes_two_calls_of_ours_besides_the_native_frames() -> None:
    site, state = broken(outermost, 1)
    crossings, calls = 50, 0

    def dispatch(point: Any, values: list[Any]) -> Any:
        nonlocal crossings
        crossings -= 1
        return Goto(site, state) if crossings else "end"

    def seen(frame: Any, event: str, argument: Any) -> None:
        nonlocal calls
        calls += event == "call" and "stator_bytecode/_breaks" in frame.f_code.co_filename

    ACTION.append(lambda value: None)
    drive(site, list(state), dispatch)  # which makes the step
    crossings = 50
    before = sys.getprofile()
    sys.setprofile(seen)
    try:
        drive(site, list(state), dispatch)
    finally:
        sys.setprofile(before)
        ACTION.pop()
    # drive; step and its method; the state that is taken out of each Goto
    assert calls == 1 + 50 * 2 + 49


def test_every_instruction_is_stepped_or_has_a_reason() -> None:
    assert not set(shuffles) & set(NO_STEP)
    assert all(reason for reason in NO_STEP.values())
    assert set(NO_STEP) < set(EFFECTS)


def test_a_place_without_a_step_is_refused() -> None:
    def stop(machine: Machine, frame: Frame, instr: Any) -> None:
        raise Unsupported("test")

    domain = ConcreteDomain(
        make_machine=lambda domain: Machine(domain, {**DEFAULT, "RETURN_VALUE": stop})
    )
    outcome = domain.active.run(
        [domain.call(raise_value_error.__class__(returning.__code__, {}), (), {}).frame]
    )
    assert isinstance(outcome, Broke)
    point, _ = layout_of(outcome.snapshot, domain.generator_state, lambda state: state.globals)
    with pytest.raises(Unsupported, match="RETURN_VALUE"):
        Site(point)


def returning() -> int:
    return 1


def test_a_site_is_cheap_to_make() -> None:
    site, state = broken(outermost, 1)
    ACTION.append(lambda value: None)
    best = 1.0
    for _ in range(20):
        start = time.perf_counter()
        fresh = Site(site.point)
        fresh.step(*state)
        best = min(best, time.perf_counter() - start)
    ACTION.pop()
    # the aim is 1 ms, with two stubs and the step; the margin is for a busy machine
    assert best < 0.005


def counted() -> Iterator[int]:
    total = 0
    while True:
        total += yield total
        native(total)


def runs_generator() -> Any:
    generator = counted()
    next(generator)
    return [generator.send(3), generator.send(4)]


def test_a_step_inside_a_running_generator() -> None:
    seen: list[Any] = []
    assert in_one_go(seen.append, runs_generator) == [3, 7]
    assert seen == [3, 7]


def test_shapes_keep_what_the_instruction_leaves_alone() -> None:
    point = broken(outermost, 1)[0].point
    assert shapes_of(point.frames[-1].instruction).made[0] == 1
