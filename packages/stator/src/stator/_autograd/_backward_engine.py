"""Replacement of torch's autograd engine in Python, while `compiled_autograd` is entered.

It runs plainly the backward passes that C++ cannot describe faithfully, and collects the callbacks
that hooks queue for the end of a captured one: C++ would drop them.
"""

import sys
import threading
import types
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import attrs
import torch
from stator_backends import Backend
from torch.autograd.graph import get_gradient_edge
from torch.autograd.variable import Variable

from stator.errors import Unsupported

_native: Any = torch._C._dynamo.compiled_autograd

_example = types.SimpleNamespace(value=object())
_ALONE = sys.getrefcount(_example.value)
"""References to an object that only an attribute has, as counted while that is read."""


@attrs.frozen
class BackwardSettings:
    """Settings that backward passes are compiled with. Equal settings share what was compiled."""

    backend: Backend = attrs.field(eq=id)
    fullgraph: bool
    dynamic: bool | None


class _Entered(threading.local):
    """The settings that this thread has entered, the present ones last, and the captured backward
    passes that it runs: the task of each, and callbacks for its end."""

    def __init__(self) -> None:
        self.settings: list[BackwardSettings] = []
        self.runs: list[tuple[int, list[Callable[[], None]]]] = []


entered = _Entered()


class BackwardEngine:
    """The one replacement of the process; its own engine object is equivalent to any other."""

    def __init__(self) -> None:
        self._own: Any = None
        self._replaced: Any = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._own, name)

    def install(self) -> None:
        self._replaced = Variable._execution_engine
        self._own = self._own or type(self._replaced)()
        substitute: Any = self
        Variable._execution_engine = substitute

    def remove(self) -> None:
        Variable._execution_engine, self._replaced = self._replaced, None

    def run_backward(
        self, roots: Any, gradients: Any, keeps: bool, creates: bool, *rest: Any, **keywords: Any
    ) -> Any:
        """Run a backward, plainly if it must be.

        Anomaly mode concerns the engine's own nodes. One more reference to the engine may queue
        callbacks in a backward, where C++ drops them. C++ has no order for roots that share a node.
        """
        run = partial(self._own.run_backward, roots, gradients, keeps, creates, *rest, **keywords)
        is_referenced = self._replaced is not None and sys.getrefcount(self._replaced) > _ALONE
        is_plain = is_referenced or (creates and not keeps) or _share_a_node(roots)
        if is_plain or torch.is_anomaly_enabled():
            return _run_plainly(run)

        try:
            return run()
        except Unsupported as refusal:
            is_required = bool(entered.settings) and entered.settings[-1].fullgraph
            if is_required or refusal.reason != "backward-capture":
                raise
            return _run_plainly(run)
        except AttributeError as error:
            if error.name != "symints":  # of the derivative of a compiled backward: there is none
                raise
            return _run_plainly(run)

    def queue_callback(self, callback: Callable[[], None]) -> None:
        task = torch._C._current_graph_task_id()
        if entered.runs and entered.runs[-1][0] == task:
            entered.runs[-1][1].append(callback)
        else:
            self._own.queue_callback(callback)

    @contextmanager
    def collecting_callbacks(self) -> Iterator[None]:
        """Call at the end what hooks inside have queued for the end of the backward."""
        callbacks: list[Callable[[], None]] = []
        entered.runs.append((torch._C._current_graph_task_id(), callbacks))
        try:
            yield
            for callback in callbacks:  # which may queue more of them
                callback()
        finally:
            entered.runs.pop()


@contextmanager
def plain_backwards() -> Iterator[None]:
    """Leave backward passes that start inside to the engine."""
    before = _native.set_autograd_compiler(None, False)
    try:
        yield
    finally:
        _native.set_autograd_compiler(*before)


def _run_plainly(run: Callable[[], Any]) -> Any:
    with plain_backwards():
        return run()


def _share_a_node(roots: Any) -> bool:
    """Return True for results of one operator, or one of them twice."""
    if len(roots) < 2:  # as nearly always
        return False
    edges = [get_gradient_edge(root) if isinstance(root, torch.Tensor) else root for root in roots]
    return len({edge[0] for edge in edges}) < len(edges)


engine = BackwardEngine()
