"""Methods of read-only views of dicts."""

from types import MappingProxyType

from stator_bytecode import Result, after

from stator_variables._objects._lookup import defines
from stator_variables._objects._mapping_proxy import ProxyTracker
from stator_variables._objects._tuple import SequenceTracker
from stator_variables._space import Space
from stator_variables._tracker import MISSING, Args, FunctionTable, Kwargs, VariableTracker, is_a
from stator_variables._trackers import ConstantTracker

handlers = FunctionTable("mapping proxy")
_SLOTS = ("__getitem__", "__len__", "__contains__", "__iter__", "__reversed__")
_METHODS = ("get", "keys", "values", "items", "copy")


@handlers.handles_each({getattr(MappingProxyType, name): name for name in (*_SLOTS, *_METHODS)})
def call_mapping(t: Space, args: Args, kwargs: Kwargs, of: str) -> Result:
    find = t.special if of in _SLOTS else t.get_attribute
    given = [_unwrapped(arg) for arg in args[1:]]
    return after(find(args[0].mapping, of), lambda method: _call(t, of, method, given, kwargs))


def _call(t: Space, name: str, method: VariableTracker, args: Args, kwargs: Kwargs) -> Result:
    if method is MISSING:
        raise t.unsupported("mapping-proxy", f"{name} of a mapping without it")
    return t.call(method, args, kwargs)


def _unwrapped(vt: VariableTracker) -> VariableTracker:
    return vt.mapping if is_a(vt, ProxyTracker) else vt


@handlers.handles_each({MappingProxyType.__or__: 1, MappingProxyType.__ror__: -1})
def merge(t: Space, args: Args, kwargs: Kwargs, of: int) -> Result:
    return t.binary("|", *map(_unwrapped, args[::of]))


@handlers.handles(MappingProxyType)
def make(t: Space, args: Args, kwargs: Kwargs) -> VariableTracker:
    mapping = args[0]
    if is_a(mapping, SequenceTracker | ConstantTracker) or not defines(
        t, mapping.cls, "__getitem__"
    ):
        raise t.unsupported("construction", f"a mappingproxy of a {mapping.cls.__name__}")
    return ProxyTracker(mapping)
