"""The backend protocol, its registry, the backends, and the lowering of a graph through one of
them.

Start with `lower`. A backend is a callable `(graph_module, example_inputs) -> callable`; `lookup`
finds one by name.
"""

from ._alias import AliasLayout, FrozenInputs, InputGuard, Overlap, SameInput
from ._backend import Backend, BackendSpec, configure, spec_of
from ._calling_convention import boxed
from ._check import check_graph
from ._compare import ComparisonReport, Mismatch, compare, recording_first_call
from ._contracts._late_writes import LateWrite
from ._counting import CountingBackend
from ._cudagraphs import CudaGraphs, cudagraphs
from ._eager import AotEager, aot_eager, aot_eager_decomp_partition, eager
from ._fault import ACCURACY, Fault, FaultCheck
from ._fault_search import find_fault
from ._graph_facts import running_statistics
from ._graph_spec import GraphSpec, InputSpec
from ._inductor import Inductor, inductor
from ._lower import Lowered, LoweringOptions, lower
from ._minify import MINIFY_AFTER, Minified, minify
from ._pieces import CompiledPiece, NotCompared, Uncompiled, argument_key, nodes_called
from ._prepared_inputs import PreparedInputs, can_be_compiled_later, prepare_inputs
from ._registry import (
    BackendRegistry,
    default_registry,
    list_backends,
    list_modes,
    list_options,
    lookup,
    register_backend,
)
from ._repro import report_failure, write_repro
from ._saved_graph import SavedGraph, minify_to
from ._session import AmbientState, compile_session, one_at_a_time, preserved_rng
from ._signal_handlers import interrupts_compilation, ordinary_signal_handlers
from ._step import begin_step, uses_steps
from ._symbolic_sizes import with_sizes
from ._tolerance import Tolerance
from ._without_compiler import without_compiler
from .errors import (
    BackendError,
    BackendNotFound,
    InvalidBackendOption,
    MalformedGraph,
    NoFault,
    Unwritable,
)

__version__ = "0.1.0"

__all__ = ["Backend", "BackendRegistry", "BackendSpec", "configure", "spec_of"]
__all__ += ["GraphSpec", "InputSpec"]
__all__ += ["default_registry", "list_backends", "list_modes", "list_options"]
__all__ += ["lookup", "register_backend"]
# the backends
__all__ += [
    "AotEager",
    "CountingBackend",
    "CudaGraphs",
    "Inductor",
    "aot_eager",
    "aot_eager_decomp_partition",
    "cudagraphs",
    "eager",
    "inductor",
    "without_compiler",
]
# lowering, and what it looks after
__all__ += ["AliasLayout", "AmbientState", "InputGuard", "Lowered", "Overlap", "SameInput"]
__all__ += ["PreparedInputs", "can_be_compiled_later", "prepare_inputs"]
__all__ += ["LateWrite", "LoweringOptions", "Uncompiled", "lower", "nodes_called"]
__all__ += ["CompiledPiece", "NotCompared", "argument_key", "running_statistics"]
__all__ += ["FrozenInputs"]
__all__ += ["begin_step", "boxed", "uses_steps"]
__all__ += ["compile_session", "one_at_a_time", "preserved_rng"]
__all__ += ["interrupts_compilation", "ordinary_signal_handlers"]
# looking into a graph that gives something wrong
__all__ += ["ComparisonReport", "Mismatch", "Tolerance", "check_graph", "compare", "write_repro"]
__all__ += ["ACCURACY", "MINIFY_AFTER", "recording_first_call", "report_failure"]
__all__ += ["Fault", "FaultCheck", "Minified", "SavedGraph", "find_fault", "minify", "minify_to"]
__all__ += ["with_sizes"]
# errors
__all__ += [
    "BackendError",
    "BackendNotFound",
    "InvalidBackendOption",
    "MalformedGraph",
    "NoFault",
    "Unwritable",
]
