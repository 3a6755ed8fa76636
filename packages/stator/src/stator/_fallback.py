"""When a compiled graph raises: the program itself runs instead and raises, or handles, the error its own way.

Only possible while nothing visible has changed: graphs that write to their inputs let the error through as it is. The
random state is put back first.
"""

from __future__ import annotations

from typing import Any

import attrs
import torch
from torch.fx import GraphModule

from stator._target import Target


@attrs.frozen
class Plainly:
    """Given back by an entry that failed: run `target` natively on `state`."""

    target: Target
    state: tuple[Any, ...]


@attrs.define(eq=False)
class Recovery:
    """What it takes to go back to before the graph ran."""

    target: Target
    random: bool
    grad: bool

    @classmethod
    def of(cls, module: GraphModule, target: Target) -> Recovery | None:
        """None when the graph writes to what it was given."""
        if writes(module):
            return None
        return cls(target, draws(module), torch.is_grad_enabled())

    def before(self) -> Any:
        return torch.get_rng_state()

    def after(self, error: Exception, state: tuple[Any, ...], rng: Any) -> Plainly:
        if rng is not None:
            torch.set_rng_state(rng)
        torch._C._set_grad_enabled(self.grad)
        return Plainly(self.target, state)


def writes(module: GraphModule) -> bool:
    """Whether a node may write in place. Decided by the schema where there is one, else by the name."""
    return any(_writes(node) for node in module.graph.nodes if node.op in ("call_function", "call_method"))


def _writes(node: torch.fx.Node) -> bool:
    target = node.target
    schema = getattr(target, "_schema", None)
    if schema is not None:
        return bool(schema.is_mutable)
    name = target if isinstance(target, str) else getattr(target, "__name__", "")
    if "out" in node.kwargs or node.kwargs.get("inplace"):
        return True
    if name in ("setitem", "__setitem__", "copy_") or (name.startswith("i") and _is_in_place_operator(target)):
        return True
    return (name.endswith("_") and not name.endswith("__")) or name in ("batch_norm", "instance_norm")


def _is_in_place_operator(target: Any) -> bool:
    import operator

    name = getattr(target, "__name__", "")
    return getattr(target, "__module__", "") == "_operator" and getattr(operator, f"__{name}__", None) is not None


_RANDOM = ("dropout", "rand", "normal", "bernoulli", "multinomial", "poisson", "rrelu", "gumbel", "scaled_dot_product")


def draws(module: GraphModule) -> bool:
    """Whether a node may draw random numbers."""
    return any(any(part in str(node.target) for part in _RANDOM) for node in module.graph.nodes)
