"""Graph capture for PyTorch: the same results as Python, breaks that cost one break, generated code
you can read."""

from stator_backends import list_backends, list_modes, list_options, register_backend
from torch.compiler import load_cache_artifacts, save_cache_artifacts

from stator._api import compile, compile_in_place, is_supported
from stator._autograd._compiled_autograd import compiled_autograd
from stator._bisect import Bisection, bisect
from stator._capture._compile_event import (
    CompileEvent,
    on_compile_end,
    on_compile_start,
    remove_compile_callback,
)
from stator._capture._dynamic import (
    mark_dynamic,
    mark_static,
    mark_static_address,
    mark_unbacked,
    maybe_mark_dynamic,
)
from stator._control import (
    allow_in_graph,
    assume_constant_result,
    disable,
    disallow_in_graph,
    graph_break,
    is_compiling,
    is_exporting,
    leaf_function,
    nonstrict_trace,
    reset,
    skip_frame,
    substitute_in_graph,
)
from stator._disk_cache._artifact import register_artifacts as _register_artifacts
from stator._dumps._dump import dump
from stator._explain import explain
from stator._export._api import capture, export
from stator._export._program import CapturedGuard, CapturedInput, CapturedOutput, CapturedProgram
from stator._report import Report
from stator._settings._break_policy import error_on_graph_break
from stator._settings._comptime import ComptimeContext, ComptimeVar, comptime
from stator._settings._logs import set_logs
from stator._settings._options import Options, set_default_backend
from stator._settings._stack import (
    Stack,
    default_builders,
    default_handlers,
    default_operators,
    list_captures,
)
from stator._settings._stance import set_stance
from stator._shipping._example import ExampleTensor
from stator._shipping._load import load
from stator._shipping._precompile import precompile
from stator._shipping._save import save
from stator._subject import report_of, wait
from stator._torch_compat import warn_if_untested as _warn_if_untested
from stator.errors import (
    BackendFailed,
    InternalError,
    InvalidOption,
    InvalidUse,
    OracleMismatch,
    OracleWarning,
    SourceSpan,
    StatorError,
    UnknownBackend,
    Unsupported,
)

__version__ = "0.1.0"

__all__ = [
    "Options",
    "Report",
    "Stack",
    "compile",
    "compile_in_place",
    "compiled_autograd",
    "dump",
    "load",
    "reset",
    "save",
]
__all__ += [
    "ExampleTensor",
    "precompile",
]
__all__ += [
    "CapturedGuard",
    "CapturedInput",
    "CapturedOutput",
    "CapturedProgram",
    "capture",
    "export",
]
__all__ += ["disable", "graph_break", "is_compiling", "list_backends", "register_backend"]
__all__ += ["Bisection", "bisect"]
__all__ += [
    "explain",
    "list_captures",
    "list_modes",
    "list_options",
    "report_of",
    "set_default_backend",
    "set_stance",
    "wait",
]
__all__ += [
    "allow_in_graph",
    "assume_constant_result",
    "disallow_in_graph",
    "error_on_graph_break",
    "is_exporting",
    "nonstrict_trace",
    "substitute_in_graph",
]
__all__ += ["default_builders", "default_handlers", "default_operators"]
__all__ += ["ComptimeContext", "ComptimeVar", "comptime"]
__all__ += ["is_supported", "leaf_function", "skip_frame"]
__all__ += ["load_cache_artifacts", "save_cache_artifacts"]
__all__ += [
    "CompileEvent",
    "on_compile_end",
    "on_compile_start",
    "remove_compile_callback",
    "set_logs",
]
__all__ += [
    "mark_dynamic",
    "mark_static",
    "mark_static_address",
    "mark_unbacked",
    "maybe_mark_dynamic",
]
# errors
__all__ += [
    "BackendFailed",
    "InternalError",
    "InvalidOption",
    "InvalidUse",
    "OracleMismatch",
    "OracleWarning",
]
__all__ += ["SourceSpan", "StatorError", "UnknownBackend", "Unsupported"]

_register_artifacts()
_warn_if_untested()
