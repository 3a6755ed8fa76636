"""Lowering of a captured graph: once for equal graphs, again with other floats where a compiler
specializes on them."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import TYPE_CHECKING, Any

import attrs
import torch
from stator_backends import AmbientState, FrozenInputs, Lowered, lower, spec_of
from stator_variables import DUAL_LEVEL, enters_level, is_drawn, is_under_level

from stator._capture._trace import TraceResult
from stator._entries._kernel_state import SEVERAL, StateCalls, state_calls
from stator._entries._kernel_state import run as run_setters
from stator._entries._known_graph import KnownGraph, key_of
from stator._entries._warning_replay import WarningReplay, silent
from stator._settings._options import Options
from stator.errors import BackendFailed, backend_boundary

if TYPE_CHECKING:
    from stator_subgraphs import CapturedGraph

    from stator._entries._graph_effects import GraphEffects


def lowered_with_warnings(
    traced: TraceResult,
    options: Options,
    ambient: AmbientState,
    effects: GraphEffects,
    known: dict[Hashable, KnownGraph],
) -> tuple[Lowered, Any]:
    """Lower the graph; each call issues the warnings that operators issued while tracing.

    Returns the compiled graph, and the module that it was compiled from.
    """
    nodes = traced.captured.graph.nodes
    warned = [warning for node in nodes for warning in node.meta.get("warns", ())]
    with silent(warned):
        shared = _lowered_once(traced, options, ambient, effects, known)
    lowered = shared.lowered
    if warned:
        lowered = attrs.evolve(lowered, callable=WarningReplay(lowered.callable, warned))
    return lowered, shared.module


def effects_of(captured: CapturedGraph) -> GraphEffects:
    from stator._entries._graph_effects import (
        GraphEffects,
    )  # when first needed: importing stator is to be quick

    return GraphEffects.of(captured)


def is_run_in_order(options: Options, effects: GraphEffects) -> bool:
    """Return True if the graph runs node by node, as the program does."""
    return effects.catches_foreign or not spec_of(options.backend).compiles


def _lowered_once(
    traced: TraceResult,
    options: Options,
    ambient: AmbientState,
    effects: GraphEffects,
    known: dict[Hashable, KnownGraph],
) -> KnownGraph:
    """Lower the graph, unless an equal one was compiled before."""
    captured = traced.captured
    key = None if effects.catches_foreign else key_of(captured, ambient)
    if key is not None and key in known:
        return known[key]
    made = KnownGraph(_lowered(traced, options, ambient, effects), captured.module)
    is_frozen = any(isinstance(guard, FrozenInputs) for guard in made.lowered.guards)
    if key is not None and not made.lowered.shape_guards and not is_frozen:
        known[key] = made
    return made


def _lowered(
    traced: TraceResult, options: Options, ambient: AmbientState, effects: GraphEffects
) -> Lowered:
    """Lower the graph; raises FloatsNeeded if the backend specializes on floats, and
    SeparationNeeded if it refuses what follows a step: both are traced again then."""
    captured, space = traced.captured, traced.emitter.t
    calls, as_it_is = None, CATCHES_FOREIGN if effects.catches_foreign else ""
    if is_under_level() or enters_level(captured.graph, and_stays=True):
        as_it_is = DUAL
    if is_run_in_order(options, effects):
        _keep_for_handlers(captured.module)
    elif space.modes:
        calls = _take_out_setters(captured.module)
        as_it_is = SEVERAL if calls is None else as_it_is

    # The symbols are also those that a rollback left.
    has_floats = _are_floats(getattr(space.graph.fake_mode.shape_env, "backed_var_to_val", ()))
    drawn = any(item.kind != "tensor" and is_drawn(item.source) for item in captured.inputs)
    read = space.policy.draws_numbers and any(map(_is_number_read, captured.graph.nodes))
    can_retrace = has_floats or drawn or read
    try:
        lowered = _call_backend(traced, options, ambient, as_it_is, writes_repro=not can_retrace)
    except BackendFailed:
        if can_retrace:
            raise FloatsNeeded from None
        raise
    finally:
        # A compiler that ran the graph has left them as the graph does.
        for setting, start in settings_of(traced).items():
            setting.set(start)

    can_separate = not space.policy.separates_steps and not space.policy.is_whole
    if lowered.refused == WRITES_WITH_GRADIENTS and can_separate:
        raise SeparationNeeded
    if has_floats and _is_specialized(lowered, space.policy.hides_floats):
        raise FloatsNeeded
    return attrs.evolve(lowered, callable=calls.around(lowered.callable)) if calls else lowered


def _call_backend(
    traced: TraceResult,
    options: Options,
    ambient: AmbientState,
    as_it_is: str,
    *,
    writes_repro: bool,
) -> Lowered:
    from stator_subgraphs import add_fake_kernels, needs_fake_kernels

    captured = traced.captured
    kernels = add_fake_kernels if needs_fake_kernels(captured.module) else None
    with backend_boundary():
        return lower(
            *(captured.module, captured.example_inputs(), options.backend),
            fake_mode=traced.emitter.t.graph.fake_mode,
            contexts=captured.contexts,
            ambient=ambient,
            keeps_history=captured.keeps_history,
            as_it_is=as_it_is,
            add_fake_kernels=kernels,
            hides_floats=traced.emitter.t.policy.hides_floats,
            writes_repro=writes_repro,
        )


def _take_out_setters(module: Any) -> StateCalls | None:
    """Take setters of state that kernels read out of a graph; what it is compiled under is what
    they set."""
    calls = state_calls(module)
    if calls:
        calls.take_out(module)
        run_setters(calls.prologue)
    return calls


def _keep_for_handlers(module: Any) -> None:
    from stator._entries._resumption import keep_for_handlers

    keep_for_handlers(module)


def _is_specialized(lowered: Lowered, hides_floats: bool) -> bool:
    """Return True if the compiler needs the value of a float, or refused one that could be hidden
    from it."""
    if lowered.refused.startswith("TensorifyScalarRestartAnalysis") and not hides_floats:
        return True
    return any(_are_floats(guard.expr.free_symbols) for guard in lowered.shape_guards)


def settings_of(traced: TraceResult) -> dict[Any, Any]:
    """Return the modes that the graph changes, with their values at its start."""
    level = {DUAL_LEVEL: False} if enters_level(traced.captured.graph) else {}
    return {**traced.emitter.t.modes, **level}


DUAL = "tensors with tangents of forward-mode derivatives"
CATCHES_FOREIGN = "an operator of another library in a `try` of the program"


WRITES_WITH_GRADIENTS = "a write to a tensor that has gradients"


class SeparationNeeded(Exception):
    """The compiler takes no graph with a step of an optimizer and the forward pass that follows.

    The program is traced once more, with the break behind a step that torch.optim has there.
    """


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
