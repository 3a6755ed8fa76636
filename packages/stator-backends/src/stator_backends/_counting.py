"""A backend that records what it was given, for tests and benchmarks to inspect."""

import threading
from collections.abc import Sequence
from typing import Any

import attrs
import torch

from ._backend import Backend, BackendSpec, Compiled, spec_of
from ._eager import eager

CALLS = frozenset({"call_function", "call_method", "call_module"})


def count_ops(gm: torch.fx.GraphModule) -> int:
    return sum(node.op in CALLS for node in gm.graph.nodes)


@attrs.define(eq=False)
class CountingBackend:
    """Hands each graph on to `inner`, and remembers it. Each instance is its own backend to a
    cache.

    An inner backend that takes its graph apart leaves only pieces in `graphs`; `ops` was counted
    before.
    """

    inner: Backend = eager
    graphs: list[torch.fx.GraphModule] = attrs.field(factory=list)
    ops: list[int] = attrs.field(factory=list)
    _lock: threading.Lock = attrs.field(factory=threading.Lock, repr=False)

    @property
    def spec(self) -> BackendSpec:
        inner = spec_of(self.inner)
        return attrs.evolve(inner, name=f"counting({inner.name})")

    def __call__(self, gm: torch.fx.GraphModule, example_inputs: Sequence[Any]) -> Compiled:
        with self._lock:
            self.graphs.append(gm)
            self.ops.append(count_ops(gm))
        return self.inner(gm, example_inputs)

    def clear(self) -> None:
        with self._lock:
            self.graphs.clear()
            self.ops.clear()
