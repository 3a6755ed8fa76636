"""The engines of watches: machine words of CPython that change whenever a container does, read in
one pass.

Every dict has a version that no other state of any dict of the interpreter ever has, and every
class one that changes with the class and its bases. A word that still has its old value proves that
what was read through it is unchanged.

| CPython | engine |
|---|---|
| 3.11, 3.12 | version tags of dicts and classes, pointers inside instances, functions and cells |
| 3.13 | the same, once the values that an instance stores inline are moved to its dict (`detach`) |
| 3.14, 3.15 | dicts have no version tag; they get one by a watcher (`_dict_watcher.py`) on x86-64 |
| others, free-threaded builds, other implementations | none: every check reads everything |

Offsets are verified on live objects before they are used.
"""

import ctypes
import functools
import platform
import sys
from collections.abc import Callable, Sequence
from itertools import starmap
from types import FunctionType, GetSetDescriptorType
from typing import Any

from attrs import evolve, frozen

from stator_guards._dict_watcher import make_follow

WORD = 8
_FIRST_PAGE = 4096
_ALL_WORDS = (1 << 44) - 1
MANAGED_DICT = 1 << 4
HEAP_TYPE = 1 << 9
_VERSIONS = ((3, 11), (3, 12), (3, 13), (3, 14), (3, 15))


@frozen
class ObjectLayout:
    """Byte offsets from an object's address."""

    type: int = 8
    dict_version: int = 24
    managed_dict: int = -24
    type_version: int = 384
    cell_contents: int = 16
    function_code: int = 48
    function_defaults: int = 56
    function_kwdefaults: int = 64
    dict_values: int = 0
    """The pointer of a dict to the values it shares with an instance; 0 if instances never store
    values inline."""
    follow: Callable[[Any], object] | None = None
    """Gives a dict its version; None where all dicts have one."""


EMBEDDED = 2
"""The byte, in the header of such values, that is set while they lie inside the instance."""


def word(address: int) -> int:
    return ctypes.c_uint64.from_address(address).value


@functools.cache
def layout() -> ObjectLayout | None:
    """The layout of this interpreter, None where it is not known or fails the trial."""
    version = sys.version_info[:2]
    if platform.python_implementation() != "CPython" or version not in _VERSIONS:
        return None
    sizes = (ctypes.sizeof(ctypes.c_void_p), dict.__basicsize__, object.__basicsize__)
    if sizes != (8, 48, 16):
        return None

    found = ObjectLayout(dict_values=40 if version >= (3, 13) else 0)
    if version >= (3, 14):
        follow = make_follow()
        if follow is None:
            return None
        found = evolve(found, follow=follow)
    return found if _is_confirmed(found) else None


def _is_confirmed(found: ObjectLayout) -> bool:
    """Check that each word holds what it should. Reads only within objects of known sizes."""

    class Base:
        pass

    class Derived(Base):
        def __init__(self) -> None:
            self.attribute = 0

    def fn(a: int = 1000, *, b: int = 2000) -> int:
        return cell

    cell = 3000
    instance = Derived()
    attributes = instance.__dict__
    detach(instance)

    pointers = (
        (id(instance) + found.type, Derived),
        (id(instance) + found.managed_dict, attributes),
        (id(fn) + found.function_code, fn.__code__),
        (id(fn) + found.function_defaults, fn.__defaults__),
        (id(fn) + found.function_kwdefaults, fn.__kwdefaults__),
        (id((fn.__closure__ or ())[0]) + found.cell_contents, cell),
    )
    if any(word(address) != id(obj) for address, obj in pointers):
        return False

    give_dict_version(found, attributes)
    version = id(attributes) + found.dict_version
    return (
        _changes(version, lambda: attributes.update(a=1))
        and _changes(version, lambda: setattr(instance, "attribute", 1))
        and not has_inline_values(found, attributes)
        and isinstance(fn, FunctionType)
        and _type_version_moves(Base, Derived, found)
    )


def has_inline_values(found: ObjectLayout, mapping: dict[Any, Any]) -> bool:
    """Return whether an instance still stores the values of its dict: it writes them past the
    version of the dict."""
    values = word(id(mapping) + found.dict_values) if found.dict_values else 0
    return bool(values) and bool(ctypes.c_uint8.from_address(values + EMBEDDED).value)


def detach(obj: object) -> None:
    """Move the values that an instance stores inline (3.13) into its dict, for good: it stays the
    same dict.

    Runs no user code: the slot of C is called, without `__dict__` and `__setattr__` of the class.
    Reading and writing are one step for other threads, which may assign another dict. An instance
    never stores values inline again: that is decided when it is made.
    """
    for base in type(obj).__mro__:
        slot = base.__dict__.get("__dict__")
        if type(slot) is GetSetDescriptorType:
            next(map(slot.__set__, (obj,), map(slot.__get__, (obj,))))
            return


def unshare(mapping: dict[str, object]) -> None:
    """Give the dict of an instance keys of its own: with those of its class, to set an item to the
    value that it has counts as a change on 3.13.

    The last item is taken out and put back, which is one step for other threads.
    """
    if mapping:
        next(starmap(mapping.__setitem__, iter(mapping.popitem, None)))


def give_dict_version(found: ObjectLayout, mapping: dict[Any, Any]) -> None:
    """Let the word at `dict_version` change with the dict from now on."""
    if found.follow is not None:
        found.follow(mapping)


def give_version(cls: type) -> None:
    """A lookup through its bases gives a class its version; this one runs no user code."""
    type.__getattribute__(cls, "__init__")


def _changes(address: int, change: Callable[[], object]) -> bool:
    before = word(address)
    change()
    return word(address) != before


def _type_version_moves(base: type, derived: type, found: ObjectLayout) -> bool:
    address = id(derived) + found.type_version
    give_version(derived)
    before = word(address)
    if not before or before >> 32:
        return False
    setattr(base, "attribute", 1)
    cleared = word(address)
    give_version(derived)
    return not cleared and word(address) not in (0, before)


@frozen(eq=False)
class WordReader:
    """Reads many words in one pass inside C: `text` is the expression that generated code uses."""

    text: str
    objects: dict[str, object]
    places_of: Callable[[Sequence[int]], Any]
    read: Callable[[Any], bytes]


def _buffers(addresses: Sequence[int]) -> object:
    return [(ctypes.c_char * WORD).from_address(address) for address in addresses]


JOIN = WordReader("join({places})", {"join": b"".join}, _buffers, b"".join)


@functools.cache
def _gather() -> WordReader | None:
    """A reader over NumPy, where the process has it loaded already: about six times faster on
    hundreds of words."""
    numpy: Any = sys.modules.get("numpy")
    if numpy is None:
        return None
    # one window over the address space; only the words of live objects are ever taken from it
    window = (ctypes.c_uint64 * _ALL_WORDS).from_address(_FIRST_PAGE)
    take = numpy.frombuffer(window, dtype=numpy.uint64).take
    return WordReader(
        "take({places}).tobytes()",
        {"take": take},
        lambda addresses: numpy.array(
            [(address - _FIRST_PAGE) // WORD for address in addresses], dtype=numpy.intp
        ),
        lambda places: take(places).tobytes(),
    )


def reader(count: int) -> WordReader:
    """The faster reader for so many words."""
    return (count > 16 and _gather()) or JOIN
