"""`warnings.warn`: an effect of the call, which the entry has after its graph.

    warnings.warn("old", stacklevel=1)   warn_at("old", UserWarning, "model.py", 7, model_globals)
    warnings.warn("old", stacklevel=2)   warn("old", UserWarning, 2)  # of the function's caller

It may be deferred where only a reader of the output can observe it. A
guard keeps out calls in which a
filter turns warnings of the category into exceptions, or the program has its own `showwarning`:
these break at the call, which runs natively.
"""

from __future__ import annotations

import types
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import attrs
from stator_bytecode import Frame
from stator_guards import CallSource, CapturedSource, Truth

from stator_variables._emitter import Emitter
from stator_variables._runtime._support import give_warning_at
from stator_variables._space import Space
from stator_variables._trace._capture_state import CaptureState
from stator_variables._trace._repeated_bodies import is_repeated
from stator_variables._tracker import MISSING, Args, FunctionTable, Kwargs, VariableTracker, is_a
from stator_variables._trackers import NONE, ClassTracker, ConstantTracker, NewClassTracker, is_none

handlers = FunctionTable("warning")


@attrs.define(eq=False)
class Warnings(CaptureState):
    """The warnings that the entry gives."""

    given: tuple[GivenWarning, ...] = ()

    def emit(self, e: Emitter) -> None:
        for warning in self.given:
            give, category = e.capture(warning.give), e.capture(warning.category)
            e.lines.append(f"{give}({warning.text!r}, {category}, {e.listed(warning.place)})")


@attrs.frozen(eq=False)
class GivenWarning:
    """One warning: `give(text, category, *place)`."""

    give: Callable[..., object]
    text: str
    category: type[Warning]
    place: Sequence[VariableTracker]


_NAMES = ("message", "category", "stacklevel", "source")
_MODULE: Any = warnings


@handlers.handles(warnings.warn)
def warn(t: Space, args: Args, kwargs: Kwargs) -> Any:
    given = dict(zip(_NAMES, args, strict=False)) | kwargs
    text = given["message"].constant()
    category = _category(given.get("category", NONE))
    level = given.get("stacklevel", ConstantTracker(1)).constant()
    is_plain = type(text) is str and type(level) is int and is_none(given.get("source", NONE))
    if not is_plain or category is MISSING or not given.keys() <= set(_NAMES):
        return MISSING
    if is_repeated(t) or not is_only_shown(category):
        return MISSING

    t.guard(CallSource(is_only_shown, CapturedSource("category", category)), Truth(True))
    _refuse_reading(t)
    visible = [frame for frame in t.machine.frames if not frame.hidden]
    level = max(level, 1)
    outer = level - len(visible)
    give: Any = warnings.warn
    if outer > 0:
        place = [ConstantTracker(outer + 1)]
    else:
        give, place = give_warning_at, _place(t, visible[-level])

    warnings_given = t.state(Warnings)
    warning = GivenWarning(give, text, category, place)
    t.journal.assign(warnings_given, given=(*warnings_given.given, warning))
    return NONE


def _category(vt: Any) -> Any:
    """The class; MISSING for what natively may raise, or exists in this call only."""
    if is_none(vt):
        return UserWarning
    is_known = is_a(vt, ClassTracker) and not is_a(vt, NewClassTracker)
    return vt.value if is_known and issubclass(vt.value, Warning) else MISSING


def _place(t: Space, frame: Frame) -> list[Any]:
    span = t.where() if frame is t.frame else frame.code.span(frame.pc)
    return [ConstantTracker(span.filename), ConstantTracker(span.line or 1), frame.globals]


def is_only_shown(category: type[Warning]) -> bool:
    """Return True if all that comes of a warning is some output, or an item of a list of
    `catch_warnings`."""
    show = _MODULE._showwarnmsg_impl
    is_usual = getattr(show, "__globals__", None) is vars(warnings) or _is_recorder(show)
    return (
        is_usual
        and _MODULE.showwarning is _MODULE._showwarning_orig
        and _MODULE.formatwarning is _MODULE._formatwarning_orig
        and not _may_be_raised(category)
    )


def _may_be_raised(category: type[Warning]) -> bool:
    """Return True if a filter raises warnings of the category, some of them at least."""
    for action, text, matched, module, line in warnings.filters:
        if issubclass(category, matched):
            if action == "error":
                return True
            if text is module is None and not line:  # which decides for all of them
                return False
    return False


def _is_recorder(show: object) -> bool:
    return type(show) is types.BuiltinMethodType and type(show.__self__) is list


def _refuse_reading(t: Space) -> None:
    """Refuse to read, from here on, the list that the warning is going to be in."""
    if t.state(Warnings).given or not _is_recorder(show := _MODULE._showwarnmsg_impl):
        return
    recorded = show.__self__
    if id(recorded) in t.heap.trackers:
        raise t.unsupported("warning", "a warning for a list that is read here")

    def refuse() -> Any:
        raise t.unsupported("warning", "a list of warnings that gets more of them")

    t.heap.track(recorded, CapturedSource("recorded", recorded), refuse)
