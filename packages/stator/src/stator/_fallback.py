"""When a compiled graph raises: the program itself runs instead and raises, or handles, the error its own way.

Only possible while nothing visible has changed, which the version counters of the inputs tell: after a write to one the
error goes through as it is. The random state is put back first.
"""

from __future__ import annotations

from typing import Any

import attrs
import torch
from torch.fx import GraphModule

from stator._target import Target


@attrs.define
class Plainly:
    """Given back by an entry that failed: run `target` natively on `state`."""

    target: Target
    state: tuple[Any, ...]

    def take(self) -> tuple[Any, ...]:
        """The state, kept here no longer, as that of a Goto."""
        state, self.state = self.state, ()
        return state


@attrs.frozen
class Before:
    """What is compared, and put back, when the graph raises. `inputs` are the tensors it may write to."""

    rng: Any
    inputs: tuple[torch.Tensor, ...]
    versions: tuple[int, ...]


@attrs.define(eq=False)
class Recovery:
    """What it takes to go back to before the graph ran."""

    target: Target
    random: bool
    writes: bool
    grad: bool

    @classmethod
    def of(cls, module: GraphModule, target: Target) -> Recovery | None:
        """None when the graph may write where no version counter shows it."""
        if writes_silently(module):
            return None
        return cls(target, draws(module), writes(module), torch.is_grad_enabled())

    @property
    def looks_before(self) -> bool:
        return self.random or self.writes

    def before(self, *inputs: torch.Tensor) -> Before:
        rng = torch.get_rng_state() if self.random else None
        if not self.writes:
            return Before(rng, (), ())
        return Before(rng, inputs, tuple(map(_version, inputs)))

    def after(self, error: Exception, state: tuple[Any, ...], before: Before | None) -> Plainly:
        """Raises `error` again when something was written already: that cannot be taken back."""
        if before is not None:
            if _UNKNOWN in before.versions or before.versions != tuple(map(_version, before.inputs)):
                raise error
            if before.rng is not None:
                torch.set_rng_state(before.rng)
        torch._C._set_grad_enabled(self.grad)
        return Plainly(self.target, state)


_UNKNOWN = -1


def _version(tensor: torch.Tensor) -> int:
    """Views share the counter of their base. Inference tensors count nothing."""
    return _UNKNOWN if tensor.is_inference() else tensor._version


def writes_silently(module: GraphModule) -> bool:
    """Running statistics are written by kernels that count no version; so is everything through `.data`."""
    return any(_is_silent(node) for node in module.graph.nodes if node.op in ("call_function", "call_method"))


def _is_silent(node: torch.fx.Node) -> bool:
    name = node.target if isinstance(node.target, str) else getattr(node.target, "__name__", "")
    return "batch_norm" in name or "instance_norm" in name or name == "set_" or "data" in node.args


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
    return name.endswith("_") and not name.endswith("__")


def _is_in_place_operator(target: Any) -> bool:
    import operator

    name = getattr(target, "__name__", "")
    return getattr(target, "__module__", "") == "_operator" and getattr(operator, f"__{name}__", None) is not None


_RANDOM = ("dropout", "rand", "normal", "bernoulli", "multinomial", "poisson", "rrelu", "gumbel", "scaled_dot_product")


def draws(module: GraphModule) -> bool:
    """Whether a node may draw random numbers."""
    return any(any(part in str(node.target) for part in _RANDOM) for node in module.graph.nodes)
