"""One lowering as its steps share it: the graph, its inputs, its backend, and what surrounds the
call of the backend."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
from attrs import Factory, define
from torch import Tensor
from torch._functorch import config as functorch_config
from torch._guards import (
    CompileContext,
    CompileId,
    Source,
    TracingContext,
    compile_context,
    tracing,
)
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx import GraphModule
from torch.utils._python_dispatch import _disable_current_modes

from . import _session
from ._backend import Backend, BackendSpec, BoxedRun, Compiled, spec_of
from ._compiler_inputs import symbolic_input
from ._context import cleared
from ._contracts._assertions import assertions_in_forward
from ._failing_node import node_reached, operator_name, program_lines
from ._graph_facts import GraphSnapshot, has_lstm
from ._graph_spec import GraphSpec
from ._prepared_inputs import PreparedInputs, beside_calls, inside_call
from ._repeats import gives_repeats
from ._repro import log_of, report_failure
from .errors import BackendError


@define(eq=False)
class Job:
    """One lowering: the state that its steps share."""

    gm: GraphModule
    inputs: list[Any]
    backend: Backend
    fake_mode: FakeTensorMode
    ambient: _session.AmbientState | None
    contexts: Mapping[Tensor, Any]
    positions: dict[Source, int]
    add_fake_kernels: Callable[[FakeTensorMode], None] | None = None
    hides_floats: bool = False
    defers_writes: bool = False
    prepared: PreparedInputs | None = None
    graph_spec: GraphSpec | None = None
    captured: GraphSnapshot | None = None  # for a script, as the backend owns the graph
    context: TracingContext = Factory(lambda: TracingContext(None))

    @property
    def spec(self) -> BackendSpec:
        return spec_of(self.backend)


def describe(failure: BackendError, job: Job) -> None:
    """Name the operator of a failure, and write the files that it names."""
    if (node := node_reached(failure)) is not None:
        failure.operator = operator_name(node)
        failure.program = program_lines(node, job.gm)
    failure.repro = _script(job)
    failure.log = log_of(failure.reason)


def _script(job: Job) -> str:
    """Write a script for a graph that its backend failed on, if requested; return its path."""
    if job.captured is None:
        return ""
    captured = GraphModule(job.gm, job.captured.graph())
    # what the trace did to the layout of its own fake tensors is no part of the inputs
    mode = FakeTensorMode(shape_env=job.fake_mode.shape_env)
    with _session.harmless_warnings():
        inputs = [symbolic_input(mode, value, job.contexts) for value in job.inputs]
    return report_failure(captured, inputs, job.backend)


@contextmanager
def surroundings(job: Job, modes: _session.AmbientState) -> Iterator[None]:
    """Set up everything that a compiler relies on, and remove it afterwards."""
    gm, context = job.gm, job.context
    compile_id = CompileContext.current_compile_id() or CompileId(frame_id=0, frame_compile_id=0)
    gm.meta["dynamo_compile_id"] = compile_id
    with ExitStack() as stack:
        stack.enter_context(_session.compile_session())
        for manager in inside_call() if job.prepared is None else beside_calls():
            stack.enter_context(manager)
        stack.enter_context(_disable_current_modes())
        stack.enter_context(modes.restored())
        stack.enter_context(cleared(job.fake_mode, context))
        stack.enter_context(compile_context(CompileContext(compile_id)))

        # The trace may have changed its fake tensors (`x.t_()`); a backend starts from unchanged
        # ones.
        context.fake_mode = FakeTensorMode(shape_env=job.fake_mode.shape_env)
        if job.add_fake_kernels is not None:
            job.add_fake_kernels(context.fake_mode)
        context.fake_mode.allow_scalar_outputs = True  # the backward of a loop counts its rounds
        stack.enter_context(tracing(context))

        if torch.is_grad_enabled() and has_lstm(gm):
            stack.enter_context(_session.without_mkldnn())
        merges_equal_calls = functorch_config.cse and not gives_repeats(gm)
        stack.enter_context(functorch_config.patch(cse=merges_equal_calls))
        stack.enter_context(assertions_in_forward(gm))
        yield


def call_backend(job: Job) -> Compiled:
    name = job.spec.name
    facts: Any = {"graph_spec": job.graph_spec} if job.spec.wants_graph_spec else {}
    try:
        compiled: Any = job.backend(job.gm, job.inputs, **facts)
    except Exception as error:  # code of another project: each error is its failure, chained
        raise BackendError(name, f"{type(error).__name__}: {error}") from error
    if not callable(compiled):
        raise BackendError(name, f"it returned {compiled!r}, which cannot be called")
    return _unboxed(compiled) if job.spec.boxed else compiled


def _unboxed(compiled: BoxedRun) -> Compiled:
    def call(*args: object) -> Sequence[Any]:
        return compiled(list(args))

    return call
