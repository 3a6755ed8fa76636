"""Output graphs, subgraph tracers and higher-order operators.

Start at `OutputGraph`: it implements the `GraphRecorder` of `stator_variables`.
"""

from stator_subgraphs._captured_graph import (
    Body,
    CapturedGraph,
    GraphInput,
    ShapeFact,
    copied_module,
)
from stator_subgraphs._check import check_graph
from stator_subgraphs._compiled_autograd import (
    BackwardCapture,
    CapturedBackward,
    accumulate_grad,
    as_function,
    followed_accumulations,
    may_be_followed,
    partitioned,
    runs_user_code,
    take_first_gradients,
    unpacks,
    without_accumulation,
)
from stator_subgraphs._fake import is_mode_call
from stator_subgraphs._fake_kernel import add_fake_kernels, needs_fake_kernels
from stator_subgraphs._mutation import storage_of
from stator_subgraphs._operators._all import OPERATORS
from stator_subgraphs._operators._checkpoint_calls import CHECKPOINTS
from stator_subgraphs._operators._transform_targets import TRANSFORM_RESULTS, TRANSFORMS
from stator_subgraphs._output_graph import OutputGraph
from stator_subgraphs._random_operator import is_of_torch, node_may_draw
from stator_subgraphs._scope import BodyScope
from stator_subgraphs._value_check import CHECKS, bodies_of, calls_in, may_raise, name_of
from stator_subgraphs._warning_capture import computes_nothing, quiet, with_messages

__version__ = "0.1.0"

__all__ = [
    "Body",
    "BodyScope",
    "CapturedGraph",
    "GraphInput",
    "OutputGraph",
    "ShapeFact",
    "copied_module",
]
__all__ += [
    "OPERATORS",
    "add_fake_kernels",
    "check_graph",
    "computes_nothing",
    "is_mode_call",
    "is_of_torch",
    "needs_fake_kernels",
    "node_may_draw",
    "quiet",
    "storage_of",
    "with_messages",
]
__all__ += ["CHECKPOINTS", "TRANSFORMS", "TRANSFORM_RESULTS"]
__all__ += ["CHECKS", "bodies_of", "calls_in", "may_raise", "name_of"]
# compiled autograd
__all__ += [
    "BackwardCapture",
    "CapturedBackward",
    "accumulate_grad",
    "as_function",
    "followed_accumulations",
    "may_be_followed",
    "partitioned",
    "runs_user_code",
    "take_first_gradients",
    "unpacks",
    "without_accumulation",
]
