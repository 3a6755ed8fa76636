"""Lowering: one traced graph through one backend, under everything that AOTAutograd and Inductor
expect around them.

    lowered = lower(gm, inputs, backend, fake_mode=fake_mode)
    lowered.callable(*inputs)    # any number of times, from any thread, in any grad mode
    lowered.guards, lowered.shape_guards    # conditions of the compiled code besides the trace's

Start at `lower`. `_pieces` divides graphs at operators that no compiler takes, `_contracts` lists
properties of results that compilers do not keep.
"""

from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import partial
from typing import Any, TypedDict, Unpack

from attrs import evolve, frozen
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx import GraphModule, Node

from . import _session
from ._alias import InputGuard, from_torch
from ._backend import Backend, BackendSpec, Compiled, spec_of
from ._check import check_graph
from ._compiler_inputs import forget_floats, record_contexts, shape_guards_of, with_symbols
from ._context import attach_sources, cleared, sources_of_held
from ._contracts import ResultWrapper, prepare, restore_all
from ._contracts._freed_history import cut_freed_history, with_freed_history
from ._contracts._history import begin_with_gradients, with_gradients_on
from ._contracts._late_writes import LateWrite, defer_writes, with_late_writes, write_in_place
from ._contracts._saved_tensors import retainable_graphs
from ._contracts._undefined_gradients import may_be_undefined
from ._contracts._wrapper_gradients import GuessedGradients, takes_guesses
from ._eager import eager, graph_function
from ._graph_facts import GraphSnapshot, results_of, tensors_returned, without_metadata
from ._graph_spec import GraphSpec, mark_buffers
from ._job import Job, call_backend, describe, surroundings
from ._pieces._backward import differentiates
from ._pieces._division import NATIVE, Division, calls_of, computes
from ._pieces._fragments import starts_of_fragments
from ._pieces._jagged_result import give_values
from ._pieces._lowering import CompiledPiece, DividedLowering, LoweredPiece, Uncompiled, where_of
from ._pieces._reasons import WRITES_WITH_GRADIENTS, divide, reason_for_whole
from ._pieces._recurrent import run_layers_apart
from ._pieces._written_input import copy_what_is_read
from ._prepared_inputs import PreparedInputs, layout_guards
from ._refusal import node_refused, refused_by_autograd
from ._step import uses_steps
from .errors import BackendError, MalformedGraph


@frozen(eq=False)
class Lowered:
    """A compiled graph, and the conditions under which it may be called besides those of the trace.

    `guards` are over the flat inputs. `shape_guards` are the guards that the ShapeEnv gained;
    `produce_guards` after lowering includes them. `count` is the number of results. `refused` is
    the reason why the graph runs uncompiled as a whole, if it does; `refused_at` is the node that
    AOTAutograd had come to. `uncompiled` lists the operators that a compiler would have taken and
    that run as they are, and `driver` is the module that calls the pieces of a divided graph.
    `pieces` describes these pieces. `whole` is the reason why equal blocks are no pieces. `late`
    are the inputs that are written to when the graph has returned.
    """

    callable: Compiled
    spec: BackendSpec
    guards: tuple[InputGuard, ...]
    shape_guards: tuple[Any, ...]
    count: int
    refused: str = ""
    refused_at: Node | None = None
    uncompiled: tuple[Uncompiled, ...] = ()
    driver: GraphModule | None = None
    late: tuple[LateWrite, ...] = ()
    pieces: tuple[CompiledPiece, ...] = ()
    whole: str = ""


class LoweringOptions(TypedDict, total=False):
    """Options of `lower`.

    - `contexts`: the symbolic context of each input, so that it gets the same symbols again.
    - `ambient`: the modes at the entry of the trace; the present ones by default.
    - `keeps_history`: gradients for values inside the graph will be computed, so it runs
      uncompiled.
    - `as_it_is`: another reason to run it uncompiled, which `Lowered.refused` repeats.
    - `separable`: the program can be traced again with a break between a step of an optimizer and
      what follows, so a graph with both is refused.
    - `refuses_writes`: a graph that writes to a tensor with gradients is refused, not divided.
    - `add_fake_kernels`: adds the fake kernels of the trace to the mode of the compiler.
    - `hides_floats`: gives a compiler no hint of a symbolic float, so that it cannot specialize on
      it.
    - `has_effects`: False for a graph that does nothing but compute, and may do so again.
    - `defers_writes`: a graph that raises must not have written to its inputs, as far as that is
      possible: see `Lowered.late`.
    - `regions`: "always" or "auto" if equal blocks of the graph are to be compiled once.
    - `writes_repro`: if the backend fails, writes the graph as a script; `BackendError.repro` is
      its path.
    - `pieces`: the compiled pieces of graphs that were lowered with equal options, by structure; an
      equal piece is not compiled again, and new ones are added.
    - `prepared`: what `prepare_inputs` gave when the graph was captured, for a lowering in another
      thread; `example_inputs` are its inputs.
    """

    contexts: Mapping[Tensor, Any] | None
    ambient: _session.AmbientState | None
    keeps_history: bool
    as_it_is: str
    separable: bool
    refuses_writes: bool
    add_fake_kernels: Callable[[FakeTensorMode], None] | None
    hides_floats: bool
    has_effects: bool
    defers_writes: bool
    regions: str
    pieces: dict[Hashable, LoweredPiece]
    writes_repro: bool
    prepared: PreparedInputs | None


def lower(
    gm: GraphModule,
    example_inputs: Sequence[object],
    backend: Backend,
    *,
    fake_mode: FakeTensorMode,
    **options: Unpack[LoweringOptions],
) -> Lowered:
    """Compile `gm`, which belongs to the backend from here on.

    - `example_inputs`: the real inputs, in the order of the placeholders; for a symbolic
      placeholder an int will do.
    - `fake_mode`: the mode of the trace; do not trace under it afterwards.
    - `options`: see `LoweringOptions`.

    Raises `MalformedGraph` for a graph that breaks a rule of every backend, and `BackendError`.
    """
    if faults := check_graph(gm, example_inputs):
        raise MalformedGraph(tuple(faults))
    # Its absence would mean that the graph was exported. `setattr`, as modules declare tensors and
    # modules only.
    setattr(gm, "_param_name_to_source", sources_of_held(gm))

    if uses_steps(backend):
        mark_buffers(gm)
    spec = spec_of(backend)
    if not spec.compiles:
        return _uncompiled(_job(gm, example_inputs, backend, backend, fake_mode, options))

    keeps_history = options.get("keeps_history")
    freed = [] if keeps_history or _has_native_backward(gm) else cut_freed_history(gm)
    refused = options.get("as_it_is") or reason_for_whole(gm, spec)
    if keeps_history and not refused:
        refused = KEEPS_HISTORY
    used = eager if refused else backend
    job = _job(gm, example_inputs, backend, used, fake_mode, options)
    lowered = _run_as_it_is(job, refused) if refused else _lowered(job, options)
    return evolve(lowered, callable=with_freed_history(lowered.callable, freed))


KEEPS_HISTORY = "second derivatives of what the graph computes, or a view that autograd refuses"


def _has_native_backward(gm: GraphModule) -> bool:
    """Return True if autograd itself frees the history of results."""
    return any("frees_history" in node.meta and NATIVE in node.meta for node in gm.graph.nodes)


def _run_as_it_is(job: Job, refused: str) -> Lowered:
    """Lower a graph of which nothing is compiled."""
    nodes = [node for node in job.gm.graph.nodes if node.op.startswith("call_") and computes(node)]
    uncompiled = [Uncompiled(node.name, refused, where_of(node)) for node in nodes]
    return evolve(_uncompiled(job), refused=refused, uncompiled=tuple(uncompiled))


def _lowered(job: Job, options: LoweringOptions) -> Lowered:
    """Compile a graph as a whole where that keeps its meaning, else in pieces."""
    give_values(job.gm)
    copy_what_is_read(job.gm)
    run_layers_apart(job.gm)
    if not options.get("has_effects", True) and takes_guesses(job.gm):
        plain = graph_function(without_metadata(job.gm))
        guessed = _compiled(job, _layout_guards(job))
        if not guessed.refused:
            return evolve(guessed, callable=GuessedGradients(guessed.callable, plain))

    division = Division.by_front_end(job.gm)
    by_writes = Division()
    divide(job.gm, job.spec, by_writes)
    if options.get("refuses_writes") and by_writes.starts:
        return _run_as_it_is(evolve(job, backend=eager), WRITES_WITH_GRADIENTS)
    divide(job.gm, job.spec, division)
    if options.get("separable") and WRITES_WITH_GRADIENTS in division.native.values():
        return _run_as_it_is(evolve(job, backend=eager), WRITES_WITH_GRADIENTS)

    whole = _reason_for_whole(job, division, options)
    if whole is None:
        whole, takes_small = NO_BLOCKS, options.get("regions") == "always"
        division.starts |= starts_of_fragments(job.gm, takes_small)
    if not division:
        lowered = evolve(_compiled(job, _layout_guards(job)), whole=whole)
        if not lowered.refused or lowered.refused.startswith(_RESTART):
            return lowered
        at = lowered.refused_at
        division.add(calls_of(job.gm) if at is None else [at], lowered.refused)
    return _in_pieces(job, division, options)


NO_BLOCKS = "there are no three of enough operators and elements"
TRAINED = "a backward pass would get slower, as nothing is fused over a border"


def _reason_for_whole(job: Job, division: Division, options: LoweringOptions) -> str | None:
    """Return None if equal blocks of a graph are to be pieces, which are compiled once, else the
    reason; an empty one where nobody expects it.

    By default, that is for Inductor, whose compilation of an operator takes the longest, and for
    graphs without gradients: backward passes get slower, as nothing is fused over a border, those
    inside of the graph as well. A graph
    that is divided for another reason stays as it is, and so does one whose writes wait for its
    end.
    """
    regions = options.get("regions", "off")
    if regions == "off" or division or (regions == "auto" and job.spec.name != "inductor"):
        return ""
    if job.defers_writes:
        return "writes wait for the end of the graph"
    if not _shares_pieces(job):
        return "the backend looks at where inputs come from"
    if regions == "always":
        return None
    has_gradients = any(value.requires_grad for value in tensors_returned(job.gm))
    if has_gradients or differentiates(job.gm):
        return TRAINED
    return None


def _shares_pieces(job: Job) -> bool:
    """Return False for a backend that looks at where the inputs of a graph come from."""
    return not uses_steps(job.backend) and not job.spec.wants_graph_spec


_RESTART = "TensorifyScalarRestartAnalysis"
"""The error by which a compiler requires another trace."""


def _in_pieces(job: Job, division: Division, options: LoweringOptions) -> Lowered:
    guards = _layout_guards(job)

    def lower_piece(
        gm: GraphModule, inputs: Sequence[Any], ambient: _session.AmbientState
    ) -> Lowered:
        setattr(gm, "_param_name_to_source", sources_of_held(gm))
        if uses_steps(job.backend):
            mark_buffers(gm)
        piece = _job(gm, inputs, job.backend, job.backend, job.fake_mode, options)
        piece.ambient = ambient
        piece.defers_writes = False
        return _compiled(piece, [])

    ambient = job.ambient or _session.AmbientState.capture()
    whole = DividedLowering(
        job.gm,
        job.inputs,
        job.spec,
        division,
        lower_piece,
        ambient,
        shares=_shares_pieces(job),
        made=options.get("pieces", {}),
    )

    made = whole.lower()
    return Lowered(
        graph_function(made.driver),
        job.spec,
        (*guards, *made.guards),
        made.shape_guards,
        len(results_of(job.gm)),
        uncompiled=made.uncompiled,
        driver=made.driver,
        pieces=made.pieces,
    )


def _job(
    gm: GraphModule,
    example_inputs: Sequence[object],
    wanted: Backend,
    used: Backend,
    fake_mode: FakeTensorMode,
    options: LoweringOptions,
) -> Job:
    """Return the job for the backend that is `used` in place of the requested one, `wanted`."""
    spec = spec_of(wanted)

    return Job(
        gm,
        with_symbols(gm, example_inputs),
        used,
        fake_mode,
        options.get("ambient"),
        options.get("contexts") or {},
        attach_sources(gm),
        options.get("add_fake_kernels"),
        options.get("hides_floats", False),
        options.get("defers_writes", False),
        options.get("prepared"),
        GraphSpec.of(gm, example_inputs) if spec.wants_graph_spec else None,
        GraphSnapshot.of(gm) if options.get("writes_repro") and spec.compiles else None,
    )


def _uncompiled(job: Job) -> Lowered:
    """Lower for a backend that returns the function of the graph: it needs no surroundings, and a
    tenth of the time."""
    count = len(results_of(job.gm))
    with cleared(job.fake_mode, job.context):
        return Lowered(call_backend(job), job.spec, (), (), count)


def _compiled(job: Job, guards: list[InputGuard]) -> Lowered:
    """Lower for a backend that compiles; if AOTAutograd refuses the graph, return its own function,
    and the reason."""
    forget_floats(job.fake_mode, job.hides_floats)
    known, texts = shape_guards_of(job.fake_mode), _session.generated_texts()

    output: Any = job.gm.graph.output_node().args
    restores, late = _prepared(job)
    present = job.ambient or _session.AmbientState.capture()
    modes = begin_with_gradients(job.gm, present)
    notes_undefined = may_be_undefined(job.gm)

    try:
        with surroundings(job, modes), retainable_graphs(notes_undefined):
            _record_contexts(job)
            compiled = call_backend(job)
    except BackendError as failure:
        refused = refused_by_autograd(failure)
        if not refused:
            describe(failure, job)
            raise
        job.gm.graph.output_node().args = output
        write_in_place(job.gm, late)
        return _refused(job, failure, refused)

    _session.forget_texts_with(compiled, _session.generated_texts() - texts)
    added = job.context.guards_context.aotautograd_guards
    guards += [from_torch(job.spec.name, guard, job.positions) for guard in added]
    guards += getattr(compiled, "input_guards", ())
    if modes is not present:
        compiled = with_gradients_on(compiled)
    compiled = restore_all(compiled, restores)
    gained = tuple(shape_guards_of(job.fake_mode)[len(known) :])
    return Lowered(compiled, job.spec, tuple(guards), gained, len(output[0]), late=late)


def _record_contexts(job: Job) -> None:
    record_contexts(
        job.gm,
        job.inputs,
        job.spec,
        job.context,
        job.contexts,
        hides_floats=job.hides_floats,
        prepared=() if job.prepared is None else job.prepared.ids,
    )


def _refused(job: Job, failure: BackendError, reason: str) -> Lowered:
    """Return the graph's own function for a graph that AOTAutograd does not take."""
    job.gm.recompile()
    at = node_refused(failure, job.gm)
    return evolve(_run_as_it_is(evolve(job, backend=eager), reason), refused_at=at)


def _prepared(job: Job) -> tuple[list[ResultWrapper], tuple[LateWrite, ...]]:
    """Return what restores the contracts of the graph, and the writes that it does not make
    itself."""
    restores = prepare(job.gm)
    count = len(results_of(job.gm))
    late = defer_writes(job.gm) if job.defers_writes else ()
    return [*restores, partial(with_late_writes, late, count)], late


def _layout_guards(job: Job) -> list[InputGuard]:
    if job.prepared is not None:
        return [*job.prepared.guards]
    return layout_guards(job.gm, job.inputs)
