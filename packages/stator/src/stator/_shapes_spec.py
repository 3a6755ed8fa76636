"""The keyword `shapes_spec`: the sizes and numbers of arguments that are symbols, in the classes of
`torch.fx.experimental.dynamic_spec`.

    {"x": TensorSpec([ShapeVar("batch", max=64), None])}    x.size(0) is a symbol, all else constant

A named size is a symbol without a known value, so one graph serves all its values, 0 and 1 among
them. Bounds, equal and derived sizes, and assumptions are checked by a guard of each entry; where
it does not hold, the next trace finds the problem, and raises InvalidUse.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import Any

import attrs
import torch
from stator_guards import CallSource, Equals, ParameterSource, Source
from stator_variables import Dim, Policy, Space

from stator._target import Root, parameters_of
from stator.errors import InvalidUse

_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
Leaf = tuple[str, Any, Any]
"""The name of the source of a tensor or a number, its value, and its specification."""


@attrs.frozen(eq=False)
class ShapesSpec:
    """A specification for the parameters of one function, or of the `forward` of a module."""

    params: Any
    assumptions: Sequence[Any]

    @classmethod
    def of(cls, given: Any) -> ShapesSpec:
        """Take what `torch.compile` takes: a dict by parameter, a ParamsSpec or a ShapesSpec."""
        from torch.fx.experimental import dynamic_spec

        try:
            if not isinstance(given, dynamic_spec.ShapesSpec):
                given = dynamic_spec.ShapesSpec(given)
        except TypeError as error:
            raise InvalidUse(f"shapes_spec={given!r} is not valid", str(error)) from error
        return cls(given._params or dynamic_spec.ParamsSpec(), given.assumptions)

    def policy(self, root: Root, state: tuple[Any, ...], policy: Policy) -> Policy:
        """Return the policy with the symbols of the specification. Raises InvalidUse for a call
        that it does not describe."""
        leaves = [*self._leaves(root, state)]
        if problem := self._problem(leaves):
            raise InvalidUse(f"shapes_spec: {problem}", "change the specification or the call")
        specs = {id(value): spec for _, value, spec in leaves if isinstance(value, torch.Tensor)}
        numbers = {name for name, _, spec in leaves if isinstance(spec, torch.SymInt)}

        def dims(source: Source, tensor: torch.Tensor) -> list[Dim]:
            return [*map(_dim, specs.get(id(tensor)) or [None] * tensor.dim())]

        def number_is_symbolic(source: Source, value: object, at_once: bool) -> bool:
            return source.name in numbers

        return attrs.evolve(policy, dims=dims, number_is_symbolic=number_is_symbolic)

    def guard(self, space: Space, root: Root, state: tuple[Any, ...]) -> None:
        """Add the guard that a call is one which the specification describes, if the guards of
        constants do not imply that."""
        numbers = _numbers(self._leaves(root, state))
        symbols = [spec for _, _, spec in numbers if isinstance(spec, torch.SymInt)]
        is_repeated = len({*map(id, symbols)}) < len(symbols)
        if self.assumptions or is_repeated or any(map(_is_bounded, symbols)):
            parameters = map(ParameterSource, root.parameters)
            space.guard(CallSource(partial(self._holds, root), *parameters), Equals(True))

    def _holds(self, root: Root, *state: Any) -> bool:
        return not self._problem(self._leaves(root, state))

    def _problem(self, leaves: Iterable[Leaf]) -> str:
        """Describe the first part of a call that is at odds with the specification."""
        known: dict[Any, int] = {}
        numbers = [*_numbers(leaves)]
        for text, value, spec in numbers:
            if type(spec) is int and value != spec:
                return f"{text} is {spec}, not {value}"
            if hasattr(spec, "sympy_sym"):
                low, high, size = spec.min, spec.max, known.setdefault(spec.sympy_sym, value)
                if (low is not None and value < low) or (high is not None and value > high):
                    return f"{text} is {value}, which is not in the range of {spec}"
                if size != value:
                    return f"{text} is {value}, but {spec.name} is {size}"
        for text, value, spec in numbers:
            is_derived = isinstance(spec, torch.SymInt) and not hasattr(spec, "sympy_sym")
            if is_derived and _evaluated(spec, known) != value:
                return f"{text} is {value}, not {_shown(spec)}"
        wrong = (each for each in self.assumptions if not _evaluated(each, known))
        return "".join(f"{_shown(each)} does not hold" for each in [*wrong][:1])

    def _leaves(self, root: Root, state: tuple[Any, ...]) -> Iterator[Leaf]:
        """Yield the parts of a call that have a specification."""
        named, code = self.params._named_args, root.code
        items, keywords = self.params._varargs or [], self.params._varkw or {}
        if code is torch.nn.Module._call_impl.__code__:  # whose items are those of `forward`
            forward = inspect.signature(type(state[0]).forward).parameters.values()
            places = [each.name for each in forward if each.kind in _POSITIONAL][1:]
            items = [*map(named.get, places[: len(state[1])]), *items]
            keywords, named = {**keywords, **named}, {}

        names = parameters_of(code)
        gathered = dict.fromkeys(names[code.co_argcount + code.co_kwonlyargcount :], items)
        if code.co_flags & inspect.CO_VARKEYWORDS:
            gathered[names[-1]] = keywords
        start = len(state) - len(names)  # behind a function that several share
        values = zip(names, root.parameters[start:], state[start:], strict=True)
        for name, source, value in values:
            yield from _parts(source, value, gathered.get(name, named.get(name)))


def _parts(name: str, value: Any, spec: Any) -> Iterator[Leaf]:
    """Yield the leaves of a value that has a specification."""
    if (fields := getattr(spec, "_fields", None)) is not None:
        for key, part in fields.items():
            yield from _parts(f"{name}.{key}", getattr(value, key), part)
        return

    spec = getattr(spec, "_entries", spec)
    if isinstance(spec, dict):
        for key in spec.keys() & value.keys():
            yield from _parts(f"{name}[{key!r}]", value[key], spec[key])
    elif isinstance(spec, list):
        for index, (item, part) in enumerate(zip(value, spec, strict=False)):
            yield from _parts(f"{name}[{index}]", item, part)
    elif spec is not None:
        yield name, value, spec


def _numbers(leaves: Iterable[Leaf]) -> Iterator[Leaf]:
    """Yield the sizes of the tensors, and the numbers, that have a specification."""
    for name, value, spec in leaves:
        if not isinstance(value, torch.Tensor):
            yield name, value, spec
        elif len(spec) != value.dim():
            yield f"the number of dimensions of {name}", value.dim(), len(spec)
        else:
            for dim, (size, part) in enumerate(zip(value.shape, spec, strict=True)):
                yield f"{name}.size({dim})", size, part


def _is_bounded(spec: Any) -> bool:
    """Return True for a name with bounds, other than those of every size, and for an expression."""
    return not hasattr(spec, "sympy_sym") or bool(spec.min) or spec.max is not None


def _evaluated(spec: Any, known: dict[Any, int]) -> Any:
    expression = spec.node.expr.subs(known)
    if expression.free_symbols:
        unbound = f"{_shown(spec)} is of a name that is no size or number by itself"
        raise InvalidUse(f"shapes_spec: {unbound}", "name it in the specification")
    return expression


def _shown(spec: Any) -> str:
    """Return an expression without the numbers that distinguish equal names."""
    return re.sub(r"#\d+", "", str(spec.node.expr))


def _dim(spec: Any) -> Dim:
    if not isinstance(spec, torch.SymInt):
        return Dim()
    return Dim("unbacked", getattr(spec, "min", None), getattr(spec, "max", None))
