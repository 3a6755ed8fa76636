"""Meshes of devices: compared by value.

    mesh.size(), mesh["tp"]      guards: mesh is, or equals, the mesh of the trace

A mesh has the arrangement of the processes. The methods of equal ones have the same results in one
process, so the guard on the mesh is the only one. A graph holds the mesh itself.
"""

from typing import Any

import torch.distributed
from stator_guards import CapturedSource, Custom, Source

from stator_variables._objects._builder_table import BuilderTable
from stator_variables._objects._wrap import of_instances, with_namespace
from stator_variables._space import Space
from stator_variables._tracker import ArgumentOf, VariableTracker
from stator_variables._trackers import ObjectTracker

builders = BuilderTable()

_IS_AVAILABLE = torch.distributed.is_available()
MESHES: tuple[Any, ...] = (torch.distributed.device_mesh.DeviceMesh,) if _IS_AVAILABLE else ()
"""The class of meshes; a release without distributed has none."""


class MeshTracker(ObjectTracker):
    """An existing mesh, guarded by its value."""

    def in_graph(self, t: Space, part: ArgumentOf) -> Any:
        assert self.source is not None
        return t.graph.object_input(self.source, self.real, "mesh")


@builders.by_base.handles(*MESHES)
@of_instances
def build(t: Space, real: Any, source: Source) -> VariableTracker:
    t.guard(source, Custom("{fn}({value})", lambda value: is_same(value, real), f"equal to {real}"))
    return MeshTracker(type(real), real)


def is_same(mesh: Any, other: Any) -> bool:
    """Return True for meshes that answer alike in this process."""
    return mesh is other or (type(mesh) is type(other) and bool(mesh == other))


def derived(t: Space, mesh: Any) -> VariableTracker:
    """The tracker of a mesh that follows from others: no guard is about which object it is."""
    if (known := t.shared.get(("mesh", id(mesh)))) is None:
        source = CapturedSource("mesh", mesh)
        known = MeshTracker(type(mesh), mesh)
        known.source = source
        t.shared["mesh", id(mesh)] = with_namespace(t, known, mesh, source)
    return known
