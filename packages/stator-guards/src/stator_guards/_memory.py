"""Where CPython keeps what tells a container apart from its past: one machine word each, read in one pass.

CPython 3.11 gives every dict a version that no other state of any dict ever has, and every class one that changes
with the class and its bases. A word that still has its old value proves that what was read through it is unchanged.
Versions with other layouts have no `Layout`, and there every check walks. Offsets are tried out before they are
trusted.
"""

import ctypes
import functools
import platform
import sys
from collections.abc import Callable, Sequence
from types import FunctionType
from typing import Any

import attrs

WORD = 8
_FIRST_PAGE = 4096
_ALL_WORDS = (1 << 44) - 1
MANAGED_DICT = 1 << 4
HEAP_TYPE = 1 << 9


@attrs.frozen
class Layout:
    """Byte offsets from an object's address."""

    type: int = 8
    dict_version: int = 24
    managed_dict: int = -24
    type_version: int = 384
    cell_contents: int = 16
    function_code: int = 48
    function_defaults: int = 56
    function_kwdefaults: int = 64


def word(address: int) -> int:
    return ctypes.c_uint64.from_address(address).value


@functools.cache
def layout() -> Layout | None:
    """The layout of this interpreter, None where it is not known or does not stand the trial."""
    if platform.python_implementation() != "CPython" or sys.version_info[:2] != (3, 11):
        return None
    sizes = (ctypes.sizeof(ctypes.c_void_p), dict.__basicsize__, object.__basicsize__)
    found = Layout()
    return found if sizes == (8, 48, 16) and _stands_trial(found) else None


def _stands_trial(found: Layout) -> bool:
    """Whether each word says what it should: looked at only within objects of known sizes."""

    class Base:
        pass

    class Derived(Base):
        pass

    def fn(a: int = 1000, *, b: int = 2000) -> int:
        return cell

    cell = 3000
    instance = Derived()
    attributes = instance.__dict__
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
    return (
        _changes(id(attributes) + found.dict_version, lambda: instance.__dict__.update(a=1))
        and isinstance(fn, FunctionType)
        and _type_version_moves(Base, Derived, found)
    )


def give_version(cls: type) -> None:
    """A lookup through its bases gives a class its version; this one runs no user code."""
    type.__getattribute__(cls, "__init__")


def _changes(address: int, change: Callable[[], object]) -> bool:
    before = word(address)
    change()
    return word(address) != before


def _type_version_moves(base: type, derived: type, found: Layout) -> bool:
    address = id(derived) + found.type_version
    give_version(derived)
    before = word(address)
    if not before or before >> 32:
        return False
    setattr(base, "attribute", 1)
    cleared = word(address)
    give_version(derived)
    return not cleared and word(address) not in (0, before)


@attrs.frozen(eq=False)
class Reader:
    """Reads many words in one pass inside C: `text` is the expression that generated code uses."""

    text: str
    objects: dict[str, object]
    places_of: Callable[[Sequence[int]], Any]
    read: Callable[[Any], bytes]


def _buffers(addresses: Sequence[int]) -> Any:
    return [(ctypes.c_char * WORD).from_address(address) for address in addresses]


JOIN = Reader("join({places})", {"join": b"".join}, _buffers, b"".join)


@functools.cache
def _gather() -> Reader | None:
    """A reader over NumPy, where the process has it loaded already: about six times faster on hundreds of words."""
    numpy: Any = sys.modules.get("numpy")
    if numpy is None:
        return None
    # one window over the address space; only the words of live objects are ever taken from it
    window = (ctypes.c_uint64 * _ALL_WORDS).from_address(_FIRST_PAGE)
    take = numpy.frombuffer(window, dtype=numpy.uint64).take
    return Reader(
        "take({places}).tobytes()",
        {"take": take},
        lambda addresses: numpy.array([(address - _FIRST_PAGE) // WORD for address in addresses], dtype=numpy.intp),
        lambda places: take(places).tobytes(),
    )


def reader(count: int) -> Reader:
    """The faster reader for so many words."""
    return (count > 48 and _gather()) or JOIN
