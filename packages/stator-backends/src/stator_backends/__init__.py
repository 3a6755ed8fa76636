"""The backend protocol, its registry, the backends, and the lowering of a graph through one of them.

Start with `lower`. A backend is a callable `(graph_module, example_inputs) -> callable`; `lookup` finds one by name.
"""

from ._alias import AliasLayout, InputGuard, Overlap, SameInput
from ._ambient import AmbientState
from ._aot import AotEager, aot_eager, aot_eager_decomp_partition
from ._backend import Backend, BackendSpec, configure, spec_of
from ._check import check_graph
from ._compare import Mismatch, Report, Tolerance, compare
from ._counting import CountingBackend
from ._default import default_registry, list_backends, lookup, register_backend
from ._eager import eager
from ._inductor import Inductor, inductor
from ._lower import Lowered, lower
from ._registry import BackendRegistry
from ._repro import write_repro
from ._session import compile_session, one_at_a_time, preserved_rng
from .errors import BackendFailed, InvalidOption, MalformedGraph, UnknownBackend, Unwritable

__all__ = [
    "AliasLayout",
    "AmbientState",
    "AotEager",
    "Backend",
    "BackendFailed",
    "BackendRegistry",
    "BackendSpec",
    "CountingBackend",
    "Inductor",
    "InputGuard",
    "InvalidOption",
    "Lowered",
    "MalformedGraph",
    "Mismatch",
    "Overlap",
    "Report",
    "SameInput",
    "Tolerance",
    "UnknownBackend",
    "Unwritable",
    "aot_eager",
    "aot_eager_decomp_partition",
    "check_graph",
    "compare",
    "compile_session",
    "configure",
    "default_registry",
    "eager",
    "inductor",
    "list_backends",
    "lookup",
    "lower",
    "one_at_a_time",
    "preserved_rng",
    "register_backend",
    "spec_of",
    "write_repro",
]
