"""Random streams of the process stay where they are while tracing.

torch's own operators draw nothing on fakes. An operator of someone else may: its fake kernel is
Python, or it has none and runs for real on zeros. A function that *seeds* is no operator at all,
and cannot be a node (`_refusal.py`).
"""

import random
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext

import torch
from torch.fx import Node

from stator_subgraphs._tracer import SubgraphTracer
from stator_subgraphs._value_check import name_of

OWN = frozenset({"aten", "prims", "higher_order", "inductor", "_c10d_functional"})


def undisturbed(target: object) -> AbstractContextManager[None]:
    """Around a run of `target` on fakes."""
    return nullcontext() if is_of_torch(target) else _streams_kept()


DRAWING = (
    "dropout rand normal uniform bernoulli binomial multinomial poisson geometric cauchy "
    "exponential dirichlet standard_gamma rrelu gumbel attention lstm gru rnn".split()
)
"""Parts of the names of operators tagged `nondeterministic_seeded`, and of their callers."""


def is_pure(tracer: SubgraphTracer | None) -> bool:
    """Return True if no node of a graph under construction, or of the outer ones, writes to a
    tensor or may draw."""
    if tracer is None:
        return True
    calls = (node for node in tracer.graph.nodes if node.op.startswith("call_"))
    return not (tracer.facts.written or any(map(node_may_draw, calls))) and is_pure(tracer.parent)


def may_have_drawn(tracer: SubgraphTracer | None, foreign: bool) -> bool:
    """Return True if a node of a graph under construction, or of those around it, may draw random
    numbers.

    With `foreign` only operators of other libraries count, which may draw from any stream.
    """
    if tracer is None:
        return False
    graphs = [tracer.graph, *tracer.bodies]
    calls = [node for graph in graphs for node in graph.nodes if node.op.startswith("call_")]
    if any(not is_of_torch(node.target) if foreign else node_may_draw(node) for node in calls):
        return True
    return may_have_drawn(tracer.parent, foreign)


def node_may_draw(node: Node) -> bool:
    """Return True if a call may draw random numbers: dropout and attention do not where they drop
    nothing; an operator that calls another one does if that does."""
    name = name_of(node)
    if name in ("dropout", "feature_dropout", "alpha_dropout"):
        return node.args[2:3] != (False,) and node.kwargs.get("training") is not False
    if name == "scaled_dot_product_attention":
        given = node.kwargs.get("dropout_p", node.args[4] if len(node.args) > 4 else 0.0)
        return bool(given != 0)
    called = (arg for arg in node.args if isinstance(arg, torch._ops.OpOverload))
    return draws(node.target) or any(map(draws, called))


def draws(target: object) -> bool:
    """Return True if calling `target` may draw random numbers; an operator that is not torch's own
    may."""
    return not is_of_torch(target) or any(part in str(target) for part in DRAWING)


def is_of_torch(target: object) -> bool:
    """Return True if `target` is a function or an operator of torch, not of another library."""
    return _namespace(target) in OWN


def _namespace(target: object) -> str:
    """Return the namespace of a registered operator; `aten` for every other function."""
    return (
        getattr(target, "namespace", None)
        or getattr(target, "_qualified_op_name", "aten::").partition("::")[0]
    )


@contextmanager
def _streams_kept() -> Iterator[None]:
    """torch's and Python's own stream."""
    of_torch, of_python = torch.get_rng_state(), random.getstate()
    try:
        yield
    finally:
        torch.set_rng_state(of_torch)
        random.setstate(of_python)
