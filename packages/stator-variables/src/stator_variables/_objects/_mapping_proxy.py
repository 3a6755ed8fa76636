"""Mapping proxies: read-only views, which read everything from the mapping below
(Objects/descrobject.c)."""

from types import MappingProxyType

from stator_guards import CallSource, Source

from stator_variables._emitter import Emitter
from stator_variables._objects._builder_table import BuilderTable
from stator_variables._objects._wrap import behind_proxy, of_instances
from stator_variables._space import Space
from stator_variables._tracker import VariableTracker

builders = BuilderTable()


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
