"""The graph of one compilation: inputs, operator calls, bodies of higher-order operators, and its
end.

    graph = OutputGraph(places)
    x = graph.tensor_input(source, tensor, [Dim()], "x")
    y = graph.call(torch.sin, (x,), {})
    captured = graph.finish([y])

One fake propagation per call, nothing is traced twice. Whatever is added can be taken back with
`mark` and `rollback`.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import torch
from stator_bytecode.errors import InternalError, InvalidUse, Unsupported
from stator_guards import ShapeExpression, Source
from stator_variables import (
    Args,
    Dim,
    GraphValue,
    Journal,
    Kwargs,
    Space,
    TraceLocations,
    give_warning,
    is_level_open,
)
from torch._guards import CompileId, TracingContext, tracing
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx import Graph
from torch.fx.experimental.symbolic_shapes import ShapeEnv

from stator_subgraphs._arithmetic import computed_source, condition_of, text_of
from stator_subgraphs._call import (
    project,
    propagated,
    read_number,
    record_call,
    record_reading_numbers,
)
from stator_subgraphs._captured_graph import Body, CapturedGraph
from stator_subgraphs._constant import constant_of, truth_of
from stator_subgraphs._equal_calls import EqualCalls
from stator_subgraphs._fake import World
from stator_subgraphs._finish import captured_graph
from stator_subgraphs._input import Inputs
from stator_subgraphs._location import Location
from stator_subgraphs._merge import merge
from stator_subgraphs._mutation import NodeTarget, storage_of
from stator_subgraphs._outer_value import local_value
from stator_subgraphs._random_operator import is_pure, may_have_drawn, node_may_draw
from stator_subgraphs._refresh import refresh
from stator_subgraphs._scope import BodyScope
from stator_subgraphs._state import GraphState, hold
from stator_subgraphs._structure import tensors_in
from stator_subgraphs._sum import sums_looked_at
from stator_subgraphs._symbol import expression_of
from stator_subgraphs._tracer import SubgraphTracer


class OutputGraph:
    """Used by one thread, for one compilation; after `finish` only its `CapturedGraph` may be used.

    `capture_data`: results that depend on data become unbacked symbols, where `torch.compile` would
    refuse them.
    """

    def __init__(
        self,
        places: TraceLocations,
        *,
        capture_data: bool = False,
        compile_id: CompileId | None = None,
    ) -> None:
        self._context = TracingContext(None)
        world, journal = World(capture_data, self._context), Journal()
        root = SubgraphTracer(Graph(), journal, world, "graph")
        self._state = GraphState(world, Location(places), journal, root, root)
        self._inputs = Inputs(self._state)
        self._compile_id = compile_id or CompileId(frame_id=0, frame_compile_id=0)
        # read lazily
        self._context.frame_summary_stack = self._state.location.stack  # type: ignore[assignment]

    @property
    def fake_mode(self) -> FakeTensorMode:
        return self._state.mode

    @property
    def shape_env(self) -> ShapeEnv:
        return self._state.env

    @property
    def current(self) -> Graph:
        """The graph that is being recorded, that of a body while one is traced."""
        return self._state.current.graph

    def equal_calls(self, t: Space) -> EqualCalls:
        """Return what repeats equal calls of modules in the trace with the state `t`."""
        return EqualCalls(t, self._state)

    @contextmanager
    def tracing(self) -> Iterator[None]:
        """Wrap the whole trace in this: torch then words messages and guards with the user's lines,
        and modes that the trace changed are set back however it ends."""
        included = torch._C._dispatch_tls_local_include_set()
        excluded = torch._C._dispatch_tls_local_exclude_set()
        # torch leaves keys excluded where an operator fails in nested transforms
        keys = torch._C._ForceDispatchKeyGuard(included, excluded)
        try:
            with keys, tracing(self._context), sums_looked_at():
                yield
        finally:
            self._state.leave_modes()

    # -- inputs ------------------------------------------------------------------------------------
    def tensor_input(
        self,
        source: Source,
        tensor: torch.Tensor,
        dims: Sequence[Dim],
        hint: str,
        sizes: Source | None = None,
    ) -> GraphValue:
        """The placeholder of a real tensor, one for each tensor whatever ways lead to it. Symbols
        in its shape are bound by placeholders before it; they are read from `sizes`, by default
        from the tensor."""
        with self._state.placed():
            return self._inputs.tensor(source, tensor, dims, hint, sizes or source)

    def number_input(self, source: Source, value: int | float, hint: str) -> GraphValue:
        """A symbolic int, or a symbolic float (then the graph takes a tensor and starts with its
        `item()`)."""
        if (known := self._inputs.numbers.get(source)) is not None:
            return known
        if type(value) is int:
            return self._inputs.integer(source, value, hint)
        if type(value) is not float:
            raise InvalidUse(
                f"{source} is a {type(value).__name__}: only int and float can be symbolic"
            )
        wrapped = self._inputs.wrapped_float(source, value, hint)
        with self._state.at_root():  # it is remembered, so it must not belong to a body
            item = self.call("item", (wrapped,), {})
            self._state.root.note_box(item, wrapped)
            return self._inputs.unwrapped_float(source, value, item)

    def object_input(self, source: Source, value: object, hint: str) -> GraphValue:
        """The placeholder of an object of a class that torch treats as opaque, one for each."""
        with self._state.placed(), self._state.at_root():
            return self._inputs.opaque(source, value, hint)

    def entry_number(self, source: Source, kind: type) -> GraphValue:
        """An int or float that the entry computes before the graph runs: a symbol without a
        hint."""
        with self._state.placed(), self._state.at_root():
            if kind is int:
                return self._inputs.entry_integer(source)
            with self._state.mode:
                example = torch.empty((), dtype=torch.float64, device="cpu")
            wrapped = self._inputs.entry_tensor(source, example, "float")
            item = self.read_number(wrapped)
            self._state.root.note_box(item, wrapped)
            return item

    def bound_number(self, source: Source) -> GraphValue | None:
        """Return the number that a placeholder gives for `source`, None where there is none."""
        return self._inputs.bound_number(source)

    def read_number(self, traced: GraphValue) -> GraphValue:
        """Record `item()` of a tensor: a symbol without a hint, which no guard can use."""
        with self._state.placed():
            return read_number(self._state, traced)

    def entry_tensor(
        self, source: Source, target: NodeTarget, args: Args, kwargs: Kwargs
    ) -> GraphValue:
        """A tensor that the entry computes before the graph runs, like that of
        `target(*args, **kwargs)`."""
        with self._state.placed(), self._state.at_root():
            example = propagated(self._state, target, args, kwargs)
            return self._inputs.entry_tensor(source, example)

    def memory_of(self, example: torch.Tensor) -> int:
        """Return the number by which nodes name the memory of a tensor (`writes`)."""
        return storage_of(example)

    def warn(self, text: str, category: type[Warning]) -> None:
        """Record a warning that each call gives, at the line that is traced."""
        self.call(give_warning, (text, category.__name__), {})

    def may_have_drawn(self, *, foreign: bool = False) -> bool:
        """Return True if a node so far may draw random numbers; with `foreign`, if one is of
        another library."""
        return may_have_drawn(self._state.current, foreign)

    def may_draw(self, traced: GraphValue) -> bool:
        """Return True if the node of this value may draw random numbers."""
        return node_may_draw(traced.node)

    def install(self, hint: str, module: object) -> GraphValue:
        """A value that the graph itself holds: a module (the body of an operator) or a constant
        tensor."""
        return hold(self._state, hint, module)

    @property
    def is_empty(self) -> bool:
        """Return True if no operation was recorded so far."""
        tracer = self._state.current
        calls = (node for node in tracer.graph.nodes if node.op.startswith("call_"))
        return tracer.parent is None and next(calls, None) is None

    @property
    def is_pure(self) -> bool:
        """Return True if nothing that was recorded so far writes to a tensor or may draw random
        numbers."""
        return is_pure(self._state.current)

    def may_be_kept(self, traced: GraphValue) -> bool:
        """Return True if autograd may have saved this tensor: a value with gradients was computed
        from it."""
        tracer = self._state.current
        given = (user.meta.get("example_value") for user in local_value(tracer, traced).node.users)
        return tracer is not self._state.root or any(
            x.requires_grad for example in given for x in tensors_in(example)
        )

    @property
    def keeps_history(self) -> bool:
        return self._state.keeps_history

    def keep_history(self) -> None:
        """A rollback leaves this: it costs speed, not correctness."""
        self._state.keeps_history = True

    def keep_apart(self, traced: GraphValue) -> None:
        """A rollback leaves this: it costs speed, not correctness."""
        local_value(self._state.current, traced).node.meta["apart"] = True

    def end_with_backward(self, traced: GraphValue) -> None:
        """A rollback leaves this, too."""
        self._state.differentiated.append(traced.node)

    def complete_histories(self) -> None:
        """Run the operators whose examples were copied, before the histories of examples are
        read."""
        state = self._state
        state.is_differentiated = True
        if state.copies:
            state.stale += state.copies
            state.copies = []
            refresh(state, self._inputs)

    def free_history(
        self, traced: GraphValue, leaves: Sequence[GraphValue], *, is_freed: bool
    ) -> None:
        """A rollback makes the history again, from the leaves on."""
        state, node = self._state, traced.node
        node.meta["differentiates"] = True
        if is_freed:
            node.meta["frees_history"] = True
        state.current.facts.effects.add(node)
        state.journal.record(lambda: state.stale.extend(leaf.example for leaf in leaves))

    # -- operators ---------------------------------------------------------------------------------
    def call(
        self,
        target: NodeTarget,
        args: Sequence[object],
        kwargs: Kwargs,
        *,
        body: Body | None = None,
        example: object = None,
        reads_numbers: bool = False,
    ) -> GraphValue:
        """Record `target(*args, **kwargs)`; a str names a tensor method.

        Raises `Unsupported` if the operator raises on these fakes, or fakes do not determine the
        result. `body`: the target is an operator with the outputs of this body, which are known
        already; its inputs must be the last of `args`. `example`: the result, if it is known.
        """
        with self._state.placed():
            if not reads_numbers:
                return record_call(self._state, target, args, kwargs, body, example)
            return record_reading_numbers(self._state, target, args, kwargs)

    def attribute(self, owner: GraphValue, name: str) -> GraphValue:
        """Record `getattr(owner, name)`."""
        return self.call(getattr, (owner, name), {})

    def project(self, traced: GraphValue, index: object) -> GraphValue:
        """Return a part of a result that is a tuple, list or dict: the same value for the same
        index."""
        return project(self._state, traced, index)

    def constant_of(self, traced: GraphValue) -> object:
        """A symbolic number as a constant, guarded."""
        return constant_of(self._state, traced)

    def truth_of(self, traced: GraphValue) -> bool:
        """The truth of a symbolic number, guarded."""
        return truth_of(self._state, traced)

    def source_of(self, traced: GraphValue, computed: bool = False) -> Source | None:
        """Return the source of a number that can be read when the entry starts: a number input, or
        a size of an input.

        With `computed`, also an expression of such.
        """
        found = self._inputs.source_of(expression_of(traced.example), computed)
        if found is None and computed and isinstance(traced.example, torch.SymFloat):
            return computed_source(traced, self._inputs)
        return found

    def text_of(self, traced: GraphValue, read: Callable[[Source], str]) -> str | None:
        """Return an expression over what `read` gives for inputs; None where the graph computes
        it."""
        return text_of(traced, self._inputs, read)

    def condition_of(self, traced: GraphValue) -> tuple[ShapeExpression, bool] | None:
        """Return a condition as a guard, and whether it holds now; None where `truth_of` decides
        it."""
        return condition_of(traced, self._inputs)

    def subgraph(self, hint: str) -> BodyScope:
        """The body of a higher-order operator; see `BodyScope`."""
        if is_level_open():
            raise Unsupported("forward-derivatives", "an operator with a body, of dual tensors")
        tracer = SubgraphTracer(
            Graph(), self._state.journal, self._state.world, hint, self._state.current
        )
        tracer.function_stack = (*self._state.current.function_stack, (hint, hint))
        return BodyScope(self._state, tracer, self.rollback)

    def merge(self, bodies: Sequence[Body]) -> tuple[GraphValue, ...]:
        """Give all these bodies the same lifted inputs, in the same order: those that any of them
        has."""
        return merge(bodies)

    # -- taking back -------------------------------------------------------------------------------
    @property
    def learned(self) -> int:
        return len(self._state.world.learned)

    def mark(self) -> int:
        return self._state.journal.mark()

    def rollback(self, mark: int) -> None:
        """Take back all since `mark`: nodes, inputs, bindings, modes, writes to fakes. What was
        learned about sizes of inputs that stay stays true of the graph, so it stays guarded."""
        self._state.journal.rollback(mark)
        if self._state.stale:
            refresh(self._state, self._inputs)

    def release(self) -> None:
        """Release real tensors, when the trace is abandoned; after `finish`,
        `CapturedGraph.release` does the same."""
        self._state.leave_modes()
        self._inputs.release()

    def finish(self, outputs: Sequence[GraphValue]) -> CapturedGraph:
        """End the graph with these outputs, and set back modes that it changed."""
        if self._state.current is not self._state.root:
            raise InternalError(f"the body {self._state.current.hint} is still open")
        return captured_graph(self._state, self._inputs, outputs, self._compile_id)
