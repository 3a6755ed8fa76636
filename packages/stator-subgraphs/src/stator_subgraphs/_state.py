"""What the steps of building one graph share. `OutputGraph` owns it; all of it lives as long as one compilation."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import attrs
import torch
from stator_bytecode.errors import NOWHERE, Unsupported
from stator_variables import Journal, Traced
from torch import fx
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.symbolic_shapes import ShapeEnv

from stator_subgraphs._location import Location
from stator_subgraphs._tracer import SubgraphTracer


@attrs.frozen
class Placed:
    """Around an operation: a break in it is at the user's line. A class, since a generator costs more than the rest."""

    location: Location

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        if isinstance(error, Unsupported) and error.where == NOWHERE:
            error.where = self.location.span()


@attrs.define(eq=False)
class GraphState:
    mode: FakeTensorMode
    env: ShapeEnv
    location: Location
    journal: Journal
    root: SubgraphTracer
    current: SubgraphTracer
    held: dict[str, Any] = attrs.field(factory=dict)  # modules and tensors that graphs refer to by name
    stale: list[torch.Tensor] = attrs.field(factory=list)  # fakes with changes that a rollback took back
    mode_undo: list[Callable[[], object]] = attrs.field(factory=list)  # sets the process back to where tracing began

    def tracers(self) -> Iterator[SubgraphTracer]:
        """The open tracers, outermost first."""
        chain: list[SubgraphTracer] = []
        tracer: SubgraphTracer | None = self.current
        while tracer is not None:
            chain.append(tracer)
            tracer = tracer.parent
        return reversed(chain)

    def annotate(self, node: fx.Node, example: Any) -> None:
        node.meta["example_value"] = example
        self.location.annotate(node.meta)

    def placed(self) -> Placed:
        return Placed(self.location)

    @contextmanager
    def at_root(self) -> Iterator[None]:
        """Record into the root graph, before the operator whose body is open."""
        inner, self.current = self.current, self.root
        try:
            yield
        finally:
            self.current = inner

    def leave_modes(self) -> None:
        while self.mode_undo:
            self.leave_last_mode()

    def leave_last_mode(self) -> None:
        self.mode_undo.pop()()

    def issue(self, node: fx.Node, example: Any) -> Traced:
        """The one traced value of a new node of the current graph."""
        return self.current.remember(Traced(node, example))
