"""Reading attributes as CPython does it: data descriptors, the instance dictionary, other
descriptors, `__getattr__`.

`PyObject_GenericGetAttr` (Objects/object.c) over trackers; classes and modules have their own
(`type_getattro` in Objects/typeobject.c, `_Py_module_getattro` in Objects/moduleobject.c).
"""

import sys
import threading
import types
import weakref
from types import (
    BuiltinFunctionType,
    FunctionType,
    GetSetDescriptorType,
    MemberDescriptorType,
    MethodDescriptorType,
    WrapperDescriptorType,
)
from typing import Any

import torch
from stator_bytecode import Invoke, Raised, Result, Then, is_suspended
from stator_guards import (
    AttrAbsent,
    AttrSource,
    CapturedSource,
    DictItemSource,
    Is,
    KeyPresent,
    Source,
    TypeIs,
    TypeSource,
)

from stator_variables._applevel import _methods as app
from stator_variables._objects import (
    _class_dicts,
    _classes,
    _lookup,
    _new_values,
    _number,
    _number_of_numpy,
    _substitutes,
)
from stator_variables._objects._dict import DictTracker
from stator_variables._objects._method import MethodTracker
from stator_variables._objects._program_error import absent, attempt, throw
from stator_variables._objects._wrap import captured_dict, instance_dict
from stator_variables._protocols import _c_fields
from stator_variables._pure import CYTHON_FUNCTION
from stator_variables._runtime._contents import has_member, may_override, plain_lookup
from stator_variables._space import Space
from stator_variables._tensors import _subclasses, _symbolic, _tensor_attributes
from stator_variables._trace._overrides import Overrides
from stator_variables._tracker import DELETED, MISSING, Args, VariableTracker, is_a
from stator_variables._trackers import (
    BuiltinTracker,
    ClassTracker,
    ConstantTracker,
    SubclassTracker,
)

FUNCTION_FIELDS = {"__name__": "name", "__qualname__": "qualname"}
PROXIES = (weakref.ProxyType, weakref.CallableProxyType)


def is_proxy(vt: VariableTracker) -> bool:
    return any(vt.cls is cls for cls in PROXIES)


def refuse_proxy(t: Space, vt: VariableTracker, name: str) -> None:
    """Reject a weak proxy, as each access to it may find its object dead."""
    if is_proxy(vt):
        raise t.unsupported("c-attribute", f"attribute {name} of a weak proxy")


def get_attribute(t: Space, vt: VariableTracker, name: str) -> Result:
    """`vt.name`: a Result. Raises AttributeError of the program."""
    found = _found(t, vt, name)
    # An AttributeError that leaves the frame notes what was looked for:
    # `set_attribute_error_context`.
    noting = type(found) is Invoke and found.then.kind == "value"
    return Invoke(found.frame, Then("attribute", (vt,), name)) if noting else found


def get_method(t: Space, vt: VariableTracker, name: str) -> Result:
    """The same for a call (`_PyObject_GetMethod`), which notes nothing where C has the look-up done
    by `object`."""
    found = get_attribute(t, vt, name)
    if type(found) is not Invoke or issubclass(vt.cls, type | types.ModuleType):
        return found
    return (
        found
        if has_hook(t, vt) or _lookup.defines(t, vt.cls, "__getattr__")
        else Invoke(found.frame)
    )


def _found(t: Space, vt: VariableTracker, name: str) -> Result:
    refuse_proxy(t, vt, name)
    if (found := vt.get_attribute(t, name)) is not MISSING:
        return found
    return _read_by_hooks(t, vt, name) if has_hook(t, vt) else _or_fall_back(t, vt, name)


def has_hook(t: Space, vt: VariableTracker) -> bool:
    return is_hook(_lookup.guarded_lookup(t, vt.cls, "__getattribute__"), "__getattribute__")


def is_hook(raw: object, name: str) -> bool:
    """Return True if a class overrides reading, setting or deleting of attributes, or has another
    slot of C."""
    return not isinstance(raw, WrapperDescriptorType) or raw.__name__ != name


def _or_fall_back(t: Space, vt: VariableTracker, name: str) -> Result:
    """Implement `slot_tp_getattr_hook`: `__getattr__` is called for an AttributeError, also of a
    getter."""
    try:
        found = own_attribute(t, vt, name)
    except Raised as raised:
        if not issubclass(raised.value.cls, AttributeError) or not _lookup.defines(
            t, vt.cls, "__getattr__"
        ):
            raise
        found = MISSING
    if found is MISSING:
        return _fall_back(t, vt, name)
    if is_suspended(found) and _lookup.defines(t, vt.cls, "__getattr__"):
        return _read_by_hooks(t, vt, name)
    return found


def _read_by_hooks(t: Space, vt: VariableTracker, name: str) -> Result:
    """`__getattribute__` and, if there is one, `__getattr__`: by calls that can be broken in."""
    hooks = [_lookup.type_lookup(t, vt.cls, hook) for hook in ("__getattribute__", "__getattr__")]
    first, *others = [bind(t, raw, source, vt, name) for raw, source in hooks if source is not None]
    if not others:
        return t.call(first, [ConstantTracker(name)])
    if is_suspended(first) or is_suspended(others[0]):
        raise t.unsupported(
            "c-attribute", f"attribute {name} by a hook that a descriptor in Python gives"
        )
    read = t.wrap(app.read, CapturedSource("read", app.read))
    return t.call(read, [first, *others, ConstantTracker(name)])


def own_attribute(t: Space, vt: VariableTracker, name: str) -> Result:
    """Return the result of `__getattribute__` of C: a Result, or MISSING."""
    if vt.base is type:
        return _class_attribute(t, vt, name)
    if issubclass(vt.cls, types.ModuleType):
        return _module_attribute(t, vt, name)
    if issubclass(vt.cls, types.GenericAlias) and name not in _OF_ALIASES:
        return get_attribute(t, generic_get(t, vt, "__origin__"), name)
    return generic_get(t, vt, name)


_OF_ALIASES = frozenset(
    "__class__ __origin__ __args__ __unpacked__ __parameters__ __typing_unpacked_tuple_args__ "
    "__mro_entries__ __reduce_ex__ __reduce__ __copy__ __deepcopy__".split()
)
"""The attributes of `list[int]` itself (`ga_getattro` in Objects/genericaliasobject.c); all others
are its class's."""


def _fall_back(t: Space, vt: VariableTracker, name: str) -> Result:
    raw, source = _lookup.type_lookup(t, vt.cls, "__getattr__")
    if (
        source is None
        and vt.namespace is None
        and vt.real is not MISSING
        and hasattr(vt.real, name)
    ):
        raise t.unsupported(
            "c-attribute", f"{name} of a {vt.cls.__name__}, which C finds in a way of its own"
        )
    if source is None:
        absent(t, vt, name)
    return t.call(bind(t, raw, source, vt, "__getattr__"), [ConstantTracker(name)])


def generic_get(t: Space, vt: VariableTracker, name: str) -> Result:
    """A Result, or MISSING. No `__getattr__`."""
    if name == "__dict__" and issubclass(vt.cls, threading.local) and vt.namespace is not None:
        return vt.namespace  # `local_getattro`, which reads no class for it
    raw, source = _lookup.type_lookup(t, vt.cls, name)
    if source is not None and _comes_first(t, raw):
        return bind(t, raw, source, vt, name)
    own = MISSING
    if vt.base is torch.Tensor:
        own = _tensor_attributes.own(t, vt, name)
    elif vt.namespace is not None:
        own = t.lookup(vt.namespace, name)
    if own is not MISSING:
        return own
    return MISSING if source is None else bind(t, raw, source, vt, name)


def _comes_first(t: Space, raw: object) -> bool:
    """Return True if a class attribute precedes those of the instance: a data descriptor with
    `__get__`."""
    return _lookup.is_data_descriptor(t, raw) and _lookup.defines(t, type(raw), "__get__")


def class_of(t: Space, vt: VariableTracker) -> VariableTracker:
    """`type(vt)` as a tracker."""
    source = (
        TypeSource(vt.source)
        if vt.source is not None
        else CapturedSource(vt.cls.__qualname__, vt.cls)
    )
    if vt.source is not None:
        t.guard(vt.source, TypeIs(vt.cls))
    if id(vt.cls) in t.heap.made:
        return t.heap.made[id(vt.cls)]
    tracker = ClassTracker(vt.cls)
    tracker.source = source
    return tracker


def descriptor_kind(t: Space, raw: object) -> type:
    """The class whose C code binds `raw`: a subclass of these is bound as they are, unless it has
    its own `__get__`."""
    for base in (property, classmethod, staticmethod):
        if (
            issubclass(type(raw), base)
            and _lookup.guarded_lookup(t, type(raw), "__get__") is vars(base)["__get__"]
        ):
            return base
    return type(raw)


def bind(t: Space, raw: Any, source: Source, vt: VariableTracker, name: str) -> Result:
    """`raw.__get__(vt, type(vt))` for a raw class attribute."""
    kind = descriptor_kind(t, raw)
    if kind in (FunctionType, CYTHON_FUNCTION):
        return MethodTracker(t.wrap(raw, source), vt)
    if kind in (MethodDescriptorType, WrapperDescriptorType):
        if not fits(raw, vt):
            raise t.unsupported(
                "bad-arguments", f"{name}, a descriptor of C, on an instance of another class"
            )
        cls = BuiltinFunctionType if kind is MethodDescriptorType else types.MethodWrapperType
        return MethodTracker(BuiltinTracker(raw), vt, cls)

    if kind in (property, staticmethod, classmethod):
        t.guard(source, TypeIs(type(raw)))
    if kind is property:
        return _get_property(t, raw, source, vt, name)
    if kind is staticmethod:
        return t.wrap(raw.__func__, AttrSource(source, "__func__"))
    if kind is classmethod:
        return _of_class(t, raw, source, class_of(t, vt), name)

    if kind is types.ClassMethodDescriptorType:
        return MethodTracker(BuiltinTracker(raw), class_of(t, vt), BuiltinFunctionType)
    if kind in (GetSetDescriptorType, MemberDescriptorType):
        return _get_c_field(t, raw, vt, name)
    if kind is _INSTANCE_METHOD:
        return MethodTracker(BuiltinTracker(raw.__func__), vt)
    return _bind_other(t, raw, source, vt)


_INSTANCE_METHOD = type(vars(torch._C.ScriptFunction)["__call__"])
"""Class that pybind11 gives methods in C++; Python has no name for it."""


def may_refuse(t: Space, raw: object) -> bool:
    """Return True if `bind` may raise. Comparisons, `iter` and `repr` ignore that (`PyErr_Clear` in
    typeobject.c)."""
    kind = descriptor_kind(t, raw)
    if kind in (property, GetSetDescriptorType, MemberDescriptorType):
        return True
    return isinstance(plain_lookup(kind, "__get__"), FunctionType)


def bound_or_none(t: Space, raw: object, source: Source, vt: VariableTracker, name: str) -> Any:
    """Return the bound attribute, where `may_refuse`; None if binding raised."""
    return attempt(t, BaseException, None, bind, t, raw, source, vt, name)


def fits(raw: object, vt: VariableTracker) -> bool:
    """Return True if a descriptor belongs to a base class of that of `vt`; a Python function fits
    everything."""
    return not isinstance(raw, _OF_C) or _lookup.is_subtype(vt.cls, raw.__objclass__)


_OF_C = (MethodDescriptorType, WrapperDescriptorType)


def _of_class(t: Space, raw: Any, source: Source, cls_vt: VariableTracker, name: str) -> Any:
    """Implement `classmethod.__get__`: before 3.13 it calls that of a descriptor that it wraps."""
    inner, src = raw.__func__, AttrSource(source, "__func__")
    getter = plain_lookup(type(inner), "__get__")
    if sys.version_info >= (3, 13) or getter is MISSING:
        return MethodTracker(t.wrap(inner, src), cls_vt)
    if type(inner) is classmethod:
        return _of_class(t, inner, src, cls_vt, name)
    if type(inner) is not FunctionType and isinstance(getter, FunctionType):
        return call_raw(t, t.wrap(inner, src), "__get__", [cls_vt, cls_vt])
    return bind(t, inner, src, cls_vt, name)


def _get_property(
    t: Space, raw: property, source: Source, vt: VariableTracker, name: str
) -> Result:
    if raw.fget is None:
        refuse_access(t, raw, source, property.__get__, vt)
    return t.call(t.wrap(raw.fget, AttrSource(source, "fget")), [vt])


def refuse_access(
    t: Space, raw: property, source: Source, access: Any, vt: VariableTracker, *value: object
) -> None:
    """Raise the error of the property, which contains its name only if a class statement set it."""
    t.guard(source, Is(raw))
    try:
        access(raw, 0, *value)
    except AttributeError as error:
        throw(AttributeError, str(error).replace("'int' object", f"'{vt.cls.__qualname__}' object"))


def _get_c_field(t: Space, raw: Any, vt: Any, name: str) -> Any:
    has_mode = vt.base is torch.Tensor and t.state(Overrides).modes
    is_overridden = has_mode or is_a(vt, SubclassTracker)
    if is_overridden and raw.__objclass__ is torch._C.TensorBase:
        return _subclasses.get_field(t, raw, vt, name)
    handler = t.handlers.get(raw)
    if handler is not None and (found := handler(t, [vt], {})) is not MISSING:
        return found
    if name == "__class__":
        return class_of(t, vt)
    if name == "__dict__" and vt.namespace is not None:
        return vt.namespace

    if (members := getattr(vt, "members", None)) is not None and raw in members:
        if (found := members[raw]) is DELETED:
            _c_fields.complain_of_empty_slot(t, vt, name)
        return found
    if (found := _number_of_numpy.field_of(t, vt, name)) is not MISSING:
        return found
    if (constant := vt.constant()) is not MISSING:
        return _new_values.fresh(t, raw.__get__(constant))
    if vt.is_symbolic:
        if vt.cls is int:
            return vt if _symbolic.FIELDS[name] is None else ConstantTracker(_symbolic.FIELDS[name])
        return ConstantTracker(raw.__get__(_number.specialised(t, vt)))

    if vt.base is tuple and has_member(vt.cls, "n_sequence_fields"):
        # A named tuple made in C (Objects/structseq.c), whose members do not expose their index
        index = _place_in(vt.cls, raw)
        if index < len(vt.items):
            return vt.items[index]
    if vt.real is MISSING:
        if _c_fields.is_slot(raw):
            _c_fields.complain_of_empty_slot(t, vt, name)
        raise t.unsupported("c-attribute", f"attribute {name} of a new {vt.cls.__qualname__}")
    return _c_fields.read_existing_field(t, raw, vt, name)


def _place_in(cls: Any, raw: Any) -> int:
    """The index of a member; no item's, if only the interpreter makes instances (`sys.flags`)."""
    try:
        return int(raw.__get__(cls(range(cls.n_fields))))
    except TypeError:
        return int(cls.n_fields)


def _bind_other(t: Space, raw: object, source: Source, vt: VariableTracker) -> Result:
    t.guard(source, TypeIs(type(raw)))  # one of another class may be bound
    is_descriptor = _lookup.defines(t, type(raw), "__get__")
    descriptor = _item(t, raw, source)
    return (
        call_raw(t, descriptor, "__get__", [vt, class_of(t, vt)]) if is_descriptor else descriptor
    )


def call_raw(t: Space, vt: VariableTracker, method: str, args: Args) -> Result:
    """Call what the class of `vt` has as `method`, without binding it."""
    raw, source = _lookup.type_lookup(t, vt.cls, method)
    assert source is not None
    return t.call(t.wrap(raw, source), [vt, *args])


def _module_attribute(t: Space, vt: Any, name: str) -> Result:
    if (namespace := instance_dict(vt.value)) is None:
        raise t.unsupported("c-attribute", f"{name} of a module without a plain __dict__")
    own_name = namespace.get("__name__", "?")
    d = captured_dict(t, namespace, f"{own_name}.__dict__")
    if (found := t.lookup(d, name)) is not MISSING:
        return found
    if name == "__dict__":
        return d
    raw, source = _lookup.type_lookup(t, vt.cls, name)
    if source is not None and name != "__getattr__":
        return bind(t, raw, source, vt, name)
    hook = t.lookup(d, "__getattr__")
    return MISSING if hook is MISSING else t.call(hook, [ConstantTracker(name)])


def _class_attribute(t: Space, vt: Any, name: str) -> Result:
    """`type.__getattribute__`: the metaclass's data descriptors, the class's own MRO (bound to
    None), the metaclass."""
    meta, meta_source = _lookup.type_lookup(t, vt.cls, name)
    if meta_source is not None and _comes_first(t, meta):
        return _get_meta(t, meta, meta_source, vt, name)
    raw, source = _lookup.type_lookup(t, vt.value, name)
    if source is not None:
        return bind_to_class(t, raw, source, vt)
    return MISSING if meta_source is None else bind(t, meta, meta_source, vt, name)


def _get_meta(t: Space, raw: object, source: Source, vt: Any, name: str) -> Result:
    """A field of the class object itself, such as `__name__`, `__mro__`, `__dict__`."""
    if isinstance(raw, GetSetDescriptorType | MemberDescriptorType):
        if name == "__class__":
            return class_of(t, vt)
        if name == "__dict__" and id(vt.value) not in t.heap.made:
            return _class_dicts.view_of(t, vt.value)
        if name == "__annotations__" and name not in vt.value.__dict__ and may_override(vt.value):
            return _new_annotations(t, vt)
        own, own_source = _lookup.mro_lookup(t, (vt.value,), name)
        if name == "__doc__" and own_source is not None and not isinstance(own, str):
            return bind_to_class(t, own, own_source, vt)

        source = CapturedSource(vt.value.__qualname__, vt.value)
        try:
            return t.wrap(raw.__get__(vt.value), AttrSource(source, name))
        except AttributeError as error:  # `__abstractmethods__` of a class that has none
            t.guard(source, AttrAbsent(name))
            throw(AttributeError, *error.args)

    return bind(t, raw, source, vt, name)


def _new_annotations(t: Space, vt: Any) -> DictTracker:
    """Make the dict of annotations of a class without any, on first use
    (`type_get_annotations`)."""
    if id(vt.value) not in t.heap.made:
        raise t.unsupported(
            "class-dict", f"the annotations of class {vt.value.__qualname__}, made on first use"
        )
    made = DictTracker(dict, complete=True)
    _classes.set_attribute(t, vt, "__annotations__", made)
    return made


def bind_to_class(t: Space, raw: Any, source: Source, vt: VariableTracker) -> Any:
    """`raw.__get__(None, cls)`."""
    kind = descriptor_kind(t, raw)
    if kind is staticmethod:
        return t.wrap(raw.__func__, AttrSource(source, "__func__"))
    if kind is classmethod:
        return _of_class(t, raw, source, vt, "")
    if kind is types.ClassMethodDescriptorType:
        return MethodTracker(BuiltinTracker(raw), vt, BuiltinFunctionType)
    if isinstance(_lookup.guarded_lookup(t, kind, "__get__"), FunctionType):
        return call_raw(t, t.wrap(raw, source), "__get__", [ConstantTracker(None), vt])
    found = _item(t, raw, source)
    if type(source) is DictItemSource:
        t.needs_item(source.base, KeyPresent(source.key), found)
    return found


def _item(t: Space, raw: object, source: Source) -> VariableTracker:
    if raw is _substitutes.UNKNOWN:
        raise t.unsupported(
            "class-definition", "the text of a class about values that are not known yet"
        )
    return t.wrap(raw, source)


def special(t: Space, vt: VariableTracker, name: str) -> Any:
    """A special method looked up on the class, bound (`_PyObject_LookupSpecial`); MISSING when
    there is none."""
    raw, source = _lookup.type_lookup(t, vt.cls, name)
    return MISSING if source is None else bind(t, raw, source, vt, name)
