"""Signal handlers of the program during a compilation: they run in the middle of it, and observe
ordinary torch state.

CPython runs a Python handler between two instructions of the main thread, so a handler that saves a
checkpoint would get fake tensors where a trace has entered a fake mode, and its operators would be
recorded where a compiler traces. So each handler is wrapped for as long as the main thread
compiles:

    handler(number, frame)   =>   restore the handlers of the program and torch's earlier state;
                                  handler(number, frame)

An exception of a handler is raised by the compiled call: neither the compiler nor the traced
program may treat it as an error of its own.

Inside, `signal.getsignal` returns the handler that the program has set, and a handler that it sets
stays. A program without handlers of its own pays for one read of each signal per compilation.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any

import torch
import torch._subclasses.schema_check_mode  # see `OrdinaryState.entered`
from attrs import Factory, define, frozen
from torch._guards import tracing
from torch.utils._python_dispatch import _disable_current_modes

from stator_backends._session import AmbientState, uncompiled

SignalHandler = Callable[[int, Any], Any]
SIGNALS = tuple(map(int, signal.valid_signals()))


@frozen(eq=False)
class OrdinaryState:
    """The state of this thread before it compiled: the keys of the dispatcher, grad mode and
    autocast."""

    included: Any
    excluded: Any
    ambient: AmbientState

    @classmethod
    def capture(cls) -> OrdinaryState:
        return cls(
            torch._C._dispatch_tls_local_include_set(),
            torch._C._dispatch_tls_local_exclude_set(),
            AmbientState.capture(),
        )

    @contextmanager
    def entered(self) -> Iterator[None]:
        """Put the state in place, without modes for functions and operators, and the present one
        back at the end.

        Imports nothing: the next signal may arrive in the middle of that, and find half a module.
        """
        present = AmbientState.capture()
        with ExitStack() as stack:
            stack.enter_context(uncompiled())
            stack.enter_context(tracing(None))
            stack.enter_context(_without_function_modes())
            stack.enter_context(_disable_current_modes())
            stack.enter_context(torch.inference_mode(self.ambient.inference))
            stack.callback(present.install)
            self.ambient.install()
            stack.enter_context(torch._C._ForceDispatchKeyGuard(self.included, self.excluded))
            yield


@contextmanager
def _without_function_modes() -> Iterator[None]:
    modes = [
        torch._C._pop_torch_function_stack() for _ in range(torch._C._len_torch_function_stack())
    ]
    try:
        yield
    finally:
        for mode in reversed(modes):
            torch._C._push_on_torch_function_stack(mode)


@define(eq=False)
class Wrapping:
    """The handlers that are wrapped at the moment. `is_over`: a wrapper that stayed behind only
    calls its handler.

    Another signal may arrive between any two lines, so a handler is in place only while the state
    is ordinary.
    """

    state: OrdinaryState
    wrapped: dict[int, SignalHandler] = Factory(dict)
    running: int = 0
    is_over: bool = False
    raised: list[BaseException] = Factory(list)

    def install(self) -> None:
        for number, handler in handlers_of_program().items():
            if signal.getsignal(number) is handler:
                self.wrapped[number] = handler
                signal.signal(number, partial(self.run, handler))

    def remove(self) -> None:
        while self.wrapped:
            put_back(*self.wrapped.popitem())

    def run(self, handler: SignalHandler, number: int, frame: Any) -> None:
        if self.is_over:
            put_back(number, handler)
            handler(number, frame)
            return

        with self.state.entered(), _interruption.under_way():
            self.running += 1
            try:
                self.remove()
                put_back(number, handler)  # it may have come in the middle of `remove`
                handler(number, frame)
            except BaseException as error:
                self.raised.append(error)
                raise
            finally:
                self.running -= 1
                if not self.running:
                    self.install()


class Interruption(threading.local):
    """The number of handlers that run in the middle of a compilation of this thread."""

    handlers = 0

    @contextmanager
    def under_way(self) -> Iterator[None]:
        self.handlers += 1
        try:
            yield
        finally:
            self.handlers -= 1


_interruption = Interruption()


def interrupts_compilation() -> bool:
    """Return True in a signal handler that runs in the middle of a compilation.

    Nothing is compiled there: modules are half imported, and a fast timer would compile without
    end.
    """
    return _interruption.handlers > 0


def put_back(number: int, handler: SignalHandler) -> None:
    """Set a handler of the program again, unless the program has set another."""
    if _is_ours(signal.getsignal(number)):
        signal.signal(number, handler)


def handlers_of_program() -> dict[int, SignalHandler]:
    """Return the handlers written in Python, by signal."""
    found = ((number, signal.getsignal(number)) for number in SIGNALS)
    return {
        number: handler
        for number, handler in found
        if callable(handler) and handler is not signal.default_int_handler and not _is_ours(handler)
    }


def _is_ours(handler: object) -> bool:
    return isinstance(handler, partial) and getattr(handler.func, "__func__", None) is Wrapping.run


@contextmanager
def ordinary_signal_handlers() -> Iterator[None]:
    """Let signal handlers see ordinary torch state inside the block. Only the main thread runs
    handlers."""
    is_main = threading.current_thread() is threading.main_thread()
    if not is_main or not handlers_of_program():
        yield
        return
    wrapping = Wrapping(OrdinaryState.capture())
    try:
        wrapping.install()
        yield
    finally:
        wrapping.is_over = True
        wrapping.remove()
        if wrapping.raised:
            raise wrapping.raised.pop()
