"""Attributes of `super` objects (`super_getattro`)."""

from typing import Any

from stator_variables._objects import _lookup
from stator_variables._objects._program_error import throw
from stator_variables._protocols import _attributes
from stator_variables._space import Space


def _after(mro: tuple[type, ...], start: type) -> tuple[type, ...] | None:
    """Return the classes after one, by identity: a metaclass may define how classes compare."""
    return next((mro[at + 1 :] for at, cls in enumerate(mro) if cls is start), None)


def super_attribute(t: Space, vt: Any, name: str) -> Any:
    """`super(start, receiver).name`: the MRO of the receiver's class after `start`
    (super_getattro)."""
    receiver = vt.receiver
    is_class = receiver.base is type
    after = _after(_lookup.mro_of(t, receiver.value if is_class else receiver.cls), vt.start.value)
    if is_class and after is None:
        is_class, after = False, _after(_lookup.mro_of(t, receiver.cls), vt.start.value)
    if after is None or name == "__class__":  # unbound: it has attributes of its own alone
        raise t.unsupported("c-attribute", f"attribute {name} of a super object")

    raw, source = _lookup.mro_lookup(t, after, name)
    if source is None and name in vars(super):
        raise t.unsupported("c-attribute", f"attribute {name} of a super object")
    if source is None:
        throw(AttributeError, f"'super' object has no attribute '{name}'")
    return (
        _attributes.bind_to_class(t, raw, source, receiver)
        if is_class
        else _attributes.bind(t, raw, source, receiver, name)
    )
