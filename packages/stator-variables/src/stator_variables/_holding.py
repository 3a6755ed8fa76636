"""What real objects hold: what may die with them, and who would notice."""

import gc
import sys
import weakref
from types import BuiltinFunctionType, CodeType, FunctionType, GeneratorType, ModuleType, TracebackType

import torch

LOOKED_AT = 2000
"""How many objects that one holds are looked at."""

_ENDS = (type, ModuleType, BuiltinFunctionType, CodeType, TracebackType, torch.Tensor)
"""Classes of what is not looked at: it outlives a call, or holds memory alone; and a traceback holds half of the
process through its frames. Compared with `type(…)`: `isinstance` may ask the program."""


def held_by(value: object) -> list[object]:
    """What a value refers to, and so on, each once; LOOKED_AT objects at most."""
    if issubclass(type(value), _ENDS):
        return []
    found, seen = [value], {id(value)}
    for holder in found:
        for held in _referents(holder):
            if id(held) not in seen and len(found) <= LOOKED_AT and not issubclass(type(held), _ENDS):
                seen.add(id(held))
                found.append(held)
    return found[1:]


def is_noticed(value: object) -> bool:
    """Whether the program, told by a weak reference, a `__del__` or a `finally`, may notice that an object dies."""
    return _has_witness(value) or any(map(_has_witness, held_by(value)))


def is_noticed_end(held: object) -> bool:
    """Whether that will be so when its one holder lets go of it; a list, `map` and this function know it too."""
    if type(held) is tuple:  # in which an iterator over a dict has the item that it gave last: others hold that, too
        return any(sys.getrefcount(item) <= 3 and is_noticed(item) for item in held)
    return sys.getrefcount(held) <= 5 and is_noticed(held)


def _has_witness(value: object) -> bool:
    """Weak references to tensors are mostly torch's own, those to classes and functions libraries'."""
    if issubclass(type(value), type | FunctionType | BuiltinFunctionType | torch.Tensor):
        return False
    if type(value) is GeneratorType:
        return value.gi_suspended and bool(value.gi_code.co_exceptiontable)
    if not all(map(_is_of_torch, weakref.getweakrefs(value))):
        return True
    return any("__del__" in vars(cls) for cls in type(value).__mro__)


def _is_of_torch(reference: weakref.ref[object]) -> bool:
    """With a callback of torch's own, which has one for each module once its compiler is imported.

    A proxy is asked for nothing: it asks what it stands for.
    """
    called = reference.__callback__ if issubclass(type(reference), weakref.ref) else None
    return type(called) is FunctionType and str(called.__module__).startswith("torch.")


def may_hold_real(holder: object, target: object) -> bool:
    found = held_by(holder)
    return len(found) >= LOOKED_AT or any(held is target for held in found)


def _referents(holder: object) -> list[object]:
    if type(holder) is FunctionType:
        return [holder.__closure__, holder.__defaults__, holder.__kwdefaults__, holder.__dict__]
    return gc.get_referents(holder)
