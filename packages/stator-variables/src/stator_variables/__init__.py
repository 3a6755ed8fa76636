"""Variable trackers: what Python values mean symbolically, and the journal of their side
effects."""

from stator_variables._bodies._body import (
    EVERYTHING,
    NOTHING,
    BodyTrace,
    Permits,
    leaf_of,
    record_wrapping,
    wrapped,
)
from stator_variables._bodies._pytree import LEAF, Spec, broadcast, flatten, unflatten
from stator_variables._bodies._registered_trees import flatten_tree, unflatten_tree
from stator_variables._domain import SymbolicDomain
from stator_variables._emit._effects import emit_effects, finalize_generators
from stator_variables._emit._outdated_guard import is_of_number, outdated_guards
from stator_variables._emitter import (
    Emitter,
    RaisedBefore,
    StaysInGraph,
    StillRunning,
    refers_to,
)
from stator_variables._handler_keys import GENERATED_FORWARD, ORIGINAL
from stator_variables._lifetime._reachability import held_by_changed, walk
from stator_variables._objects._access_log import (
    AccessLog,
    AccessLogs,
    ObjectState,
    is_new_object,
    item_at,
    made_of_state,
    state_of,
    write_state,
)
from stator_variables._objects._builder_table import BuilderTable
from stator_variables._objects._dict_entries import items as dict_items
from stator_variables._objects._inlining import (
    ALLOWED,
    DISALLOWED,
    MARKED,
    NONSTRICT,
    SUBSTITUTES,
    has_mark,
    has_native_hooks,
    is_native_frame,
)
from stator_variables._objects._method import MethodTracker
from stator_variables._objects._method_table import MethodTable, app_level
from stator_variables._objects._paths import CarriedPaths, wrap_paths
from stator_variables._objects._program_error import throw
from stator_variables._objects._substitutes import known_value
from stator_variables._objects._tuple import TupleTracker
from stator_variables._objects._wrap import attributes_of, globals_tracker, new_object, wrap
from stator_variables._protocols._attribute_writes import REPLACEABLE
from stator_variables._protocols._attributes import get_attribute
from stator_variables._protocols._calls import RepeatedCalls, call, frame_for, function_frame
from stator_variables._registry import DEFAULT_HANDLERS
from stator_variables._runtime._finalizers import (
    dying_with,
    has_observable_end,
    hold_plain_values,
    is_end_observable,
    may_have_observable_end,
)
from stator_variables._runtime._message_filter import filtered
from stator_variables._runtime._release_check import release_check_source
from stator_variables._runtime._support import (
    forget_class,
    give_warning,
    is_new_in_each_call,
)
from stator_variables._space import Space
from stator_variables._standard_space import StandardSpace
from stator_variables._tensors._backward_operators import Differentiated
from stator_variables._tensors._deferred_calls import call_after_graph
from stator_variables._tensors._global_mode import NESTING as AUTOCAST_NESTING
from stator_variables._tensors._global_mode import GlobalModes, grad_mode
from stator_variables._tensors._history import UNTOLD, history_of, reached_leaves
from stator_variables._tensors._module_hooks import pass_hooks, passes_hooks
from stator_variables._tensors._outside import (
    can_be_taken,
    enter_taken,
    give_back,
    taken,
    taken_modes,
)
from stator_variables._tensors._recorded_functions import is_recorded
from stator_variables._tensors._surroundings import Transforms, in_transform, is_surrounded
from stator_variables._tensors._tangent import LEVEL as DUAL_LEVEL
from stator_variables._tensors._tangent import (
    enters_level,
    is_level_open,
    is_under_level,
    mark_levels,
    with_tangent,
)
from stator_variables._tensors._torch_calls import argument, from_traced, record
from stator_variables._tensors._torch_state import SETTERS as STATE_SETTERS
from stator_variables._tensors._torch_state import Setter, sets_state_of_kernels
from stator_variables._trace._capture_state import CaptureState, Phase
from stator_variables._trace._entry_calls import EntryCall, EntryCalls, is_entry_value, lines_of
from stator_variables._trace._equal_objects import EqualObjects
from stator_variables._trace._graph import (
    RUNS_NATIVELY,
    BodyGraph,
    BodyRecorder,
    Dim,
    GraphRecorder,
    GraphValue,
    TraceLocation,
    TraceLocations,
)
from stator_variables._trace._heap import owner_of
from stator_variables._trace._journal import Journal
from stator_variables._trace._late_import import LateImport, LateImports
from stator_variables._trace._optimizer_state import (
    SCHEDULED,
    MadeState,
    is_of_optimizer,
    is_scheduled,
    states_made,
)
from stator_variables._trace._overrides import Overrides
from stator_variables._trace._policy import Policy, RetraceLimit
from stator_variables._trace._progress import Progress
from stator_variables._trace._repeated_bodies import repeated
from stator_variables._tracker import (
    MISSING,
    Args,
    FunctionTable,
    Kwargs,
    LazyTracker,
    VariableTracker,
    is_a,
    is_pending,
    real_of,
    realize,
    source_of,
)
from stator_variables._trackers import (
    NONE,
    ConstantTracker,
    FunctionTracker,
    GraphFunction,
    NumberTracker,
    TensorTracker,
    generator_state,
    is_none,
)
from stator_variables._virtualization import (
    ObjectRecipe,
    has_few_parts,
    is_identity,
    is_method,
    is_opaque,
    parts_of,
)

# a trace
__version__ = "0.1.0"

__all__ = [
    "DEFAULT_HANDLERS",
    "BuilderTable",
    "CaptureState",
    "Journal",
    "MethodTable",
    "Phase",
    "Policy",
    "Progress",
    "RetraceLimit",
    "Space",
    "StandardSpace",
    "SymbolicDomain",
    "TraceLocation",
    "TraceLocations",
]
__all__ += ["REPLACEABLE", "filtered", "globals_tracker"]
__all__ += ["STATE_SETTERS", "Setter", "give_warning", "sets_state_of_kernels"]
__all__ += [
    "ALLOWED",
    "DISALLOWED",
    "GENERATED_FORWARD",
    "MARKED",
    "NONSTRICT",
    "ORIGINAL",
    "SUBSTITUTES",
    "has_mark",
    "has_native_hooks",
    "is_recorded",
]
__all__ += ["can_be_taken", "enter_taken", "give_back", "taken", "taken_modes"]
__all__ += ["is_of_number", "outdated_guards"]
# trackers
__all__ += [
    "MISSING",
    "ConstantTracker",
    "FunctionTracker",
    "LateImport",
    "LateImports",
    "LazyTracker",
    "MethodTracker",
    "NumberTracker",
]
__all__ += [
    "Args",
    "FunctionTable",
    "Kwargs",
    "TensorTracker",
    "VariableTracker",
    "is_a",
    "is_native_frame",
    "is_pending",
    "owner_of",
    "realize",
]
__all__ += [
    "dying_with",
    "forget_class",
    "generator_state",
    "has_observable_end",
]
__all__ += ["hold_plain_values", "is_end_observable", "may_have_observable_end"]
__all__ += ["release_check_source"]
__all__ += ["UNTOLD", "history_of", "is_new_in_each_call", "real_of", "source_of", "wrap"]
__all__ += [
    "AUTOCAST_NESTING",
    "DUAL_LEVEL",
    "enters_level",
    "is_level_open",
    "is_under_level",
    "mark_levels",
    "with_tangent",
]
__all__ += ["SCHEDULED", "MadeState", "is_of_optimizer", "is_scheduled", "states_made"]
# the accesses of a call to new objects
__all__ += ["AccessLog", "AccessLogs", "ObjectState", "is_new_object", "made_of_state"]
__all__ += ["item_at", "state_of", "write_state"]
# native calls of an entry beside its graph
__all__ += ["EntryCall", "EntryCalls", "is_entry_value", "lines_of"]
# what a trace becomes
__all__ += ["Dim", "GraphRecorder", "GraphValue", "from_traced", "record"]
__all__ += ["Emitter", "ObjectRecipe", "RaisedBefore", "StaysInGraph", "StillRunning"]
__all__ += ["refers_to"]
__all__ += [
    "emit_effects",
    "finalize_generators",
    "has_few_parts",
    "held_by_changed",
    "is_identity",
    "is_method",
    "is_opaque",
    "parts_of",
    "walk",
]
# what an operator that takes functions is written with (docs/explanation/higher-order-operators.md)
__all__ += ["EVERYTHING", "NOTHING", "BodyGraph", "BodyRecorder", "BodyTrace", "Permits", "leaf_of"]
__all__ += ["argument", "call", "frame_for", "function_frame", "record_wrapping", "wrapped"]
__all__ += ["LEAF", "Spec", "broadcast", "flatten", "flatten_tree", "repeated"]
__all__ += ["unflatten", "unflatten_tree"]
# likewise, for what operators do to values
__all__ += [
    "NONE",
    "GraphFunction",
    "TupleTracker",
    "app_level",
    "attributes_of",
    "dict_items",
]
__all__ += [
    "Differentiated",
    "GlobalModes",
    "Overrides",
    "Transforms",
    "in_transform",
    "is_surrounded",
]
__all__ += ["RUNS_NATIVELY", "call_after_graph", "pass_hooks", "passes_hooks", "reached_leaves"]
__all__ += [
    "EqualObjects",
    "RepeatedCalls",
]
__all__ += ["CarriedPaths", "wrap_paths"]
__all__ += ["get_attribute", "grad_mode", "is_none", "known_value", "new_object", "throw"]
