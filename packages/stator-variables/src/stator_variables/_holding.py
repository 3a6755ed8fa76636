"""What real objects hold: what may die with them."""

import gc
from types import BuiltinFunctionType, CodeType, FunctionType, ModuleType, TracebackType

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


def may_hold_real(holder: object, target: object) -> bool:
    found = held_by(holder)
    return len(found) >= LOOKED_AT or any(held is target for held in found)


def _referents(holder: object) -> list[object]:
    if type(holder) is FunctionType:
        return [holder.__closure__, holder.__defaults__, holder.__kwdefaults__, holder.__dict__]
    return gc.get_referents(holder)
