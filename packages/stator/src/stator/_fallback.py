"""When a compiled graph raises: the program itself runs instead and raises, or handles, the error its own way.

Only possible while nothing visible has changed, which the version counters of the inputs tell: after a write to one the
error goes through as it is. The random state is put back first. A graph may be expected to raise, because of checks of
ours, or because the program catches what an operator raises after a write: what such a graph writes to is copied before
it runs, and put back.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import attrs
import torch
from torch.fx import GraphModule

from stator._target import Target
from stator.errors import BackendFailed


@attrs.define
class Plainly:
    """Given back by an entry that failed: run `target` natively on `state`."""

    target: Target
    state: tuple[Any, ...]

    def run(self) -> Any:
        """The state is kept neither here nor in this frame: its objects die when the program lets go of them."""
        plain, state = self.target.plain(), list(self.state)
        self.state = ()
        consume = getattr(plain, "consume", None)
        return plain(*state) if consume is None else consume(state)


@attrs.frozen
class Before:
    """What is compared, and put back, when the graph raises. `inputs` are the tensors it may write to."""

    rng: Any
    inputs: tuple[torch.Tensor, ...]
    versions: tuple[int, ...]
    copies: tuple[torch.Tensor, ...] = ()  # of the inputs, in their place


@attrs.define(eq=False)
class Recovery:
    """What it takes to go back to before the graph ran."""

    target: Target
    random: bool
    writes: bool
    grad: bool
    failures: list[str]  # the last one
    forgives: bool  # a backend that is at fault
    checked: tuple[int, ...] = ()  # in a graph that is expected to raise: which of its tensor inputs are written to

    @classmethod
    def of(cls, module: GraphModule, target: Target, failures: list[str], forgives: bool) -> Recovery | None:
        """None when the graph may write where no version counter shows it."""
        from stator_subgraphs import may_draw

        if has_checks(module) or is_caught_after_write(module):
            written = written_inputs(module)
            return cls(target, may_draw(module), bool(written), torch.is_grad_enabled(), failures, forgives, written)
        if writes_silently(module):
            return None
        return cls(target, may_draw(module), writes(module), torch.is_grad_enabled(), failures, forgives)

    @property
    def looks_before(self) -> bool:
        return self.random or self.writes

    def before(self, *inputs: torch.Tensor) -> Before:
        rng = torch.get_rng_state() if self.random else None
        if not self.writes:
            return Before(rng, (), ())
        if self.checked:
            inputs = tuple(inputs[position] for position in self.checked)
            return Before(rng, inputs, (), tuple(tensor.detach().clone() for tensor in inputs))
        return Before(rng, inputs, tuple(map(_version, inputs)))

    def after(self, error: Exception, state: tuple[Any, ...], before: Before | None) -> Plainly:
        """Raises `error` again when something was written already: that cannot be taken back; or when the backend is at
        fault, and that is not forgiven."""
        if isinstance(error, BackendFailed) and not self.forgives:
            raise error
        if before is not None:
            if not (_put_back(before) if before.copies else _is_untouched(before)):
                raise error
            if before.rng is not None:
                torch.set_rng_state(before.rng)
        torch._C._set_grad_enabled(self.grad)
        self.failures[:] = [f"{type(error).__name__}: {error}"]
        return Plainly(self.target, state)


def _put_back(before: Before) -> bool:
    """False where the shape was written to as well."""
    pairs = list(zip(before.inputs, before.copies, strict=True))
    if any(tensor.shape != copy.shape for tensor, copy in pairs):
        return False
    for tensor, copy in pairs:
        tensor.detach().copy_(copy)
    return True


def _is_untouched(before: Before) -> bool:
    return _UNKNOWN not in before.versions and before.versions == tuple(map(_version, before.inputs))


_UNKNOWN = -1


def _version(tensor: torch.Tensor) -> int:
    """Views share the counter of their base. Inference tensors count nothing."""
    return _UNKNOWN if tensor.is_inference() else tensor._version


def writes_silently(module: GraphModule) -> bool:
    """Running statistics are written by kernels that count no version; so is everything through `.data`. A collective
    cannot be taken back: the other processes took part in it."""
    return any(map(_is_silent, _calls(module)))


def _calls(module: GraphModule) -> list[torch.fx.Node]:
    return [node for node in module.graph.nodes if node.op in ("call_function", "call_method")]


def _bodies(node: torch.fx.Node) -> Iterator[GraphModule]:
    """Those of a higher-order operator."""
    for argument in node.all_input_nodes:
        held = getattr(node.graph.owning_module, str(argument.target)) if argument.op == "get_attr" else None
        if isinstance(held, GraphModule):
            yield held


def _is_silent(node: torch.fx.Node) -> bool:
    if any(map(writes_silently, _bodies(node))):
        return True
    name = node.target if isinstance(node.target, str) else getattr(node.target, "__name__", "")
    if "batch_norm" in name or "instance_norm" in name or name == "set_" or "data" in node.args:
        return True
    return str(getattr(node.target, "_qualified_op_name", node.target)).startswith("_c10d_functional")


CHECKS = ("_check", "_assert", "sym_constrain_range")


def has_checks(module: GraphModule) -> bool:
    """Whether a node raises on purpose, when something that the trace relied on does not hold."""
    calls = _calls(module)
    if any(getattr(node.target, "__name__", "").startswith(CHECKS) for node in calls):
        return True
    return any(has_checks(body) for node in calls for body in _bodies(node))


def is_caught_after_write(module: GraphModule) -> bool:
    """Whether an operator comes after a write and in a `try` of the program that catches what it raises."""
    written = False
    for node in _calls(module):
        if written and node.meta.get("caught"):
            return True
        written = written or _writes(node) or _is_silent(node)
    return False


def written_inputs(module: GraphModule) -> tuple[int, ...]:
    """Which of the tensors among the inputs share storage with what a node writes to, or may write to."""
    writers = [node for node in _calls(module) if _writes(node) or _is_silent(node)]
    written = {_storage(argument) for node in writers for argument in node.all_input_nodes}
    inputs = [node for node in module.graph.find_nodes(op="placeholder") if _storage(node) is not None]
    return tuple(position for position, node in enumerate(inputs) if _storage(node) in written)


def _storage(node: torch.fx.Node) -> int | None:
    value = node.meta.get("example_value")
    if not isinstance(value, torch.Tensor) or value.layout is not torch.strided:
        return None
    return int(value.untyped_storage()._cdata)


def writes(module: GraphModule) -> bool:
    """Whether a node may write in place. Decided by the schema where there is one, else by the name."""
    return any(map(_writes, _calls(module)))


def _writes(node: torch.fx.Node) -> bool:
    if any(map(writes, _bodies(node))):
        return True
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
