"""The body of a higher-order operator while it is traced, as a context manager.

    with graph.subgraph("true_branch") as scope:
        x = scope.argument(outer_x)    # explicit; other values of the outer graph are lifted
        body = scope.close([graph.call(torch.sin, (x,), {})])

Leaving without `close` (an exception) takes everything back, in the graphs around too.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import attrs
import torch
from stator_bytecode.errors import InternalError
from stator_variables import GraphValue

from stator_subgraphs._captured_graph import Body, CapturedModule
from stator_subgraphs._finish import held_by, prune, unused
from stator_subgraphs._mutation import storage_of
from stator_subgraphs._outer_value import is_computed, local_value, symbol_value
from stator_subgraphs._state import GraphState
from stator_subgraphs._structure import tensors_in
from stator_subgraphs._symbol import symbols_of
from stator_subgraphs._tracer import SubgraphTracer

Pairs = tuple[tuple[int, int], ...]


@attrs.define(eq=False)
class BodyScope:
    state: GraphState
    tracer: SubgraphTracer
    rollback: Callable[[int], None]
    _start: int = -1
    _arguments: list[GraphValue | None] = attrs.Factory(list)
    _closed: bool = False

    def __enter__(self) -> BodyScope:
        self._start = self.state.journal.mark()
        self.state.journal.assign(self.state, current=self.tracer)
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        if not self._closed and self.state.journal.mark() > self._start:
            self.rollback(self._start)

    def argument(self, value: object, hint: str = "arg") -> GraphValue:
        """The next explicit argument: a value of the graph around, or an example that the operator
        makes up."""
        if self.state.current is not self.tracer:
            raise InternalError("an argument for a body that is not the innermost one")
        outer = (
            local_value(self.tracer.parent, value)
            if isinstance(value, GraphValue) and self.tracer.parent
            else None
        )
        example = value if outer is None else outer.example
        inner = self.tracer.placeholder(hint, example, explicit=True)
        if isinstance(example, torch.Tensor):
            self.tracer.facts.births[inner.node] = (example.size(), example.stride())

        self._arguments.append(outer)
        self.state.journal.record(self._arguments.pop)
        if outer is not None:
            self.tracer.adopt(outer, inner)
        return inner

    @property
    def sees_tensors(self) -> bool:
        return any(tensors_in(node.meta.get("example_value")) for node in self.tracer.graph.nodes)

    def close(self, outputs: Sequence[Any]) -> Body:
        """End the body with these flat outputs, traced or constant, and go on in the graph
        around."""
        local = [
            local_value(self.tracer, value) if isinstance(value, GraphValue) else value
            for value in outputs
        ]
        self._lift_symbols()
        graph = self.tracer.graph
        graph.output(
            tuple(value.node if isinstance(value, GraphValue) else value for value in local)
        )
        self._drop_unused()
        self._leave(local)

        module = CapturedModule(held_by(self.state, graph), graph)
        examples = tuple(
            value.example if isinstance(value, GraphValue) else value for value in local
        )
        return Body(
            module,
            self.tracer,
            tuple(self._arguments),
            tuple(self.tracer.outer),
            examples,
            *self._memory(examples),
        )

    def close_wrapping(self, candidates: Sequence[GraphValue]) -> Body:
        """End the body; it gives those of the candidates that are computed in it, each once. They
        represent parts of what the operator gives, when it is recorded with this body."""
        mine = (self.tracer.graph, *self.tracer.bodies)
        own = (traced for traced in candidates if traced.node.graph in mine)
        inside = [local_value(self.tracer, traced) for traced in own]
        computed = {value.node: value for value in inside if is_computed(self.tracer, value)}
        return self.close(list(computed.values()))

    def _lift_symbols(self) -> None:
        """The symbols of explicit arguments, unless one of the arguments is the symbol itself."""
        for node in self.tracer.placeholders[: self.tracer.explicit]:
            for symbol in symbols_of(node.meta["example_value"]):
                symbol_value(self.tracer, symbol)

    def _leave(self, results: Sequence[object]) -> None:
        parent = self.tracer.parent
        assert parent is not None
        self._closed = True
        self.state.journal.assign(self.state, current=parent)
        self.tracer.leave(results)
        if self.tracer.unbacked:
            # What `x.item()` gave in here must not be remembered outside: nothing there binds it.
            self.state.mode.epoch += 1

    def _drop_unused(self) -> None:
        prune(self.tracer)
        for node in unused(self.tracer, self.tracer.placeholders[self.tracer.explicit :]):
            position = self.tracer.placeholders.index(node)
            del self.tracer.placeholders[position]
            del self.tracer.outer[position - self.tracer.explicit]
            self.tracer.graph.erase_node(node)

    def _memory(self, outputs: tuple[object, ...]) -> tuple[tuple[int, ...], Pairs, Pairs]:
        """Return the inputs that the body writes to, and the (output, input) and (output, output)
        pairs that share storage."""
        inputs = [node.meta["example_value"] for node in self.tracer.placeholders]
        inner, outer = _storages(inputs), _storages(outputs)
        dirty = {storage_of(tensor) for tensor in self.tracer.facts.written}
        written = tuple(sorted({position for position, storage in inner if storage in dirty}))
        aliased = tuple((o, i) for o, given in outer for i, taken in inner if given == taken)
        pairs = itertools.combinations(outer, 2)
        return (
            written,
            aliased,
            tuple((a, b) for (a, one), (b, other) in pairs if one == other and a != b),
        )


def _storages(examples: Sequence[object]) -> list[tuple[int, int]]:
    """(position, storage) of every tensor."""
    return [
        (position, storage_of(tensor))
        for position, value in enumerate(examples)
        for tensor in tensors_in(value)
    ]
