"""`stator.compiled_autograd`: backward passes captured while it is entered, and compiled.

C++ keeps what was captured, by the structure of the backward, for the whole process. What a backend
made of it is kept here, until `stator.reset`.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

import attrs
import torch
from stator_backends import spec_of
from torch import Tensor
from torch._C import _len_torch_dispatch_stack

from stator._autograd._backward_engine import BackwardSettings, engine, entered, plain_backwards
from stator._autograd._backward_segment import BackwardSegment
from stator._autograd._backward_user_code import refusal_of, user_code_in
from stator._settings._options import disabled_by_environment, make_options

if TYPE_CHECKING:
    from stator_subgraphs import CapturedBackward

_native: Any = torch._C._dynamo.compiled_autograd


_programs: dict[Any, CapturedBackward] = {}


def compiled_autograd(
    *,
    backend: str | Callable[..., Any] = "inductor",
    fullgraph: bool = False,
    dynamic: bool | None = None,
    mode: str | None = None,
    options: Mapping[str, Any] | None = None,
    disable: bool = False,
) -> AbstractContextManager[None]:
    """Capture and compile each backward pass that is started inside this context.

    The parameters mean what they mean to `stator.compile`. Hooks and functions of the program run
    as they are, in the order of eager autograd; with `fullgraph` they raise Unsupported. Inside
    `disable=True`, backward passes run plainly.
    """
    if disable or disabled_by_environment():
        return plain_backwards()
    made = make_options(backend, fullgraph, dynamic, mode, options)
    return CompiledAutograd(BackwardSettings(made.backend, fullgraph, dynamic))


class CompiledAutograd(AbstractContextManager[None]):
    """The context; it may be entered again, inside itself too."""

    def __init__(self, settings: BackwardSettings) -> None:
        self.settings = settings
        self._modes: list[Any] = []

    def __enter__(self) -> None:
        _installation.enter()
        entered.settings.append(self.settings)
        # the engine would run nodes in threads of its own, which cannot be captured
        self._modes.append(torch.autograd.set_multithreading_enabled(False))

    def __exit__(self, *error: object) -> None:
        self._modes.pop().__exit__(*error)
        entered.settings.pop()
        _installation.leave()


class _Installation:
    """The compiler that C++ calls, which is one for all threads: installed while any has
    entered."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._count = 0
        self._before: tuple[Any, bool] = (None, False)
        self._theirs = ""

    def enter(self) -> None:
        with self._lock:
            if not self._count:
                self._forget_theirs()
                self._before = _native.set_autograd_compiler(_capture, True)
                engine.install()
            self._count += 1

    def leave(self) -> None:
        with self._lock:
            self._count -= 1
            if not self._count:
                engine.remove()
                _native.set_autograd_compiler(*self._before)

    def _forget_theirs(self) -> None:
        """Empty the cache of C++ if torch's own compiled autograd may have filled it since."""
        theirs: Any = sys.modules.get("torch._dynamo.compiled_autograd")
        captured = repr(getattr(theirs, "COMPILE_COUNTER", ""))
        if captured != self._theirs:
            self._theirs = captured
            _native.clear_cache()


_installation = _Installation()


def _capture() -> Any:
    from stator_subgraphs import BackwardCapture

    return BackwardCapture(_Runner)


@attrs.frozen(eq=False)
class _Runner:
    """The function that C++ calls for every backward of one structure."""

    captured: CapturedBackward

    def __call__(
        self, function: object, saved: list[Any], *inputs: Sequence[Any]
    ) -> Sequence[Tensor | None]:
        settings = entered.settings[-1] if entered.settings else None
        with plain_backwards():  # a hook may start a backward itself
            program = self.captured if settings is None else self._program(settings)
            arguments = self.captured.arguments(saved, *inputs)
            if not self.captured.user_code:
                return program.function(arguments)
            with engine.collecting_callbacks():
                return program.function(arguments)

    def _program(self, settings: BackwardSettings) -> CapturedBackward:
        """Return the backward with compiled segments, or as it is for a backend that compiles
        nothing, and where a compiler would not keep what happens: history, and calls of modes."""
        compiles = spec_of(settings.backend).compiles
        if settings.fullgraph:
            self._refuse_user_code(compiles)
        is_observed = torch.is_grad_enabled() or _len_torch_dispatch_stack()
        if is_observed or not compiles:
            return self.captured
        key = settings, self.captured.key, _autocast()
        if key not in _programs:
            _programs[key] = self._compiled(settings)
        return _programs[key]

    def _refuse_user_code(self, compiles: bool) -> None:
        """Raise Unsupported for code of the program that is not part of a graph."""
        followed = user_code_in(self.captured.graph) if compiles else []
        for node in self.captured.graph.nodes:
            if node.name in self.captured.user_code and node not in followed:
                raise refusal_of(node)

    def _compiled(self, settings: BackwardSettings) -> CapturedBackward:
        from stator_subgraphs import partitioned

        def segment(graph: torch.fx.Graph, name: str) -> BackwardSegment:
            return BackwardSegment(graph, name, settings)

        return partitioned(self.captured, segment)


def _autocast() -> object:
    """Return what autocast does at present, which a compiled backward depends on."""
    if not torch._C._is_any_autocast_enabled():
        return None
    devices = [each for each in ("cpu", "cuda") if torch.is_autocast_enabled(each)]
    return tuple((each, torch.get_autocast_dtype(each)) for each in devices)


def release_compiled() -> None:
    """Discard all backward passes that were captured and compiled."""
    _programs.clear()
    _native.clear_cache()
