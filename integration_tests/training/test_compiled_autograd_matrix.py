"""Backward passes under `stator.compiled_autograd`, for each hook kind x node kind x call.

A case is one way to make a value, one kind of hook, and one call of the engine; its values, order
of hooks, `.grad`s and errors have to be those of eager autograd. Each case ends with a plain
backward, which an error must not disturb.
"""

# mypy: disable-error-code="no-untyped-call"

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable
from typing import Any, TypeAlias

import pytest
import stator
import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.autograd.graph import (
    allow_mutation_on_saved_tensors,
    register_multi_grad_hook,
    save_on_cpu,
    saved_tensors_hooks,
)
from torch.utils.checkpoint import checkpoint

Log: TypeAlias = list[Any]
Make: TypeAlias = Callable[[Tensor, Tensor], Tensor]


# Kinds of nodes: each gives a value from leaves of 4 x 3 and of 3.


class Scaled(torch.autograd.Function):
    """Has saved tensors, a number, and inputs that get no gradient."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, factor: float, w: Tensor) -> Tensor:
        ctx.save_for_backward(x, w)
        ctx.factor = factor
        return x * factor * w

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        _, w = ctx.saved_tensors
        return grad * ctx.factor * w, None, None


class Opaque(torch.autograd.Function):
    """Calls code that no compiler can see, and cannot be differentiated twice."""

    @staticmethod
    def forward(x: Tensor, w: Tensor) -> Any:
        return x * w, x.detach().clone()

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.save_for_backward(*inputs)
        ctx.mark_non_differentiable(output[1])

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor, unused: Tensor) -> Any:
        x, w = ctx.saved_tensors
        return torch.from_numpy(grad.numpy() * w.detach().numpy()), (grad * x).sum(0)


class Unmaterialized(torch.autograd.Function):
    """Gets None for a result that is not used, and gives None for an input."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, w: Tensor) -> Any:
        ctx.set_materialize_grads(False)
        return x * 2, w * 2

    @staticmethod
    def backward(ctx: Any, first: Tensor | None, second: Tensor | None) -> Any:
        return first if first is None else first * 2, second


class Written(torch.autograd.Function):
    """Writes to its input."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.mark_dirty(x)
        return x.mul_(2)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        return grad * 2


def _written_in_place(x: Tensor, w: Tensor) -> Tensor:
    y = x * 2
    y[0].mul_(w[0])
    y[:, 1] = 7
    return y


def _function_on_a_view(x: Tensor, w: Tensor) -> Tensor:
    y = x * w
    Written.apply(y[1])
    return y


def _split(x: Tensor, w: Tensor) -> Tensor:
    """Use one of several results: the gradients of the others are undefined."""
    first, *_ = (x * w).unbind(1)
    values, _ = x.topk(2, dim=1)
    return first[:, None] * values.max(1, keepdim=True).values


def _second_derivative(x: Tensor, w: Tensor) -> Tensor:
    (slope,) = torch.autograd.grad((x.sin() * w).exp().sum(), x, create_graph=True)
    return slope


NODES: dict[str, Make] = {
    "product": lambda x, w: x * w,
    "matrix product": lambda x, w: torch.addmm(w, x, torch.outer(w, w)),
    "view": lambda x, w: (x * w).t()[1:],
    "write to a view": _written_in_place,
    "function": lambda x, w: Scaled.apply(x, 2.0, w) + w,
    "opaque function": lambda x, w: Opaque.apply(x, w)[0],
    "undefined gradient": lambda x, w: Unmaterialized.apply(x, w)[0],
    "function on a view": _function_on_a_view,
    "unused results": _split,
    "compiled forward": stator.compile(lambda x, w: (x * w).sin(), backend="aot_eager"),
    "sparse gradient": lambda x, w: (
        nn.functional.embedding(torch.tensor([1, 3, 1]), x, sparse=True) * w
    ),
    "checkpoint": lambda x, w: checkpoint(lambda a: (a * w).sin(), x, use_reentrant=False),
    "reentrant checkpoint": lambda x, w: checkpoint(
        lambda a, b: (a * b).sin(), x, w, use_reentrant=True
    ),
    "several uses": lambda x, w: x * w + x.exp() * x.sum(0) + x,
    "shared leaf": lambda x, w: torch.cat([x, x]) * x.new_tensor([1.0, 2.0, 3.0]) + w,
    "second derivative": _second_derivative,
    "other dtype": lambda x, w: (x.double() * w.bfloat16()).float(),
    "expanded": lambda x, w: w.expand(4, 3) + x.detach(),
}


# Kinds of hooks: each calls the function that makes the value, and registers what it has to.


def _rounded(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return tuple(map(_rounded, value))
    if not isinstance(value, Tensor):
        return value
    return [round(x, 3) for x in value.detach().to_dense().flatten().tolist()]


def _noting(log: Log, name: str, result: Any = None) -> Callable[..., Any]:
    def hook(*grads: Any) -> Any:
        log.append((name, [_rounded(grad) for grad in grads]))
        return result

    return hook


def _doubling(grad: Tensor) -> Tensor:
    return grad * 2


def _writing(grad: Tensor) -> None:
    grad.mul_(3)


def _of_leaves(make: Make, x: Tensor, w: Tensor, log: Log) -> Tensor:
    y = make(x, w)
    x.register_hook(_noting(log, "x"))
    x.register_post_accumulate_grad_hook(_noting(log, "accumulated"))
    x.register_hook(_doubling)
    return y


def _of_accumulations(make: Make, x: Tensor, w: Tensor, log: Log) -> Tensor:
    y = make(x, w)
    for name, leaf in (("x", x), ("w", w)):
        node: Any = torch.autograd.graph.get_gradient_edge(leaf).node
        node.register_prehook(_noting(log, f"before {name}"))
        node.register_hook(_noting(log, f"after {name}"))
        log.append(node)  # which would be another one else
    log[-2:] = []
    return y + 0 * (x.sum() + w.sum())


def _of_tensors(make: Make, x: Tensor, w: Tensor, log: Log) -> Tensor:
    y = make(x, w)
    y.register_hook(_noting(log, "first"))
    y.register_hook(_doubling)
    y.register_hook(_noting(log, "third"))
    return y


def _of_retained_gradients(make: Make, x: Tensor, w: Tensor, log: Log) -> Tensor:
    y = make(x, w)
    y.register_hook(_doubling)
    y.retain_grad()
    y.register_hook(_noting(log, "later"))
    z = y * 1
    z.retain_grad()
    x.register_hook(lambda grad: log.append(("retained", _rounded(y.grad), _rounded(z.grad))))
    return z


def _of_nodes(make: Make, x: Tensor, w: Tensor, log: Log) -> Tensor:
    y = make(x, w)
    node: Any = y.grad_fn
    node.register_prehook(_noting(log, "before"))
    node.register_prehook(lambda grads: tuple(None if grad is None else grad * 3 for grad in grads))
    node.register_hook(_noting(log, "after"))
    node.register_hook(
        lambda results, grads: tuple(each if each is None else each * 2 for each in results)
    )
    return y


def _doubled(results: Any) -> Any:
    return tuple(each if each is None else each * 2 for each in results)


class _Made(nn.Module):
    """Applies the function to what may go through hooks of a module."""

    def __init__(self, make: Make) -> None:
        super().__init__()
        self.make = make

    def forward(self, x: Tensor, w: Tensor) -> Tensor:
        return self.make(x * 1, w * 1)


def _of_modules(make: Make, x: Tensor, w: Tensor, log: Log) -> Tensor:
    module = _Made(lambda x, w: make(x, w).clone())
    module.register_full_backward_pre_hook(
        lambda module, grads: log.append(("before", *map(_rounded, grads)))
    )
    module.register_full_backward_hook(
        lambda module, results, grads: log.append(("after", _rounded(results), _rounded(grads)))
    )
    module.register_full_backward_hook(lambda module, results, grads: _doubled(results))
    result: Tensor = module(x, w)
    return result


def _of_several_tensors(mode: Any, make: Make, x: Tensor, w: Tensor, log: Log) -> Tensor:
    a, b = x * 1, w * 1
    y = make(a, b)
    register_multi_grad_hook((a, b, y), _noting(log, mode), mode=mode)
    return y


def _of_saved_tensors(make: Make, x: Tensor, w: Tensor, log: Log) -> Tensor:
    def unpack(packed: Any) -> Tensor:
        log.append("unpack")
        value: Tensor = packed[0]
        return value

    with saved_tensors_hooks(lambda value: (value.detach() * 2,), unpack):
        y = make(x, w)
    y.register_hook(lambda grad: log.append("y"))
    return y


def _with_saved(result: Any, make: Make, x: Tensor, w: Tensor, log: Log) -> Tensor:
    with saved_tensors_hooks(lambda value: value, result):
        return make(x, w).sin()


def _saved_elsewhere(make: Make, x: Tensor, w: Tensor, log: Log) -> Tensor:
    with save_on_cpu():
        return make(x, w)


def _saved_and_written(make: Make, x: Tensor, w: Tensor, log: Log) -> Tensor:
    with allow_mutation_on_saved_tensors():
        a = x * 1
        y = make(a, w)
        a.mul_(2)
        (y * 2 + a).sum().backward(retain_graph=True)
    return make(x, w)


class _Buckets:
    """Reduces gradients by twos, and the rest at the end, as DistributedDataParallel does."""

    def __init__(self, leaves: list[Tensor], log: Log) -> None:
        self.ready: list[Tensor] = []
        self.log = log
        self.waiting = False
        for leaf in leaves:
            leaf.register_post_accumulate_grad_hook(self.accept)

    def accept(self, leaf: Tensor) -> None:
        if not self.waiting:
            self.waiting = True
            engine: Any = torch.autograd.Variable._execution_engine
            engine.queue_callback(self.finish)
        self.ready.append(leaf)
        if len(self.ready) == 2:
            self.reduce()

    def reduce(self) -> None:
        leaves, self.ready = self.ready, []
        flat = torch.cat([_dense(leaf.grad).flatten() for leaf in leaves]) / 2
        for leaf, part in zip(leaves, flat.split([leaf.numel() for leaf in leaves]), strict=True):
            leaf.grad = part.view_as(leaf).clone()
        self.log.append(("reduced", _rounded(flat)))

    def finish(self) -> None:
        self.waiting = False
        self.log.append(("rest", len(self.ready)))
        if self.ready:
            self.reduce()


def _dense(grad: Tensor | None) -> Tensor:
    assert grad is not None
    return grad.to_dense()


def _of_buckets(make: Make, x: Tensor, w: Tensor, log: Log) -> Tensor:
    bias = torch.ones(3, requires_grad=True)
    _Buckets([x, w, bias], log)
    return make(x, w) + bias.sum()


def _of_the_engine(make: Make, x: Tensor, w: Tensor, log: Log) -> Tensor:
    y = make(x, w)
    queue: Any = torch.autograd.Variable._execution_engine

    def hook(grad: Tensor) -> None:
        queue.queue_callback(lambda: log.append(("end", _rounded(x.grad))))

    y.register_hook(hook)
    return y


def _running_another_backward(make: Make, x: Tensor, w: Tensor, log: Log) -> Tensor:
    def hook(grad: Tensor) -> None:
        with torch.enable_grad():
            other = grad.detach().requires_grad_()
            (other * 2).sum().backward()
            log.append(_rounded(other.grad))

    y = make(x, w)
    y.register_hook(hook)
    return y


def _removing_itself(make: Make, x: Tensor, w: Tensor, log: Log) -> Tensor:
    def hook(grad: Tensor) -> None:
        log.append("removed")
        handle.remove()

    y = make(x, w)
    handle = y.register_hook(hook)
    return y


def _registered(
    register: Callable[[Tensor, Tensor], Any], make: Make, x: Tensor, w: Tensor, log: Log
) -> Tensor:
    x.register_hook(_noting(log, "x"))
    y = make(x, w)
    register(x, y)
    return y


def _node(y: Tensor) -> Any:
    return y.grad_fn


def _raise(*_: object) -> Any:
    raise ZeroDivisionError("of a hook")


Hook: TypeAlias = Callable[[Make, Tensor, Tensor, Log], Tensor]
HOOKS: dict[str, Hook] = {
    "none": lambda make, x, w, log: make(x, w),
    "leaves": _of_leaves,
    "accumulations": _of_accumulations,
    "tensors": _of_tensors,
    "retained gradients": _of_retained_gradients,
    "nodes": _of_nodes,
    "modules": _of_modules,
    "all of several": functools.partial(_of_several_tensors, "all"),
    "any of several": functools.partial(_of_several_tensors, "any"),
    "saved tensors": _of_saved_tensors,
    "saved on the CPU": _saved_elsewhere,
    "saved and written": _saved_and_written,
    "unpacked as a number": functools.partial(_with_saved, lambda value: 3),
    "raising unpack": functools.partial(_with_saved, _raise),
    "buckets": _of_buckets,
    "callback": _of_the_engine,
    "another backward": _running_another_backward,
    "removing itself": _removing_itself,
    "writes": functools.partial(_registered, lambda x, y: y.register_hook(_writing)),
    "raising": functools.partial(_registered, lambda x, y: y.register_hook(_raise)),
    "raising at the leaf": functools.partial(
        _registered, lambda x, y: x.register_post_accumulate_grad_hook(_raise)
    ),
    "raising before": functools.partial(
        _registered, lambda x, y: _node(y).register_prehook(_raise)
    ),
    "raising after": functools.partial(_registered, lambda x, y: _node(y).register_hook(_raise)),
    "wrong size": functools.partial(
        _registered, lambda x, y: y.register_hook(lambda grad: grad[:1])
    ),
    "wrong dtype": functools.partial(
        _registered, lambda x, y: y.register_hook(lambda grad: grad.double())
    ),
    "no tensor": functools.partial(_registered, lambda x, y: y.register_hook(lambda grad: 3)),
    "wrong count": functools.partial(
        _registered, lambda x, y: _node(y).register_prehook(lambda grads: (*grads, None))
    ),
    "no tuple": functools.partial(
        _registered, lambda x, y: _node(y).register_hook(lambda results, grads: grads[0])
    ),
    "result of accumulation": functools.partial(
        _registered, lambda x, y: x.register_post_accumulate_grad_hook(lambda p: 3)
    ),
}


# Calls of the engine: each gives tensors, or writes `.grad`s.


def _loss(y: Tensor) -> Tensor:
    return (y * y.detach() + y).sum()


def _backward(y: Tensor, x: Tensor, w: Tensor) -> Any:
    _loss(y).backward()


def _retaining(y: Tensor, x: Tensor, w: Tensor) -> Any:
    loss = _loss(y)
    loss.backward(retain_graph=True)
    loss.backward()
    loss.backward()


def _several_roots(y: Tensor, x: Tensor, w: Tensor) -> Any:
    z = y.exp()
    torch.autograd.backward([z, y], [torch.ones_like(z), torch.full_like(y, 0.3)])


def _into_inputs(y: Tensor, x: Tensor, w: Tensor) -> Any:
    _loss(y).backward(inputs=[x, y])
    return y.grad


def _gradients(y: Tensor, x: Tensor, w: Tensor) -> Any:
    unused = torch.ones(2, requires_grad=True)
    return torch.autograd.grad(_loss(y), [x, y, unused], allow_unused=True)


def _gradients_of_no_use(y: Tensor, x: Tensor, w: Tensor) -> Any:
    unused = torch.ones(2, requires_grad=True)
    return torch.autograd.grad(_loss(y), [unused, x], materialize_grads=True, allow_unused=True)


def _given_gradient(y: Tensor, x: Tensor, w: Tensor) -> Any:
    return torch.autograd.grad(y, x, grad_outputs=torch.arange(y.numel()).view_as(y) * 0.1)


def _penalty(y: Tensor, x: Tensor, w: Tensor) -> Any:
    (slope,) = torch.autograd.grad(_loss(y), x, create_graph=True, allow_unused=True)
    ((slope.to_dense().norm() - 1) ** 2).backward()
    return slope


def _anomaly(y: Tensor, x: Tensor, w: Tensor) -> Any:
    with torch.autograd.detect_anomaly(check_nan=True):
        _loss(y).backward(retain_graph=True)
        (y.sum() * 0).sqrt().mul(0).backward()


def _into_other_layout(y: Tensor, x: Tensor, w: Tensor) -> Any:
    x.grad = torch.ones(3, 4).t()
    before = x.grad
    _loss(y).backward()
    return before


def _into_view_of_bucket(y: Tensor, x: Tensor, w: Tensor) -> Any:
    bucket = torch.zeros(15)
    x.grad, w.grad = bucket[:12].view(4, 3), bucket[12:]
    _loss(y).backward()
    return bucket


def _with_wrong_gradient(y: Tensor, x: Tensor, w: Tensor) -> Any:
    y.backward(torch.ones(2, 7))


Call: TypeAlias = Callable[[Tensor, Tensor, Tensor], Any]
CALLS: dict[str, Call] = {
    "backward": _backward,
    "retain_graph": _retaining,
    "several roots": _several_roots,
    "inputs": _into_inputs,
    "grad": _gradients,
    "unused input": _gradients_of_no_use,
    "given gradient": _given_gradient,
    "double backward": _penalty,
    "anomaly": _anomaly,
    "other layout": _into_other_layout,
    "bucket view": _into_view_of_bucket,
    "wrong gradient": _with_wrong_gradient,
}


def _facts(grad: Any) -> Any:
    if not isinstance(grad, Tensor):
        return None
    layout = grad.stride() if grad.layout is torch.strided else grad.is_coalesced()
    return grad.layout, layout, grad.dtype, grad.requires_grad


def _run(node: str, hook: str, call: str) -> tuple[Log, list[Tensor | None]]:
    """Make the call twice on the same leaves, then a plain backward."""
    torch.manual_seed(0)
    x = torch.randn(4, 3, requires_grad=True)
    w = torch.randn(3, requires_grad=True)
    log: Log = []
    grads: list[Tensor | None] = []
    for _ in range(2):
        before = x.grad
        try:
            y = HOOKS[hook](NODES[node], x, w, log)
            result = CALLS[call](y, x, w)
            grads += result if isinstance(result, tuple) else (result,)
        except Exception as error:
            log.append((type(error), str(error)))
        log.append(("identity", before is x.grad, before is None, _facts(x.grad), _facts(w.grad)))
        grads += [each if each is None else each.detach().clone() for each in (x.grad, w.grad)]

    plain = torch.ones(3, requires_grad=True)
    (plain * 2).sum().backward()
    return log, [*grads, plain.grad]


def _agree(one: Tensor | None, other: Tensor | None, exact: bool) -> bool:
    if one is None or other is None:
        return one is other
    if exact:
        return torch.equal(one.to_dense(), other.to_dense())
    return torch.allclose(one.to_dense(), other.to_dense(), equal_nan=True, rtol=1e-4, atol=1e-5)


def _without_messages_of_kernels(log: Log, other: Log) -> Log:
    """Return ``log`` without the messages of operators whose counterpart in ``other`` comes from
    Inductor's kernels, which word the check of an index in their own way."""
    return [
        each[:1] if str(theirs[-1]).startswith("kernel, ") and len(each) == 2 else each
        for each, theirs in itertools.zip_longest(log, other, fillvalue=("",))
    ]


def _check(node: str, hook: str, call: str, backend: str) -> None:
    log, grads = _run(node, hook, call)
    with stator.compiled_autograd(backend=backend):
        compiled_log, compiled_grads = _run(node, hook, call)
    if backend == "inductor":
        log = _without_messages_of_kernels(log, compiled_log)
        compiled_log = _without_messages_of_kernels(compiled_log, compiled_log)
    assert compiled_log == log
    pairs = itertools.zip_longest(compiled_grads, grads)
    assert all(_agree(*pair, exact=backend != "inductor") for pair in pairs)


EXPECTED = (
    "ignore:Anomaly Detection",
    "ignore:Error detected",
    "ignore:grad and param do not obey the gradient layout contract",
)
_UNLIKE = {
    ("product", "all of several", "given gradient"),
    ("expanded", "tensors", "given gradient"),
}
"""The engine calls hooks of a single root, from which no gradient was requested, otherwise."""

CASES = sorted(
    {
        *((node, hook, "backward") for node in NODES for hook in HOOKS),
        *((node, "tensors", call) for node in NODES for call in CALLS),
        *(("product", hook, call) for hook in HOOKS for call in CALLS),
    }
    - _UNLIKE
)
SHORT = [
    *(("product", hook, "backward") for hook in HOOKS),
    *((node, "tensors", "backward") for node in NODES),
    *(("product", "nodes", call) for call in CALLS),
]


@pytest.mark.filterwarnings(*EXPECTED)
@pytest.mark.parametrize(("node", "hook", "call"), CASES)
def test_every_kind_equals_eager_autograd(node: str, hook: str, call: str) -> None:
    _check(node, hook, call, "eager")


@pytest.mark.filterwarnings(*EXPECTED)
@pytest.mark.parametrize(("node", "hook", "call"), SHORT)
def test_compiled_kinds_equal_eager_autograd(node: str, hook: str, call: str) -> None:
    _check(node, hook, call, "aot_eager")


@pytest.mark.filterwarnings(*EXPECTED)
@pytest.mark.parametrize(
    "case", [("product", "tensors", "backward"), ("compiled forward", "nodes", "grad")]
)
def test_kinds_equal_eager_autograd_with_inductor(case: tuple[str, str, str]) -> None:
    _check(*case, "inductor")


@pytest.mark.slow
@pytest.mark.filterwarnings(*EXPECTED)
@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
@pytest.mark.parametrize(("node", "hook", "call"), CASES)
def test_every_compiled_kind_equals_eager_autograd(
    node: str, hook: str, call: str, backend: str
) -> None:
    _check(node, hook, call, backend)
