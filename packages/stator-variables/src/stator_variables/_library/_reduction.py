"""`object.__reduce_ex__` and its kin, by which `copy` and `pickle` take objects apart.

    copy.deepcopy(thing)    __newobj__, (type(thing),), state, list items, dict items

The state is what `__getstate__` of the program gives; else the instance `__dict__`, and the slots
that are set.
"""

import collections

# typeshed lacks what pickles refer to
from copyreg import __newobj__ as new_object  # type: ignore[attr-defined]
from copyreg import _slotnames as slot_names  # type: ignore[attr-defined]
from typing import Any

from stator_bytecode import HandlerTable, OperationSteps, Result, operation, settle
from stator_guards import CapturedSource

from stator_variables import _trackers as k
from stator_variables._applevel import _copying as app
from stator_variables._objects._dict import DictTracker
from stator_variables._objects._exception import ExceptionTracker
from stator_variables._objects._list import ListTracker
from stator_variables._objects._lookup import guarded_lookup
from stator_variables._objects._method import MethodTracker
from stator_variables._objects._method_table import app_level
from stator_variables._objects._tuple import TupleTracker
from stator_variables._space import Space
from stator_variables._tracker import MISSING, VariableTracker, is_a

handlers: HandlerTable[Any, Any] = HandlerTable("reduction")


@handlers.handles(object.__reduce_ex__)
def reduce_ex(t: Space, args: list[Any], kwargs: dict[str, Any]) -> Result:
    vt, protocol = args[0], args[1].constant()
    if not isinstance(protocol, int) or protocol < 2:
        raise _refused(t, vt)
    if guarded_lookup(t, vt.cls, "__reduce__") is not object.__reduce__:
        return t.call(t.special(vt, "__reduce__"), [], {})
    if not (_consists_of_attributes(vt) or _is_builtin_container(vt)):
        raise _refused(t, vt)
    return _reduced(t, vt)


def _refused(t: Space, vt: VariableTracker) -> Exception:
    return t.unsupported("reduction", f"taking apart a {vt.cls.__qualname__}")


def _consists_of_attributes(vt: VariableTracker) -> bool:
    """Return False for what has state in C besides, which C does not hand out."""
    if not is_a(vt, k.ObjectTracker) or is_a(vt, ExceptionTracker):
        return False
    cls = vt.cls
    fields = len(slot_names(cls)) + (cls.__weakrefoffset__ > 0) + (cls.__dictoffset__ > 0)
    return cls.__basicsize__ <= object.__basicsize__ + 8 * fields and not cls.__itemsize__


def _is_builtin_container(vt: VariableTracker) -> bool:
    return is_a(vt, DictTracker | TupleTracker) or (
        is_a(vt, ListTracker) and issubclass(vt.cls, list)
    )


@operation
def _reduced(t: Space, vt: VariableTracker) -> OperationSteps:
    """Return what `copyreg.__newobj__` needs to make the object again: class, arguments, state and
    items."""
    given = yield from settle(_arguments(t, vt))
    state = yield from settle(_state(t, vt))
    items: list[Any] = [k.NONE, k.NONE]
    if is_a(vt, ListTracker):
        items[0] = yield from settle(app_level(t, app.list_items, [vt], {}))
    if is_a(vt, DictTracker):
        items[1] = yield from settle(app_level(t, app.dict_items, [vt], {}))

    maker = t.wrap(new_object, CapturedSource("__newobj__", new_object))
    made = TupleTracker([t.class_of(vt), *given.items], tuple)
    return TupleTracker([maker, made, state, *items], tuple)


@operation
def _arguments(t: Space, vt: Any) -> OperationSteps:
    """Return the arguments of `__new__` after the class."""
    if guarded_lookup(t, vt.cls, "__getnewargs_ex__") is not MISSING:
        raise _refused(t, vt)
    found = guarded_lookup(t, vt.cls, "__getnewargs__")
    if found is MISSING:
        return TupleTracker([], tuple)
    if found is vars(tuple)["__getnewargs__"]:
        return TupleTracker([TupleTracker(vt.items, tuple)], tuple)
    given = yield from settle(t.call(t.special(vt, "__getnewargs__"), [], {}))
    if not is_a(given, TupleTracker):
        raise _refused(t, vt)
    return given


@operation
def _state(t: Space, vt: VariableTracker) -> OperationSteps:
    hook = t.special(vt, "__getstate__")
    if is_a(hook, MethodTracker) and is_a(hook.function, k.FunctionTracker):
        return (yield from settle(t.call(hook, [], {})))
    has_fields = vt.namespace is not None and bool(t.items(vt.namespace))
    state = vt.namespace if has_fields else k.NONE
    if not (names := slot_names(vt.cls)):
        return state
    texts = TupleTracker([k.ConstantTracker(name) for name in names], tuple)
    slots = yield from settle(app_level(t, app.slots_of, [vt, texts], {}))
    return TupleTracker([state, slots], tuple) if slots.entries else state


@handlers.handles(collections.OrderedDict.__reduce__)
@operation
def reduce_ordered(t: Space, args: list[Any], kwargs: dict[str, Any]) -> OperationSteps:
    (vt,) = args
    state = yield from settle(_state(t, vt))
    items = yield from settle(app_level(t, app.dict_items, [vt], {}))
    made = [t.class_of(vt), TupleTracker([], tuple), state, k.NONE, items]
    return TupleTracker(made, tuple)


@handlers.handles(collections.defaultdict.__reduce__)
@operation
def reduce_default(t: Space, args: list[Any], kwargs: dict[str, Any]) -> OperationSteps:
    (vt,) = args
    items = yield from settle(app_level(t, app.dict_items, [vt], {}))
    factory = yield from settle(t.get_attribute(vt, "default_factory"))
    given = TupleTracker([] if k.is_none(factory) else [factory], tuple)
    made = [t.class_of(vt), given, k.NONE, k.NONE, items]
    return TupleTracker(made, tuple)
