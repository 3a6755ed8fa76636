"""`options={"guard_filter_fn": ...}`: the program decides which guards are checked.

The function gets a list of entries with the attributes that torch gives them, and returns a list of
bools, so the filters of torch work, such as `torch.compiler.keep_tensor_guards_unsafe`. Guards that
a backend adds are kept.
"""

from collections.abc import Callable, Sequence
from typing import Any

import attrs
import torch
from stator_guards import CANNOT_READ, CapturedSource, Guard, State, expanded

from stator.errors import InvalidUse

Filter = Callable[[Sequence[Any]], Sequence[bool]]

NAMES_OF_TORCH = {
    "Equals": "EQUALS_MATCH",
    "GlobalState": "GLOBAL_STATE",
    "Is": "ID_MATCH",
    "KeyPresent": "DICT_CONTAINS",
    "Length": "SEQUENCE_LENGTH",
    "ShapeExpression": "SHAPE_ENV",
    "TensorMatch": "TENSOR_MATCH",
    "TypeIs": "TYPE_MATCH",
}
"""Names that torch has for kinds of guards; others have that of their class."""
_BUILTIN = ("torch.nn.modules", "torch.ao")


@attrs.frozen(eq=False)
class FilteredSource:
    """The part of a torch source that filters use: the module, if any, that the value belongs
    to."""

    name: str
    module: torch.nn.Module | None

    def is_unspecialized_nn_module(self) -> bool:
        return self.module is not None

    def is_unspecialized_builtin_nn_module(self) -> bool:
        return type(self.module).__module__.startswith(_BUILTIN)


@attrs.frozen(eq=False)
class FilteredGuard:
    """The part of a torch guard that filters use, and the guard of stator."""

    source: FilteredSource
    guard: Guard


@attrs.frozen(eq=False)
class GuardFilterEntry:
    """A guard, as functions that filter guards see it."""

    name: str
    has_value: bool
    value: object
    guard_type: str
    is_global: bool
    orig_guard: FilteredGuard
    derived_guard_types: tuple[str, ...] = ()


def filtered(guards: Sequence[Guard], keeps: Filter | None, state: State) -> list[Guard]:
    """Return the guards that a function keeps; all if there is none."""
    if keeps is None:
        return [*guards]
    guards = [*expanded(guards)]
    flags = [*keeps([_entry(guard, state) for guard in guards])]
    if len(flags) != len(guards):
        problem = f"guard_filter_fn returned {len(flags)} flags for {len(guards)} guards"
        raise InvalidUse(problem, "return a list with one bool for each guard")
    return [guard for guard, kept in zip(guards, flags, strict=True) if kept]


def _entry(guard: Guard, state: State) -> GuardFilterEntry:
    steps = [] if guard.source is None else [*guard.source.steps()]
    values = [_value(step, state) for step in steps]
    modules = (value for value in values if isinstance(value, torch.nn.Module))
    kind = type(guard.kind).__name__
    has_value = bool(values) and values[0] is not _MISSING
    return GuardFilterEntry(
        guard.name,
        has_value,
        values[0] if has_value else None,
        NAMES_OF_TORCH.get(kind, kind),
        any(isinstance(step, CapturedSource) and step.is_scope for step in steps),
        FilteredGuard(FilteredSource(guard.name, next(modules, None)), guard),
    )


_MISSING = object()


def _value(source: Any, state: State) -> object:
    try:
        return source.evaluate(state)
    except CANNOT_READ:  # the guard may be on its absence
        return _MISSING
