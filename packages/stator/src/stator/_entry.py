"""Entries: from the parts of a trace to a guarded, runnable, readable Python function."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Hashable, Iterable
from typing import TYPE_CHECKING, Any

import attrs
import torch
from stator_backends import AmbientState, Lowered, lower, one_at_a_time
from stator_bytecode import Goto, Site
from stator_guards import CallSource, Entry, GlobalState, Guard, Loads, PartSource, Source, Truth, load_source
from stator_variables import as_inference

from stator._fallback import Plainly, Recovery
from stator._options import Options
from stator._saying import Saying, silent
from stator._target import Target, start_of
from stator._trace import Traced
from stator.errors import BackendFailed, InternalError, Unsupported, backend_boundary

if TYPE_CHECKING:
    from stator_subgraphs import CapturedGraph

_numbers = itertools.count()


@attrs.define(eq=False)
class EntryData:
    """What the report and `dump` show of an entry."""

    target: Target
    graph: Any  # the GraphModule, None when the entry runs no operation
    graph_text: str
    op_count: int
    reason: Unsupported | None
    trace_seconds: float
    namespace: dict[str, Any]
    forgives: bool = False  # a backend that fails: the program runs plainly
    failures: list[str] = attrs.field(factory=list)  # the last error of the graph when it ran
    uncompiled: str = ""  # why the graph runs as it is
    made_calls: bool = False  # of cached functions, while tracing: the first run has to follow
    source: str = ""


def make_entry(
    target: Target, traced: Traced, options: Options, site: Site | None, ambient: AmbientState, key: Hashable
) -> Entry:
    """Lower the graph, collect the guards, write the function."""
    captured = traced.captured
    runs = captured.op_count > 0 or bool(traced.emitter.outputs)
    module = captured.module if runs else None
    if options.check and runs:
        _check(module)
    graph_text = module.print_readable(print_output=False) if module is not None and options.keep_text else ""
    warned = [one for node in captured.graph.nodes for one in node.meta.get("warns", ())]
    with silent(warned):
        lowered = _lowered(traced, options, ambient) if runs else None
    if lowered is not None and warned:
        lowered = attrs.evolve(lowered, callable=Saying(lowered.callable, warned))
    guards = [*traced.guards, Guard(None, GlobalState(), start_of(target))]
    with one_at_a_time:  # these are found with fake tensors, too; after the lowering
        guards += [Guard(None, fact.expression, fact.where) for fact in captured.shape_guards(bool(traced.raises))]
    if lowered is not None:
        guards += [_layout_guard(guard, captured, target) for guard in lowered.guards]
    data = EntryData(
        *(target, module, graph_text, captured.op_count, traced.reason, traced.seconds, {}),
        forgives=options.fallback,
        uncompiled=lowered.refused if lowered is not None else "",
        made_calls=any(call.made for call in traced.emitter.t.cached.calls),
    )
    run = _function(target, traced, lowered, site, ambient, data)
    checked = options.stack.guards(guards, target.parameters)
    serve = getattr(checked, "serve", None)  # a guard compiler need not be able to
    if serve is not None:
        for loads in (value for value in data.namespace.values() if type(value) is Loads):
            serve(loads)
    return Entry(checked, run, data.source, backend_key=key, data=data)


def _check(module: Any) -> None:
    from stator_subgraphs import check_graph

    if faults := check_graph(module):
        raise InternalError("\n".join(["the graph is not one that compilers take", *faults]))


def _lowered(traced: Traced, options: Options, ambient: AmbientState) -> Lowered:
    captured, fake_mode = traced.captured, traced.emitter.t.graph.fake_mode
    has_floats = _are_floats(getattr(fake_mode.shape_env, "backed_var_to_val", ()))  # also what a rollback left
    try:
        with backend_boundary():
            lowered = lower(
                *(captured.module, captured.example_inputs(), options.backend),
                fake_mode=fake_mode,
                contexts=captured.contexts,
                ambient=ambient,
                keeps_history=captured.keeps_history,
            )
    except BackendFailed:
        if has_floats:
            raise FloatsNeeded from None
        raise
    finally:
        for setting, start in traced.emitter.t.modes.items():  # a compiler that ran the graph has left them as it does
            setting.set(start)
    if has_floats and any(_are_floats(guard.expr.free_symbols) for guard in lowered.shape_guards):
        raise FloatsNeeded
    return lowered


class FloatsNeeded(Exception):
    """The compiler cannot do with symbolic floats: the program is traced once more, with constants."""


def _are_floats(symbols: Iterable[Any]) -> bool:
    """Whether one of them is the symbol of a float."""
    from torch.utils._sympy.symbol import SymT, symbol_is_type

    return any(symbol_is_type(symbol, SymT.FLOAT) for symbol in symbols)


def _layout_guard(guard: Any, captured: CapturedGraph, target: Target) -> Guard:
    """A condition of the backend over the flat inputs of the graph."""
    sources: list[Source] = [item.source for item in captured.inputs]
    holds = CallSource(lambda *inputs: guard.holds(inputs), *sources)
    return Guard(holds, Truth(True), start_of(target))


# -- the function ----------------------------------------------------------------------------------------------------
def _function(
    target: Target, traced: Traced, lowered: Lowered | None, site: Site | None, ambient: AmbientState, data: EntryData
) -> Any:
    emitter = traced.emitter
    number = next(_numbers)
    name = f"entry_{number}"
    call = _graph_call(traced, lowered, target, ambient, data) if lowered is not None else []
    body = [*_loads(emitter, target), *call, *_marked(emitter), *emitter.lines, _ending(traced, site, emitter)]
    text = "".join(f"    {line}\n" for line in body)
    data.source = f"def {name}({', '.join(target.parameters)}):\n{text}"
    data.namespace = dict(emitter.captured)
    return load_source(data.source, f"<stator entry {number}: {target.name}>", emitter.captured, data)[name]


def _loads(emitter: Any, target: Target) -> list[str]:
    """What only weak references of the program hold may be gone when it is read: then nothing has changed yet."""
    if not emitter.fleeting or not emitter.loads:
        return list(emitter.loads)
    errors, plainly = emitter.capture((KeyError, ReferenceError), "Gone"), emitter.capture(Plainly, "Plainly")
    state = "".join(f"{name}, " for name in target.parameters)
    again = f"return {plainly}({emitter.capture(target, 'target')}, ({state}))"
    return ["try:", *(f"    {line}" for line in emitter.loads), f"except {errors}:", f"    {again}"]


def _ending(traced: Traced, site: Site | None, emitter: Any) -> str:
    if site is None:
        return f"return {traced.result}"
    values = "".join(f"{value}, " for value in traced.values)
    return f"return {emitter.capture(Goto, 'Goto')}({emitter.capture(site, 'site')}, [{values}])"


def _graph_call(traced: Traced, lowered: Lowered, target: Target, ambient: AmbientState, data: EntryData) -> list[str]:
    """`g = graph(inputs)`; an operator that raises is raised again by the program itself, run plainly, unless what the
    graph does cannot be taken back."""
    from stator_subgraphs import may_draw  # when first asked: importing stator is to be quick

    from stator._hazard import Hazards

    emitter = traced.emitter
    inputs = _inputs(traced, target, emitter)
    graph = emitter.capture(_giving_outputs(lowered), "graph")
    arguments = ", ".join(inputs)
    if (hazards := Hazards.of(traced.captured)) is None:
        return [f"g = {graph}({arguments})"]
    draws = may_draw(traced.captured.module)
    recovery = Recovery(target, ambient, draws, hazards, data.failures, data.forgives)
    state = "".join(f"{name}, " for name in target.parameters)
    again = emitter.capture(recovery, "recovery")
    watched = [item for item in traced.captured.inputs if item.kind == "tensor"] if hazards.written else []
    tensors = ", ".join(emitter.load(item.source) for item in watched)  # loading writes a line: only what is used
    lines = [f"before = {again}.before({tensors})"] if recovery.looks_before else []
    before = "before" if recovery.looks_before else "None"
    return [
        *lines,
        "try:",
        f"    g = {graph}({arguments})",
        "except Exception as error:",
        f"    return {again}.after(error, ({state}), {before})",
    ]


def _giving_outputs(lowered: Lowered) -> Callable[..., Any]:
    """The compiled graph; what a backend made may give something else than the outputs, one tensor say."""
    count = lowered.count
    if not lowered.spec.compiles or not count:
        return lowered.callable

    def graph(*inputs: Any) -> Any:
        outputs = lowered.callable(*inputs)
        if isinstance(outputs, tuple | list) and len(outputs) == count:
            return outputs
        given = f"{len(outputs)} outputs" if isinstance(outputs, tuple | list) else type(outputs).__name__
        raise BackendFailed(lowered.spec.name, f"{given} instead of a tuple of {count}", "running the graph")

    return graph


def _marked(emitter: Any) -> list[str]:
    """What inference mode leaves on tensors; the graph only has gradients switched off."""
    examples = [traced.example for traced in emitter.outputs]
    tensors = [(i, made) for i, made in enumerate(examples) if isinstance(made, torch.Tensor)]
    made = [i for i, example in tensors if example.is_inference()]
    plain = [i for i, example in tensors if i not in made and not example.requires_grad]
    if not emitter.t.inference.ever or not (made or plain):
        return []
    return [f"g = {emitter.capture(as_inference, 'as_inference')}(g, {made}, {plain})"]


MANY = 4
"""So many inputs in a row are worth a call that reads them all."""


def _inputs(traced: Traced, target: Target, emitter: Any) -> list[str]:
    """The arguments of the graph; what lies deep in the parameters, a model's weights say, is loaded together."""
    found: list[str] = []
    for deep, items in itertools.groupby(traced.captured.inputs, _is_deep):
        run = list(items)
        if deep and len(run) >= MANY:
            loads = Loads(tuple(item.source for item in run), target.parameters)
            name = emitter.capture(loads, "loads")
            found.append(f"*{name}({', '.join(target.parameters)})")
        else:
            found += [_input(emitter, item) for item in run]
    return found


def _is_deep(item: Any) -> bool:
    return item.kind == "tensor" and isinstance(item.source, PartSource) and isinstance(item.source.whole, PartSource)


def _input(emitter: Any, item: Any) -> str:
    text: str = emitter.load(item.source)
    if item.kind == "float":
        make = emitter.capture(torch.scalar_tensor, "scalar_tensor")  # in less than half the time of `torch.tensor`
        return f"{make}({text}, dtype={emitter.capture(torch.float64, 'float64')})"
    return text
