"""The requirements of the symbolic domain on the graph layer: the one border upwards, as Protocols.

`stator_subgraphs` implements them; a fork may provide its own. Nodes are fx Nodes to the
implementation and opaque here: trackers carry them without reading them.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import torch
from attrs import Factory, frozen
from stator_bytecode.errors import SourceSpan
from stator_guards import ShapeExpression, Source

from stator_variables._tracker import Args, Kwargs

Node = Any


@frozen
class Dim:
    """The treatment of one dimension of an input: "static", "dynamic" (backed symbol) or
    "unbacked".

    `low` and `high` are the bounds it was marked with.
    """

    kind: str = "static"
    low: int | None = None
    high: int | None = None
    stride: bool = False  # its stride is a symbol of its own
    strict: bool = False  # mark_dynamic: specialising it is an error


@frozen
class TraceLocation:
    """A location of the program, for node metadata: user frames outermost first, and the module
    calls around them."""

    frames: tuple[SourceSpan, ...]
    # (unique key, qualified path such as "layers.0.fc", class)
    modules: tuple[tuple[str, str, type], ...]
    # metadata of a node that is traced again
    original: Mapping[str, Any] = Factory(dict)
    caught: bool = False  # the program may catch what an operator raises here
    catches_operators: bool = False  # and it may be what an operator of torch raises
    has_except: bool = False  # by an `except`: few managers of a `with` keep an exception
    # code of the program runs when an operator raises here: `except`, `finally`, `with`
    handled: bool = False
    # how many instructions of the trace had begun, this one included: see `RetraceLimit`
    began: int = 0
    # keys that the program adds to the metadata of nodes, under "custom"
    custom: Mapping[str, Any] = Factory(dict)


class TraceLocations(Protocol):
    """The location of the trace on demand, so that a stack trace is built only where it is used."""

    def current(self) -> TraceLocation: ...

    def module(self, tracker: Any) -> tuple[str, str, type] | None:
        """Return the entry of a module, see `TraceLocation.modules`; None for one without a
        source."""


class CallRepeater(Protocol):
    """The calls of modules that were interpreted in a trace, for equal ones to repeat."""

    def repeated(self, function: Any, args: Args, kwargs: Kwargs) -> Any:
        """Return the result of a call that does what an earlier one did; MISSING without one."""

    def begun(self, function: Any, args: Args, kwargs: Kwargs) -> Callable[[Any], None]:
        """Note a call that is interpreted now; the function is called with its result."""


@frozen(eq=False)
class GraphValue:
    """A node and what it evaluates to under fake tensors.

    A FakeTensor, a SymInt, SymFloat or SymBool, a constant, or a tuple or list of these.
    """

    node: Node
    example: Any


class BodyGraph(Protocol):
    """The finished body of an operator: a module that is called with `arguments`, then with
    `lifted`.

    Both are values of the graph around it. `written` are positions of inputs that it writes to,
    `aliased` pairs of positions (output, input) that share memory, `overlapping` pairs of outputs
    that do.
    """

    module: Any
    arguments: tuple[GraphValue | None, ...]
    lifted: tuple[GraphValue, ...]
    outputs: tuple[Any, ...]
    written: tuple[int, ...]
    aliased: tuple[tuple[int, int], ...]
    overlapping: tuple[tuple[int, int], ...]

    def computes(self, traced: GraphValue) -> bool:
        """Return True if the outer graph can have this value only as an output of the body."""


class BodyRecorder(Protocol):
    """A body under construction, as a context manager: the graph that `GraphRecorder.call` records
    into meanwhile.

    Values of the graphs around become inputs where they are used. Left without having been closed,
    it is taken back.
    """

    def __enter__(self) -> Any: ...
    def __exit__(self, kind: object, error: object, trace: object) -> Any: ...

    def argument(self, value: object, hint: str = "arg") -> GraphValue:
        """The next explicit input: a value of the graph around, or an example that the operator
        makes up."""

    @property
    def sees_tensors(self) -> bool:
        """True if anything that was recorded so far takes or returns a tensor."""

    def close(self, outputs: Sequence[Any]) -> BodyGraph:
        """The body gives exactly these."""

    def close_wrapping(self, candidates: Sequence[GraphValue]) -> BodyGraph:
        """The body gives those of the candidates that it computed, each once.

        When its operator was recorded, with `GraphRecorder.call(..., body=this)`, they represent
        parts of what the operator gives.
        """


RUNS_NATIVELY = "runs_natively"
"""The attribute of a target that no compiler gets: why not, or empty where that costs nothing."""


class GraphRecorder(Protocol):
    """One graph under construction. Everything is undone by `rollback(mark())`."""

    fake_mode: Any
    shape_env: Any

    @property
    def learned(self) -> int:
        """The number of guards on sizes. A rollback leaves them."""

    @property
    def is_empty(self) -> bool:
        """Return True if no operation was recorded so far."""

    @property
    def is_pure(self) -> bool:
        """Return True if nothing that was recorded so far writes to a tensor or may draw random
        numbers."""

    def may_be_kept(self, traced: GraphValue) -> bool:
        """Return True if autograd may have saved this tensor: a value with gradients was computed
        from it."""

    def keep_history(self) -> None:
        """Require that the graph runs operator by operator: second derivatives of it will be
        computed."""

    def keep_apart(self, traced: GraphValue) -> None:
        """Require that a compiler gets no operator that uses this value together with the one that
        gives it: the gradient of the value will be read."""

    def end_with_backward(self, traced: GraphValue) -> None:
        """Note that the call which ends the graph frees the history of `traced`."""

    def complete_histories(self) -> None:
        """Give examples the histories that the operators make, before these are read."""

    def free_history(
        self, traced: GraphValue, leaves: Sequence[GraphValue], *, is_freed: bool
    ) -> None:
        """Note that the operator of `traced` passes the history down to these leaves, and whether
        it is freed then."""

    def tensor_input(
        self,
        source: Source,
        tensor: torch.Tensor,
        dims: Sequence[Dim],
        hint: str,
        sizes: Source | None = None,
    ) -> GraphValue:
        """A placeholder for a real tensor, once per tensor; those before it bind the free symbols
        of its example, read from `sizes` where the tensor itself is only made for the graph."""

    def number_input(self, source: Source, value: int | float, hint: str) -> GraphValue:
        """A symbolic int or float input."""

    def object_input(self, source: Source, value: object, hint: str) -> GraphValue:
        """A placeholder for an object that operators take as it is, of a class that torch treats as
        opaque."""

    def read_number(self, traced: GraphValue) -> GraphValue:
        """Record `item()` of a tensor: a symbol without a hint, which no guard can use."""

    def entry_number(self, source: Source, kind: type) -> GraphValue:
        """An int or float that the entry computes before the graph runs: a symbol without a
        hint."""

    def entry_tensor(
        self, source: Source, target: object, args: Args, kwargs: Kwargs
    ) -> GraphValue:
        """A tensor that the entry computes before the graph runs, like that of `target(*args,
        **kwargs)`."""

    def memory_of(self, example: torch.Tensor) -> int:
        """Return the number by which nodes name the memory of a tensor (`writes`)."""

    def warn(self, text: str, category: type[Warning]) -> None:
        """Record a warning that each call gives, at the line that is traced."""

    def may_have_drawn(self, *, foreign: bool = False) -> bool:
        """Return True if a node so far may draw random numbers; with `foreign`, if one is of
        another library."""

    def may_draw(self, traced: GraphValue) -> bool:
        """Return True if the node of this value may draw random numbers."""

    def call(
        self,
        target: object,
        args: Args,
        kwargs: Kwargs,
        *,
        body: BodyGraph | None = None,
        example: object = None,
        reads_numbers: bool = False,
    ) -> GraphValue:
        """Record `target(*args, **kwargs)`; `target` is a callable, or a str for a tensor method.

        With `body` it is an operator that gives what this body gives, whose inputs are the last of
        `args`. With `example`, what it gives on fakes, it is not run. `reads_numbers`: tensors
        where the operator takes a number become one, as `read_number` does.

        Arguments are nested tuples, lists, dicts, slices of `GraphValue` and constants. Raises
        `Unsupported` for what the operator raises on fake tensors ("operator-error"), and never
        hides a fault of the recorder behind it. A node that writes to tensors names them in its
        meta: "writes", the storages of their examples.
        """

    def attribute(self, owner: GraphValue, name: str) -> GraphValue:
        """Record `getattr(owner, name)`."""

    def project(self, result: GraphValue, index: object) -> GraphValue:
        """Return a part of a result that is a tuple, list or dict: the same value for the same
        index."""

    def install(self, hint: str, module: object) -> GraphValue:
        """A get_attr node for a (Graph)Module or constant tensor held by the graph."""

    def constant_of(self, traced: GraphValue) -> Any:
        """Return a symbolic number as a constant, which is guarded; raises where only data
        determines it."""

    def truth_of(self, traced: GraphValue) -> bool:
        """The truth of a symbolic number, likewise."""

    def subgraph(self, hint: str) -> BodyRecorder:
        """The body of an operator, nested in the graph that is recorded into now."""

    def merge(self, bodies: Sequence[BodyGraph]) -> tuple[GraphValue, ...]:
        """Give all these bodies the same lifted inputs, in the same order: those that any of them
        has."""

    def source_of(self, traced: GraphValue, computed: bool = False) -> Source | None:
        """Return the source of a number that can be read when the entry starts; None for one that
        the graph computes.

        With `computed`, also that of an expression of such numbers.
        """

    def text_of(self, traced: GraphValue, read: Callable[[Source], str]) -> str | None:
        """An expression by which the entry computes a number itself, of what `read` gives for
        sources; None if it cannot, or may raise."""

    def condition_of(self, traced: GraphValue) -> tuple[ShapeExpression, bool] | None:
        """A condition as a guard in the program's order, and whether it holds; None where
        `truth_of` decides it."""

    def mark(self) -> Any: ...
    def rollback(self, mark: object) -> None: ...
