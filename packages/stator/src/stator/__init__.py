"""Graph capture for PyTorch: the same answer as Python, breaks that cost one break, generated code
you can read."""

from stator_backends import list_backends, register_backend

from stator._api import compile, compile_in_place
from stator._compiled_autograd import compiled_autograd
from stator._control import disable, graph_break, is_compiling, reset
from stator._dump import dump
from stator._dynamic import (
    mark_dynamic,
    mark_static,
    mark_static_address,
    mark_unbacked,
    maybe_mark_dynamic,
)
from stator._load import load
from stator._options import Options, Stack, set_default_backend
from stator._report import Report
from stator._stance import set_stance
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
]
__all__ += ["disable", "graph_break", "is_compiling", "list_backends", "register_backend"]
__all__ += ["set_default_backend", "set_stance"]
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
