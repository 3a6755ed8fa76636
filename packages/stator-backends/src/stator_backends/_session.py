"""What holds while anything compiles: torch's own "we are compiling" flag, and who may compile at the same time.

The flag is one global that torch saves and restores around a block. Two threads whose blocks overlap without nesting
would leave it set for ever, hence the count.
"""

from __future__ import annotations

import random
import re
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import attrs
import torch
from torch.compiler import _compile_session_context


@attrs.define(eq=False)
class CompileFlag:
    """`torch.compiler.is_compiling()` is true while at least one holder is inside."""

    _lock: threading.Lock = attrs.field(factory=threading.Lock)
    _holders: int = 0
    _block: AbstractContextManager[Any] = attrs.field(factory=nullcontext)

    @contextmanager
    def held(self) -> Iterator[None]:
        self._enter()
        try:
            yield
        finally:
            self._leave()

    def _enter(self) -> None:
        with self._lock:
            if self._holders == 0:
                self._block = _compile_session_context()
                self._block.__enter__()
            self._holders += 1

    def _leave(self) -> None:
        with self._lock:
            self._holders -= 1
            if self._holders == 0:
                self._block.__exit__(None, None, None)


_flag = CompileFlag()
one_at_a_time = threading.RLock()  # AOTAutograd and Inductor patch process-wide settings while they compile


def compile_session() -> AbstractContextManager[None]:
    """Inside, `torch.compiler.is_compiling()` is true. Nests, also across threads; a front end may trace in it."""
    return _flag.held()


@contextmanager
def harmless_warnings() -> Iterator[None]:
    """A warning inside a compiler is shown, not raised: the plain function would not have met it."""
    filters = list(warnings.filters)
    if not any(action == "error" for action, *_ in filters):
        yield
        return
    with warnings.catch_warnings():
        warnings.resetwarnings()
        for action, message, category, module, line in reversed(filters):
            shown: Any = "default" if action == "error" else action
            kind: Any = category
            warnings.filterwarnings(shown, _pattern(message), kind, _pattern(module), line)
        yield


def _pattern(compiled: re.Pattern[str] | str | None) -> str:
    return compiled.pattern if isinstance(compiled, re.Pattern) else compiled or ""


@contextmanager
def preserved_rng() -> Iterator[None]:
    """Random streams go on after the block as if it had not run: compilers draw numbers to tune and to fold."""
    restores = list(_rng_states())
    try:
        yield
    finally:
        for restore in restores:
            restore()


def _rng_states() -> Iterator[Callable[[], None]]:
    yield _restorer(random.setstate, random.getstate())
    yield _restorer(torch.random.set_rng_state, torch.random.get_rng_state())
    if torch.cuda.is_initialized():  # type: ignore[no-untyped-call]  # torch leaves it bare
        yield _restorer(torch.cuda.set_rng_state_all, torch.cuda.get_rng_state_all())
    numpy_random = sys.modules.get("numpy.random")
    if numpy_random is not None:
        yield _restorer(numpy_random.set_state, numpy_random.get_state())


def _restorer(put_back: Callable[[Any], None], state: Any) -> Callable[[], None]:
    return lambda: put_back(state)
