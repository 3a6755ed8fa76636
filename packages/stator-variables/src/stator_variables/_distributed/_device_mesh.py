"""Meshes of devices: compared by value, and asked while tracing.

    mesh.size(), mesh["tp"]      guards: mesh is, or equals, the mesh of the trace

A mesh says where the processes stand. Equal ones have the same answers in one process, so the guard
on the mesh is the only one. A graph holds the mesh itself.
"""

from typing import Any

import torch.distributed
from stator_bytecode import Result
from stator_guards import CallSource, CapturedSource, Custom, Is, Source

from stator_variables._objects import _new_values
from stator_variables._objects._builder_table import BuilderTable
from stator_variables._objects._program_error import as_program_error
from stator_variables._objects._wrap import of_instances, with_namespace
from stator_variables._space import Space
from stator_variables._tracker import MISSING, Args, FunctionTable, Kwargs, VariableTracker, is_a
from stator_variables._trackers import ObjectTracker

handlers = FunctionTable("device mesh")
builders = BuilderTable()

_IS_AVAILABLE = torch.distributed.is_available()
_Mesh: Any = torch.distributed.device_mesh.DeviceMesh if _IS_AVAILABLE else None
_QUERIES = (
    "size get_rank get_local_rank get_coordinate _is_current_rank_part_of_mesh __getitem__ "
    "__eq__ __hash__ get_group get_all_groups ndim shape device_type mesh_dim_names"
).split()


class MeshTracker(ObjectTracker):
    """An existing mesh, guarded by its value."""

    def in_graph(self, t: Space) -> Any:
        assert self.source is not None
        return t.graph.object_input(self.source, self.real, "mesh")


@builders.by_base.handles(*([_Mesh] if _IS_AVAILABLE else []))
@of_instances
def build(t: Space, real: Any, source: Source) -> VariableTracker:
    t.guard(source, Custom("{fn}({value})", lambda value: is_same(value, real), f"equal to {real}"))
    return MeshTracker(type(real), real)


def is_same(mesh: Any, other: Any) -> bool:
    """Return True for meshes that answer alike in this process."""
    return mesh is other or (type(mesh) is type(other) and bool(mesh == other))


def _functions() -> dict[Any, str]:
    held = {name: vars(_Mesh)[name] for name in _QUERIES if _IS_AVAILABLE}
    return {getattr(raw, "fget", raw): name for name, raw in held.items()}


@handlers.handles_each(_functions())
def query(t: Space, args: Args, kwargs: Kwargs, of: str) -> Result:
    """Return what a method or a property of a mesh gives for constants."""
    mesh: Any = args[0]
    known = [_known(vt) for vt in args]
    named = {name: _known(vt) for name, vt in kwargs.items()}
    if not is_a(mesh, MeshTracker) or any(v is MISSING for v in (*known, *named.values())):
        return MISSING
    raw = vars(_Mesh)[of]
    try:
        found = getattr(raw, "fget", raw)(*known, **named)
        if found is mesh.real:
            return mesh
    except Exception as error:
        raise as_program_error(t, error) from None
    if isinstance(found, torch.distributed.ProcessGroup):
        return _group(t, mesh, found, *known[1:], *named.values())
    return _answer(t, of, found)


def _group(t: Space, mesh: Any, group: Any, *dims: Any) -> VariableTracker:
    """A process group, which is another one after the processes have met again."""
    source = CallSource(_Mesh.get_group, mesh.source, *(CapturedSource(repr(d), d) for d in dims))
    t.guard(source, Is(group))
    return t.wrap(group, source)


def _known(vt: Any) -> Any:
    return vt.real if is_a(vt, MeshTracker) else vt.constant()


def _answer(t: Space, name: str, found: Any) -> VariableTracker:
    """A mesh that follows from another is captured."""
    if isinstance(found, _Mesh):
        return derived(t, found)
    if isinstance(found, list) and name == "get_all_groups":
        raise t.unsupported("unanswered-question", f"{name} of a mesh")
    return _new_values.fresh(t, found)


def derived(t: Space, mesh: Any) -> VariableTracker:
    """The tracker of a mesh that follows from others: no guard is about which object it is."""
    if (known := t.shared.get(("mesh", id(mesh)))) is None:
        source = CapturedSource("mesh", mesh)
        known = MeshTracker(type(mesh), mesh)
        known.source = source
        t.shared["mesh", id(mesh)] = with_namespace(t, known, mesh, source)
    return known
