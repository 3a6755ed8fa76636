"""Handlers of the methods of generators."""

import types
from typing import Any

from stator_bytecode import GeneratorStatus, HandlerTable, Resume, Then, operation, settle

from stator_variables import _kinds as k
from stator_variables._builtin._arity import Args, Kwargs
from stator_variables._model import _exceptions
from stator_variables._model._raising import attempt, new_exception, throw
from stator_variables._tracing import Tracing
from stator_variables._tracker import MISSING

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
@operation
def generator_throw(t: Tracing, args: Args, kwargs: Kwargs) -> Any:
    state = _state_of(t, args[0])
    thrown = yield from settle(_exceptions.exception_from(t, args[1] if len(args) == 2 else args[2], None))
    return (yield Resume(state, None, thrown))


@handlers.handles(types.GeneratorType.close)
@operation
def generator_close(t: Tracing, args: Args, kwargs: Kwargs) -> Any:
    state = _state_of(t, args[0])
    if state.status is GeneratorStatus.CLOSED:
        return k.NONE
    closing = new_exception(GeneratorExit, [])
    ended = yield from attempt(GeneratorExit | StopIteration, MISSING, Resume, state, None, closing, Then("value"))
    if ended is not MISSING:
        throw(RuntimeError, "generator ignored GeneratorExit")
    return k.NONE
