"""The choice of symbolic sizes, strides and numbers: static at first, symbolic once they changed;
and the marks by which users decide."""

import math
import sys
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import attrs
import stator_guards as guards
import torch
from stator_variables import SCHEDULED, Dim, Policy, is_scheduled

from stator._settings._torch_settings import warn_of
from stator.errors import InvalidUse

Sizes = tuple[int | None, ...]  # None: it changed


@attrs.define(eq=False)
class Shapes:
    """The history of one target's inputs. `dynamic`: True makes all symbolic at once, False none
    ever.

    `is_whole`: see `Policy`. `hides_floats`: a compiler specialised on a float. `static_floats`: it
    required the values of floats. `separates_steps`: it refused a step of an optimizer with what
    follows.
    """

    dynamic: bool | None
    capture_data: bool = False
    is_whole: bool = False
    patience: float = math.inf
    hides_floats: bool = False
    static_floats: bool = False
    separates_steps: bool = False
    static_types: frozenset[type] = frozenset()
    sizes: dict[guards.Source, Sizes] = attrs.field(factory=dict)
    strides: dict[guards.Source, Sizes] = attrs.field(factory=dict)
    # CHANGED once two values were seen
    numbers: dict[guards.Source, Any] = attrs.field(factory=dict)
    texts: dict[guards.Source, set[object]] = attrs.field(factory=dict)
    # where texts change with each call: of all continuations of one function
    changing: set[tuple[int, guards.Source]] = attrs.field(factory=set)

    def policy(self, state: Mapping[str, object]) -> Policy:
        def number_is_symbolic(source: guards.Source, value: object, at_once: bool) -> bool:
            varies = self._has_changed(source, value)
            static = self.dynamic is False or type(value) in self.static_types
            if static or not self._can_be_symbol(value):
                return False
            if varies or (type(value) is int and _follows(source, value, state)):
                return True
            if type(value) is float and _is_scheduled(source, state):
                return True
            at_once = at_once or (self.dynamic is True and value not in (0, 1))
            return at_once and _is_passed_in(source, state)

        def dims(source: guards.Source, tensor: torch.Tensor) -> list[Dim]:
            return self.dims(source, tensor, state)

        return Policy(
            dims,
            number_is_symbolic,
            self._may_recur,
            self.capture_data,
            self.is_whole,
            self.patience,
            unbacked_numbers=not self.static_floats,
            separates_steps=self.separates_steps,
            hides_floats=self.hides_floats,
        )

    def observe(self, state: Mapping[str, Any]) -> None:
        """Note the sizes and numbers that a call passes in, as a trace of it would."""
        for name, value in state.items():
            source = guards.ParameterSource(name)
            if isinstance(value, torch.Tensor):
                self.dims(source, value, state)
            elif type(value) in (int, float):
                self._has_changed(source, value)

    # -- tensors -----------------------------------------------------------------------------------
    def dims(
        self, source: guards.Source, tensor: torch.Tensor, state: Mapping[str, object]
    ) -> list[Dim]:
        marks = marks_of(tensor)
        if isinstance(tensor, torch.nn.Parameter) or tensor.layout is not torch.strided:
            # sparse fakes with symbols become strided ones
            return [marks.get(i, Dim()) for i in range(tensor.dim())]
        known = _seen(self.sizes, source, tuple(tensor.shape), (None,) * tensor.dim())
        if self.dynamic is not False:
            sizes = zip(known, tensor.shape, strict=True)
            known = tuple(None if _follows(source, now, state) else size for size, now in sizes)
        dims = [marks.get(i, self._dim(size, known[i])) for i, size in enumerate(tensor.shape)]
        strides = _seen(self.strides, source, tensor.stride(), tensor.stride())
        return [
            attrs.evolve(dim, stride=self._moves(tensor, dims, i, strides[i]))
            for i, dim in enumerate(dims)
        ]

    def _dim(self, size: int, known: int | None) -> Dim:
        changed = known is None and self.dynamic is not False
        return Dim("dynamic") if (changed or self.dynamic is True) and size not in (0, 1) else Dim()

    def _moves(self, tensor: torch.Tensor, dims: list[Dim], at: int, known: int | None) -> bool:
        """Return True if a stride changed that does not follow from symbolic sizes further
        inside."""
        strides = tensor.stride()
        if known is not None or strides[at] in (0, 1) or self.dynamic is False:
            return False
        return not any(
            dim.kind != "static" and i != at and strides[i] <= strides[at]
            for i, dim in enumerate(dims)
        )

    # -- numbers -----------------------------------------------------------------------------------
    def need_floats(self) -> None:
        """Note that a compiler specialises on floats: hide them from it, or make them constants if
        they are hidden."""
        self.static_floats = self.hides_floats
        self.hides_floats = True

    def _has_changed(self, source: guards.Source, value: object) -> bool:
        """Return whether two values of this number were seen, this one included."""
        before = self.numbers.setdefault(source, value)
        if before is not CHANGED and (type(before) is not type(value) or before != value):
            self.numbers[source] = before = CHANGED
        return before is CHANGED

    def _may_recur(self, source: guards.Source, value: Any) -> bool:
        """Return False for a text, or an int too large for a graph, where each trace saw another:
        a guard would fail again, up to the limit of recompilations."""
        if self.is_whole or (type(value) is int and self._can_be_symbol(value)):
            return True
        seen = self.texts.setdefault(source, set())
        if len(seen) < MOST_TEXTS:
            seen.add(value)
        if value in seen:
            return True
        where = id(self), source
        if len(self.changing) < MOST_CHANGING:
            self.changing.add(where)
        return where not in self.changing

    def _can_be_symbol(self, value: Any) -> bool:
        """Return whether a graph can hold it: no comparison distinguishes the sign of a zero."""
        if type(value) is float:
            is_negative_zero = value == 0 and math.copysign(1, value) < 0
            return not self.static_floats and math.isfinite(value) and not is_negative_zero
        return bool(-sys.maxsize <= value <= sys.maxsize)


def recorded(policy: Policy) -> tuple[Policy, Policy]:
    """Return a policy that decides as `policy` does, and one that repeats these decisions without
    the state."""
    dims: dict[guards.Source, list[Dim]] = {}
    numbers: dict[guards.Source, bool] = {}

    def decide_dims(source: guards.Source, tensor: torch.Tensor) -> list[Dim]:
        dims[source] = policy.dims(source, tensor)
        return dims[source]

    def decide_number(source: guards.Source, value: object, at_once: bool) -> bool:
        numbers[source] = policy.number_is_symbolic(source, value, at_once)
        return numbers[source]

    def repeat_dims(source: guards.Source, tensor: torch.Tensor) -> list[Dim]:
        return dims.get(source) or [Dim()] * tensor.dim()

    def repeat_number(source: guards.Source, value: object, at_once: bool) -> bool:
        return numbers.get(source, False)

    first = attrs.evolve(policy, dims=decide_dims, number_is_symbolic=decide_number)
    return first, attrs.evolve(policy, dims=repeat_dims, number_is_symbolic=repeat_number)


def _seen(
    known: dict[guards.Source, Sizes], source: guards.Source, now: tuple[int, ...], at_odds: Sizes
) -> Sizes:
    """Return the sizes that have not changed so far; `at_odds` if the number of dimensions
    changed."""
    before = known.get(source, now)
    if len(before) != len(now):
        before = at_odds
    known[source] = merged = tuple(a if a == b else None for a, b in zip(before, now, strict=True))
    return merged


CHANGED = object()
MOST_TEXTS = 6
"""The values of a text that may have an entry of their own."""
MOST_CHANGING = 4
"""The breaks of one function at such texts: one that does little else is better run eagerly."""


def _is_passed_in(source: guards.Source, state: Mapping[str, object]) -> bool:
    """Return whether a number was passed in, bare, inside of something that is no module, or
    computed from such.

    What a module or the default of an argument has is configuration, until it changes.
    """
    steps = list(source.steps())
    call = next((step for step in steps if isinstance(step, guards.CallSource)), None)
    if call is not None:
        return any(_is_passed_in(argument, state) for argument in call.arguments)
    defaults = (
        step.part in ("defaults", "kwdefaults")
        for step in steps
        if isinstance(step, guards.FunctionPartSource)
    )
    if not any(isinstance(step, guards.ParameterSource) for step in steps) or any(defaults):
        return False
    return not any(isinstance(step.evaluate(state), torch.nn.Module) for step in steps)


def _is_scheduled(source: guards.Source, state: Mapping[str, object]) -> bool:
    """Return whether this is a setting of an optimizer that a scheduler writes."""
    if not isinstance(source, guards.DictItemSource) or source.key != SCHEDULED:
        return False
    return is_scheduled(source.whole.evaluate(state))


def _follows(source: guards.Source, value: int, state: Mapping[str, object]) -> bool:
    """An int or a size in what a call gives for symbolic numbers, and a multiple of one of them: it
    will change with it."""
    calls = [step for step in source.steps() if isinstance(step, guards.CallSource)]
    return value > 1 and any(value % n == 0 for call in calls for n in _numbers(call, state))


def _numbers(call: guards.CallSource, state: Mapping[str, object]) -> Iterator[int]:
    """The ints above one among its arguments that are no constants."""
    for argument in call.arguments:
        if isinstance(argument, guards.CallSource):
            yield from _numbers(argument, state)
        if not isinstance(argument, guards.CapturedSource):
            number = argument.evaluate(state)
            if type(number) is int and number > 1:
                yield number


# Marks by which users decide what is symbolic. They are those of torch: attributes on the tensor,
# whoever sets them.
#
# stator.mark_dynamic(x, 0, min=2, max=64) one graph for all sizes of dimension 0; an error where
# none can be stator.mark_static(y) no symbols for it, also where its sizes change

Index = int | Iterable[int]


@attrs.frozen
class DimRange:
    """The sizes that a marked dimension may have, both included."""

    dim: int
    min: int | None
    max: int | None


def mark_dynamic(
    tensor: torch.Tensor,
    index: Index,
    *,
    hint_override: int | None = None,
    min: int | None = None,
    max: int | None = None,
) -> None:
    """Make these dimensions symbols from the first call on.

    Code that needs one of their sizes as a constant, or a size outside the range, raises
    InvalidUse. A compiler that tunes kernels assumes the size `hint_override`.
    """
    for dim in _indices(tensor, index):
        _attribute(tensor, "_dynamo_dynamic_indices", set()).add(dim)
        _attribute(tensor, "_dynamo_dynamic_range", set()).add(DimRange(dim, min, max))
        _set_hint(tensor, dim, hint_override)


def maybe_mark_dynamic(tensor: torch.Tensor, index: Index) -> None:
    """Make these dimensions symbols from the first call on, where that is possible."""
    for dim in _indices(tensor, index):
        _attribute(tensor, "_dynamo_weak_dynamic_indices", set()).add(dim)


def mark_unbacked(
    tensor: torch.Tensor,
    index: Index,
    hint_override: int | None = None,
    strict: bool = False,
    *,
    min: int | None = None,
    max: int | None = None,
) -> None:
    """Make these dimensions symbols without a known value: not even 0 and 1 have graphs of their
    own.

    `strict`: code that needs one of their sizes as a constant raises InvalidUse.
    """
    name = "_dynamo_strict_unbacked_indices" if strict else "_dynamo_unbacked_indices"
    for dim in _indices(tensor, index):
        _attribute(tensor, name, set()).add(dim)
        _set_hint(tensor, dim, hint_override)
        if min is not None or max is not None:
            _attribute(tensor, "_dynamo_unbacked_bounds", {})[dim] = (min, max)


def _set_hint(tensor: torch.Tensor, dim: int, hint: int | None) -> None:
    if hint is not None:
        _attribute(tensor, "_dynamo_hint_overrides", {})[dim] = hint


def mark_static(tensor: torch.Tensor, index: Index | None = None) -> None:
    """Make these dimensions (default: all) constants: each of their sizes has a graph of its
    own."""
    for dim in _indices(tensor, range(tensor.dim()) if index is None else index):
        _attribute(tensor, "_dynamo_static_indices", set()).add(dim)


def mark_static_address(tensor: torch.Tensor, guard: bool = False) -> None:
    """Declare that the tensor keeps its address, as parameters do. `guard`: another tensor in its
    place fails a guard."""
    tensor._dynamo_static_input_type = "guarded" if guard else "unguarded"  # type: ignore[attr-defined]


def _indices(tensor: torch.Tensor, index: Index) -> list[int]:
    found = [index] if isinstance(index, int) else list(index)
    for dim in found:
        if not -tensor.dim() <= dim < tensor.dim():
            problem = f"a tensor of {tensor.dim()} dimensions has no dimension {dim}"
            raise InvalidUse(problem, "count from 0, or from -1 backwards")
    tensor._has_dynamo_dim_marking = True  # type: ignore[attr-defined]
    return [dim % tensor.dim() for dim in found]


def _attribute(tensor: torch.Tensor, name: str, empty: object) -> Any:
    if not hasattr(tensor, name):
        setattr(tensor, name, empty)
    return getattr(tensor, name)


WITHOUT_EFFECT = {
    "_specialize_on": "mark_dynamic(specialize_on=...)",
    "_dynamo_shape_ids": "mark_unbacked(shape_id=...)",
}
"""Attributes by which torch stores arguments of marks that stator does not follow."""


def marks_of(tensor: torch.Tensor) -> dict[int, Dim]:
    """The dimensions that carry marks, in the order of precedence: weak, dynamic, unbacked, static.

    Those that torch has set may count from the end.
    """

    def marked(name: str) -> Iterator[int]:
        return (index % tensor.dim() for index in getattr(tensor, name, ()))

    weak = ("_dynamo_weak_dynamic_indices", "_dynamo_propagated_dynamic_indices")
    found = {index: Dim("dynamic") for name in weak for index in marked(name)}
    if not getattr(tensor, "_has_dynamo_dim_marking", False) and not found:
        return found
    ranges = {
        each.dim % tensor.dim(): (each.min, each.max)
        for each in getattr(tensor, "_dynamo_dynamic_range", ())
    }
    for index in marked("_dynamo_dynamic_indices"):
        found[index] = Dim("dynamic", *ranges.get(index, (None, None)), strict=True)

    warn_of(
        f"torch._dynamo.decorators.{text}"
        for name, text in WITHOUT_EFFECT.items()
        if any(getattr(tensor, name, {}).values())
    )
    bounds = getattr(tensor, "_dynamo_unbacked_bounds", {})
    for is_strict, name in enumerate(
        ("_dynamo_unbacked_indices", "_dynamo_strict_unbacked_indices")
    ):
        for index in marked(name):
            low, high = bounds.get(index, (None, None))
            found[index] = Dim("unbacked", low, high, strict=bool(is_strict))

    return found | {index: Dim() for index in marked("_dynamo_static_indices")}
