"""Entries: from the parts of a trace to a guarded, runnable, readable Python function."""

from __future__ import annotations

import functools
import itertools
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import attrs
import torch
from stator_backends import (
    AmbientState,
    CompiledPiece,
    Lowered,
    Uncompiled,
    begin_step,
    one_at_a_time,
    report_failure,
    spec_of,
    uses_steps,
)
from stator_bytecode import Point, Site
from stator_guards import (
    Entry,
    GlobalState,
    Guard,
    GuardSet,
    Loads,
    PartSource,
    Source,
    expanded,
    function_text,
    load_source,
    tuple_text,
)
from stator_variables import EntryCalls, enters_level, is_entry_value

from stator._capture._compile_log import log_graph
from stator._capture._entry_source import ending
from stator._capture._progress import PROGRESS
from stator._capture._trace import TraceResult
from stator._capture._uncompiled_operator import check_compiled
from stator._entries._checked_graph import CheckedGraph
from stator._entries._graph_lowering import (
    effects_of,
    is_run_in_order,
    lowered_graph,
    settings_of,
)
from stator._entries._known_graph import KnownGraphs
from stator._entries._layout_guard import layout_guards
from stator._entries._measurement import CompileTimes, MeasuredRun
from stator._program._fallback import EagerFallback, Remainder
from stator._program._local_ends import LocalEnds
from stator._program._target import Continuation, Root, Target, start_of
from stator._settings._guard_filter import filtered
from stator._settings._options import Options
from stator._settings._stack import guard_set
from stator.errors import InternalError, Unsupported

if TYPE_CHECKING:
    from stator_subgraphs import CapturedGraph

    from stator._capture._retrace import Retrace
    from stator._entries._graph_effects import GraphEffects
    from stator._entries._recovery import Recovery
    from stator._entries._tier import LaterLowering, Tier, TierChange

_numbers = itertools.count()


@attrs.define(eq=False)
class EntryData:
    """The data of an entry that the report and `dump` show."""

    target: Target
    graph: Any  # the GraphModule, None when the entry runs no operation
    graph_text: str
    op_count: int
    reason: Unsupported | None
    trace_seconds: float
    namespace: dict[str, Any]
    forgives: bool = False  # a backend that fails: the program runs plainly
    failures: list[str] = attrs.field(factory=list)  # the last error of the graph when it ran
    uncompiled: tuple[Uncompiled, ...] = ()  # operators that run as they are
    pieces: tuple[CompiledPiece, ...] = ()  # of a graph that is not compiled as a whole
    has_begun: bool = False  # effects were had while tracing: the first run has to follow
    equal_calls: tuple[str, ...] = ()  # lines about calls recorded like earlier ones
    ends: LocalEnds = attrs.field(factory=LocalEnds)
    begins_step: bool = False  # the first entry of a call under CUDA graphs
    source: str = ""
    point: Point | None = None  # where it breaks
    serves_one_call: bool = False
    leads_elsewhere: bool = False  # no later call comes to its continuation in this way
    times: CompileTimes = attrs.field(factory=CompileTimes)
    measured: MeasuredRun | None = None
    tier: Tier | None = None  # of a graph that is compiled in another thread
    change: TierChange | None = None  # what waits for that
    cache_notes: tuple[str, ...] = ()  # for the report
    file: Any = None  # the EntryFile that has the trace


def make_entry(
    traced: TraceResult,
    retrace: Retrace,
    site: Site | None,
    ambient: AmbientState,
    key: Hashable,
    known: KnownGraphs,
    state: Mapping[str, object],
) -> Entry:
    """Lower the graph, collect the guards, write the function.

    `known` has the graphs that were compiled before, `state` the parameters by name.
    """
    target, options = retrace.target, retrace.options
    captured = traced.captured
    runs = captured.op_count > 0 or bool(traced.emitter.outputs)
    module = captured.module if runs else None
    text = _examined(target, captured, options) if runs else ""

    lowered, ran, effects, later = None, module, None, None
    begun = time.perf_counter()
    if runs:
        effects = effects_of(captured)  # before a backend changes the graph
        later = _later(traced, options, ambient, effects, known)
        if later is not None:
            lowered, ran = later.as_it_is(traced)
        else:
            lowered, ran = lowered_graph(traced, options, ambient, effects, known)
    spent = time.perf_counter() - begun

    guards = _all_guards(traced, retrace, lowered, state)
    data = _entry_data(traced, retrace, lowered, module, text, state)
    data.times = CompileTimes(backend=spent)
    recovery = _recovery(traced, effects, retrace, ambient, data, ran, lowered)
    run = _function(target, traced, lowered, site, recovery, data)
    entry = _entry(run, guards, options, key, data)
    if later is not None:
        _begin_tier(entry, run, later, lowered, recovery, guards)
    return entry


def _entry_data(
    traced: TraceResult,
    retrace: Retrace,
    lowered: Lowered | None,
    module: Any,
    text: str,
    state: Mapping[str, object],
) -> EntryData:
    target, options, count = retrace.target, retrace.options, traced.captured.op_count

    return EntryData(
        target,
        module,
        text,
        count,
        traced.reason,
        traced.seconds,
        namespace={},
        forgives=options.fallback,
        uncompiled=check_compiled(target.name, lowered, count, options),
        pieces=() if lowered is None else lowered.pieces,
        has_begun=traced.emitter.t.states.have_begun(),
        equal_calls=(*traced.equal_calls, *_lines_of_whole(traced, lowered)),
        ends=_local_ends(traced, target, state),
        begins_step=isinstance(target, Root) and uses_steps(options.backend),
        point=traced.point,
    )


def _lines_of_whole(traced: TraceResult, lowered: Lowered | None) -> Iterator[str]:
    """Yield a line with the reason why equal blocks, if there are any, are compiled each."""
    if traced.equal_calls and lowered is not None and lowered.whole:
        yield f"equal blocks are compiled each, as {lowered.whole}"


def _entry(
    run: Callable[..., Any], guards: list[Guard], options: Options, key: Hashable, data: EntryData
) -> Entry:
    """Return the entry of a function; its calls are measured if the options say so."""
    checked = _checked_by(guards, data.target, options, data)
    entry = Entry(checked, run, data.source, backend_key=key, data=data)
    if options.measure:
        MeasuredRun.install(entry)
    return entry


def _later(
    traced: TraceResult,
    options: Options,
    ambient: AmbientState,
    effects: GraphEffects,
    known: KnownGraphs,
) -> LaterLowering | None:
    """Return the graph as one that is compiled in another thread, if the options want that."""
    if not options.tiered:
        return None
    from stator._entries._tier import LaterLowering  # only where it is used

    return LaterLowering.of(traced, options, ambient, effects, known)


def _begin_tier(
    entry: Entry,
    run: Callable[..., Any],
    later: LaterLowering,
    lowered: Any,
    recovery: Any,
    guards: list[Guard],
) -> None:
    from stator._entries._tier import Tier, TierChange

    data: EntryData = entry.data
    data.tier = Tier(spec_of(later.options.backend).name)
    compile_guards = partial(_checked_by, target=data.target, options=later.options, data=data)
    data.change = TierChange(
        entry,
        later,
        lowered,
        recovery,
        run,
        tuple(guards),
        compile_guards,
    )


def _local_ends(traced: TraceResult, target: Target, state: Mapping[str, object]) -> LocalEnds:
    places = tuple(sorted(traced.emitter.t.lifetimes.ended_locals))
    return LocalEnds.of(places, [*state], [*state.values()], target.name)


def _examined(target: Target, captured: CapturedGraph, options: Options) -> str:
    """Log a graph, check it if that is enabled, and return its text if that is kept."""
    PROGRESS.add_graph(f"compiling by {spec_of(options.backend).name}")
    module = captured.module
    code = functools.cache(lambda: module.print_readable(print_output=False))
    log_graph(target, captured, code)
    if options.check:
        _check(module)
    return code() if options.keep_text else ""


def _all_guards(
    traced: TraceResult, retrace: Retrace, lowered: Lowered | None, state: Mapping[str, object]
) -> list[Guard]:
    """Return the guards of the trace, of modes and shapes, and of what the backend relies on."""
    captured, target = traced.captured, retrace.target
    modes = GlobalState(saves_tensors=any(map(_has_history, captured.graph.nodes)))
    guards = [*traced.guards, Guard(None, modes, start_of(target))]
    with one_at_a_time:  # these are found with fake tensors, too; after the lowering
        facts = captured.shape_guards(bool(traced.raises))
        guards += [Guard(None, fact.expression, fact.where) for fact in facts]
    guards = filtered(guards, retrace.options.guard_filter_fn, state)
    if lowered is not None:
        guards += layout_guards(lowered.guards, captured, start_of(target))
    return guards


def _has_history(node: torch.fx.Node) -> bool:
    """Return True for an operator whose result requires gradients, so that it may save tensors."""
    example = node.meta.get("example_value")
    return node.op.startswith("call_") and bool(getattr(example, "requires_grad", False))


def _checked_by(guards: list[Guard], target: Target, options: Options, data: EntryData) -> GuardSet:
    """Compile the guards. They provide values that they read anyway; a guard compiler need not
    support that."""
    known = options.stack.guards
    # a compiler of another package expects single facts
    listed = guards if known is guard_set else [*expanded(guards)]
    checked = known(listed, target.parameters)
    serve = getattr(checked, "serve", None)
    if serve is not None:
        for loads in (value for value in data.namespace.values() if type(value) is Loads):
            serve(loads)
    return checked


def finishing_entry(
    target: Continuation, remainder: Remainder, options: Options, key: Hashable, reason: Unsupported
) -> Entry:
    """The entry of a continuation whose innermost frames run natively to their end, whatever the
    state is."""
    data = EntryData(target, None, "", 0, reason, 0.0, {})
    name = f"entry_{next(_numbers)}"
    line = f"return EagerFallback(remainder, {tuple_text(target.parameters)})"
    data.source = function_text(name, target.parameters, [line])
    data.namespace = {"EagerFallback": EagerFallback, "remainder": remainder}
    filename = f"<stator {name}: {target.name}>"
    run = load_source(data.source, filename, dict(data.namespace), data)[name]
    return Entry(options.stack.guards([], target.parameters), run, data.source, key, data)


def _check(module: Any) -> None:
    from stator_subgraphs import check_graph

    if faults := check_graph(module):
        raise InternalError("\n".join(["the graph is not one that compilers take", *faults]))


# -- the function ----------------------------------------------------------------------------------
def _function(
    target: Target,
    traced: TraceResult,
    lowered: Lowered | None,
    site: Site | None,
    recovery: Recovery | None,
    data: EntryData,
) -> Any:
    emitter = traced.emitter
    number = next(_numbers)
    name = f"entry_{number}"
    call: list[str] = [*emitter.ahead, *emitter.early]
    graph = None
    if lowered is not None and recovery is not None:
        assert recovery.retrace is not None  # `_recovery` gives it one
        backend = recovery.retrace.options.backend
        script = partial(report_failure, traced.captured.module, backend=backend)
        graph = CheckedGraph(lowered, script)
        call = _graph_call(traced, graph, recovery, target)

    loads, marks = _loads(emitter, target), emitter.marks()
    begin = [f"{emitter.capture(begin_step)}()"] if data.begins_step else []
    body = [*begin, *loads, *call, *emitter.behind, *marks, *emitter.lines]
    body.append(ending(traced, site))
    data.source = function_text(name, target.parameters, body)
    data.namespace = dict(emitter.captured)
    filename = f"<stator entry {number}: {target.name}>"
    run = load_source(data.source, filename, emitter.captured, data)[name]
    if graph is not None:
        graph.namespace = run.__globals__
    return run


def _loads(emitter: Any, target: Target) -> list[str]:
    """Return the lines that load objects which only weak references of the program hold.

    They may be dead by then: the entry falls back to eager execution, as nothing has changed yet.
    """
    if not emitter.fleeting or not emitter.loads:
        return list(emitter.loads)
    errors, plainly = (
        emitter.capture((KeyError, ReferenceError), "Gone"),
        emitter.capture(EagerFallback, "EagerFallback"),
    )
    state = tuple_text(target.parameters)
    again = f"return {plainly}({emitter.capture(target, 'target')}, {state})"
    return ["try:", *(f"    {line}" for line in emitter.loads), f"except {errors}:", f"    {again}"]


def _graph_call(
    traced: TraceResult, compiled: CheckedGraph, recovery: Recovery, target: Target
) -> list[str]:
    """`g = graph(inputs)`, and what is done when that raises."""
    emitter = traced.emitter
    graph = compiled.capture(emitter)
    loads: list[str] = []
    arguments = ", ".join(graph_arguments(traced, target, emitter, loads))
    recover = emitter.capture(recovery, "recovery")

    copies: list[str] = []
    given = f"error, {tuple_text(target.parameters)}"
    if recovery.plan is not None:
        copies = [f"before = {recover}.before({', '.join(_kept(traced, recovery))})"]
        given += ", before"
    if recovery.calls.calls:
        results = [call.value.name for call in recovery.calls.calls]
        given += f", results={tuple_text(results)}"

    return [
        *copies,
        *emitter.ahead,
        *loads,
        *emitter.early,
        "try:",
        f"    g = {graph}({arguments})",
        "except BaseException as error:",
        f"    return {recover}.after({given})",
    ]


def _kept(traced: TraceResult, recovery: Recovery) -> Iterator[str]:
    """Yield the arguments of `Recovery.before`: tensors that exist before the entry, and
    objects whose state calls change ahead of the graph."""
    load = traced.emitter.load
    for item in traced.captured.inputs:
        if item.kind == "tensor":
            yield "None" if is_entry_value(item.source) else load(item.source)
    if objects := recovery.calls.objects:
        yield f"objects={tuple_text(map(load, objects))}"


def _recovery(
    traced: TraceResult,
    effects: GraphEffects | None,
    retrace: Retrace,
    ambient: AmbientState,
    data: EntryData,
    ran: object,
    lowered: Lowered | None,
) -> Recovery | None:
    """Return what is done when the graph raises; None without a graph."""
    if effects is None:
        return None

    from stator._entries._calls_ahead import CallsAhead
    from stator._entries._late_inputs import LateInputs
    from stator._entries._recovery import Recovery, RollbackPlan

    late = () if lowered is None else lowered.late
    behind = LateInputs.of(late, traced.captured)
    is_dual = enters_level(traced.captured.graph)
    in_order = is_run_in_order(retrace.options, effects) and not is_dual
    calls = CallsAhead.of(traced.emitter.t.state(EntryCalls).early, data.graph, in_order)
    plan = RollbackPlan.of(behind.left_to_graph(effects), calls, in_order, data.forgives)

    return Recovery(
        retrace.target,
        ambient,
        effects,
        plan,
        data.failures,
        data.forgives,
        settings=tuple(settings_of(traced).items()),
        calls=calls,
        module=data.graph,
        ran=ran,
        retrace=retrace,
        late=behind,
    )


MANY = 4
"""The number of consecutive inputs from which on one call that reads them all pays."""


def graph_arguments(
    traced: TraceResult, target: Target, emitter: Any, lines: list[str]
) -> Iterator[str]:
    """Yield the arguments of the graph. Inputs deep inside a parameter (a model's weights) are
    loaded together, in one of `lines` where others come in between."""
    inputs, given = traced.captured.inputs, ", ".join(target.parameters)
    sources: defaultdict[Source | None, list[Source]] = defaultdict(list)
    for item in inputs:
        sources[_whole_of_deep(item)].append(item.source)

    loads = {whole: Loads(tuple(deep), target.parameters) for whole, deep in sources.items()}
    loaded: Counter[Source | None] = Counter()
    for whole, items in itertools.groupby(inputs, _whole_of_deep):
        run, count = list(items), len(sources[whole])
        if whole is None or count < MANY:
            yield from (input_text(emitter, item) for item in run)
            continue

        name = emitter.capture(loads[whole], "loads")
        start = loaded[whole]
        loaded[whole] += len(run)
        if len(run) == count:
            yield f"*{name}({given})"
            continue

        if not start:
            lines.append(f"values_of_{name} = {name}({given})")
        yield f"*values_of_{name}[{start}:{loaded[whole]}]"


def _whole_of_deep(item: Any) -> Source | None:
    """Return the value that an input lies deep inside of, None where it does not."""
    _, *wholes = item.source.steps()
    is_deep = item.kind == "tensor" and isinstance(item.source, PartSource)
    return wholes[-1] if is_deep and isinstance(wholes[0], PartSource) else None


def input_text(emitter: Any, item: Any) -> str:
    """Return the expression for one input of the graph."""
    text: str = emitter.load(item.source)
    if item.kind == "float":
        # in less than half the time of `torch.tensor`
        make = emitter.capture(torch.scalar_tensor, "scalar_tensor")
        return f"{make}({text}, dtype={emitter.capture(torch.float64, 'float64')})"
    return text
