"""Methods and properties of meshes, called while tracing: equal meshes have equal results."""

from typing import Any

import torch.distributed
from stator_bytecode import Result
from stator_guards import CallSource, CapturedSource, Is

from stator_variables._distributed._device_mesh import MESHES, MeshTracker, derived
from stator_variables._objects import _new_values
from stator_variables._objects._program_error import as_program_error
from stator_variables._space import Space
from stator_variables._tracker import MISSING, Args, FunctionTable, Kwargs, VariableTracker, is_a

handlers = FunctionTable("device mesh")

_QUERIES = (
    "size get_rank get_local_rank get_coordinate _is_current_rank_part_of_mesh __getitem__ "
    "__eq__ __hash__ get_group get_all_groups ndim shape device_type mesh_dim_names"
).split()


def _functions() -> dict[Any, str]:
    held = {name: vars(MESHES[0])[name] for name in _QUERIES if MESHES}
    return {getattr(raw, "fget", raw): name for name, raw in held.items()}


@handlers.handles_each(_functions())
def query(t: Space, args: Args, kwargs: Kwargs, of: str) -> Result:
    """Return what a method or a property of a mesh gives for constants."""
    mesh: Any = args[0]
    known = [_known(vt) for vt in args]
    named = {name: _known(vt) for name, vt in kwargs.items()}
    if not is_a(mesh, MeshTracker) or any(v is MISSING for v in (*known, *named.values())):
        return MISSING
    raw = vars(MESHES[0])[of]
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
    source = CallSource(
        MESHES[0].get_group, mesh.source, *(CapturedSource(repr(d), d) for d in dims)
    )
    t.guard(source, Is(group))
    return t.wrap(group, source)


def _known(vt: Any) -> Any:
    return vt.real if is_a(vt, MeshTracker) else vt.constant()


def _answer(t: Space, name: str, found: Any) -> VariableTracker:
    """A mesh that follows from another is captured."""
    if isinstance(found, MESHES):
        return derived(t, found)
    if isinstance(found, list) and name == "get_all_groups":
        raise t.unsupported("unanswered-question", f"{name} of a mesh")
    return _new_values.fresh(t, found)
