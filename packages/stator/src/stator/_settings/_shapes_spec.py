"""The keyword `shapes_spec`: the sizes and numbers of arguments that are symbols, in the classes of
`torch.fx.experimental.dynamic_spec`.

    {"x": TensorSpec([ShapeVar("batch", max=64), None])}    x.size(0) is a symbol, all else constant

A named size is a symbol without a known value, so one graph serves all its values, 0 and 1 among
them. Bounds, equal and derived sizes, and assumptions are checked by a guard of each entry; where
it does not hold, the next trace finds the problem, and raises InvalidUse.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from functools import partial
from typing import Any

import attrs
import torch
from stator_bytecode import FlatState
from stator_guards import CallSource, Equals, ParameterSource, Source
from stator_variables import Dim, Policy, Space

from stator._program._target import Root, parameters_of
from stator.errors import InvalidUse

DescribedPart = tuple[str, Any, Any]
"""The name of the source of a tensor or a number, its value, and its specification."""
POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


@attrs.frozen(eq=False)
class ShapesSpec:
    """A specification, of torch's class, for the parameters of one function, or of the `forward` of
    a module."""

    spec: Any

    @classmethod
    def of(cls, given: Any) -> ShapesSpec:
        """Take what `torch.compile` takes: a dict by parameter, a ParamsSpec or a ShapesSpec."""
        from torch.fx.experimental.dynamic_spec import ShapesSpec as Described

        try:
            return cls(given if isinstance(given, Described) else Described(given))
        except TypeError as error:
            raise InvalidUse(f"shapes_spec={given!r} is not valid", str(error)) from error

    def policy(self, root: Root, state: FlatState, policy: Policy) -> Policy:
        """Return the policy with the symbols of the specification. Raises InvalidUse for a call
        that it does not describe."""
        leaves = [*self._leaves(root, state)]
        if problem := self._problem(leaves):
            raise InvalidUse(f"shapes_spec: {problem}", "change the specification or the call")
        specs = {id(value): spec for _, value, spec in leaves}
        numbers = {name for name, _, spec in leaves if isinstance(spec, torch.SymInt)}

        def dims(source: Source, tensor: torch.Tensor) -> list[Dim]:
            return [*map(_dim, specs.get(id(tensor)) or [None] * tensor.dim())]

        def number_is_symbolic(source: Source, value: object, at_once: bool) -> bool:
            return source.name in numbers

        return attrs.evolve(policy, dims=dims, number_is_symbolic=number_is_symbolic)

    def guard(self, space: Space, root: Root, state: FlatState) -> None:
        """Add the guard that a call is one which the specification describes, if the guards of
        constants do not imply that."""
        numbers = _numbers([*self._leaves(root, state)])
        symbols = [spec for _, _, spec in numbers if isinstance(spec, torch.SymInt)]
        is_repeated = len({*map(id, symbols)}) < len(symbols)
        if self.spec.assumptions or is_repeated or any(map(_is_bounded, symbols)):
            parameters = map(ParameterSource, root.parameters)
            space.guard(CallSource(partial(self._holds, root), *parameters), Equals(True))

    def _holds(self, root: Root, *state: Any) -> bool:
        return not self._problem([*self._leaves(root, state)])

    def _problem(self, leaves: list[DescribedPart]) -> str:
        """Describe a part of a call that is at odds with the specification."""
        known: dict[Any, int] = {}
        for text, value, spec in _numbers(leaves):
            if hasattr(spec, "sympy_sym"):
                expected = known.setdefault(spec.sympy_sym, value)
                low, high = spec.min, spec.max
                fits = (low is None or value >= low) and (high is None or value <= high)
            else:
                expected, fits = value if spec is None or hasattr(spec, "node") else spec, True
            if not fits or value != expected:
                return f"{text} is {value}, not as {spec}"

        derived = [(spec, value) for _, value, spec in _numbers(leaves) if hasattr(spec, "node")]
        for spec, value in [*derived, *((each, True) for each in self.spec.assumptions)]:
            result = spec.node.expr.subs(known)
            if result.free_symbols:
                return f"{spec} is of a name that is no size or number by itself"
            if result != value:
                return f"{spec} is {result}, not {value}"
        return ""

    def _leaves(self, root: Root, state: FlatState) -> Iterator[DescribedPart]:
        """Yield the parts of a call that have a specification."""
        params, names = self.spec._params, parameters_of(root.code)
        named = dict(params._named_args) if params else {}
        items, keywords = (params._varargs or [], params._varkw or {}) if params else ([], {})
        if root.code is torch.nn.Module._call_impl.__code__:  # whose arguments are of `forward`
            forward = inspect.signature(type(state[0]).forward).parameters.values()
            places = [each.name for each in forward if each.kind in POSITIONAL][1:]
            items = [*map(named.get, places[: len(state[1])]), *items]
            keywords = {**keywords, **named}

        count = root.code.co_argcount + root.code.co_kwonlyargcount
        named |= dict.fromkeys(names[count:], items)
        if root.code.co_flags & inspect.CO_VARKEYWORDS:
            named[names[-1]] = keywords
        start = len(state) - len(names)  # behind a function that several share
        for name, source, value in zip(names, root.parameters[start:], state[start:], strict=True):
            yield from _parts(source, value, named.get(name))


def _parts(name: str, value: Any, spec: Any) -> Iterator[DescribedPart]:
    """Yield the leaves of a value that has a specification."""
    fields = getattr(spec, "_fields", {})
    for key in fields:
        yield from _parts(f"{name}.{key}", getattr(value, key), fields[key])
    spec = getattr(spec, "_entries", spec)
    if isinstance(spec, dict | list):
        keys = spec if isinstance(spec, dict) else range(len(spec))
        for key in keys:
            if key in value if isinstance(value, dict) else key < len(value):
                yield from _parts(f"{name}[{key!r}]", value[key], spec[key])
    elif spec is not None and not fields:
        yield name, value, spec


def _numbers(leaves: list[DescribedPart]) -> Iterator[DescribedPart]:
    """Yield the sizes of the tensors, and the numbers, that have a specification."""
    for name, value, spec in leaves:
        if not isinstance(value, torch.Tensor):
            yield name, value, spec
            continue
        yield f"the number of dimensions of {name}", value.dim(), len(spec)
        for dim, (size, part) in enumerate(zip(value.shape, spec, strict=False)):
            yield f"{name}.size({dim})", size, part


def _is_bounded(spec: Any) -> bool:
    """Return True for a name with bounds, other than those of every size, and for an expression."""
    return not hasattr(spec, "sympy_sym") or bool(spec.min) or spec.max is not None


def _dim(spec: Any) -> Dim:
    if not isinstance(spec, torch.SymInt):
        return Dim()
    return Dim("unbacked", getattr(spec, "min", None), getattr(spec, "max", None))
