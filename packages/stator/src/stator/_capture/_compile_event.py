"""One compilation as others observe it: its id, and callbacks at its start and end.

`observed` surrounds the making of each entry. Nothing here runs in a call that has an entry.
"""

import itertools
import sys
import threading
import time
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager, nullcontext
from typing import Any, Protocol

import attrs
from stator_bytecode import FlatState
from stator_guards import Cache
from torch._guards import CompileContext, CompileId, compile_context

from stator._capture._collector import rare_collections
from stator._capture._compilation_flag import compiling
from stator._capture._compile_log import Compilation, log_end, log_start
from stator._capture._progress import PROGRESS
from stator._program._target import Target
from stator._settings._stance import follow_stance
from stator._settings._torch_managers import follow_torch


@attrs.frozen
class CompileEvent:
    """A compilation: the id by which compilers report it, and the name of what is compiled."""

    compile_id: str
    name: str


Callback = Callable[[CompileEvent], object]


@attrs.define(eq=False)
class _Callbacks:
    """Functions that run before the first of several concurrent compilations, and after the
    last."""

    starts: list[Callback] = attrs.field(factory=list)
    ends: list[Callback] = attrs.field(factory=list)
    pending: int = 0
    lock: Any = attrs.field(factory=threading.Lock)

    def count(self, change: int) -> int:
        with self.lock:
            self.pending += change
            return self.pending

    @contextmanager
    def around(self, event: CompileEvent) -> Iterator[None]:
        try:
            if self.count(1) == 1:
                _run(self.starts, event)
            yield
        finally:
            if self.count(-1) == 0:
                _run(self.ends, event)


def _run(callbacks: list[Callback], event: CompileEvent) -> None:
    for callback in [*callbacks]:
        callback(event)


_callbacks = _Callbacks()


def on_compile_start(callback: Callback) -> Callback:
    """Call a function with a `CompileEvent` before each compilation; also a decorator.

    A compilation inside of another one, or beside it in another thread, is not reported.
    """
    _callbacks.starts.append(callback)
    return callback


def on_compile_end(callback: Callback) -> Callback:
    """Call a function with a `CompileEvent` after each compilation, also one that failed; also a
    decorator."""
    _callbacks.ends.append(callback)
    return callback


def remove_compile_callback(callback: Callback) -> None:
    """Remove a function from those called before and after compilations."""
    for callbacks in (_callbacks.starts, _callbacks.ends):
        if callback in callbacks:
            callbacks.remove(callback)


_frames = itertools.count()


@attrs.define(eq=False)
class FrameIds:
    """The ids of the compilations at one place, like those that Dynamo counts for a frame."""

    frame: int = attrs.field(factory=lambda: next(_frames))
    compilations: Iterator[int] = attrs.field(factory=itertools.count)

    def next(self) -> CompileId:
        return CompileId(frame_id=self.frame, frame_compile_id=next(self.compilations))


class Observable(Protocol):
    """A place where entries are made."""

    target: Target
    ids: FrameIds
    cache: Cache

    @property
    def shared(self) -> Any: ...


@contextmanager
def observed(place: Observable, key: Hashable, state: FlatState) -> Iterator[Compilation]:
    """Surround the making of an entry, which the block leaves in the `Compilation`."""
    compile_id = place.ids.next()
    made = Compilation(place.target, time.time(), place.shared.refused)
    event = CompileEvent(str(compile_id), place.target.name)
    with compile_context(CompileContext(compile_id)):
        with _callbacks.around(event), _callbacks_of_torch(event):
            follow_torch()
            log_start(place.target, place.cache, key, state)
            with compiling(), rare_collections(), PROGRESS.around(place.target.name):
                yield made
        made.note_times()
        log_end(made)
    follow_stance()


def _callbacks_of_torch(event: CompileEvent) -> Any:
    """Return a context manager that runs the callbacks registered with torch."""
    module: Any = sys.modules.get("torch._dynamo.callback")
    if module is None:
        return nullcontext()
    trigger = module.CallbackTrigger.DYNAMO
    return module.callback_handler.install_callbacks(trigger, event.compile_id)
