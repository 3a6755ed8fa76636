"""`id()`: a number that differs from call to call, so it is good as a dict key only: as in the memo
of `deepcopy`."""

from stator_guards import SameObject

from stator_variables import _trackers as k
from stator_variables._objects._identity_number import IdTracker
from stator_variables._objects._keys import HashedTracker
from stator_variables._objects._list import ListTracker
from stator_variables._space import Space
from stator_variables._tracker import Args, FunctionTable, Kwargs, VariableTracker, is_a

handlers = FunctionTable("identity")


@handlers.handles(id)
def identity(t: Space, args: Args, kwargs: Kwargs) -> IdTracker:
    (vt,) = args
    if is_a(vt, k.ConstantTracker | k.NumberTracker) and vt.source is not None:
        _tell_apart(t, vt)
    if is_a(vt, ListTracker | HashedTracker | k.ObjectTracker) and vt.source is None:
        t.heap.named.append(vt)
    if vt.has_own_number:
        raise t.unsupported("reconstruction", "the identity of a handle that was made here")
    return IdTracker(vt)


def _tell_apart(t: Space, vt: VariableTracker) -> None:
    """Numbers, or texts, that were there before: equal ones may be one object, or several."""
    if (known := t.heap.assumed_distinct.setdefault(id(vt.real), vt)) is not vt:
        t.guard(vt.source, SameObject(known.source))
