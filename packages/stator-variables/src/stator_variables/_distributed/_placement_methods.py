"""Constructors and methods of placements, called while tracing on what is known."""

from typing import Any

from stator_bytecode import Result

from stator_variables._distributed._placement import CLASSES, PlacementTracker, has_value
from stator_variables._objects import _new_values
from stator_variables._objects._program_error import as_program_error
from stator_variables._space import Space
from stator_variables._tracker import MISSING, Args, FunctionTable, Kwargs, is_a

handlers = FunctionTable("placement")


def _methods(*names: str) -> dict[Any, str]:
    """The functions in C++ of these names, each with its name."""
    found = {name: [vars(cls).get(name) for cls in CLASSES] for name in names}
    return {
        method.__func__: name
        for name, methods in found.items()
        for method in methods
        if hasattr(method, "__func__")
    }


_NEW = tuple(cls.__new__ for cls in CLASSES[:1])


@handlers.handles(*_NEW)
def allocate(t: Space, args: Args, kwargs: Kwargs) -> Result:
    """A placement before its constructor; MISSING for other classes of pybind11."""
    cls: Any = args[0]
    is_placement = issubclass(cls.value, CLASSES[0])
    if not is_placement or not has_value(made := cls.value.__new__(cls.value)):
        return MISSING
    return PlacementTracker(made)


@handlers.handles_each(_methods("__init__"))
def initialise(t: Space, args: Args, kwargs: Kwargs, of: str) -> None:
    """Initialise a new placement by its constructor in C++."""
    vt: Any = args[0]
    named = {name: value.constant() for name, value in kwargs.items()}
    values = [value.constant() for value in args[1:]]
    is_new = is_a(vt, PlacementTracker) and vt.source is None
    if not is_new or MISSING in (*values, *named.values()):
        raise t.unsupported("construction", f"making a {vt.cls.__qualname__} of unknown values")
    try:
        # of the class in C++ whose constructor it is: another one may be Python code
        next(cls for cls in vt.cls.__mro__ if cls in CLASSES).__init__(vt.value, *values, **named)
    except (TypeError, ValueError) as error:
        raise as_program_error(t, error) from None


@handlers.handles_each(_methods("is_shard", "is_replicate", "is_partial", "__eq__"))
def method(t: Space, args: Args, kwargs: Kwargs, of: str) -> Result:
    """Call a method of C++ on what is known: placements and constants."""
    known = [vt.constant() for vt in args]
    named = {name: vt.constant() for name, vt in kwargs.items()}
    if not is_a(args[0], PlacementTracker) or any(
        value is MISSING for value in (*known, *named.values())
    ):
        raise t.unsupported("builtin", f"{of} of a placement, with what is not known")
    base = next(cls for cls in args[0].cls.__mro__ if cls in CLASSES and of in vars(cls))
    return _new_values.computed(t, getattr(base, of), *known, **named)
