"""Decisions about a trace before it begins."""

import math
from collections.abc import Callable, Set
from types import CodeType, FunctionType
from typing import Any, Protocol

import attrs
from stator_bytecode import CallSite, Code, Frame
from stator_bytecode.errors import Unsupported
from stator_guards import Source

from stator_variables._trace._graph import Dim
from stator_variables._trace._late_import import LateImport


@attrs.frozen(eq=False)
class RetraceLimit:
    """The instruction that a trace is to break at: the number of instructions that began up to it.

    `place` is its code and index where these are known; another instruction is none to stop at.
    """

    begun: int
    reason: Unsupported
    place: tuple[Code, int] | None = None

    def is_at(self, begun: int, frame: Frame) -> bool:
        return begun == self.begun and self.place in (None, (frame.code, frame.pc))


class CalleeCompiler(Protocol):
    """Functions that run natively where compiled code calls them, while what they call is
    compiled."""

    skipped: set[CodeType]

    def with_compiled(self, function: object) -> FunctionType:
        """Return a function that does what `function` does."""


@attrs.define(eq=False)
class Policy:
    """The decisions of the facade per compilation: the symbolic inputs, and the operations to
    capture."""

    dims: Callable[[Source, Any], list[Dim]] = lambda source, tensor: [Dim()] * tensor.dim()
    number_is_symbolic: Callable[[Source, Any, bool], bool] = lambda source, value, at_once: False
    """`at_once`: also if no other value was seen, where it was passed in."""
    # False for a text that was another in each of many calls: no guard is about it
    may_recur: Callable[[Source, Any], bool] = lambda source, value: True
    capture_data: bool = False  # results that depend on data become unbacked symbols
    # a break is an error, so what a break would have run is run while tracing where possible
    is_whole: bool = False
    # so many instructions without an operation of the graph are a long loop
    patience: float = math.inf
    callees: CalleeCompiler | None = None
    native_calls: Set[CallSite] = frozenset()  # calls that run natively as a whole
    stop: RetraceLimit | None = None  # where an earlier trace of the same broke
    imported: Set[LateImport] = frozenset()  # by earlier traces of the same
    # an earlier trace of the same read a tensor by two of the paths that a break carried
    joins_paths: bool = False
    runs_in_order: bool = True  # the graph runs node by node, setters of state included
    repeats_effects: bool = True  # of a checkpointed function, when it is computed again
    unbacked_numbers: bool = True  # what entry calls give, or tensors hold, is a symbol
    separates_steps: bool = False  # of optimizers: a compiler refused what follows one in its graph
    hides_floats: bool = False  # a compiler specialised on a float: it gets no hints of them
