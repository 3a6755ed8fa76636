"""Flag of a thread that is tracing: compiled functions called meanwhile, by a backend or a finalizer, run
natively if they have no entry, since the thread that traces may hold what they would wait for."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager


class _Making(threading.local):
    now = False


_making = _Making()


def is_making() -> bool:
    return _making.now


@contextmanager
def making() -> Iterator[None]:
    before, _making.now = _making.now, True
    try:
        yield
    finally:
        _making.now = before
