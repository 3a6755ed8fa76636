"""`torch.utils.checkpoint.checkpoint`: what is not kept in the forward pass is computed once more
in backward.

The function becomes a body, and the node calls the real `checkpoint` over it: policies, random
numbers and how much is recomputed are torch's. A compiler that looks finds torch's own operator,
which marks what it may recompute.
"""

import collections
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import torch
from stator_bytecode import OperationSteps, operation
from stator_guards import CapturedSource
from stator_variables import (
    LEAF,
    MISSING,
    Args,
    BodyTrace,
    ConstantTracker,
    Differentiated,
    FunctionTable,
    GraphValue,
    Kwargs,
    Permits,
    Space,
    TensorTracker,
    TupleTracker,
    VariableTracker,
    call_after_graph,
    flatten,
    from_traced,
    grad_mode,
    is_a,
    is_surrounded,
    known_value,
    real_of,
    record_wrapping,
    repeated,
    wrap,
)
from torch.fx import GraphModule
from torch.utils import checkpoint as checkpointing

from stator_subgraphs._operators._checkpoint_calls import (
    checkpointed,
    checkpointed_reentrantly,
    real_checkpoint,
    tag_activation_checkpoint,
)

handlers = FunctionTable("higher-order operator")
OPTIONS = ("use_reentrant", "preserve_rng_state", "determinism_check", "debug", "early_stop")


@handlers.handles(checkpointing.checkpoint)
@operation
def checkpoint(
    t: Space,
    args: list[VariableTracker],
    kwargs: dict[str, VariableTracker],
) -> Any:
    options = {name: kwargs.pop(name).constant() for name in OPTIONS if name in kwargs}
    if not args or options.get("use_reentrant") not in (True, False) or MISSING in options.values():
        raise t.unsupported("higher-order-operator", "checkpoint with these options")
    policy = known_value(t, kwargs.pop("context_fn")) if "context_fn" in kwargs else None
    if options["use_reentrant"]:
        if kwargs or policy is not None or options.get("debug"):
            raise t.unsupported(
                "higher-order-operator", "reentrant checkpoint with options it does not take"
            )
        return (yield from _reentrant(t, args[0], args[1:], options))

    once = not torch.is_grad_enabled()
    with BodyTrace(t, "wrap_body", Permits(effects=True, writes=once, aliases=True)) as body:
        with repeated(t, not once):
            result = yield from body.run(args[0], args[1:], kwargs)
        graph = body.wrapping(result)
        repeats = not once and t.policy.repeats_effects and body.has_effects()
    if not once:
        t.journal.assign(t.state(Differentiated), has_checkpoint=True)
    if policy is not None:
        graph.module.meta["_checkpoint_context_fn"] = policy
    if not repeats:
        return record_wrapping(t, checkpointed, graph, "wrap_body", result, **options)

    # plain Python runs the function once more in backward, effects included
    if is_surrounded(t):
        raise t.unsupported("effect-in-body", "effects of a checkpoint inside of another operator")
    target = RepeatingCheckpoint()
    record_wrapping(t, target, graph, "wrap_body", result, **options)
    call_after_graph(t, target.recompute_with, args, kwargs)
    return result


class RepeatingCheckpoint:
    """`checkpoint` over a body which, computed again, is the function of the program, with effects.

    The graph calls it with the body; behind the graph the entry hands in the function.
    """

    def __init__(self) -> None:
        self.__name__ = self.__qualname__ = "repeating_checkpoint"
        self.__module__ = __name__
        # a compiler would not call the function again
        self.runs_natively = "a checkpointed function with effects, which backward repeats"
        self._calls = threading.local()

    def __call__(self, body: GraphModule, *inputs: object, **options: object) -> Any:
        functions: list[Callable[..., Any]] = [lambda: None, body]
        self._calls.last = functions
        policy = body.meta.get("_checkpoint_context_fn")
        more = {} if policy is None else {"context_fn": policy}

        def run(*taken: Any) -> Any:
            return functions.pop()(*taken) if len(functions) > 1 else functions[0]()

        return real_checkpoint(run, *inputs, **options, **more)

    def continue_call(self, other: object) -> bool:
        """Take over the latest call of another one, which ran in the graph of an earlier trace;
        return False for what is none."""
        if not isinstance(other, RepeatingCheckpoint):
            return False
        self._calls = other._calls
        return True

    def recompute_with(self, function: Callable[..., Any], *args: object, **kwargs: object) -> None:
        self._calls.last[0] = partial(function, *args, **kwargs)


@handlers.handles(checkpointed)
def checkpoint_again(t: Space, args: Args, kwargs: Kwargs) -> Any:
    """Record a checkpoint of a graph that is traced again."""
    policy = getattr(real_of(args[0]), "meta", {}).get("_checkpoint_context_fn")
    named = (
        {}
        if policy is None
        else {"context_fn": wrap(t, policy, CapturedSource("context_fn", policy))}
    )
    return checkpoint(t, args, kwargs | named)


@handlers.handles(tag_activation_checkpoint, torch.ops.higher_order.wrap_activation_checkpoint)
def tagged(t: Space, args: Args, kwargs: Kwargs) -> Any:
    """Record a checkpoint of a graph that torch captured."""
    kwargs.setdefault("use_reentrant", ConstantTracker(False))
    return checkpoint_again(t, args, kwargs)


# -- reentrant -------------------------------------------------------------------------------------
def _reentrant(
    t: Space,
    function: VariableTracker,
    args: Args,
    options: dict[str, Any],
    rest: Sequence[Any] = (),
) -> OperationSteps:
    """An `autograd.Function` whose inputs are the tensors among the arguments: forward runs without
    gradients, backward runs it again with. It is traced as backward runs it, and must not look
    which of the two it is in."""
    tensors = [vt for vt in args if is_a(vt, TensorTracker)]
    if not any(vt.example.requires_grad for vt in tensors):
        raise t.unsupported(
            "higher-order-operator", "reentrant checkpoint of nothing that requires gradients"
        )

    with BodyTrace(t, "wrap_body", Permits(aliases=True, later=True)) as body:
        inner = {id(vt): _detached(t, body, vt) for vt in tensors}
        with grad_mode(t, True), _blind(t):
            result = yield from body.run(
                function, [*(inner.get(id(vt), vt) for vt in args), *rest], {}
            )
        leaves, spec = flatten(t, result)
        _refuse_results(t, leaves, spec)
        graph, _ = body.flat(result)

    t.journal.assign(t.state(Differentiated), has_reentrant=True)
    held = t.graph.install("wrap_body", graph.module)
    inputs = [vt.traced for vt in tensors]
    outputs = t.graph.call(
        checkpointed_reentrantly, [held, len(inputs), *inputs, *graph.lifted], options
    )

    results = _results(t, outputs, leaves, inner.values())
    return results[0] if spec == LEAF else TupleTracker(results)


def _results(
    t: Space, outputs: GraphValue, leaves: Sequence[Any], arguments: Iterable[Any]
) -> list[Any]:
    """Return the trackers of the outputs: autograd gives one tensor for a result that comes twice,
    but a view for each input."""
    inputs = {id(vt) for vt in arguments}
    by_key: dict[int, Any] = {}
    results: list[Any] = []

    for index, leaf in enumerate(leaves):
        key = index if id(leaf) in inputs else id(leaf)
        if key not in by_key:
            by_key[key] = from_traced(t, t.graph.project(outputs, index))
        results.append(by_key[key])

    return results


def _refuse_results(t: Space, leaves: list[Any], spec: Any) -> None:
    """Refuse results that an `autograd.Function` does not return as they are."""
    if spec != LEAF and (spec.cls is not tuple or any(child != LEAF for child in spec.children)):
        raise t.unsupported(
            "result-of-body", "reentrant checkpoint of a function that gives more than tensors"
        )

    if not all(is_a(vt, TensorTracker) and _is_like_an_output(vt.example) for vt in leaves):
        raise t.unsupported(
            "result-of-body", "reentrant checkpoint with a result that has no gradient"
        )


def _is_like_an_output(example: torch.Tensor) -> bool:
    """All floating results of an `autograd.Function` require gradients, whatever they were computed
    from."""
    return example.requires_grad or not (example.is_floating_point() or example.is_complex())


def _detached(t: Space, body: BodyTrace, vt: Any) -> Any:
    with t.graph.fake_mode:
        return body.argument(vt.example.detach().requires_grad_(vt.example.requires_grad))


@contextmanager
def _blind(t: Space) -> Iterator[None]:
    """Reject reads of grad mode inside the block."""

    def refuse(t: Space, args: Args, kwargs: Kwargs) -> Any:
        raise t.unsupported(
            "higher-order-operator", "reentrant checkpoint of a function that reads grad mode"
        )

    before = t.handlers
    # is not written
    t.handlers = collections.ChainMap({torch.is_grad_enabled: refuse}, before)  # type: ignore[arg-type]
    try:
        yield
    finally:
        t.handlers = before


@handlers.handles(checkpointed_reentrantly)
@operation
def reentrant_again(t: Space, args: Args, kwargs: Kwargs) -> Any:
    """Record a reentrant checkpoint of a graph that is traced again; the other values it uses
    follow its arguments."""
    body, count, *inputs = args
    options, start = {name: vt.constant() for name, vt in kwargs.items()}, count.constant()
    return (yield from _reentrant(t, body, inputs[:start], options, inputs[start:]))
