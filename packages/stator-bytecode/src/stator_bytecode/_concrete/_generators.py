"""Generators of the concrete domain: real generator objects around a frame of the Machine.

Native code that iterates one runs `_drive`, which runs the frame in a nested Machine; interpreted
code finds the `GeneratorState` in the local variables of `_drive` and resumes the frame on its own
stack.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Generator, Sequence
from types import GeneratorType
from typing import Any, NoReturn, cast

from stator_bytecode._concrete._operations import ConcreteOperations, NamedArgs
from stator_bytecode._fields import exception_field, set_exception_field
from stator_bytecode._machine._domain import Result, Resume, operation
from stator_bytecode._machine._frame import NULL, Frame, GeneratorState, GeneratorStatus, Then
from stator_bytecode._machine._outcome import Broke, Escaped, Outcome, Returned, Yielded

# the `value` of a state whose driver is being primed; it has no other here, which would be a cycle
_PRIMING = object()
_NEXT, _CLOSE = Then("next"), Then("close")


class Generators(ConcreteOperations):
    def make_generator(self, state: GeneratorState) -> GeneratorType[Any, Any, Any]:
        generator = cast("GeneratorType[Any, Any, Any]", _drive(self, state))
        function, raw = state.frame.function, state.frame.code.raw
        if function is not None:
            generator.__name__, generator.__qualname__ = function.__name__, function.__qualname__
        else:  # a generator expression that was broken before it became a generator (3.15)
            generator.__name__, generator.__qualname__ = raw.co_name, raw.co_qualname
        return generator

    def generator_state(self, value: Any) -> GeneratorState | None:
        return state_of(value)

    def drop(self, value: Any, holders: list[Frame], kept: Any = None) -> None:
        """The objects are real, and die by themselves."""

    def abandon(self, ran: list[GeneratorState], released: list[Any], holders: list[Any]) -> None:
        """Do nothing: see `drop`."""

    def next_value(self, iterator: Any) -> Result:
        state = resumable(iterator) if type(iterator) is GeneratorType else None
        return next(iterator, NULL) if state is None else Resume(state, then=_NEXT)


def state_of(value: Any) -> GeneratorState | None:
    if (
        type(value) is not GeneratorType
        or value.gi_code is not _drive.__code__
        or value.gi_frame is None
    ):
        return None
    return cast(GeneratorState, value.gi_frame.f_locals["state"])


def resumable(value: GeneratorType[Any, Any, Any]) -> GeneratorState | None:
    """The state of a generator that the Machine is about to resume without its driver."""
    state = state_of(value)
    if state is not None and inspect.getgeneratorstate(value) == inspect.GEN_CREATED:
        state.value = _PRIMING
        next(value)
    return state


def call_generator_method(method: Any, args: Sequence[Any], kwargs: NamedArgs) -> Result:
    """Call `send`, `throw`, `close` or `__next__` of a generator; anything else, and odd arguments,
    natively."""
    if (state := resumable(method.__self__)) is not None and not kwargs:
        name, count = method.__name__, len(args)
        if name == "__next__" and not count:
            return Resume(state)
        if name == "send" and count == 1:
            return Resume(state, sent=args[0])
        if name == "throw" and count == 1 and (thrown := _exception(args[0])) is not None:
            return Resume(state, thrown=thrown)
        if name == "close" and not count:
            return Resume(state, thrown=GeneratorExit(), then=_CLOSE)
    return method(*args, **kwargs)


def call_next(args: list[Any]) -> Result:
    """Call `next(iterator)` or `next(iterator, default)`."""
    known = 1 <= len(args) <= 2 and type(args[0]) is GeneratorType
    state = resumable(args[0]) if known else None
    if state is None:
        return next(*args)
    return Resume(state) if len(args) == 1 else _next_or(state, args[1])


def generator_attribute(generator: GeneratorType[Any, Any, Any], name: str) -> Any:
    """Return a `gi_*` attribute of the generator's frame instead of its driver's, but for
    `gi_frame`."""
    if (state := state_of(generator)) is None or name not in _ATTRIBUTES:
        return getattr(generator, name)
    return _ATTRIBUTES[name](state)


def _delegate(state: GeneratorState) -> Any:
    frame = state.frame
    before = frame.code.instructions[max(frame.pc - 2, 0)]
    return (
        frame.stack[-max(before.arg, 1)]
        if state.status is GeneratorStatus.SUSPENDED and before.op == "SEND"
        else None
    )


_ATTRIBUTES: dict[str, Callable[[GeneratorState], Any]] = {
    "gi_code": lambda state: state.frame.code.raw,
    "gi_running": lambda state: state.status is GeneratorStatus.RUNNING,
    "gi_suspended": lambda state: state.status is GeneratorStatus.SUSPENDED,
    "gi_yieldfrom": _delegate,
}


@operation
def _next_or(state: GeneratorState, default: Any) -> Generator[Any, Any, Any]:
    value = yield Resume(state, then=_NEXT)
    return default if value is NULL else value


def _exception(value: Any) -> BaseException | None:
    made = value() if isinstance(value, type) and issubclass(value, BaseException) else value
    return made if isinstance(made, BaseException) else None


def _drive(domain: ConcreteOperations, state: GeneratorState) -> Generator[Any, Any, Any]:
    """Run the frame. Primed (brought to a yield) if the Machine resumes it first, to accept any
    value.

    The yield has its `try` here: a helper behind `yield from` would intercept what `close` throws.
    """
    request = None if state.value is _PRIMING else Resume(state)
    value = state.value = None
    while True:
        if request is not None:
            outcome = domain.run(request)
            request = None  # or it would keep alive what was thrown in
            if type(outcome) is not Yielded:
                return value_of(outcome)
            value = outcome.value
        try:
            request = Resume(state, sent=(yield value))
        except BaseException as thrown:  # whatever it is, the frame gets it
            request = Resume(state, thrown=thrown)


def value_of(outcome: Outcome | Yielded) -> Any:
    """Return the value of a run, or raise its exception."""
    if isinstance(outcome, Escaped):
        raise_kept(outcome.exception)
    if isinstance(outcome, Broke):
        raise outcome.reason
    assert isinstance(outcome, Returned)
    return outcome.value


def raise_kept(exception: BaseException) -> NoReturn:
    """Raise natively without a new `__context__`: the Machine has set it already."""
    context = exception_field(exception, "__context__")
    try:
        raise exception
    finally:
        set_exception_field(exception, "__context__", context)
        del exception, context
