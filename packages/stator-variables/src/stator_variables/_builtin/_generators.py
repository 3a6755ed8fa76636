"""Handlers of the methods of generators."""

from __future__ import annotations

import types
from typing import Any

from stator_bytecode import HandlerTable, Raised, Resume, Then, operation, settle

from stator_variables import _kinds as k
from stator_variables._model._raising import new_exception, throw
from stator_variables._tracing import Tracing

Args = list[Any]
Kwargs = dict[str, Any]
handlers: HandlerTable[Any, Any] = HandlerTable("builtin")


def _state_of(t: Tracing, vt: Any) -> Any:
    """The state of a generator that was made while tracing; one that existed before has a native frame."""
    if not isinstance(vt, k.GeneratorTracker):
        raise t.unsupported("foreign-iterator", f"a step of an existing {vt.cls.__name__}")
    return vt.state


@handlers.handles(types.GeneratorType.send)
def generator_send(t: Tracing, args: Args, kwargs: Kwargs) -> Any:
    return Resume(_state_of(t, args[0]), args[1])


@handlers.handles(types.GeneratorType.throw)
def generator_throw(t: Tracing, args: Args, kwargs: Kwargs) -> Any:
    _state_of(t, args[0])
    return _throw_into(t, args[0], args[1] if len(args) == 2 else args[2])


@operation
def _throw_into(t: Tracing, generator: Any, value: Any) -> Any:
    from stator_variables._model import _exceptions

    thrown = yield from settle(_exceptions.exception_from(t, value, None))
    return (yield Resume(generator.state, None, thrown))


@handlers.handles(types.GeneratorType.close)
def generator_close(t: Tracing, args: Args, kwargs: Kwargs) -> Any:
    _state_of(t, args[0])
    return _close(t, args[0])


@operation
def _close(t: Tracing, generator: Any) -> Any:
    from stator_bytecode import GeneratorStatus

    status = generator.state.status
    if status is GeneratorStatus.CLOSED:
        return k.NONE
    try:
        yield Resume(generator.state, None, new_exception(GeneratorExit, []), Then("value"))
    except Raised as raised:
        if not issubclass(raised.value.cls, GeneratorExit | StopIteration):
            raise
        return k.NONE
    throw(RuntimeError, "generator ignored GeneratorExit")
