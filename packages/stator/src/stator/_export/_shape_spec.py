"""The shape specifications of `torch.export`, as the policy of a trace.

    {"x": {0: Dim("batch")}, "n": Dim.DYNAMIC}     x.size(0) and n are symbols, all else is constant

A dimension that the specification names is a symbol while tracing, whatever its kind: constraints
on it are conditions of the captured program, which `torch.export` checks against the specification.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import attrs
import torch
from stator_guards import Source
from stator_variables import Dim, Policy
from torch.utils import _pytree as pytree

from stator._capture._dynamic import marks_of
from stator._export._call import CapturedCall

STATIC = Dim()


@attrs.frozen(eq=False)
class ShapeSpec:
    """The dynamic dimensions of tensors, by identity, and the sources of dynamic numbers."""

    dims: Mapping[int, list[Dim]]
    numbers: frozenset[str]

    def policy(self) -> Policy:
        def dims(source: Source, tensor: torch.Tensor) -> list[Dim]:
            if (found := self.dims.get(id(tensor))) is not None:
                return found
            marks = marks_of(tensor)
            return [marks.get(index, STATIC) for index in range(tensor.dim())]

        def number_is_symbolic(source: Source, value: object, at_once: bool) -> bool:
            return source.name in self.numbers

        return Policy(dims, number_is_symbolic, capture_data=True, is_whole=True)


def shape_spec(call: CapturedCall, dynamic_shapes: Any) -> ShapeSpec:
    """Read a specification: a dict by parameter, a sequence, or one of torch's builders."""
    dynamic_shapes = built_spec(dynamic_shapes, call.subject, call.args, call.kwargs)
    dims: dict[int, list[Dim]] = {}
    numbers: set[str] = set()
    for name, value, spec in _leaves_of_call(call, dynamic_shapes):
        if isinstance(value, torch.Tensor):
            dims[id(value)] = [_dim(_part(spec, index)) for index in range(value.dim())]
        elif type(value) is int and _dim(spec) is not STATIC:
            numbers.add(name)
    return ShapeSpec(dims, frozenset(numbers))


def built_spec(
    dynamic_shapes: Any, subject: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any] | None
) -> Any:
    """Return what a `ShapesCollection` or `AdditionalInputs` comes to; others as they are."""
    if isinstance(dynamic_shapes, Mapping) or not hasattr(dynamic_shapes, "dynamic_shapes"):
        return dynamic_shapes
    return dynamic_shapes.dynamic_shapes(subject, args, dict(kwargs or {}))


Leaf = tuple[str, Any, Any]  # the name of its source, the value, its specification


def _leaves_of_call(call: CapturedCall, spec: Any) -> Iterator[Leaf]:
    names = iter(call.root.parameters[1:])
    for index, (name, value) in enumerate(call.bound.items()):
        part = spec.get(name) if isinstance(spec, Mapping) else _part(spec, index)
        if name in call.gathered:  # *args or **kwargs, whose items are parameters of the call
            for key, item in _children(value):
                yield from _leaves(next(names), item, _part(part, key))
        else:
            yield from _leaves(next(names), value, part)


def _leaves(name: str, value: Any, spec: Any) -> Iterator[Leaf]:
    children = _children(value)
    if not children:
        yield name, value, spec
    for index, (key, child) in enumerate(children):
        # a class of the program may be described by the list of what it is flattened to
        part = _part(spec, key if isinstance(spec, Mapping) else index)
        yield from _leaves(f"{name}{key}", child, part)


def _children(value: Any) -> list[tuple[Any, Any]]:
    """Return the items of a container with their keys, one level deep."""
    flat, _ = pytree.tree_flatten_with_path(value, is_leaf=lambda item: item is not value)
    return [(path[0], item) for path, item in flat if path]


def _part(spec: Any, key: Any) -> Any:
    """Return the specification of a part; None where there is none, which means constant."""
    for attribute in ("key", "idx", "name"):  # of the keys of pytree
        key = getattr(key, attribute, key)
    if isinstance(spec, Mapping):
        return spec.get(key)
    is_item = isinstance(spec, Sequence) and isinstance(key, int) and key < len(spec)
    return spec[key] if is_item else None


def _dim(spec: Any) -> Dim:
    """Return how one size, or a number, is traced."""
    from torch.export import Dim as NamedDim

    if spec is None or isinstance(spec, int) or spec == NamedDim.STATIC:
        return STATIC
    return Dim("dynamic")
