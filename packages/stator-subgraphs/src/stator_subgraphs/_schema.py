"""Arguments as the schemas of an operator describe them."""

import keyword
from collections.abc import Sequence
from functools import cache
from typing import Any

import torch
from stator_bytecode.errors import Unsupported
from stator_variables import Args, Kwargs

from stator_subgraphs._mutation import NodeTarget, called, overloads_of


def without_keywords(
    target: NodeTarget, args: Args, kwargs: Kwargs
) -> tuple[Sequence[Any], dict[str, Any]]:
    """Return the arguments with those by position whose names are keywords of Python:
    `uniform_(**{"from": 0})`."""
    unwritable = [name for name in kwargs if keyword.iskeyword(name)]
    if not unwritable:
        return args, kwargs

    for schema in schemas_of(target):
        by_position = [each for each in schema.arguments if not each.kwarg_only][len(args) :]
        names = [each.name for each in by_position]
        is_complete = all(each.name in kwargs or each.has_default_value() for each in by_position)
        if is_complete and set(unwritable) <= set(names):
            moved = by_position[: 1 + max(map(names.index, unwritable))]
            values = [kwargs.get(each.name, each.default_value) for each in moved]
            gone = {each.name for each in moved}
            return [*args, *values], {key: kwargs[key] for key in kwargs if key not in gone}

    raise Unsupported("operator-error", f"{called(target)} with an argument named {unwritable[0]}")


def schemas_of(target: NodeTarget) -> list[Any]:
    """The schemas of an operator; those of the one of the same name for a function of torch or a
    method of tensors."""
    if isinstance(target, torch._ops.OpOverload):
        return [target._schema]
    is_packet = isinstance(target, torch._ops.OpOverloadPacket)
    packet = target if is_packet else _packet(called(target))
    return [] if packet is None else [each._schema for each in overloads_of(packet)]


def _packet(name: str) -> torch._ops.OpOverloadPacket | None:
    """Return the ATen operator of this name; namespaces have `__eq__` and its like as objects."""
    found = getattr(torch.ops.aten, name, None)
    return found if isinstance(found, torch._ops.OpOverloadPacket) else None


@cache
def is_pointwise(name: str) -> bool:
    packet = _packet(name)
    overloads = [] if packet is None else overloads_of(packet)
    return any(torch.Tag.pointwise in overload.tags for overload in overloads)


@cache
def computes_by_elements(name: str) -> bool:
    """Return True for an operator whose results look the same whatever the floats are that it
    gets."""
    return is_pointwise(name) or name.startswith(("_foreach_", "_fused_"))


def takes_number(target: NodeTarget, key: int | str) -> bool:
    """Return True if an operator takes a number as an argument, given its position or name, and no
    tensor in its place, though perhaps a list."""
    found = [
        argument
        for schema in schemas_of(target)
        for i, argument in enumerate(schema.arguments)
        if key in (i, argument.name)
    ]
    types = [str(each.type) for each in found if not isinstance(each.type, torch.ListType)]
    return bool(types) and all(each in _NUMBERS for each in types)


_NUMBERS = frozenset({"number", "float", "int", "Optional[number]", "Optional[float]"})
