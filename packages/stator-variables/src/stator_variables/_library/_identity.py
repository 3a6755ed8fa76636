"""`id()`: a number nobody may look at while tracing, good as a dict key only (`copy.deepcopy` keeps its memo that way).

And `object.__reduce_ex__`, by which `copy` and `pickle` take plain objects apart.
"""

from copyreg import __newobj__ as new_object  # type: ignore[attr-defined]  # typeshed lacks what pickles refer to
from copyreg import _slotnames as slot_names  # type: ignore[attr-defined]
from typing import Any

from stator_bytecode import HandlerTable, operation, settle
from stator_guards import CapturedSource, SameObject

from stator_variables import _kinds as k
from stator_variables._build import wrap
from stator_variables._model import _attributes, _calls, _dictionary
from stator_variables._model._lookup import guarded_lookup
from stator_variables._tracing import Tracing

handlers: HandlerTable[Any, Any] = HandlerTable("identity")


@handlers.handles(id)
def identity(t: Tracing, args: list[Any], kwargs: dict[str, Any]) -> Any:
    (vt,) = args
    if isinstance(vt, k.ConstantTracker | k.NumberTracker) and vt.source is not None:
        _tell_apart(t, vt)
    if isinstance(vt, k.ListTracker | k.HashedTracker | k.ObjectTracker) and vt.source is None:
        t.named.append(vt)
    if isinstance(vt, k.HandleTracker):
        raise t.unsupported("reconstruction", "the identity of a handle that was made here")
    return k.IdTracker(vt)


def _tell_apart(t: Tracing, vt: Any) -> None:
    """Numbers, or texts, that were there before: equal ones may be one object, or several."""
    if (known := t.told_apart.setdefault(id(vt.real), vt)) is not vt:
        t.guard(vt.source, SameObject(known.source))


@handlers.handles(object.__reduce_ex__)
def reduce_ex(t: Tracing, args: list[Any], kwargs: dict[str, Any]) -> Any:
    vt, protocol = args[0], args[1].constant()
    cls = vt.cls
    plain = isinstance(vt, k.ObjectTracker) and not isinstance(vt, k.ExceptionTracker)
    small = object.__basicsize__ + 8 * (
        cls.__weakrefoffset__ > 0
    )  # what C holds besides, it does not hand out
    plain = plain and cls.__basicsize__ <= small and not cls.__itemsize__
    overridden = guarded_lookup(t, cls, "__reduce__") is not object.__reduce__
    if not plain or overridden or not isinstance(protocol, int) or protocol < 2:
        raise t.unsupported("reduction", f"taking apart a {cls.__qualname__}")
    if any(hasattr(cls, name) for name in ("__getnewargs__", "__getnewargs_ex__")) or slot_names(
        cls
    ):
        raise t.unsupported("reduction", f"taking apart a {cls.__qualname__}")
    return _reduced(t, vt)


@operation
def _reduced(t: Tracing, vt: Any) -> Any:
    """What `copyreg.__newobj__` needs to make the object again: its class, and its state."""
    hook = _attributes.special(t, vt, "__getstate__")
    if isinstance(hook, k.MethodTracker) and isinstance(hook.function, k.FunctionTracker):
        state = yield from settle(_calls.call(t, hook, [], {}))
    else:
        state = (
            vt.namespace
            if vt.namespace is not None and _dictionary.items(t, vt.namespace)
            else k.NONE
        )
    maker = wrap(t, new_object, CapturedSource("__newobj__", new_object))
    made = k.TupleTracker([_attributes.class_of(t, vt)], tuple)
    return k.TupleTracker([maker, made, state, k.NONE, k.NONE], tuple)
