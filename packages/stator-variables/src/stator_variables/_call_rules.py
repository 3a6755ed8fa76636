"""Rules for calls of existing Python functions: the first that applies replaces interpretation.

The handler of a capture stands in the table by the function, or by its code, where functions are
made anew with equal code: such a handler gets the function as its first argument.
"""

import types
from collections.abc import Callable, Sequence
from typing import Any

import attrs
import stator_guards as guards
from stator_bytecode import Result, Unsupported
from torch.fx import GraphModule
from torch.nn import Module

from stator_variables._applevel import _native_function
from stator_variables._handler_keys import (
    BY_NAME,
    GENERATED_FORWARD,
    MARKED_BY_TORCH,
    REQUESTED_BREAK,
)
from stator_variables._objects import _inlining, _new_values
from stator_variables._objects._arity import signature_arity
from stator_variables._objects._late_name import late_name
from stator_variables._objects._method_table import app_level
from stator_variables._objects._tuple import TupleTracker
from stator_variables._protocols import _calls
from stator_variables._space import Space
from stator_variables._tensors import (
    _override,
    _subclasses,
    _torch_calls,
)
from stator_variables._tensors._recorded_functions import is_recorded
from stator_variables._trace._capture_state import Notes
from stator_variables._trace._overrides import Overrides
from stator_variables._tracker import MISSING, Args, Kwargs, VariableTracker, source_of
from stator_variables._trackers import FunctionTracker

CallRule = Callable[[Space, Any, Sequence[Any], dict[str, Any]], Any]
"""A function from a call to its result; MISSING if the rule does not apply."""


def call_by_rule(t: Space, function: VariableTracker, args: Args, kwargs: Kwargs) -> Result:
    """Apply the first rule that fits; MISSING where the function is to be interpreted."""
    for rule in RULES:
        if (found := rule(t, function, args, kwargs)) is not MISSING:
            return found
    return MISSING


def _requested_break(t: Space, function: VariableTracker, args: Args, kwargs: Kwargs) -> Any:
    """Break at a call of `graph_break` and its like, and at functions that are kept out of
    graphs."""
    if not _inlining.is_graph_break(function.real):
        _inlining.refuse_disallowed(t, function.real)
        return MISSING
    handler = t.handlers.get(REQUESTED_BREAK)
    if handler is not None and (result := handler(t, list(args), kwargs)) is not MISSING:
        return result
    messages = [str(vt.constant()) for vt in (*args, *kwargs.values())]
    hint = "remove the call to keep one graph"
    if _inlining.skips_frame(function.real):
        detail = ": ".join(["a call of skip_frame()", *messages])
        raise t.unsupported("skipped-frame", detail, hint)
    detail = ": ".join(["a call of graph_break()", *messages])
    raise t.unsupported("graph-break", detail, hint)


def _native_frame(t: Space, function: Any, args: Args, kwargs: Kwargs) -> Result:
    """Call, in the place of a function that runs natively, one whose callees are compiled."""
    callees = t.policy.callees
    if callees is None:
        return MISSING
    is_native = _inlining.is_native_frame(function.real, callees.skipped)
    if not is_native and not _is_call_with_hooks(function.real, args):
        return MISSING
    compiled = callees.with_compiled(function.real)
    if function.source is None or not isinstance(compiled, types.FunctionType):
        return MISSING
    native = t.wrap(compiled, guards.CallSource(callees.with_compiled, function.source))
    given = [native, TupleTracker(list(args)), _new_values.new_dict(kwargs)]
    return app_level(t, _native_function.call_natively, given)


def _is_call_with_hooks(function: Any, args: Args) -> bool:
    """Return True for the call of an existing module whose hooks run natively. What runs is right
    without them, too, so that no guard is about them."""
    if function is not Module._call_impl or not args:
        return False
    real = args[0].real
    return real is not MISSING and _inlining.has_native_hooks(real)


def _substituted(t: Space, function: VariableTracker, args: Args, kwargs: Kwargs) -> Any:
    if _inlining.substitute_of(function.real) is None:
        return MISSING
    _rely_on_identity(t, function)
    return _calls.call_substitute(t, function.real, args, kwargs)


def _by_handler(t: Space, function: VariableTracker, args: Args, kwargs: Kwargs) -> Result:
    handler = t.handlers.get(function.real) or t.handlers.get(late_name(function.real))
    if handler is None or not _accepts(function.real, args, kwargs):
        return MISSING
    found = handler(t, list(args), kwargs)
    return found if found is MISSING else _calls.given(found)


def _accepts(function: types.FunctionType, args: Args, kwargs: Kwargs) -> bool:
    """Return False where interpreting the function is to raise its TypeError."""
    return signature_arity(function).accepts(args, kwargs)


def _generated(t: Space, function: VariableTracker, args: Args, kwargs: Kwargs) -> Any:
    """Call the code of a graph as its handler has it, if that is another one."""
    if function.real.__name__ != "forward" or not args:
        return MISSING
    cls, handler = args[0].cls, t.handlers.get(GENERATED_FORWARD)
    is_generated = issubclass(cls, GraphModule) and cls.forward is function.real
    return handler(t, list(args), kwargs) if is_generated and handler else MISSING


def _by_subclass(t: Space, function: VariableTracker, args: Args, kwargs: Kwargs) -> Any:
    return _subclasses.call(t, function.real, args, kwargs)


def _recorded(t: Space, function: VariableTracker, args: Args, kwargs: Kwargs) -> Any:
    """Record a function of torch as one operator."""
    if not is_recorded(function.real):
        return MISSING
    given = (*args, *kwargs.values())
    if t.state(Overrides).modes or (t.state(Overrides).subclasses and _override.among(given)):
        return MISSING
    if not all(map(_torch_calls.is_operand, given)):
        return MISSING

    try:
        return _torch_calls.call_recorded(t, function.real, list(args), kwargs)
    except Unsupported as refusal:
        # A part of the function decides on data: only that part is to be a break.
        if refusal.reason not in _ON_DATA:
            raise
        return MISSING


_ON_DATA = ("data-dependent-output", "data-dependent-shape", "data-dependent-guard")


def _marked_by_torch(t: Space, function: VariableTracker, args: Args, kwargs: Kwargs) -> Result:
    if not _inlining.has_mark(function.real, _inlining.NONSTRICT, _inlining.LEAF):
        return MISSING
    handler = t.handlers.get(MARKED_BY_TORCH)
    if handler is None:
        raise t.unsupported("builtin", f"a call of {MARKED_BY_TORCH}")
    _rely_on_identity(t, function)
    return handler(t, [function, *args], kwargs)


def _allowed_in_graph(t: Space, function: VariableTracker, args: Args, kwargs: Kwargs) -> Result:
    if not _inlining.is_allowed_in_graph(function.real):
        return MISSING
    _rely_on_identity(t, function)
    return _torch_calls.record(t, function.real, list(args), kwargs)


def _rely_on_identity(t: Space, function: VariableTracker) -> None:
    """Guard that a function is this object: it is not interpreted, so another one with equal code
    may have other values in its cells and defaults."""
    t.guard(source_of(function), guards.Is(function.real))


@attrs.define(eq=False)
class Assumptions(Notes):
    """The results that the program has declared to hold for all calls."""

    are_made: bool = False

    def bound_to_process(self) -> str:
        text = "it calls a function whose result is assumed to be constant"
        return text if self.are_made else ""


def _assumed_constant(t: Space, function: VariableTracker, args: Args, kwargs: Kwargs) -> Any:
    """Call what the user marked as constant, on what is known of the arguments, and keep the
    result."""
    real = function.real
    if not _inlining.is_assumed_constant(real):
        return MISSING
    _rely_on_identity(t, function)
    values = [_known(t, arg) for arg in args]
    named = {name: _known(t, arg) for name, arg in kwargs.items()}
    t.state(Assumptions).are_made = True
    result = real(*values, **named)
    return t.wrap(result, guards.CapturedSource(f"result of {real.__name__}", result))


def _known(t: Space, vt: VariableTracker) -> Any:
    if (constant := vt.constant()) is MISSING and vt.real is MISSING:
        raise t.unsupported(
            "assumed-constant", "an argument of a function marked constant that is not known yet"
        )
    return vt.real if constant is MISSING else constant


def _by_code(t: Space, function: FunctionTracker, args: Args, kwargs: Kwargs) -> Result:
    handler = t.handlers.get(function.code)
    return MISSING if handler is None else handler(t, [function, *args], kwargs)


def _by_name(t: Space, function: VariableTracker, args: Args, kwargs: Kwargs) -> Any:
    handler = t.handlers.get(BY_NAME)
    return MISSING if handler is None else handler(t, [function, *args], kwargs)


RULES: tuple[CallRule, ...] = (
    _requested_break,
    _native_frame,
    _substituted,
    _by_handler,
    _generated,
    _by_subclass,
    _recorded,
    _marked_by_torch,
    _allowed_in_graph,
    _assumed_constant,
    _by_code,
    _by_name,
)
