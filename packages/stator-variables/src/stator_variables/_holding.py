"""What real objects hold: what may die with them, and who would notice."""

import gc
import sys
import weakref
from collections import Counter
from types import (
    AsyncGeneratorType,
    BuiltinFunctionType,
    CodeType,
    CoroutineType,
    FrameType,
    FunctionType,
    GeneratorType,
    ModuleType,
)
from typing import Any

import torch

_HOLDS_OR_CHANGES = 1 << 14 | 1 << 9  # Py_TPFLAGS_HAVE_GC, Py_TPFLAGS_HEAPTYPE
LOOKED_AT = 2000
"""How many objects that one holds are looked at: about so many."""

_ENDS = (type, ModuleType, BuiltinFunctionType, CodeType, torch.Tensor)
"""Classes of what is not looked at: it outlives a call, or holds memory. Compared with `type(…)`: `isinstance` may
ask the program."""

_PASSED_OVER = frozenset(map(id, (bool, int, float, str, bytes, type(None), torch.Tensor, torch.nn.Parameter)))
"""The commonest of what is not looked at, by identity: a class of the program's may have a hash of its own."""
_WITH_CODE = frozenset(map(id, (GeneratorType, CoroutineType, AsyncGeneratorType)))
_WITH_GLOBALS = frozenset(map(id, (FunctionType, FrameType)))


def held_by(value: object) -> list[object]:
    """What a value refers to, and so on, each once; hardly more than LOOKED_AT objects."""
    if issubclass(type(value), _ENDS):
        return []
    found, latest = {id(value): value}, [value]
    while latest and len(found) <= LOOKED_AT:
        held = [each for each in _referents(latest) if id(type(each)) not in _PASSED_OVER]
        ends = {i for i, cls in _classes(held).items() if issubclass(cls, _ENDS)}
        new = {id(each): each for each in held[:LOOKED_AT] if id(type(each)) not in ends and id(each) not in found}
        found |= new
        latest = [*new.values()]
    return [*found.values()][1:]


def _classes(values: list[object]) -> dict[int, type]:
    return {id(type(each)): type(each) for each in values}


def is_noticed(value: object) -> bool:
    """Whether the program, told by a weak reference, a `__del__` or a `finally`, may notice that an object dies."""
    return can_be_noticed(type(value)) and are_noticed([value, *held_by(value)])


def are_noticed(found: list[object]) -> bool:
    """Whether that is so of one of these, apart from what they hold."""
    classes = _classes(found)
    if not _WITH_CODE.isdisjoint(classes) and any(map(_has_clean_up, found)):
        return True
    is_heard_of = any(map(weakref.getweakrefcount, found)) and any(map(_is_heard_of, found))
    return is_heard_of or any("__del__" in vars(base) for cls in classes.values() for base in cls.__mro__)


def dying_with(waiting: dict[int, object], let_go: Counter[int]) -> list[object] | None:
    """What dies of values, and with them, when so many references to objects are let go of, all by identity; what
    others hold, and what that holds, lives on. None: more than LOOKED_AT objects were looked at."""
    gone, dying = Counter(let_go), dict[int, object]()
    while len(waiting) + len(dying) <= LOOKED_AT:
        fallen = [i for i in waiting if sys.getrefcount(waiting[i]) <= gone[i] + 2]  # the table, and the question
        if not fallen:
            return [*dying.values()]
        latest = [waiting.pop(i) for i in fallen]
        dying.update(zip(fallen, latest, strict=True))
        held = [each for each in _referents(latest) if id(type(each)) not in _PASSED_OVER]
        gone.update(map(id, held))
        waiting |= {id(each): each for each in held if id(each) not in dying and not issubclass(type(each), _ENDS)}
        del held
    return None


def can_be_noticed(cls: type) -> bool:
    """Whether that may be so of an instance: plain values hold nothing, and stay as they are."""
    return not issubclass(cls, _ENDS) and bool(cls.__flags__ & _HOLDS_OR_CHANGES or cls.__weakrefoffset__)


def all_unnoticed(*values: object) -> bool:
    """What the program lets go of, asked again on each call."""
    return not any(map(is_noticed, values))


def ends_unnoticed(iterator: object) -> bool:
    """Whether nobody notices it when an existing iterator, at its end, lets go of what it goes through."""
    return not any(map(_is_noticed_end, gc.get_referents(iterator)))


def _is_noticed_end(held: object) -> bool:
    """Whether that will be so when its one holder lets go of it; a list, `map` and this function know it too."""
    if type(held) is tuple:  # in which an iterator over a dict has the item that it gave last: others hold that, too
        return any(sys.getrefcount(item) <= 3 and is_noticed(item) for item in held)
    return sys.getrefcount(held) <= 5 and is_noticed(held)


def _has_clean_up(value: object) -> bool:
    if type(value) is GeneratorType:
        return value.gi_suspended and bool(value.gi_code.co_exceptiontable)
    return id(type(value)) in _WITH_CODE


def _is_heard_of(value: object) -> bool:
    """Weak references to tensors are mostly torch's own, those to classes and functions libraries'."""
    if issubclass(type(value), type | FunctionType | BuiltinFunctionType | torch.Tensor):
        return False
    return not all(map(_is_of_machinery, weakref.getweakrefs(value)))


def _is_of_machinery(reference: weakref.ref[object]) -> bool:
    """With a callback of torch's own, which has one for each module once its compiler is imported, or of a guard.

    A proxy is asked for nothing: it asks what it stands for.
    """
    called = reference.__callback__ if issubclass(type(reference), weakref.ref) else None
    return type(called) is FunctionType and str(called.__module__).startswith(("torch.", "stator_"))


def may_hold_real(holder: object, target: object) -> bool:
    found = held_by(holder)
    return len(found) >= LOOKED_AT or any(held is target for held in found)


def _referents(holders: list[object]) -> list[object]:
    return gc.get_referents(*(_parts(each) if id(type(each)) in _WITH_GLOBALS else each for each in holders))


def _parts(holder: Any) -> list[object]:
    """What it holds but for the globals, which outlive a call; a frame that is done holds half of the process, of which
    only that matters which nothing else holds: but for this list, the name here and the frame."""
    if type(holder) is FunctionType:
        return [holder.__closure__, holder.__defaults__, holder.__kwdefaults__, holder.__dict__]
    return [each for each in gc.get_referents(holder) if sys.getrefcount(each) <= 4]
