"""Breaks, snapshots and continuations of the Machine, over the concrete domain."""

from __future__ import annotations

import gc
from collections.abc import Callable, Generator
from typing import Any

import pytest
from stator_bytecode import (
    DEFAULT,
    NULL,
    Broke,
    ConcreteDomain,
    Domain,
    Escaped,
    Frame,
    Instruction,
    Machine,
    Pending,
    Returned,
    Then,
    Unsupported,
    after,
    check_frame,
    interpret,
    is_suspended,
    new_frame,
    operation,
    restore_frames,
    settle,
)
from stator_bytecode._concrete._generators import value_of
from stator_bytecode.conformance_program import (
    closures,
    contexts,
    handles,
    loops,
    matches,
    unpacks,
    withs,
)


def stop() -> str:
    return "native"


class Stopping(ConcreteDomain):
    """A call of `stop` cannot be captured."""

    def call(self, function: Any, args: Any, kwargs: Any) -> Any:
        if function is stop:
            raise Unsupported("stopped", "stop() was called")
        return super().call(function, args, kwargs)


def frame_of(fn: Callable[..., Any], *args: Any) -> Frame:
    return ConcreteDomain().frame_of(fn, args, {})  # type: ignore[arg-type]


def run(domain: ConcreteDomain, fn: Callable[..., Any], *args: Any) -> Any:
    return domain.run([frame_of(fn, *args)])


def stopping_after(count: int) -> Callable[[ConcreteDomain], Machine]:
    """A Machine that breaks once, before its instruction number `count`."""
    left = [count]

    def stopped(handler: Any) -> Any:
        def run_or_stop(machine: Machine, frame: Frame, instr: Instruction) -> int | None:
            assert check_frame(frame) == []
            left[0] -= 1
            if left[0] == 0:
                raise Unsupported("stopped")
            return handler(machine, frame, instr)  # type: ignore[no-any-return]

        return run_or_stop

    return lambda domain: Machine(domain, {op: stopped(handler) for op, handler in DEFAULT.items()})


def echoes(n: int) -> Any:
    last = None
    for i in range(n):
        try:
            last = yield i, last
        except ValueError:
            last = "thrown"
    return last


def delegates(n: int) -> Any:
    yield (yield from echoes(n))


def resumes(n: int) -> Any:
    """Nothing is thrown through a `yield from`: a break in that rolls back effects that the
    concrete domain keeps."""
    outer, inner = delegates(n), echoes(n)
    seen = [next(outer), outer.send("sent"), next(inner), inner.throw(ValueError)]
    for value in outer:
        seen += [value]
    for value in inner:
        seen += [value]
    return seen, next(inner, "done")


@pytest.mark.parametrize(
    "program", [loops, closures, unpacks, handles, contexts, withs, resumes, matches]
)
def test_a_whole_stack_saved_anywhere_goes_on_to_the_same_end(
    program: Callable[[int], Any],
) -> None:
    expected = program(3)
    for count in range(1, 10_000):
        outcome = run(ConcreteDomain(make_machine=stopping_after(count)), program, 3)
        if isinstance(outcome, Returned):
            break
        assert isinstance(outcome, Broke)
        assert value_of(ConcreteDomain().run(restore_frames(outcome.snapshot))) == expected
    assert count > 30


def test_break_names_the_users_line_and_keeps_the_operands() -> None:
    def inner(x: int) -> Any:
        return [x, stop()]

    def outer(x: int) -> Any:
        return [inner(x)]

    outcome = run(Stopping(), outer, 5)
    assert isinstance(outcome, Broke)
    assert [state.code.raw.co_name for state in outcome.snapshot.frames] == ["outer", "inner"]
    assert outcome.reason.where.line == inner.__code__.co_firstlineno + 1
    innermost = outcome.snapshot.frames[-1]
    assert innermost.code.instructions[innermost.pc].op == "CALL"
    assert stop in innermost.stack
    assert outcome.snapshot.frames[0].then is not None
    assert outcome.snapshot.frames[0].then.kind == "value"


class Barriers(Stopping):
    """`twice(f)` is an operation that calls back."""

    def call(self, function: Any, args: Any, kwargs: Any) -> Any:
        return (
            self.call_twice(args[0]) if function is twice else super().call(function, args, kwargs)
        )

    @operation
    def call_twice(self, function: Any) -> Any:
        first = yield self.call(function, [], {})
        second = yield self.call(function, [], {})
        return first, second


def twice(function: Callable[[], Any]) -> Any:
    return function(), function()


def test_break_behind_a_barrier_rolls_back_to_the_call_and_its_generators() -> None:
    def numbers() -> Any:
        yield 1
        yield 2
        yield stop()

    def body() -> Any:
        it = numbers()
        first = next(it)
        return first, twice(lambda: next(it))

    outcome = run(Barriers(), body)
    assert isinstance(outcome, Broke)
    (state,) = outcome.snapshot.frames
    assert state.code.instructions[state.pc].op == "CALL"
    assert twice in state.stack
    assert value_of(ConcreteDomain().run(restore_frames(outcome.snapshot))) == (1, (2, "native"))


def test_pending_operation_completes_with_its_results() -> None:
    assert value_of(run(Barriers(), lambda: twice(lambda: 7))) == (7, 7)


def test_exception_that_leaves_is_saved_at_the_instruction_that_raised_it() -> None:
    def inner(x: int) -> Any:
        return 1 / x

    def outer(x: int) -> Any:
        return inner(x)

    outcome = run(ConcreteDomain(), outer, 0)
    assert isinstance(outcome, Escaped)
    assert type(outcome.exception) is ZeroDivisionError
    innermost = outcome.snapshot.frames[-1]
    assert innermost.code.raw.co_name == "inner"
    assert innermost.code.instructions[innermost.pc].op == "BINARY_OP"
    assert list(innermost.stack) == [1, 0]


def test_exception_raised_again_is_saved_where_it_was_raised_last() -> None:
    def body() -> None:
        try:
            raise KeyError(1)
        finally:
            str(1)

    outcome = run(ConcreteDomain(), body)
    assert isinstance(outcome, Escaped)
    innermost = outcome.snapshot.frames[-1]
    assert innermost.code.instructions[innermost.pc].op == "RERAISE"


def test_caught_exceptions_take_no_snapshot(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_snapshot(machine: Machine) -> Any:
        raise AssertionError("a snapshot was taken")

    gc.collect()  # generators of other tests, which end while they are collected, take one
    monkeypatch.setattr(Machine, "save", no_snapshot)
    assert interpret(handles, 4) == handles(4)


class Inlining(ConcreteDomain):
    """`__bool__`, `__contains__` and `__add__` of Python classes run as frames."""

    def truth(self, value: Any) -> Any:
        method = getattr(type(value), "__bool__", None)
        return (
            self._then(method, "truth", value)
            if type(method) is type(stop)
            else super().truth(value)
        )

    def contains(self, container: Any, item: Any, invert: bool) -> Any:
        method = type(container).__contains__
        if type(method) is not type(stop):
            return super().contains(container, item, invert)
        return after(
            after(self.call(method, [container, item], {}), self.truth),
            lambda truth: truth is not invert,
        )

    def _then(self, method: Any, kind: str, *args: Any) -> Any:
        invoke = self.call(method, list(args), {})
        return type(invoke)(invoke.frame, Then(kind))

    def complete(self, then: Then, value: Any) -> Any:
        if then.kind == "truth":
            if not isinstance(value, bool):
                raise TypeError(f"__bool__ should return bool, returned {type(value).__name__}")
            return value
        return super().complete(then, value)


class Odd:
    def __init__(self, n: int) -> None:
        self.n = n

    def __bool__(self) -> bool:
        return self.n % 2 == 1

    def __contains__(self, item: int) -> Any:
        return Odd(item + self.n)


def asks(n: int) -> Any:
    odd, even = Odd(n), Odd(n + 1)
    branch = "odd" if odd else "even"
    return (
        branch,
        not even,
        odd and 1,
        even or 2,
        n in odd,
        n not in odd,
        n + 1 in odd,
        [n for n in (1, 2) if Odd(n)],
    )


def test_truth_of_a_frames_result_completes_every_branch() -> None:
    assert value_of(run(Inlining(), asks, 3)) == asks(3)


def test_continuation_completes_what_a_frame_was_asked_for() -> None:
    for count in range(1, 1000):
        outcome = run(Inlining(make_machine=stopping_after(count)), asks, 3)
        if isinstance(outcome, Returned):
            break
        assert value_of(Inlining().run(restore_frames(outcome.snapshot))) == asks(3)
    assert count > 30


class StopsAtSecondTruth(Inlining):
    def complete(self, then: Then, value: Any) -> Any:
        if then.kind == "truth":
            raise Unsupported("stopped")
        return super().complete(then, value)


def test_completion_that_cannot_be_captured_runs_its_instruction_again() -> None:
    outcome = run(StopsAtSecondTruth(), asks, 3)
    assert isinstance(outcome, Broke)
    (state,) = outcome.snapshot.frames
    assert type(state.stack[-1]) is Odd
    assert value_of(ConcreteDomain().run(restore_frames(outcome.snapshot))) == asks(3)


def test_completion_of_a_continued_frame_lets_its_callee_return_again() -> None:
    def until_inside(count: int) -> Any:
        return run(Inlining(make_machine=stopping_after(count)), asks, 3)

    inside = next(
        o
        for o in map(until_inside, range(1, 200))
        if len(o.snapshot.frames) == 2 and o.snapshot.frames[0].then.kind == "truth"
    )
    outcome = StopsAtSecondTruth().run(restore_frames(inside.snapshot))
    assert isinstance(outcome, Broke)
    outer, callee = outcome.snapshot.frames
    assert outer.then == inside.snapshot.frames[0].then
    assert callee.code.instructions[callee.pc].op == "RETURN_VALUE"
    assert value_of(Inlining().run(restore_frames(outcome.snapshot))) == asks(3)


class AsksAgain(Inlining):
    """What `__bool__` gave is asked for its truth by an operation that runs a frame."""

    def __init__(self, asked: Callable[[], Any]) -> None:
        super().__init__()
        self.asked = asked

    def call(self, function: Any, args: Any, kwargs: Any) -> Any:
        if function is stop:
            raise Unsupported("stopped")
        return super().call(function, args, kwargs)

    def complete(self, then: Then, value: Any) -> Any:
        return self.ask(value) if then.kind == "truth" else super().complete(then, value)

    @operation
    def ask(self, value: bool) -> Any:
        yield self.call(self.asked, [], {})
        yield self.call(self.asked, [], {})
        return value


def test_barrier_in_the_completion_of_a_continued_frame_lets_its_callee_return_again() -> None:
    def until_inside(count: int) -> Any:
        return run(Inlining(make_machine=stopping_after(count)), asks, 3)

    inside = next(
        o
        for o in map(until_inside, range(1, 200))
        if len(o.snapshot.frames) == 2 and o.snapshot.frames[0].then.kind == "truth"
    )
    calls: list[int] = []

    def stops_at_the_second_call() -> None:
        calls.append(1)
        if len(calls) == 2:
            stop()

    outcome = AsksAgain(stops_at_the_second_call).run(restore_frames(inside.snapshot))
    assert isinstance(outcome, Broke)
    _, callee = outcome.snapshot.frames
    assert callee.code.instructions[callee.pc].op == "RETURN_VALUE"
    assert value_of(Inlining().run(restore_frames(outcome.snapshot))) == asks(3)


def test_refused_instruction_breaks_only_where_it_is_reached() -> None:
    namespace: dict[str, Any] = {}
    exec(
        "async def outer(flag):\n    if flag:\n        return 1\n    async with flag: pass",
        namespace,
    )
    frame = new_frame(namespace["outer"].__code__, [True], (), namespace, {})
    while frame.code.instructions[frame.pc].op != "LOAD_FAST":
        frame.pc += 1
    assert value_of(ConcreteDomain().run([frame])) == 1


def test_running_generator_refuses_to_be_entered() -> None:
    def body() -> Any:
        def again() -> Any:
            yield next(generator)

        generator = again()
        return next(generator)

    with pytest.raises(ValueError, match="generator already executing"):
        interpret(body)


def test_deep_delegation_does_not_recurse() -> None:
    def nest(n: int) -> Any:
        if n:
            yield from nest(n - 1)
        else:
            got = yield "deep"
            yield got

    def body() -> Any:
        generator = nest(2000)
        return next(generator), generator.send("in"), next(generator, "done")

    assert interpret(body) == ("deep", "in", "done")


def test_generator_made_by_the_machine_runs_natively_too() -> None:
    def make() -> Any:
        def count(n: int) -> Any:
            try:
                for i in range(n):
                    yield i * 1
            finally:
                log.append("closed")

        return count(3)

    log: list[str] = []
    generator = interpret(make)
    assert generator.__name__ == "count"
    assert next(generator) == 0
    generator.close()
    assert log == ["closed"]
    assert [*interpret(make)] == [0, 1, 2]


def test_machine_goes_on_in_a_generator_that_native_code_began() -> None:
    def make() -> Any:
        return (i * i for i in range(4))

    def rest(generator: Any) -> Any:
        return [*generator]

    generator = interpret(make)
    assert next(generator) == 0
    assert interpret(lambda: (next(generator), rest(generator))) == (1, [4, 9])


def test_depth_limit_is_a_recursion_error_of_the_program() -> None:
    def forever() -> Any:
        return forever()

    with pytest.raises(RecursionError):
        interpret(forever)


def test_fault_of_the_machine_is_not_an_exception_of_the_program() -> None:
    def faulty(machine: Machine, frame: Frame, instr: Instruction) -> None:
        machine.finish(None, instr, 1)  # type: ignore[arg-type]

    def body() -> Any:
        try:
            return [1][0]
        except AttributeError:
            return "caught"

    def make(domain: ConcreteDomain) -> Machine:
        return Machine(domain, DEFAULT.overridden_by({"BINARY_SUBSCR": faulty}))

    with pytest.raises(AttributeError):
        run(ConcreteDomain(make_machine=make), body)


def test_what_comes_after_an_operation_is_done_at_once_where_its_value_is_there() -> None:
    assert after(20, lambda value: value + 1) == 21
    later = after(Pending(iter_of(20)), lambda value: value + 1)
    assert is_suspended(later)
    with pytest.raises(StopIteration, match="21"):
        next(settle(later))


def iter_of(value: int) -> Generator[Any, Any, int]:
    return value
    yield


def test_outcomes_and_frames_are_shown_on_one_line() -> None:
    def breaking(values: list[int]) -> Any:
        return [stop() for _ in values]

    outcome = run(Stopping(), breaking, [*range(1000)])
    assert isinstance(outcome, Broke)
    for shown in (repr(outcome), repr(outcome.snapshot), repr(outcome.snapshot.frames[-1])):
        assert "breaking" in shown
        assert "\n" not in shown
        assert len(shown) < 600
    escaped = run(Stopping(), lambda values: values[0], [])
    assert isinstance(escaped, Escaped)
    assert "\n" not in repr(escaped)
    assert len(repr(escaped)) < 300


def test_every_operation_of_a_domain_is_documented() -> None:
    operations = [value for name, value in vars(Domain).items() if not name.startswith("_")]
    assert len(operations) > 80
    assert all(operation.__doc__ for operation in operations)


def test_faults_of_a_frame_are_described() -> None:
    def fn(x: int) -> Callable[[], int]:
        return lambda: x

    def frame(inner: bool = False) -> Frame:
        invoked: Any = ConcreteDomain().call(fn(1) if inner else fn, () if inner else (1,), {})
        return invoked.frame  # type: ignore[no-any-return]

    outside, slots, stack, free = frame(), frame(), frame(), frame(inner=True)
    outside.pc = 1000
    slots.slots.append(NULL)
    stack.pc = next(at.index for at in stack.code.instructions if at.op == "RETURN_VALUE")
    free.slots[-1] = NULL
    assert check_frame(outside) == ["pc 1000 is outside the code"]
    assert "slots for" in check_frame(slots)[0]
    assert check_frame(stack) == [
        f"RETURN_VALUE at {stack.pc} expects a stack of 1, not of 0",
        f"RETURN_VALUE at {stack.pc} needs 1 operands",
    ]
    assert check_frame(free) == ["a free variable without its cell"]


def test_handler_that_finds_no_exception_state_is_described() -> None:
    def fn() -> None:
        try:
            closures(1)
        except ValueError:
            handles(1)

    invoked: Any = ConcreteDomain().call(fn, (), {})
    frame: Frame = invoked.frame
    frame.pc = next(at.index for at in frame.code.instructions if at.op == "POP_EXCEPT")
    assert f"POP_EXCEPT at {frame.pc} finds no exception state" in check_frame(frame)


def test_null_is_no_value() -> None:
    assert repr(NULL) == "NULL"
    with pytest.raises(TypeError, match="test `is NULL`"):
        bool(NULL)
