"""Lowering: one traced graph through one backend, under everything that AOTAutograd and Inductor expect around them.

    lowered = lower(gm, inputs, backend, fake_mode=fake_mode)
    lowered.callable(*inputs)          # any number of times, from any thread, in any grad mode
    lowered.guards, lowered.shape_guards     # what it relies on besides what the trace relied on

Start at `lower`; each step under it says which assumption downstream it satisfies.
"""

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import cache
from pathlib import Path
from traceback import walk_tb
from typing import Any

import attrs
import torch
from torch import Tensor
from torch._functorch import _aot_autograd
from torch._functorch import config as functorch_config
from torch._guards import (
    CompileContext,
    CompileId,
    Source,
    TracingContext,
    compile_context,
    tracing,
)
from torch._subclasses.fake_tensor import (
    DataDependentOutputException,
    DynamicOutputShapeException,
    FakeTensor,
    FakeTensorMode,
    UnsupportedOperatorException,
)
from torch.utils._python_dispatch import _disable_current_modes, is_traceable_wrapper_subclass

from . import _session
from ._alias import AliasLayout, InputGuard, from_torch, has_storage, was_written, writes_to_inputs
from ._backend import Backend, BackendSpec, Compiled, spec_of
from ._check import check_graph
from ._context import (
    GraphInput,
    attach_sources,
    cleared,
    placeholders,
    sources_of_held,
    static_context,
    without_number,
)
from ._eager import eager
from ._history import beginning_with_gradients, creations_of, keeping_history, without_history
from ._repeats import gives_repeats
from ._sharing import give_roots, sees_results_as_several_kinds, sharing_memory
from ._version import (
    all_nodes,
    counted_apart_in,
    counts_of,
    given,
    keeping_versions,
    writes_to_what_has_gradients,
    written,
)
from .errors import BackendFailed, MalformedGraph


@attrs.frozen(eq=False)
class Lowered:
    """A compiled graph, and the conditions under which it may be called that the trace did not know of."""

    callable: Compiled
    spec: BackendSpec
    guards: tuple[InputGuard, ...]  # over the flat inputs
    shape_guards: tuple[
        Any, ...
    ]  # what ShapeEnv.guards gained; `produce_guards` after this has them too
    count: int  # of the results
    refused: str = ""  # why AOTAutograd did not take the graph, which runs as it is then


@attrs.define(eq=False)
class _Job:
    """One lowering under way: what the steps share."""

    gm: torch.fx.GraphModule
    inputs: list[Any]
    backend: Backend
    spec: BackendSpec
    fake_mode: FakeTensorMode
    context: TracingContext
    positions: dict[Source, int]
    add_fake_kernels: Callable[[FakeTensorMode], None] | None = None
    hides_floats: bool = False


def lower(
    gm: torch.fx.GraphModule,
    example_inputs: Sequence[Any],
    backend: Backend,
    *,
    fake_mode: FakeTensorMode,
    contexts: Mapping[Tensor, Any] | None = None,
    ambient: _session.AmbientState | None = None,
    compile_id: CompileId | None = None,
    param_sources: Mapping[str, Source] | None = None,
    context: TracingContext | None = None,
    keeps_history: bool = False,
    as_it_is: str = "",
    add_fake_kernels: Callable[[FakeTensorMode], None] | None = None,
    hides_floats: bool = False,
) -> Lowered:
    """Compile `gm`, which belongs to the backend from here on.

    `example_inputs` are the real inputs, in the order of the placeholders; for a symbolic placeholder the int will do.
    `fake_mode` is the one the trace ran under; do not trace under it any more. `contexts` has the symbolic context that
    each input was made fake with, so that it gets the same symbols again. `ambient` are the modes at the entry of the
    trace (default: the present ones). `param_sources` is for tensors kept as attributes of `gm`: the rest get one. A
    `context` of the front end's own must not serve two graphs: compiling the backward, later, uses it. `keeps_history`:
    gradients of or for values inside the graph will be asked for, so it runs as it is. `as_it_is`: another reason for
    that, which `Lowered.refused` repeats. `add_fake_kernels` gives the mode of the compiler the
    fake kernels that the trace had. `hides_floats`: a compiler gets no hint of the value of a symbolic float, so that
    it cannot specialise on it.
    """
    if faults := check_graph(gm, example_inputs):
        raise MalformedGraph(tuple(faults))
    # Its absence would mean that the graph was exported. `setattr`, as modules declare tensors and modules only.
    setattr(gm, "_param_name_to_source", sources_of_held(gm, param_sources or {}))
    refused = ""
    if spec_of(backend).compiles:
        refused = as_it_is or next((reason for reason, holds in _AS_IT_IS.items() if holds(gm)), "")
    if keeps_history or refused:
        backend = eager
    inputs = [
        _symbol_or(value, node)
        for value, node in zip(example_inputs, placeholders(gm), strict=True)
    ]
    tracing_context = context or TracingContext(None)
    job = _Job(
        gm,
        inputs,
        backend,
        spec_of(backend),
        fake_mode,
        tracing_context,
        attach_sources(gm),
        add_fake_kernels,
        hides_floats,
    )
    if not job.spec.compiles:
        return attrs.evolve(_as_it_is(job), refused=refused)
    _forget_floats(job)
    _keep_what_backward_needs()
    guards = _layout_guards(job)
    known, texts = _shape_guards(fake_mode), _session.generated_texts()
    counts, counted_apart = counts_of(gm), counted_apart_in(gm)
    apart, creations = without_history(gm), creations_of(gm)
    output: Any = gm.graph.output_node().args
    roots = give_roots(gm)
    present = ambient or _session.AmbientState.capture()
    modes = beginning_with_gradients(gm, present)
    try:
        with _surroundings(job, modes, compile_id or CompileId(frame_id=0, frame_compile_id=0)):
            _fresh_fakes(job, contexts or {})
            compiled = _call_backend(job)
    except BackendFailed as failure:
        if not (refused := _refused_by_autograd(failure)):
            raise
    else:
        _session.forget_texts_with(compiled, _session.generated_texts() - texts)
        added = job.context.guards_context.aotautograd_guards
        guards += [from_torch(job.spec.name, guard, job.positions) for guard in added]
        compiled = sharing_memory(compiled, roots, len(output[0]))
        compiled = keeping_history(compiled, modes is not present, apart, creations)
        compiled = keeping_versions(compiled, counts, counted_apart)
        gained = tuple(_shape_guards(fake_mode)[len(known) :])
        return Lowered(compiled, job.spec, tuple(guards), gained, len(output[0]))
    gm.graph.output_node().args = output
    gm.recompile()
    return attrs.evolve(
        _as_it_is(attrs.evolve(job, backend=eager, spec=spec_of(eager))), refused=refused
    )


def _refused_by_autograd(failure: BackendFailed) -> str:
    """What AOTAutograd itself raised, or what it called that compiles nothing, for what it does not take: inputs that
    share memory but are no views of each other for autograd, say, a write to what backward needs, or a backward that no
    fake tensor goes through. Run as it is, the graph does what the program does."""
    error = failure.__cause__
    files = [
        frame.f_code.co_filename
        for frame, _ in walk_tb(None if error is None else error.__traceback__)
    ]
    own = [i for i, file in enumerate(files) if file.startswith(_AOT_AUTOGRAD)]
    called = files[own[-1] :] if own else []
    is_its_own = all(file.startswith(_TORCH) and not file.startswith(_COMPILERS) for file in called)
    return (
        f"{type(error).__name__}: {error}"
        if own and (isinstance(error, _UNTRACEABLE) or is_its_own)
        else ""
    )


_UNTRACEABLE = (
    UnsupportedOperatorException,
    DynamicOutputShapeException,
    DataDependentOutputException,
)
_AOT_AUTOGRAD, _TORCH = (
    str(Path(str(module.__file__)).parent) for module in (_aot_autograd, torch)
)
_COMPILERS = tuple(str(Path(_TORCH, *parts)) for parts in (("_inductor",), ("_dynamo", "backends")))


def _differentiates_wrappers(gm: torch.fx.GraphModule) -> bool:
    """Whether gradients come in for tensors with others in them, given or written to. AOTAutograd guesses of which
    class, and raises in backward where one is missing or of another; a graph that runs as it is does not."""
    inputs = [node.meta.get("example_value") for node in placeholders(gm)]
    trained = [value for value in given(gm) if value.requires_grad]
    trained += [
        value
        for value in inputs
        if isinstance(value, Tensor) and value.requires_grad and was_written(value)
    ]
    return any(map(is_traceable_wrapper_subclass, trained))


def _writes_to_what_is_unfolded(gm: torch.fx.GraphModule) -> bool:
    """Functionalised, a write to `x.unfold(0, 2, 3)` makes zeros of the elements of `x` that it leaves out."""
    unfolded = [
        node.meta["example_value"]
        for node in all_nodes(gm)
        if node.target in ("unfold", Tensor.unfold)
    ]
    return bool(
        written(gm).intersection(
            value.untyped_storage()._cdata for value in unfolded if has_storage(value)
        )
    )


def _has_sparse_tensors(gm: torch.fx.GraphModule) -> bool:
    """Of those AOTAutograd takes some, Inductor none; they meet kernels that nobody could compile."""
    given = [node.meta.get("example_value") for node in all_nodes(gm)]
    parts = [
        part for value in given for part in (value if isinstance(value, tuple | list) else (value,))
    ]
    dense = (torch.strided, torch.jagged)
    return any(isinstance(part, Tensor) and part.layout not in dense for part in parts)


_AS_IT_IS: dict[str, Callable[[torch.fx.GraphModule], bool]] = {
    "gradients of a tensor with others in it": _differentiates_wrappers,
    "a write to a tensor that has gradients": writes_to_what_has_gradients,
    "a write to windows of memory": _writes_to_what_is_unfolded,
    "sparse tensors": _has_sparse_tensors,
    "results that are one memory seen as numbers of several kinds": sees_results_as_several_kinds,
}


def _as_it_is(job: _Job) -> Lowered:
    """The short way, a tenth of the time: for a backend that gives the graph's own function."""
    output: Any = job.gm.graph.output_node().args
    with cleared(job.fake_mode, job.context):
        return Lowered(_call_backend(job), job.spec, (), (), len(output[0]))


def _symbol_or(value: Any, node: torch.fx.Node) -> Any:
    """The number given for a symbolic placeholder becomes its symbol: as a number it would be a new, unrelated one."""
    example = node.meta.get("example_value")
    return example if isinstance(example, torch.SymInt | torch.SymFloat | torch.SymBool) else value


@contextmanager
def _surroundings(
    job: _Job, ambient: _session.AmbientState, compile_id: CompileId
) -> Iterator[None]:
    """Everything that is on while a backend runs, and taken away after it."""
    job.gm.meta["dynamo_compile_id"] = compile_id
    with ExitStack() as stack:
        stack.enter_context(_session.compile_session())
        stack.enter_context(_session.preserved_rng())
        stack.enter_context(_session.preserved_hook_ids())
        stack.enter_context(_disable_current_modes())
        stack.enter_context(ambient.restored())
        stack.enter_context(_session.harmless_warnings())
        stack.enter_context(cleared(job.fake_mode, job.context))
        stack.enter_context(compile_context(CompileContext(compile_id)))
        # Fake tensors of the trace may have been changed by it (`x.t_()`): a backend must start from unchanged ones.
        job.context.fake_mode = FakeTensorMode(shape_env=job.fake_mode.shape_env)
        if job.add_fake_kernels is not None:
            job.add_fake_kernels(job.context.fake_mode)
        job.context.fake_mode.allow_scalar_outputs = (
            True  # the backward of a loop counts its rounds
        )
        stack.enter_context(tracing(job.context))
        if torch.is_grad_enabled() and any(
            getattr(node.target, "__name__", "") == "lstm" for node in all_nodes(job.gm)
        ):
            stack.enter_context(_session.without_mkldnn())
        stack.enter_context(
            functorch_config.patch(cse=functorch_config.cse and not gives_repeats(job.gm))
        )
        yield


@cache
def _keep_what_backward_needs() -> None:
    """AOTAutograd takes backward for the last use of what it saved, and raises if it is not (`retain_graph=True`).

    For the whole process, since it looks at each backward; whoever never retains a graph may set it back, for less
    memory.
    """
    functorch_config.donated_buffer = False


def _fresh_fakes(job: _Job, contexts: Mapping[Tensor, Any]) -> None:
    """Tell how each input is to be made fake again, and do so for a backend that asks for fake ones."""
    mode = job.context.fake_mode
    assert mode is not None
    for position, (value, node) in enumerate(zip(job.inputs, placeholders(job.gm), strict=True)):
        if not isinstance(value, Tensor):
            continue
        if isinstance(value, FakeTensor) or _only_traced(value, node, contexts):
            job.inputs[position] = mode.from_tensor(node.meta.get("example_value", value))
            continue
        if (symbolic := contexts.get(value)) is None:
            symbolic = static_context(value, GraphInput(position))
        if job.hides_floats or not _is_symbol_inside(node):
            symbolic = without_number(symbolic)
        job.context.tensor_to_context[value] = symbolic
        if job.spec.fake_inputs:
            job.inputs[position] = mode.from_tensor(
                value, source=symbolic.tensor_source, symbolic_context=symbolic
            )


def _is_symbol_inside(node: torch.fx.Node) -> bool:
    """Whether the trace knows the number in this tensor of no dimensions by a symbol. Where it does not, a compiler
    that did would bind itself to the number."""
    example = node.meta.get("example_value")
    number = example.item_memo if isinstance(example, FakeTensor) else None
    return isinstance(number, torch.SymFloat) and number.node.hint is not None


def _only_traced(value: Tensor, node: torch.fx.Node, contexts: Mapping[Tensor, Any]) -> bool:
    """A tensor with symbols, or a wrapper, that came without context: only the trace knows what it looks like."""
    if value in contexts:
        return False
    example = node.meta.get("example_value")
    symbolic = isinstance(example, FakeTensor) and example._has_symbolic_sizes_strides
    return bool(symbolic or (example is not None and is_traceable_wrapper_subclass(value)))


def _call_backend(job: _Job) -> Compiled:
    name = job.spec.name
    _require_capabilities(job)
    try:
        compiled: Any = job.backend(job.gm, job.inputs)
    except (
        Exception
    ) as error:  # someone else's code: whatever it raises is its failure, chained and named
        raise BackendFailed(name, f"{type(error).__name__}: {error}") from error
    if not callable(compiled):
        raise BackendFailed(name, f"it returned {compiled!r}, which cannot be called")
    return _unboxed(compiled) if job.spec.boxed else compiled


def _require_capabilities(job: _Job) -> None:
    examples = [node.meta.get("example_value") for node in job.gm.graph.nodes]
    if not job.spec.symbolic_shapes and any(isinstance(value, torch.SymInt) for value in examples):
        raise BackendFailed(job.spec.name, "it takes no symbolic shapes", "checking the graph")
    trained = any(isinstance(value, Tensor) and value.requires_grad for value in job.inputs)
    if not job.spec.training and trained and torch.is_grad_enabled():
        raise BackendFailed(job.spec.name, "it has no gradients", "checking the graph")


def _unboxed(compiled: Callable[[list[Any]], Sequence[Any]]) -> Compiled:
    def call(*args: Any) -> Sequence[Any]:
        return compiled(list(args))

    return call


def _layout_guards(job: _Job) -> list[InputGuard]:
    examples = [node.meta.get("example_value") for node in placeholders(job.gm)]
    if sum(isinstance(value, Tensor) for value in job.inputs) < 2 or not writes_to_inputs(examples):
        return []
    return [AliasLayout.of(job.inputs)]


def _forget_floats(job: _Job) -> None:
    """Reset the names of float symbols that torch wants constant, which it keeps in one place for all compilations.

    Symbols that are hidden from the compiler are in the `ShapeEnv` still; it is not to ask for them.
    """
    state = getattr(sys.modules.get("torch._dynamo.symbolic_convert"), "TensorifyState", None)
    if state is None:
        return
    state.clear()
    if job.hides_floats:
        for symbol in getattr(job.fake_mode.shape_env, "backed_var_to_val", ()):
            state.specialize(str(symbol))


def _shape_guards(fake_mode: FakeTensorMode) -> list[Any]:
    return [] if (shape_env := fake_mode.shape_env) is None else list(shape_env.guards)
