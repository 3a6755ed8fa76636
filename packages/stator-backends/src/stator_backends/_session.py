"""Global state during a compilation: torch's flag for it, and the lock for one compiling thread.

torch's tracing sets dozens of plain globals for a moment and sets them back:
`warnings.showwarning`, flags of dispatch modes, the context of fake kernels. Two threads that do so
concurrently, not nested, leave them set for ever, and meanwhile read each other's. So one thread
traces at a time; a thread that runs eagerly is not affected by this state.
"""

from __future__ import annotations

import linecache
import os
import random
import sys
import threading
import warnings
import weakref
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from typing import Any

import attrs
import torch
from torch.fx.graph_module import _loader
from torch.utils.hooks import RemovableHandle


class CompileFlag(threading.local):
    """Replacement of torch's global behind `torch.compiler.is_compiling()`: true in the thread
    that holds it."""

    holders = 0

    def __bool__(self) -> bool:
        return self.holders > 0

    @contextmanager
    def held(self) -> Iterator[None]:
        with one_at_a_time:
            before = torch.compiler._is_compiling_flag
            torch.compiler._is_compiling_flag = self  # type: ignore[assignment]
            self.holders += 1
            try:
                yield
            finally:
                self.holders -= 1
                torch.compiler._is_compiling_flag = before

    @contextmanager
    def suspended(self) -> Iterator[None]:
        """Let this thread be one that does not compile: code of the program that interrupts it."""
        before = self.holders
        self.holders = 0
        try:
            yield
        finally:
            self.holders = before


one_at_a_time: Any = threading.RLock()
"""Held by the thread that traces or lowers. A child that is forked meanwhile has no such thread."""
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=one_at_a_time._at_fork_reinit)
_flag = CompileFlag()


def compile_session() -> AbstractContextManager[None]:
    """Inside, `torch.compiler.is_compiling()` is true for this thread, and no other thread is
    inside. Nests."""
    return _flag.held()


def uncompiled() -> AbstractContextManager[None]:
    """Inside, `torch.compiler.is_compiling()` is false for this thread."""
    return _flag.suspended()


@contextmanager
def harmless_warnings() -> Iterator[None]:
    """A warning inside a compiler is shown, not raised: the plain function would not have met
    it."""
    filters = list(warnings.filters)
    if not any(action == "error" for action, *_ in filters):
        yield
        return
    with warnings.catch_warnings():
        shown: Any = [
            ("default" if action == "error" else action, *which) for action, *which in filters
        ]
        warnings.filters[:] = shown  # type: ignore[index]
        yield


@contextmanager
def preserved_rng() -> Iterator[None]:
    """Random streams go on after the block as if it had not run: compilers draw numbers to tune and
    to fold."""
    restores = list(_rng_states())
    try:
        yield
    finally:
        for restore in restores:
            restore()


def _rng_states() -> Iterator[Callable[[], None]]:
    yield partial(random.setstate, random.getstate())
    yield partial(torch.random.set_rng_state, torch.random.get_rng_state())
    if torch.cuda.is_initialized():  # type: ignore[no-untyped-call]  # torch leaves it bare
        yield partial(torch.cuda.set_rng_state_all, torch.cuda.get_rng_state_all())
    if (numpy_random := sys.modules.get("numpy.random")) is not None:
        yield partial(numpy_random.set_state, numpy_random.get_state())


@contextmanager
def without_mkldnn() -> Iterator[None]:
    """Disable mkldnn: if only weights are trained, AOTAutograd takes its recurrent operator, for
    which it has no backward."""
    enabled = torch._C._get_mkldnn_enabled()
    torch._C._set_mkldnn_enabled(False)
    try:
        yield
    finally:
        torch._C._set_mkldnn_enabled(enabled)


@contextmanager
def preserved_hook_ids() -> Iterator[None]:
    """The next hook that the program registers gets the id it would have: AOTAutograd registers
    some on its way."""
    before = RemovableHandle.next_id
    try:
        yield
    finally:
        RemovableHandle.next_id = before


# fx keeps the text of every module that it generates, for good: of those that a backend makes on
# its way too.


def generated_texts() -> set[str]:
    """The names of all texts that there are now."""
    return set(_loader.eval_cache)


def forget_texts_with(compiled: object, names: Iterable[str]) -> None:
    """Drop these texts when `compiled` dies: until then a traceback can show their lines."""
    owner = getattr(compiled, "__self__", compiled)  # a bound method is made anew each time
    try:
        weakref.finalize(owner, _forget, tuple(names)).atexit = False
    except TypeError:  # its death cannot be observed
        return


def _forget(names: tuple[str, ...]) -> None:
    for name in names:
        _loader.eval_cache.pop(name, None)
        linecache.cache.pop(name, None)


# The modes of torch that change what a graph means: read at the entry of a trace, put back around
# its lowering.
#
# AOTAutograd reads the modes that are on when it compiles. A trace that ends inside `no_grad`
# would otherwise compile a graph whose outputs silently need no gradient.


@attrs.frozen
class AmbientState:
    """Grad mode and autocast as they were at one moment."""

    grad: bool
    inference: bool
    # of each device type: enabled, and to what it casts
    autocast: tuple[tuple[str, bool, torch.dtype], ...]
    autocast_cache: bool

    @classmethod
    def capture(cls) -> AmbientState:
        devices = _device_types()
        autocast = [
            (each, torch.is_autocast_enabled(each), torch.get_autocast_dtype(each))
            for each in devices
        ]
        return cls(
            torch.is_grad_enabled(),
            torch.is_inference_mode_enabled(),
            tuple(autocast),
            torch.is_autocast_cache_enabled(),
        )

    def install(self) -> None:
        """Set everything but inference mode, which can only be entered and left in a block."""
        torch.set_grad_enabled(self.grad)
        for device, enabled, dtype in self.autocast:
            torch.set_autocast_enabled(device, enabled)
            torch.set_autocast_dtype(device, dtype)
        torch.set_autocast_cache_enabled(self.autocast_cache)

    @contextmanager
    def restored(self) -> Iterator[None]:
        """Install these modes inside the block, and the present ones after it.

        Inference mode becomes `no_grad`: the tensors that a compiler makes for itself must not be
        inference tensors, which could not be used in a later call made outside that mode.
        """
        present = AmbientState.capture()
        with torch.inference_mode(False):
            try:
                attrs.evolve(self, grad=self.grad and not self.inference).install()
                yield
            finally:
                present.install()


def _device_types() -> tuple[str, ...]:
    accelerator = torch.accelerator.current_accelerator()
    return ("cpu",) if accelerator is None else ("cpu", accelerator.type)
