"""Pickling what a dump cannot write as source: code, functions, cells, namespaces of modules,
places of breaks.

Whatever has an import path is referred to by it (and by its file, for a script); the rest goes by
value. A namespace of a module is always referred to: it is the program's, and has to be the one
that is live in the process that loads.
"""

import functools
import importlib
import importlib.util
import io
import marshal
import pickle
import sys
import types
import weakref
from collections.abc import Callable
from typing import Any

import torch
from stator_bytecode import Code, InnermostFrames, Point, Site, decode

from stator.errors import InvalidUse


def dumps(value: object) -> bytes:
    """Raises InvalidUse, naming the object, for what can go neither by reference nor by value."""
    stream = io.BytesIO()
    try:
        PortablePickler(stream).dump(value)
    except (pickle.PicklingError, TypeError, AttributeError, ValueError, RecursionError) as error:
        raise InvalidUse(
            f"cannot dump: {error}", "keep such an object out of the compiled function"
        ) from error
    return stream.getvalue()


class PortablePickler(pickle.Pickler):
    """The C pickler, with our references for what it refuses or would take apart."""

    def __init__(self, stream: io.BytesIO) -> None:
        super().__init__(stream, protocol=pickle.HIGHEST_PROTOCOL)
        self._namespaces = {
            id(vars(module)): module for module in list(sys.modules.values()) if _has_name(module)
        }

    def persistent_id(self, value: object) -> Any:
        module = self._namespaces.get(id(value)) if type(value) is dict else None
        return None if module is None else _reference(module)

    def reducer_override(self, value: object) -> Any:
        if (reduce := _REDUCERS.get(type(value))) is not None:
            return reduce(value)
        return _reduced_class(value) if isinstance(value, type) else NotImplemented


class PortableUnpickler(pickle.Unpickler):
    def persistent_load(self, reference: Any) -> dict[str, Any]:
        return vars(module_at(*reference))


def loads(data: bytes) -> Any:
    return PortableUnpickler(io.BytesIO(data)).load()


def _has_name(module: object) -> bool:
    return isinstance(module, types.ModuleType) and isinstance(
        getattr(module, "__name__", None), str
    )


def _reference(module: types.ModuleType) -> tuple[str, str]:
    return module.__name__, getattr(module, "__file__", None) or ""


def module_at(name: str, path: str) -> types.ModuleType:
    """The module of that name; a script, or what cannot be imported by name, from its file."""
    found = sys.modules.get(name)
    if found is not None and (getattr(found, "__file__", None) or "") == path:
        return found
    if name != "__main__":
        try:
            return importlib.import_module(name)
        except ImportError:
            if not path:
                raise
    return _from_file(path)


@functools.cache
def _from_file(path: str) -> types.ModuleType:
    spec = importlib.util.spec_from_file_location("dumped_program", path)
    if spec is None or spec.loader is None:
        raise InvalidUse(f"the program that was compiled is not at {path!r} any more")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def attribute_at(name: str, path: str, qualname: str) -> object:
    return functools.reduce(getattr, qualname.split("."), module_at(name, path))


# -- one reducer for each kind that pickle does not support ------------------------------------
def _path_to(value: Any) -> tuple[str, str, str] | None:
    """Return the module and name by which `value` can be found again; None without such a path."""
    module = sys.modules.get(getattr(value, "__module__", None) or "")
    if module is None or "<" in value.__qualname__:
        return None
    return (
        (*_reference(module), value.__qualname__)
        if _part(module, value.__qualname__) is value
        else None
    )


def _part(module: object, qualname: str) -> Any:
    """None where the module has none."""
    return functools.reduce(
        lambda whole, name: getattr(whole, name, None), qualname.split("."), module
    )


_NAMED_IN_TYPES = {value: name for name, value in vars(types).items() if isinstance(value, type)}


def _reduced_class(value: type) -> object:
    # the `__module__` of `function`, `cell` and the like is `builtins`, which does not have them
    if value in _NAMED_IN_TYPES:
        return getattr, (types, _NAMED_IN_TYPES[value])
    path = _path_to(value)
    return NotImplemented if path is None or path[0] == "builtins" else (attribute_at, path)


def _reduced_function(value: types.FunctionType) -> object:
    if value.__module__ == __name__:
        return NotImplemented  # what the references themselves are read with
    if (path := _path_to(value)) is not None:
        return attribute_at, path
    facts = (value.__qualname__, value.__defaults__, value.__kwdefaults__, value.__dict__)
    made = (value.__code__, value.__globals__, value.__name__, None, value.__closure__)
    return types.FunctionType, made, facts, None, None, fill_function


def fill_function(made: types.FunctionType, facts: Any) -> None:
    made.__qualname__, made.__defaults__, made.__kwdefaults__, attributes = facts
    made.__dict__.update(attributes)


def _reduced_code(code: types.CodeType) -> object:
    """Reduce code to the path of its function, so that a guard on its identity holds; otherwise by
    value."""
    for module in list(sys.modules.values()):
        if getattr(module, "__file__", None) != code.co_filename:
            continue
        if getattr(_part(module, code.co_qualname), "__code__", None) is code:
            return attribute_at, (*_reference(module), f"{code.co_qualname}.__code__")
    return marshal.loads, (marshal.dumps(code),)


def _reduced_cell(cell: types.CellType) -> object:
    try:
        content = cell.cell_contents
    except ValueError:  # an empty cell
        return types.CellType, ()
    return (
        types.CellType,
        (),
        (content,),
        None,
        None,
        fill_cell,
    )  # filled later: a function may be in its own closure


def fill_cell(cell: types.CellType, content: tuple[Any]) -> None:
    (cell.cell_contents,) = content


class Strong:
    """Weak reference whose object lives as long as what was loaded. One to a tensor is
    to none."""

    def __init__(self, value: object) -> None:
        self.value = None if isinstance(value, torch.Tensor) else value

    def __call__(self) -> Any:
        return self.value


_REDUCERS: dict[type, Callable[[Any], Any]] = {
    types.ModuleType: lambda module: (module_at, _reference(module)),
    types.FunctionType: _reduced_function,
    types.CodeType: _reduced_code,
    types.CellType: _reduced_cell,
    weakref.ReferenceType: lambda reference: (Strong, (reference(),)),
    Code: lambda code: (decode, (code.raw,)),
    Point: lambda point: (Point, (point.frames, point.carried)),
    InnermostFrames: lambda rest: (InnermostFrames, (rest.start, rest.first)),
    Site: lambda site: (Site, (site.point,)),
}
