"""A backend that records what it was given, for tests and benchmarks to inspect."""

import threading
from collections.abc import Sequence
from typing import Any

from attrs import Factory, define, evolve, field
from torch.fx import GraphModule

from ._backend import Backend, BackendSpec, Compiled, spec_of
from ._eager import eager

CALLS = frozenset({"call_function", "call_method", "call_module"})


def count_ops(gm: GraphModule) -> int:
    return sum(node.op in CALLS for node in gm.graph.nodes)


@define(eq=False)
class CountingBackend:
    """Hands each graph on to `inner`, and remembers it. Each instance is its own backend to a
    cache.

    An inner backend that takes its graph apart leaves only pieces in `graphs`; `ops` was counted
    before.
    """

    inner: Backend = eager
    graphs: list[GraphModule] = Factory(list)
    ops: list[int] = Factory(list)
    _lock: threading.Lock = field(factory=threading.Lock, repr=False)

    @property
    def spec(self) -> BackendSpec:
        inner = spec_of(self.inner)
        return evolve(inner, name=f"counting({inner.name})")

    def __call__(self, gm: GraphModule, example_inputs: Sequence[Any]) -> Compiled:
        with self._lock:
            self.graphs.append(gm)
            self.ops.append(count_ops(gm))
        return self.inner(gm, example_inputs)

    def clear(self) -> None:
        with self._lock:
            self.graphs.clear()
            self.ops.clear()
