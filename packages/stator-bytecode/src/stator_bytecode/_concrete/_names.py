"""Names, imports, cells and attributes of the concrete domain."""

from collections.abc import MutableMapping
from types import CellType, GeneratorType
from typing import Any

from stator_bytecode._concrete._generators import generator_attribute
from stator_bytecode._concrete._operations import ConcreteOperations
from stator_bytecode._concrete._values import natively
from stator_bytecode._machine._frame import NULL, Frame


class NameOperations(ConcreteOperations):
    def load_global(self, frame: Frame, name: str) -> Any:
        for mapping in (frame.globals, frame.builtins):
            if (value := _item(mapping, name)) is not NULL:
                return value
        raise _undefined(name)

    def store_global(self, frame: Frame, name: str, value: Any) -> None:
        frame.globals[name] = value

    def delete_global(self, frame: Frame, name: str) -> None:
        if _item(frame.globals, name) is NULL:
            raise _undefined(name)
        del frame.globals[name]

    def load_name(self, frame: Frame, name: str) -> Any:
        value = _item(namespace(frame), name)
        return self.load_global(frame, name) if value is NULL else value

    def store_name(self, frame: Frame, name: str, value: Any) -> None:
        namespace(frame)[name] = value

    def delete_name(self, frame: Frame, name: str) -> None:
        missing = False
        try:
            del namespace(frame)[name]
        except KeyError:
            missing = True
        if missing:
            raise _undefined(name)

    def load_locals(self, frame: Frame) -> Any:
        return namespace(frame)

    def load_from_mapping(self, mapping: Any, name: str) -> Any:
        return _item(mapping, name)

    def build_class(self, frame: Frame) -> Any:
        if (build := _item(frame.builtins, "__build_class__")) is NULL:
            raise NameError("__build_class__ not found")
        return build

    def import_name(self, frame: Frame, name: str, fromlist: Any, level: Any) -> Any:
        if (import_function := _item(frame.builtins, "__import__")) is NULL:
            raise ImportError("__import__ not found")
        return import_function(name, frame.globals, frame.names, fromlist, level)

    def import_from(self, module: Any, name: str) -> Any:
        """Natively, for the fallback to `sys.modules` and the error texts."""
        found: dict[str, Any] = {}
        _import_from(module, name, found)
        return found[name]

    def import_star(self, frame: Frame, module: Any) -> None:
        _import_from(module, "*", namespace(frame))

    def get_attribute(self, value: Any, name: str) -> Any:
        if type(value) is GeneratorType and name.startswith("gi_"):
            return generator_attribute(value, name)
        return getattr(value, name)

    def load_method(self, value: Any, name: str) -> Any:
        return getattr(value, name), NULL

    set_attribute, delete_attribute = natively(setattr), natively(delattr)

    def make_cell(self, content: Any) -> CellType:
        return CellType() if content is NULL else CellType(content)

    def cell_get(self, cell: CellType) -> Any:
        return cell_content(cell)

    def cell_set(self, cell: CellType, content: Any) -> None:
        if content is NULL:
            del cell.cell_contents
        else:
            cell.cell_contents = content


def namespace(frame: Frame) -> MutableMapping[str, Any]:
    names: MutableMapping[str, Any] = frame.globals if frame.names is None else frame.names
    return names


def cell_content(cell: CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:
        return NULL


def _item(mapping: Any, name: str) -> Any:
    if type(mapping) is dict:
        return mapping.get(name, NULL)
    try:
        return mapping[name]
    except KeyError:
        return NULL


def _undefined(name: str) -> NameError:
    return NameError(f"name '{name}' is not defined", name=name)


def _import_from(module: Any, name: str, names: MutableMapping[str, Any]) -> None:
    handing_out = {"__builtins__": {"__import__": lambda *args: module}}
    exec(compile(f"from module import {name}", "<import>", "exec"), handing_out, names)
