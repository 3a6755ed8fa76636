"""The search for a fault: one graph eagerly and through a backend."""

import time
from collections.abc import Sequence
from typing import Any

from torch.fx import GraphModule

from ._backend import Backend
from ._compare import compare, copies
from ._eager import graph_function
from ._fault import ACCURACY, ORDINARY_CHECK, Fault, FaultCheck
from ._tolerance import Tolerance
from .errors import BackendError


def find_fault(
    gm: GraphModule,
    inputs: Sequence[Any],
    backend: Backend,
    check: FaultCheck = ORDINARY_CHECK,
) -> Fault | None:
    """Run the graph eagerly and through the backend, on copies of the inputs.

    Returns None if the backend does the same, or if the graph itself raises.
    """
    try:
        graph_function(gm)(*copies(inputs))
    except Exception:  # operators of any library: such a graph is no test of a backend
        return None

    started = time.perf_counter()
    try:
        fault = _difference(gm, inputs, backend, check)
    except Exception as error:  # code of another project: each error is the fault looked for
        cause = error.__cause__ if isinstance(error, BackendError) and error.__cause__ else error
        text = f"{type(cause).__name__}: {cause}"
        return Fault("crash", text, type(cause).__name__)

    took = time.perf_counter() - started
    if fault is None and check.seconds is not None and took > check.seconds:
        return Fault("slow", f"{took:.2f} s, more than {check.seconds:.2f} s", "slow")
    return fault


def _difference(
    gm: GraphModule, inputs: Sequence[Any], backend: Backend, check: FaultCheck
) -> Fault | None:
    """Return what differs from the eager run, at the requested accuracy."""
    tolerance = ACCURACY[check.accuracy]
    given = tolerance or Tolerance()
    report = compare(gm, inputs, backend, tolerance=given, direct=check.direct)
    if report.ok or tolerance is None:
        return None
    return Fault("wrong", "; ".join(map(str, report.mismatches)), "wrong")
