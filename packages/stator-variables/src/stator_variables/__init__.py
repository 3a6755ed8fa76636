"""Variable trackers: what Python values mean symbolically, and the journal of their side effects."""

from stator_variables._build import globals_tracker, wrap
from stator_variables._calls import function_frame
from stator_variables._domain import SymbolicDomain
from stator_variables._emit import Emitter, RaisedBefore, StillRunning, emit_effects, finalize_generators
from stator_variables._graph import Dim, GraphRecorder, Place, Places, Traced
from stator_variables._handlers import DEFAULT_HANDLERS
from stator_variables._kinds import generator_state
from stator_variables._modes import initial as initial_modes
from stator_variables._modes import restore as restore_modes
from stator_variables._tracing import Journal, Policy, Tracing, source_of
from stator_variables._tracker import MISSING, LazyTracker, VariableTracker

__all__ = [
    "DEFAULT_HANDLERS",
    "MISSING",
    "Dim",
    "Emitter",
    "GraphRecorder",
    "Journal",
    "LazyTracker",
    "Place",
    "Places",
    "Policy",
    "RaisedBefore",
    "StillRunning",
    "SymbolicDomain",
    "Traced",
    "Tracing",
    "VariableTracker",
    "emit_effects",
    "finalize_generators",
    "function_frame",
    "generator_state",
    "globals_tracker",
    "initial_modes",
    "restore_modes",
    "source_of",
    "wrap",
]
