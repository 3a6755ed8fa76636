"""Class statements, and `type(name, bases, names)`, while tracing: `__build_class__` and
`type.__new__` over trackers.

The body is a frame whose namespace is a DictTracker. From what it leaves a *substitute* is made:
a real class, by the same function that the entry calls to make the class of each of its calls, over
substitutes for the functions and objects made here. The data model reads it as it reads any class,
and the heap gives the trackers back. Nothing that is read of it needs a guard, and no code of the
program runs natively: `__set_name__` and `__init_subclass__` are interpreted.

    class Scale(Base):            names: {"factor": 2, "apply": <FunctionTracker>}
        factor = 2                value: class Scale(Base): factor = 2; apply = substitute
        def apply(self, x): ...   heap: the substitute of `apply` -> its FunctionTracker
                                  entry: r1 = make_function(...)
                                         r0 = new_class(type, "Scale", (Base,), {...}, {})
"""

import enum
import operator
import types
import typing
from typing import Any

from stator_bytecode import (
    Invoke,
    OperationSteps,
    Raised,
    decode,
    new_frame,
    operation,
    settle,
)

from stator_variables._objects import (
    _dict_entries,
    _new_values,
    _number,
)
from stator_variables._objects._cell import CellTracker
from stator_variables._objects._classes import here, make
from stator_variables._objects._dict import DictTracker
from stator_variables._objects._lookup import guarded_lookup, overrides
from stator_variables._objects._recipe import RecipeTracker
from stator_variables._objects._super import SuperTracker
from stator_variables._objects._tuple import TupleTracker
from stator_variables._objects._wrap import builtins_of
from stator_variables._runtime._support import is_hooked, new_class, new_known_class
from stator_variables._space import Space
from stator_variables._tracker import MISSING, Args, FunctionTable, Kwargs, VariableTracker, is_a
from stator_variables._trackers import (
    NONE,
    ClassTracker,
    ConstantTracker,
    FunctionTracker,
    NumberTracker,
)

handlers = FunctionTable("class")
_TYPED_DICT: Any = vars(typing)["_TypedDictMeta"]
_NAMED_TUPLE: Any = vars(typing)["NamedTupleMeta"]
KNOWN_METACLASSES = (enum.EnumType, _NAMED_TUPLE, _TYPED_DICT)
"""Metaclasses that make a class of names alone: they are called at once."""


@handlers.handles(__build_class__)
@operation
def build_class(t: Space, args: Args, kwargs: Kwargs) -> OperationSteps:
    function, name, *originals = args
    bases = yield from _resolved(t, originals)
    metaclass = _winner(t, kwargs.pop("metaclass", None), bases)
    names = yield from _prepared(t, metaclass, name, bases, kwargs)
    closure, globals_vt = function.closure, function.globals
    builtins_vt = builtins_of(t, globals_vt)
    cell = yield Invoke(
        new_frame(function.code, (), closure, globals_vt, builtins_vt, function, names)
    )
    if bases != originals:
        _dict_entries.set_name(t, names, "__orig_bases__", TupleTracker(originals))

    parts = [name, TupleTracker(bases), names]
    if metaclass.value in KNOWN_METACLASSES:
        return _known(t, metaclass.value, parts, kwargs, function.code)
    made = yield from settle(t.call(metaclass, parts, kwargs))
    if is_a(cell, CellTracker) and cell.content is not made:
        raise t.unsupported(
            "class-definition", "a class whose metaclass leaves its methods without it"
        )
    return made


def _resolved(t: Space, originals: Args) -> OperationSteps:
    """`types.resolve_bases`."""
    bases: list[Any] = []
    for base in originals:
        if is_a(base, ClassTracker):
            bases.append(base)
            continue
        entries = yield from settle(t.get_attribute(base, "__mro_entries__"))
        found = yield from settle(t.call(entries, [TupleTracker(originals)]))
        bases += found.items
    if not all(is_a(base, ClassTracker) for base in bases):
        raise t.unsupported("class-definition", "a class with a base that is no class")
    return (
        bases
        if len(bases) != len(originals) or any(map(operator.is_not, bases, originals))
        else originals
    )


def _winner(t: Space, given: VariableTracker | None, bases: Args) -> Any:
    """The metaclass, a tracker (`_PyType_CalculateMetaclass`)."""
    if given is not None and not is_a(given, ClassTracker):
        raise t.unsupported("class-definition", "a metaclass that is no class")
    winner = type if given is None else given.value
    for base in bases:
        if issubclass(base.cls, winner):
            winner = base.cls
        elif not issubclass(winner, base.cls):
            raise t.unsupported("class-definition", "a conflict of metaclasses")
    if overrides(t, winner, "mro"):
        raise t.unsupported(
            "class-definition", "a metaclass that orders the bases in a way of its own"
        )
    return class_tracker(t, winner)


def _prepared(
    t: Space, metaclass: Any, name: VariableTracker, bases: Args, kwargs: Kwargs
) -> OperationSteps:
    if metaclass.value in KNOWN_METACLASSES:
        return DictTracker(dict, complete=True)
    prepare = yield from settle(t.get_attribute(metaclass, "__prepare__"))
    names = yield from settle(t.call(prepare, [name, TupleTracker(bases)], kwargs))
    if not is_a(names, DictTracker) or names.cls is not dict:
        raise t.unsupported("class-definition", "a class body with a namespace that is no dict")
    return names


@handlers.handles(vars(type)["__prepare__"])
def prepare(t: Space, args: Args, kwargs: Kwargs) -> DictTracker:
    return DictTracker(dict, complete=True)


@handlers.handles(type.__init__)
def initialise(t: Space, args: Args, kwargs: Kwargs) -> ConstantTracker:
    return NONE


def _known(t: Space, metaclass: type, args: Args, kwargs: Kwargs, code: types.CodeType) -> Any:
    """A class by one of KNOWN_METACLASSES."""
    if metaclass is enum.EnumType:
        _refuse_members(
            t, args[2], {i.arg for i in decode(code).instructions if i.op == "LOAD_NAME"}
        )
    return make(t, new_known_class, _recipe(t, metaclass, args, kwargs))


def _refuse_members(t: Space, names: DictTracker, read: set[str]) -> None:
    """Raise Unsupported for members that are not known by their values alone, or that code of the
    program makes."""
    if len(names.log) != len(names.entries):
        raise t.unsupported(
            "class-definition", "an Enum with a name that is given twice, or deleted"
        )
    for name, vt in _names(t, names).items():
        if is_a(vt, NumberTracker):
            _dict_entries.set_name(t, names, name, _number.as_constant(t, vt))
        elif name in _MEMBER_CODE or not (
            _is_known(vt) or (vt.cls is enum.auto and name not in read)
        ):
            raise t.unsupported(
                "class-definition", f"an Enum with {name}, which takes part in making its members"
            )


def _is_known(vt: VariableTracker) -> bool:
    return (
        vt.constant() is not MISSING or vt.cls is dict or is_a(vt, FunctionTracker | RecipeTracker)
    )


_MEMBER_CODE = frozenset(
    {"__new__", "__init__", "_generate_next_value_", "_missing_", "__set_name__", "_ignore_"}
)


@handlers.handles(type.__new__)
@operation
def new_type(t: Space, args: Args, kwargs: Kwargs) -> OperationSteps:
    """`type.__new__(metaclass, name, bases, names, **kwargs)`."""
    if len(args) != 4 or not is_a(args[2], TupleTracker) or not is_a(args[3], DictTracker):
        raise t.unsupported(
            "bad-arguments", "type.__new__() of other than a name, a tuple and a dict"
        )
    metaclass, name, bases, names = args
    winner = _winner(t, metaclass, bases.items)
    has_own = isinstance(guarded_lookup(t, winner.value, "__new__"), staticmethod)
    if winner.value is not metaclass.value and winner.value not in KNOWN_METACLASSES and has_own:
        new = yield from settle(t.get_attribute(winner, "__new__"))
        return (yield from settle(t.call(new, [winner, *args[1:]], kwargs)))

    made = make(t, new_class, _recipe(t, winner.value, [name, bases, names], kwargs))
    cell = _names(t, names).get("__classcell__")
    if cell is not None and not is_a(cell, CellTracker):
        raise t.unsupported("class-definition", "a __classcell__ that is no cell")
    if cell is not None:
        t.write(cell, content=made)
    yield from _call_hooks(t, made, _names(t, names), kwargs)
    return made


def _names(t: Space, names: VariableTracker) -> dict[str, Any]:
    pairs = [(key.constant(), value) for key, value in t.items(names)]
    if not all(type(key) is str for key, _ in pairs):
        raise t.unsupported("class-definition", "a class with a name that is no text")
    return dict(pairs)


def _recipe(t: Space, metaclass: type, args: Args, kwargs: Kwargs) -> Args:
    """Return the arguments of `new_class`; the namespace is copied, as by a class, and has the
    module it was made in."""
    name, bases, names = args
    if t.lookup(names, "__module__") is MISSING:
        kept = {**_names(t, names), "__module__": here(t)}
        names = _new_values.new_dict(kept)
    kept = {key: value for key, value in _names(t, names).items() if key != "__classcell__"}
    cls = TupleTracker([class_tracker(t, base.value) for base in bases.items])
    return [
        class_tracker(t, metaclass),
        name,
        cls,
        _new_values.new_dict(kept),
        _new_values.new_dict(kwargs),
    ]


def class_tracker(t: Space, cls: type) -> VariableTracker:
    """The tracker of a class: the one of a class that was made here."""
    return t.heap.made.get(id(cls)) or ClassTracker(cls)


def _call_hooks(t: Space, made: Any, names: dict[str, Any], kwargs: Kwargs) -> OperationSteps:
    for name, vt in names.items():
        if name != "__classcell__" and overrides(t, vt.cls, "__set_name__"):
            hook = t.special(vt, "__set_name__")
            try:
                yield from settle(t.call(hook, [made, ConstantTracker(name)]))
            except Raised as raised:
                raise t.unsupported(
                    "class-definition", f"a __set_name__ that raises {raised.value.cls}"
                ) from None
    if is_hooked(made.value.__mro__[1:]):
        hook = t.super_attribute(SuperTracker(made, made), "__init_subclass__")
        yield from settle(t.call(hook, [], kwargs))
