"""Programs broken at every instruction in turn, and at all of them in sequence: everything must be
as without breaks.

A break here is one instruction run natively by a Site. What follows runs in the Machine
(`machine`), natively (`plain`), natively up to the end of the functions that were called (`rest`)
or of the innermost one (`innermost`), or is broken again at the very next instruction (`steps`).
"""

from __future__ import annotations

import gc
import importlib.util
import sys
import traceback
import warnings
from pathlib import Path
from types import FrameType, FunctionType, GeneratorType, SimpleNamespace
from typing import Any
from weakref import WeakKeyDictionary

import pytest
from stator_bytecode._breaks._innermost_frames import InnermostFrames
from stator_bytecode._breaks._plain import plain
from stator_bytecode._breaks._point import layout_of
from stator_bytecode._breaks._shuffle import NO_STEP
from stator_bytecode._breaks._site import Goto, Site, drive
from stator_bytecode._concrete._generators import resumable
from stator_bytecode._concrete._interpreter import ConcreteDomain
from stator_bytecode._handlers._all import DEFAULT
from stator_bytecode._machine._domain import Invoke, Raised, after
from stator_bytecode._machine._frame import Frame, GeneratorState, GeneratorStatus, Then
from stator_bytecode._machine._machine import Machine
from stator_bytecode._machine._outcome import Broke, Escaped, Returned
from stator_bytecode.errors import Unsupported

PATH = Path(__file__).parent / "programs" / "breaking.py"


def _load() -> Any:
    spec = importlib.util.spec_from_file_location("breaking_programs", PATH)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["breaking_programs"] = module
    with warnings.catch_warnings():
        # `return` in `finally`, since 3.14: programs under test do what programs do
        warnings.simplefilter("ignore", SyntaxWarning)
        spec.loader.exec_module(module)
    return module


programs = _load()


GENERATORS: WeakKeyDictionary[Any, GeneratorState] = WeakKeyDictionary()


class BreakingDomain(ConcreteDomain):
    """Runs Python methods of operators as frames, so that breaks meet every kind of waiting
    frame."""

    made_generators = False

    def __init__(self, make_machine: Any) -> None:
        super().__init__(
            interprets=lambda fn: fn.__name__ not in programs.NATIVE, make_machine=make_machine
        )

    def make_generator(self, state: GeneratorState) -> Any:
        generator = super().make_generator(state)
        GENERATORS[generator] = state
        self.made_generators = True
        return generator

    def frame_of(self, function: FunctionType, args: Any, kwargs: Any) -> Frame:
        frame = super().frame_of(function, args, kwargs)
        frame.hidden = function.__name__.startswith("hidden_")
        return frame

    def method_frame(self, value: Any, name: str, *args: Any) -> Frame | None:
        method = getattr(type(value), name, None)
        if type(method) is FunctionType and method.__module__ == programs.__name__:
            return self.frame_of(method, [value, *args], {})
        return None

    def truth(self, value: Any) -> Any:
        for name, kind in (("__bool__", "truth"), ("__len__", "length")):
            frame = self.method_frame(value, name)
            if frame is not None:
                return Invoke(frame, Then(kind))
        return super().truth(value)

    def get_iterator(self, value: Any) -> Any:
        frame = self.method_frame(value, "__iter__")
        return super().get_iterator(value) if frame is None else Invoke(frame, Then("iter"))

    def next_value(self, iterator: Any) -> Any:
        frame = self.method_frame(iterator, "__next__")
        return super().next_value(iterator) if frame is None else Invoke(frame, Then("next"))

    def contains(self, container: Any, item: Any, invert: bool) -> Any:
        frame = self.method_frame(container, "__contains__", item)
        if frame is None:
            return super().contains(container, item, invert)
        return after(after(Invoke(frame), self.truth), lambda truth: truth is not invert)

    def get_attribute(self, value: Any, name: str) -> Any:
        found = getattr(type(value), name, None)
        if (
            type(found) is property
            and type(found.fget) is FunctionType
            and type(value).__module__ == programs.__name__
        ):
            return Invoke(self.frame_of(found.fget, [value], {}))
        return super().get_attribute(value, name)

    def set_attribute(self, value: Any, name: str, new: Any) -> Any:
        found = getattr(type(value), name, None)
        if (
            type(found) is property
            and type(found.fset) is FunctionType
            and type(value).__module__ == programs.__name__
        ):
            return Invoke(self.frame_of(found.fset, [value, new], {}))
        return super().set_attribute(value, name, new)

    def binary(self, operator: str, left: Any, right: Any) -> Any:
        frame = self.method_frame(left, "__add__", right) if operator == "+" else None
        return (
            super().binary(operator, left, right) if frame is None else Invoke(frame, Then("value"))
        )

    def complete(self, then: Then, value: Any) -> Any:
        if then.kind == "instance":
            return super().complete(then, value)
        if then.kind == "truth":
            if type(value) is not bool:
                raise Raised(
                    TypeError(f"__bool__ should return bool, returned {type(value).__name__}")
                )
            return value
        if then.kind == "length":
            return bool(range(value)) if value >= 0 else self._negative_length()
        assert then.kind == "iter"
        if not hasattr(type(value), "__next__"):
            raise Raised(
                TypeError(f"iter() returned non-iterator of type '{type(value).__name__}'")
            )
        return value

    def _negative_length(self) -> bool:
        raise Raised(ValueError("__len__() should return >= 0"))


class Breaker:
    """Raises Unsupported at the `at`-th instruction of the outermost Machine that can be stepped
    natively."""

    def __init__(self, at: int, spared: frozenset[str] = frozenset()) -> None:
        self.at = at
        self.count = 0
        self.spared = spared | NO_STEP.keys()
        self.moved: list[GeneratorState] = []
        self.machine: Machine | None = None
        self.handlers = {
            op: handler if op in self.spared else self._counted(handler)
            for op, handler in DEFAULT.items()
        }
        self.domain = BreakingDomain(self._make_machine)

    def _make_machine(self, domain: ConcreteDomain) -> Machine:
        self.machine = Machine(domain, self.handlers)
        return self.machine

    def _counted(self, handler: Any) -> Any:
        def counted(machine: Machine, frame: Frame, instr: Any) -> Any:
            if machine is self.machine and not _is_inside_barrier(machine):
                self.count += 1
                if self.count == self.at and not self._runs_shared_generator():
                    raise Unsupported("test", instr.op)
            return handler(machine, frame, instr)

        return counted

    def virtual(self, value: Any) -> GeneratorState | None:
        """Generators that only frames refer to: no bound method, instance or cell."""
        state = self.domain.generator_state(value)
        if state is None or _is_shared(value):
            return None
        self.moved.append(state)
        return state

    def _runs_shared_generator(self) -> bool:
        """Whether a frame is a generator's whose object something else refers to, so that it cannot
        be state."""
        assert self.machine is not None
        running = {
            id(frame.generator) for frame in self.machine.frames if frame.generator is not None
        }
        return any(
            id(state) in running and _is_shared(found) for found, state in list(GENERATORS.items())
        )

    def make_generator(self, state: GeneratorState) -> Any:
        raw = state.frame.code.raw
        state.frame.function = SimpleNamespace(__name__=raw.co_name, __qualname__=raw.co_qualname)
        generator = self.domain.make_generator(state)
        if state.status is not GeneratorStatus.CREATED:
            resumable(generator)  # so that it is closed when it dies
        return generator


def _is_shared(generator: Any) -> bool:
    return any(
        type(referrer) not in (list, tuple, FrameType) and not _looks(referrer)
        for referrer in gc.get_referrers(generator)
    )


def _looks(referrer: Any) -> bool:
    """Whether it is a generator expression of `layout_of`, or of this test, that is just looking at
    the value."""
    return type(referrer) is GeneratorType and referrer.gi_code.co_filename in (
        __file__,
        layout_of.__code__.co_filename,
    )


def _is_inside_barrier(machine: Machine) -> bool:
    """Nothing of the concrete domain can be rolled back, so nothing may break where that would be
    needed."""
    if any(frame.names is not None for frame in machine.frames):
        return True
    return any(
        frame.parked is not None and frame.parked.coroutine is not None for frame in machine.frames
    )


def _place(outcome: Any, breaker: Breaker) -> tuple[Site, list[Any]]:
    point, values = layout_of(outcome.snapshot, breaker.virtual, lambda state: state.globals)
    assert len(point.parameters) == len(set(point.parameters)) == len(values) == point.count
    for state in (*breaker.moved, *(frame.generator for frame in outcome.snapshot.frames)):
        if state is not None:
            # the Point has taken it over: the object is to die in silence
            state.status = GeneratorStatus.CLOSED
    return Site(point), values


def _run(frames: list[Frame], breaker: Breaker) -> Any:
    """The outcome, or where it broke. A Machine is in a cycle with its domain, but objects are to
    die at once."""
    machine = breaker.machine
    assert machine is not None
    outcome = machine.run(frames)
    if isinstance(outcome, Broke):
        outcome.reason.__traceback__ = None
    native = isinstance(outcome, Broke) or (isinstance(outcome, Escaped) and breaker.at == 1)
    result = Goto(*_place(outcome, breaker)) if native else outcome
    machine.frames, machine.before, machine.outcome = [], None, None
    return result


def _start(program: Any, breaker: Breaker) -> Any:
    return _run([breaker.domain.call(program, [], {}).frame], breaker)


def _value(outcome: Any) -> Any:
    if isinstance(outcome, Escaped):
        raise outcome.exception
    assert isinstance(outcome, Returned), outcome
    return outcome.value


def _go_on_in_machine(
    point: Any, state: Any, at: int = 0, spared: frozenset[str] = frozenset()
) -> Any:
    """With `at` of 1 only leaving a frame is left to the Machine, and what that raises is raised
    natively."""
    breaker = Breaker(at, spared)
    frames = point.frames_from(state, breaker.make_generator)
    state.clear()
    result = _run(frames, breaker)
    return result if isinstance(result, Goto) else _value(result)


class Reached(Exception):
    """There is no such instruction."""


def break_once(program: Any, at: int, mode: str) -> Any:
    breaker = Breaker(at)
    found = _start(program, breaker)
    if breaker.count < at:
        raise Reached
    if not isinstance(found, Goto):
        return _value(found)
    programs.TRACES.append(
        BROKEN if _is_clean(found.state, breaker.domain) else "broken while an exception was alive"
    )
    return drive(found.site, found.state, DISPATCH[mode])


def _go_on_natively(point: Any, state: Any) -> Any:
    return plain(point).consume(state)


def _finish_called(point: Any, state: Any) -> Any:
    return _finish_from(1, point, state)


def _finish_innermost(point: Any, state: Any) -> Any:
    return _finish_from(len(point.frames) - 1, point, state)


def _finish_from(first: int, point: Any, state: Any) -> Any:
    """The outermost frame, and frames that cannot be finished on their own, go on natively."""
    rest = _rest(point, first)
    return (plain(point) if rest is None else rest).consume(state)


def _rest(point: Any, first: int) -> InnermostFrames | None:
    if not 0 < first < len(point.frames) or point.frames[first - 1].hidden:
        return None
    try:
        return InnermostFrames(point, first)
    except Unsupported:
        return None


DISPATCH = {
    "machine": _go_on_in_machine,
    "plain": _go_on_natively,
    "rest": _finish_called,
    "innermost": _finish_innermost,
}
BROKEN = "broken"


def _is_clean(state: list[Any], domain: BreakingDomain) -> bool:
    """Whether nothing is alive whose traceback has the Machine's frames, or lacks its own."""
    return not domain.made_generators and not any(
        isinstance(value, BaseException) for value in state
    )


def break_always(program: Any, spared: frozenset[str] = frozenset()) -> Any:
    found = _start(program, Breaker(1, spared))
    return drive(
        found.site, found.state, lambda point, state: _go_on_in_machine(point, state, 1, spared)
    )


CALLING = frozenset(
    {
        *(
            "CALL",
            "CALL_FUNCTION_EX",
            "FOR_ITER",
            "SEND",
            "BEFORE_WITH",
            "WITH_EXCEPT_START",
            "GET_ITER",
            "LOAD_ATTR",
        ),
        *(
            "LOAD_METHOD",
            "LOAD_SUPER_ATTR",
            "STORE_ATTR",
            "BINARY_OP",
            "CONTAINS_OP",
            "TO_BOOL",
            "UNARY_OP",
        ),
        *("POP_JUMP_IF_TRUE", "POP_JUMP_IF_FALSE", "JUMP_IF_TRUE_OR_POP", "JUMP_IF_FALSE_OR_POP"),
    }
)
"""What may run a frame. Left to the Machine, they take the breaks into the called frames."""


# observing


def observe(run: Any, *args: Any) -> dict[str, Any]:
    programs.LOG.clear()
    programs.TRACES.clear()
    seen: dict[str, Any] = {"error": None, "trace": None}
    try:
        seen["value"] = repr(run(*args))
    except Reached:
        raise
    except Exception as error:
        seen["error"] = _described(error)
        seen["trace"] = _entries(error)
    gc.collect()  # what the Machine's own cycles kept alive
    seen["log"] = repr(programs.LOG)
    seen["traces"] = programs.TRACES[:]
    seen["handled"] = sys.exc_info()
    return seen


def _described(error: BaseException | None) -> Any:
    if error is None:
        return None
    chain = _described(error.__cause__), _described(error.__context__), error.__suppress_context__
    return type(error), repr(error.args), chain


def _entries(error: BaseException) -> list[Any]:
    """What comes after the frames of the test."""
    found = traceback.extract_tb(error.__traceback__)
    while found and found[0].filename == __file__:
        del found[0]
    return [
        (entry.filename, entry.name, entry.lineno, entry.end_lineno, entry.colno) for entry in found
    ]


def _differences(expected: dict[str, Any], found: dict[str, Any], keys: str) -> dict[str, Any]:
    return {
        key: (expected.get(key), found.get(key))
        for key in keys.split()
        if expected.get(key) != found.get(key)
    }


@pytest.fixture(autouse=True)
def _quick_referrers() -> None:
    """What exists already refers to no generator of a program."""
    gc.collect()
    gc.freeze()


NAMES = sorted(programs.PROGRAMS)
LOOK_AT_FRAMES = {"frames_that_stand_for_c", "introspection"}
"""They ask for native frames, which the Machine has none of."""


@pytest.mark.parametrize("mode", DISPATCH)
@pytest.mark.parametrize("name", sorted(set(NAMES) - LOOK_AT_FRAMES))
def test_one_break_at_each_instruction_changes_nothing(name: str, mode: str) -> None:
    program = programs.PROGRAMS[name]
    expected = observe(program)
    for at in range(1, 5000):
        try:
            found = observe(break_once, program, at, mode)
        except Reached:
            assert at > 5
            return
        assert not _differences(expected, found, "value log error handled"), at
        if mode != "machine" and BROKEN in found["traces"]:
            before = found["traces"].index(BROKEN)
            assert found["traces"][before + 1 :] == expected["traces"][before:], at
            assert found["trace"] == expected["trace"], at


@pytest.mark.parametrize("name", NAMES)
def test_a_break_at_every_instruction_changes_nothing(name: str) -> None:
    program = programs.PROGRAMS[name]
    expected = observe(program)
    found = observe(break_always, program)
    assert not _differences(expected, found, "value log error trace traces handled")


@pytest.mark.parametrize("name", sorted(set(NAMES) - LOOK_AT_FRAMES))
def test_breaks_in_called_frames_change_nothing(name: str) -> None:
    program = programs.PROGRAMS[name]
    expected = observe(program)
    found = observe(break_always, program, CALLING)
    assert not _differences(expected, found, "value log error handled")
