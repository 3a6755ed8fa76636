"""Lowering of a captured graph: once for equal graphs, again with other floats where a compiler
specializes on them."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import TYPE_CHECKING, Any

import attrs
import torch
from stator_backends import AmbientState, FrozenInputs, Lowered, PreparedInputs, lower, spec_of
from stator_variables import (
    DUAL_LEVEL,
    RUNS_NATIVELY,
    GlobalModes,
    enters_level,
    is_entry_value,
    is_under_level,
    mark_levels,
)

from stator._capture._trace import TraceResult
from stator._entries._gradient_buckets import mark_buckets
from stator._entries._kernel_state import StateCalls, mark_setters, state_calls
from stator._entries._kernel_state import run as run_setters
from stator._entries._known_graph import KnownGraph, KnownGraphs, key_of
from stator._settings._options import Options
from stator.errors import BackendFailed, backend_boundary

if TYPE_CHECKING:
    from stator_subgraphs import CapturedGraph

    from stator._entries._graph_effects import GraphEffects


def lowered_graph(
    traced: TraceResult,
    options: Options,
    ambient: AmbientState,
    effects: GraphEffects,
    known: KnownGraphs,
) -> tuple[Lowered, Any]:
    """Lower the graph; each call issues the warnings that operators issued while tracing.

    Returns the compiled graph, and the module that it was compiled from.
    """
    from stator_subgraphs import quiet

    with quiet(traced.captured.graph):
        shared = _lowered_once(traced, options, ambient, effects, known)
    return completed(shared.lowered, traced), shared.module


def completed(lowered: Lowered, traced: TraceResult) -> Lowered:
    """Let each call of a compiled graph issue the warnings of its operators."""
    from stator_subgraphs import with_messages

    function = with_messages(lowered.callable, traced.captured.graph)
    return lowered if function is lowered.callable else attrs.evolve(lowered, callable=function)


def effects_of(captured: CapturedGraph) -> GraphEffects:
    from stator._entries._graph_effects import (
        GraphEffects,
    )  # when first needed: importing stator is to be quick

    return GraphEffects.of(captured)


def is_run_in_order(options: Options, effects: GraphEffects) -> bool:
    """Return True if the graph runs node by node, as the program does."""
    return effects.catches_foreign or not spec_of(options.backend).compiles


def defers_writes(options: Options, effects: GraphEffects) -> bool:
    """Return True if the graph must not have written to its inputs when it raises."""
    runs_in_order = is_run_in_order(options, effects)
    return not runs_in_order and effects.may_be_undone(runs_in_order, options.fallback)


def _lowered_once(
    traced: TraceResult,
    options: Options,
    ambient: AmbientState,
    effects: GraphEffects,
    known: KnownGraphs,
) -> KnownGraph:
    """Lower the graph, unless an equal one was compiled before."""
    captured = traced.captured
    if spec_of(options.backend).compiles:
        mark_native(captured, effects)
    key = key_of_graph(captured, ambient, options, effects)
    if key is not None and key in known.graphs:
        return known.graphs[key]
    made = lowered_for(traced, options, ambient, effects, known)
    is_frozen = any(isinstance(guard, FrozenInputs) for guard in made.lowered.guards)
    if traced.serves_one_call:
        return attrs.evolve(made, lowered=attrs.evolve(made.lowered, uncompiled=()))
    if key is not None and not made.lowered.shape_guards and not is_frozen:
        known.graphs[key] = made
    return made


def key_of_graph(
    captured: CapturedGraph, ambient: AmbientState, options: Options, effects: GraphEffects
) -> Hashable | None:
    """Return what finds a graph among those that were compiled; None for one that is not
    compared."""
    key = key_of(captured, ambient, options.backend)
    return None if key is None else (key, defers_writes(options, effects))


def lowered_for(
    traced: TraceResult,
    options: Options,
    ambient: AmbientState,
    effects: GraphEffects,
    known: KnownGraphs,
    prepared: PreparedInputs | None = None,
) -> KnownGraph:
    """Lower the graph: see `_lowered`."""
    lowered = _lowered(traced, options, ambient, effects, known, prepared)
    return KnownGraph(lowered, lowered.driver or traced.captured.module)


def _lowered(
    traced: TraceResult,
    options: Options,
    ambient: AmbientState,
    effects: GraphEffects,
    known: KnownGraphs,
    prepared: PreparedInputs | None,
) -> Lowered:
    """Lower the graph; raises FloatsNeeded if the backend specializes on floats, and
    SeparationNeeded if it refuses what follows a step: both are traced again then."""
    captured, space = traced.captured, traced.emitter.t
    calls = None
    if not spec_of(options.backend).compiles:
        _keep_for_handlers(captured.module)
    elif space.state(GlobalModes).starts and not effects.catches_foreign:
        calls = _take_out_setters(captured.module)

    # The symbols are also those that a rollback left.
    has_floats = _are_floats(getattr(space.graph.fake_mode.shape_env, "backed_var_to_val", ()))
    can_retrace = has_floats or _has_numbers(captured, space.policy.unbacked_numbers)
    try:
        lowered = _call_backend(traced, options, ambient, effects, can_retrace, known, prepared)
    except BackendFailed:
        if can_retrace:
            raise FloatsNeeded from None
        raise
    finally:
        # A compiler that ran the graph has left them as the graph does.
        for setting, start in settings_of(traced).items():
            setting.set(start)

    if lowered.refused == WRITES_WITH_GRADIENTS:
        raise SeparationNeeded
    if has_floats and _is_specialized(lowered, space.policy.hides_floats):
        raise FloatsNeeded
    if lowered.driver is not None and effects.catches_foreign:
        _keep_for_handlers(lowered.driver)
        lowered = attrs.evolve(lowered, callable=lowered.driver.forward)
    return attrs.evolve(lowered, callable=calls.around(lowered.callable)) if calls else lowered


def _has_numbers(captured: CapturedGraph, unbacked_numbers: bool) -> bool:
    """Return True for numbers that are drawn at random, or that the graph reads where they are
    drawn."""
    numbers = (item for item in captured.inputs if item.kind != "tensor")
    computed = any(is_entry_value(item.source) for item in numbers)
    return computed or (unbacked_numbers and any(map(_is_number_read, captured.graph.nodes)))


def mark_native(captured: CapturedGraph, effects: GraphEffects) -> None:
    """Mark what a compiler must not get, what later operators need of compiled pieces, and where
    pieces begin."""
    for node in captured.graph.nodes:
        if (reason := getattr(node.target, RUNS_NATIVELY, None)) is not None:
            node.meta["native"] = reason
    if effects.catches_foreign:
        from stator._entries._program_order import keep_program_order

        keep_program_order(captured)
    if enters_level(captured.graph):
        mark_levels(captured.graph)
    mark_buckets(captured)


def _keep_for_handlers(module: Any) -> None:
    from stator._entries._liveness import keep_for_handlers

    keep_for_handlers(module)


def _call_backend(
    traced: TraceResult,
    options: Options,
    ambient: AmbientState,
    effects: GraphEffects,
    can_retrace: bool,
    known: KnownGraphs,
    prepared: PreparedInputs | None,
) -> Lowered:
    from stator_subgraphs import add_fake_kernels, needs_fake_kernels

    captured, policy = traced.captured, traced.emitter.t.policy
    kernels = add_fake_kernels if needs_fake_kernels(captured.module) else None

    with backend_boundary():
        return lower(
            captured.module,
            captured.example_inputs(),
            options.backend,
            fake_mode=traced.emitter.t.graph.fake_mode,
            contexts=captured.contexts,
            ambient=ambient,
            keeps_history=captured.keeps_history,
            as_it_is=_as_it_is(traced),
            separable=not policy.separates_steps and not policy.is_whole,
            add_fake_kernels=kernels,
            hides_floats=policy.hides_floats,
            writes_repro=not can_retrace,
            has_effects=effects.is_observable,
            defers_writes=defers_writes(options, effects),
            regions=options.regions,
            pieces=known.pieces,
            prepared=prepared,
        )


def _as_it_is(traced: TraceResult) -> str:
    """Return why a graph runs uncompiled as a whole; empty if it does not."""
    if is_under_level() or enters_level(traced.captured.graph, and_stays=True):
        return DUAL
    return ONE_CALL if traced.serves_one_call else ""


def _take_out_setters(module: Any) -> StateCalls | None:
    """Take setters of state that kernels read out of a graph; what it is compiled under is what
    they set. Where they are between operators, they stay, and divide the graph."""
    calls = state_calls(module)
    if calls is None:
        mark_setters(module)
    elif calls:
        calls.take_out(module)
        run_setters(calls.prologue)
    return calls


def _is_specialized(lowered: Lowered, hides_floats: bool) -> bool:
    """Return True if the compiler needs the value of a float, or refused one that could be hidden
    from it."""
    if lowered.refused.startswith("TensorifyScalarRestartAnalysis") and not hides_floats:
        return True
    return any(_are_floats(guard.expr.free_symbols) for guard in lowered.shape_guards)


def settings_of(traced: TraceResult) -> dict[Any, Any]:
    """Return the modes that the graph changes, with their values at its start."""
    level = {DUAL_LEVEL: False} if enters_level(traced.captured.graph) else {}
    return {**traced.emitter.t.state(GlobalModes).starts, **level}


ONE_CALL = "its entry serves one call only"
DUAL = "tensors with tangents of forward-mode derivatives"
WRITES_WITH_GRADIENTS = "a write to a tensor that has gradients"


class SeparationNeeded(Exception):
    """The compiler takes no graph with a step of an optimizer and the forward pass that follows.

    The program is traced once more, with the break behind a step that torch.optim has there.
    """


class Outdated(Exception):
    """State of the process has changed since the call for which a graph is compiled."""


class FloatsNeeded(Exception):
    """The compiler specialises on symbolic floats, or cannot do with numbers that are drawn at
    random.

    The program is traced once more, with floats that are opaque to the compiler; where it
    needs to know, with constants, and with breaks where numbers are drawn.
    """


def _is_number_read(node: torch.fx.Node) -> bool:
    """Return True for a number that the graph reads from a tensor, and no input."""
    example = node.meta.get("example_value")
    return isinstance(example, torch.SymFloat | torch.SymInt) and not example.node.has_hint()


def _are_floats(symbols: Iterable[object]) -> bool:
    """Return True if one of the symbols is that of a float."""
    from torch.utils._sympy.symbol import SymT, symbol_is_type

    return any(symbol_is_type(symbol, SymT.FLOAT) for symbol in symbols)
