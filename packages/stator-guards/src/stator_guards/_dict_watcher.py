"""A version of dicts for CPythons that have none (since 3.14).

`PyDict_Watch` makes CPython call a function of C before each change of a dict. Ours adds to the
part of the dict's own word, beside the bits of its watchers, that CPython does not use: so the word
changes whenever the dict does, as the version tag of older CPythons.

The function is machine code of this module. One of Python could not do it: it may be called while
an exception is pending, while the interpreter shuts down, and for each write. Where memory cannot
be made executable, and on other processors, there is no version.
"""

import ctypes
import mmap
import os
import platform
from collections.abc import Callable
from typing import Any

_CODE = {
    # int changed(event, dict, key, value); the dict is in rsi, its word at 24
    "x86_64": bytes.fromhex(
        "48 81 46 18 00 10 00 00"  # add qword ptr [rsi + 24], 1 << 12
        "31 c0"  # xor eax, eax
        "c3"  # ret
    ),
}
"""The function, by processor. The lowest 12 bits of the word are those of watchers, and of
CPython's own count."""
_FAILED = ctypes.c_void_p(-1).value


def make_follow() -> Callable[[Any], object] | None:
    """Return a function from which on a dict has a version; None where there is none.

    It takes a dict that it was called with before, too.
    """
    address = _executable(_CODE.get(platform.machine(), b""))
    if address is None:
        return None
    add = ctypes.pythonapi.PyDict_AddWatcher
    add.argtypes, add.restype = [ctypes.c_void_p], ctypes.c_int
    try:
        watcher = add(address)
    except RuntimeError:  # others have taken all of them
        return None

    watch = ctypes.pythonapi.PyDict_Watch
    watch.argtypes, watch.restype = [ctypes.c_int, ctypes.py_object], ctypes.c_int

    def follow(mapping: Any) -> None:
        watch(watcher, mapping)

    return follow


def _executable(code: bytes) -> int | None:
    """Return the address of memory with this code. It is never released: dicts outlive modules."""
    if not code or os.name != "posix":
        return None
    library: Any = ctypes.CDLL(None)
    library.mmap.restype = ctypes.c_void_p
    library.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
    library.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    kind = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
    size = mmap.PAGESIZE
    address: int | None = library.mmap(None, size, mmap.PROT_READ | mmap.PROT_WRITE, kind, -1, 0)
    if address in (None, _FAILED):
        return None
    ctypes.memmove(address, code, len(code))
    protected = library.mprotect(address, size, mmap.PROT_READ | mmap.PROT_EXEC) == 0
    return address if protected else None
