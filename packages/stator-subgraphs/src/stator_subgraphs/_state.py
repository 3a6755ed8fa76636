"""The state shared by the steps of building one graph. `OutputGraph` owns it; all of it lives as
long as one compilation."""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from attrs import Factory, define, frozen
from stator_bytecode.errors import NOWHERE, InvalidUse, Unsupported
from stator_variables import GraphValue, Journal
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx import Node
from torch.fx.experimental.symbolic_shapes import ShapeEnv

from stator_subgraphs._fake import World
from stator_subgraphs._location import Location
from stator_subgraphs._tracer import SubgraphTracer


@frozen
class Placed:
    """Around an operation: a break in it is at the user's line. A class, since a generator costs
    more than the rest."""

    location: Location

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        if isinstance(error, Unsupported) and error.where == NOWHERE:
            error.where = self.location.span()


@define(eq=False)
class GraphState:
    world: World
    location: Location
    journal: Journal
    root: SubgraphTracer
    current: SubgraphTracer
    # modules and tensors that graphs refer to by name
    held: dict[str, Any] = Factory(dict)
    keeps_history: bool = False  # the history of values inside will be read
    differentiated: list[Node] = Factory(list)  # by the call that ends the graph
    is_differentiated: bool = False  # the histories of examples were read
    copies: list[torch.Tensor] = Factory(list)  # examples with a `CopiedHistory`
    # fakes with changes that a rollback took back
    stale: list[torch.Tensor] = Factory(list)
    # sets the process back to where tracing began
    mode_undo: list[Callable[[], object]] = Factory(list)

    @property
    def mode(self) -> FakeTensorMode:
        return self.world.mode

    @property
    def env(self) -> ShapeEnv:
        return self.world.env

    def tracers(self) -> Iterator[SubgraphTracer]:
        """The open tracers, outermost first."""
        chain: list[SubgraphTracer] = []
        tracer: SubgraphTracer | None = self.current
        while tracer is not None:
            chain.append(tracer)
            tracer = tracer.parent
        return reversed(chain)

    def annotate(self, node: Node, example: object) -> None:
        node.meta["example_value"] = example
        self.location.annotate(node.meta)

    def placed(self) -> Placed:
        return Placed(self.location)

    @contextmanager
    def at_root(self) -> Iterator[None]:
        """Record into the root graph, before the operator whose body is open."""
        inner = self.current
        self.current = self.root
        try:
            yield
        finally:
            self.current = inner

    def leave_modes(self) -> None:
        while self.mode_undo:
            self.leave_last_mode()

    def leave_last_mode(self) -> None:
        self.mode_undo.pop()()

    def issue(self, node: Node, example: object) -> GraphValue:
        """The one traced value of a new node of the current graph."""
        return self.current.memoize(GraphValue(node, example))


# Values that a graph holds itself, under a name of its own.


def hold(state: GraphState, hint: str, value: object) -> GraphValue:
    """A `get_attr` node of the current graph; one object keeps one name."""
    if not isinstance(value, torch.nn.Module | torch.Tensor):
        raise InvalidUse(f"a graph holds modules and tensors, not a {type(value).__name__}")
    name = next((name for name, held in state.held.items() if held is value), None)
    if name is None:
        name = _free_name(state, hint)
        state.journal.put(state.held, name, value)
    example = (
        state.mode.from_tensor(value, static_shapes=True)
        if isinstance(value, torch.Tensor)
        else value
    )
    node = state.current.node("get_attr", name, (), {})
    state.annotate(node, example)
    return state.issue(node, example)


def _free_name(state: GraphState, hint: str) -> str:
    stem = re.sub(r"\W", "_", hint) or "held"
    number = 0
    while f"{stem}_{number}" in state.held:
        number += 1
    return f"{stem}_{number}"
