"""Mapping proxies: read-only views, which read everything from the mapping below
(Objects/descrobject.c)."""

from types import MappingProxyType

from stator_bytecode import Result, after
from stator_guards import CallSource, Source

from stator_variables._emitter import Emitter
from stator_variables._objects._builder_table import BuilderTable
from stator_variables._objects._lookup import defines
from stator_variables._objects._tuple import SequenceTracker
from stator_variables._objects._wrap import behind_proxy, of_instances
from stator_variables._space import Space
from stator_variables._tracker import MISSING, Args, FunctionTable, Kwargs, VariableTracker, is_a
from stator_variables._trackers import ConstantTracker

builders = BuilderTable()
handlers = FunctionTable("mapping proxy")


class ProxyTracker(VariableTracker, references=("mapping",)):
    """A mappingproxy of a dict tracker; `owner` is the class whose `__dict__` it is."""

    cls = MappingProxyType
    owner: type | None = None

    def __init__(self, mapping: VariableTracker) -> None:
        self.mapping = mapping

    def rebuild(self, e: Emitter) -> str:
        if self.owner is not None:
            return e.bind(self, f"{e.capture(self.owner)}.__dict__")
        return e.bind(
            self, f"{e.capture(MappingProxyType, 'MappingProxy')}({e.expr(self.mapping)})"
        )


@builders.by_class.handles(MappingProxyType)
@of_instances
def build_mappingproxy(t: Space, real: object, source: Source) -> VariableTracker:
    return ProxyTracker(t.wrap(behind_proxy(real), CallSource(behind_proxy, source)))


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
