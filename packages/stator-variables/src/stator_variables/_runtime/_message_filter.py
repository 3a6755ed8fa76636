"""Python's handling of the warnings of one block, where stator runs it."""

import contextlib
import threading
import warnings
from collections.abc import Iterator
from typing import Any

import attrs


@attrs.frozen(eq=False)
class _Texts:
    """Matches texts that begin so, in one thread; in place of the regular expression of a filter of
    `warnings`."""

    beginnings: tuple[str, ...]
    thread: int

    def match(self, text: str) -> bool:
        return text.startswith(self.beginnings) and threading.get_ident() == self.thread


@contextlib.contextmanager
def filtered(action: str, *beginnings: str) -> Iterator[None]:
    """An `action` of `warnings.simplefilter` for texts that begin so, in this thread. Not
    `warnings.catch_warnings`: after that, all that was shown once is shown again."""
    if not beginnings:
        yield
        return
    mine: Any = (action, _Texts(beginnings, threading.get_ident()), Warning, None, 0)
    warnings.filters.insert(0, mine)  # type: ignore[attr-defined]
    try:
        yield
    finally:
        with contextlib.suppress(ValueError):  # another thread may have set its own filters back
            warnings.filters.remove(mine)  # type: ignore[attr-defined]
