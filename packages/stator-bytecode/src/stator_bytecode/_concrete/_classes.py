"""`__build_class__` with the class body run as a frame."""

from collections.abc import Generator
from types import CellType, FunctionType, prepare_class, resolve_bases
from typing import Any

from stator_bytecode._concrete._names import cell_content
from stator_bytecode._concrete._operations import ConcreteOperations
from stator_bytecode._machine._domain import Invoke, Result, operation, settle
from stator_bytecode._machine._frame import NULL


def build_class(
    domain: ConcreteOperations, function: Any, name: Any, *bases: Any, **keywords: Any
) -> Result:
    if type(function) is not FunctionType or not domain.runs_as_frame(function):
        return __build_class__(function, name, *bases, **keywords)
    return _build(domain, function, name, bases, keywords)


@operation
def _build(
    domain: ConcreteOperations,
    function: FunctionType,
    name: str,
    originals: tuple[Any, ...],
    keywords: dict[str, Any],
) -> Generator[Any, Any, Any]:
    bases = resolve_bases(originals)
    metaclass, names, keywords = prepare_class(name, bases, keywords)
    if not hasattr(type(names), "__getitem__"):
        shown = metaclass.__name__ if isinstance(metaclass, type) else "<metaclass>"
        raise TypeError(f"{shown}.__prepare__() must return a mapping, not {type(names).__name__}")
    body = domain.frame_of(function, (), {})
    body.names = names
    cell = yield Invoke(body)
    if bases is not originals:
        names["__orig_bases__"] = originals
    cls = yield from settle(domain.call(metaclass, [name, bases, names], keywords))
    if isinstance(cls, type) and type(cell) is CellType:
        _check_cell(cell_content(cell), name, cls)
    return cls


def _check_cell(content: Any, name: str, cls: type) -> None:
    if content is NULL:
        raise RuntimeError(
            f"__class__ not set defining {name!r} as {cls!r}. "
            "Was __classcell__ propagated to type.__new__?"
        )
    if content is not cls:
        raise TypeError(f"__class__ set to {content!r} defining {name!r} as {cls!r}")
