"""Flag of a thread that is tracing: compiled functions called meanwhile, by a backend or a
finalizer, run natively if they have no entry, since the thread that traces may hold what they would
wait for."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager


class _Compiling(threading.local):
    now = False


_compiling = _Compiling()


def is_compiling() -> bool:
    return _compiling.now


@contextmanager
def compiling() -> Iterator[None]:
    before = _compiling.now
    _compiling.now = True
    try:
        yield
    finally:
        _compiling.now = before
