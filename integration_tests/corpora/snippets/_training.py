"""Optimiser updates, gradient handling, modes and contexts of a training script."""

# mypy: ignore-errors

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from integration_tests.corpora.snippets._collection import Collection, Draw

training = Collection("training steps and modes")


def _with_grad(d: Draw, *shape: int) -> nn.Parameter:
    p = nn.Parameter(d.normal(*shape))
    p.grad = d.normal(*shape)
    return p


def _params(d: Draw) -> tuple[list[nn.Parameter]]:
    return ([_with_grad(d, 3, 2), _with_grad(d, 3)],)


@training.add(_params)
def sgd_with_momentum(params: list[nn.Parameter]) -> list[Tensor]:
    velocity = [torch.zeros_like(p) for p in params]
    with torch.no_grad():
        for p, v in zip(params, velocity, strict=False):
            v.mul_(0.9).add_(p.grad)
            p.sub_(v, alpha=0.1)
    return velocity


@training.add(lambda d: (*_params(d), {}))
def adam_step(params: list[nn.Parameter], state: dict[int, dict[str, Any]]) -> None:
    b1, b2, eps, lr = 0.9, 0.999, 1e-8, 1e-2
    with torch.no_grad():
        for i, p in enumerate(params):
            s = state.setdefault(i, {"step": 0, "m": torch.zeros_like(p), "v": torch.zeros_like(p)})
            s["step"] += 1
            s["m"].lerp_(p.grad, 1 - b1)
            s["v"].mul_(b2).addcmul_(p.grad, p.grad, value=1 - b2)
            m = s["m"] / (1 - b1 ** s["step"])
            v = s["v"] / (1 - b2 ** s["step"])
            p.addcdiv_(m, v.sqrt().add_(eps), value=-lr)


@training.add(_params)
def clip_by_global_norm(params: list[nn.Parameter]) -> Tensor:
    total = torch.norm(
        torch.stack([torch.norm(p.grad.detach(), 2.0) for p in params if p.grad is not None]), 2.0
    )
    coefficient = torch.clamp(1.0 / (total + 1e-6), max=1.0)
    for p in params:
        p.grad.detach().mul_(coefficient)
    return total


@training.add(_params)
def clip_grad_norm_of_torch(params: list[nn.Parameter]) -> Tensor:
    return nn.utils.clip_grad_norm_(params, 1.0)


@training.add(_params)
def lion_step(params: list[nn.Parameter]) -> None:
    with torch.no_grad():
        for p in params:
            assert p.grad is not None
            p.mul_(1 - 0.1 * 0.01)
            p.add_(torch.sign(p.grad), alpha=-0.1)


@training.add(_params)
def zero_gradients(params: list[nn.Parameter]) -> Tensor:
    norms = torch.stack([p.grad.norm() for p in params if p.grad is not None])
    for p in params:
        p.grad = None
    return norms


@training.add(
    lambda d: (d.module(lambda: nn.Linear(3, 2)), d.normal(d.batch, 3), d.normal(d.batch, 2))
)
def forward_and_backward(model: nn.Module, x: Tensor, y: Tensor) -> Tensor:
    loss = F.mse_loss(model(x), y)
    loss.backward()
    return loss.detach()


@training.add(lambda d: (d.module(lambda: nn.Linear(3, 1)), d.leaf(d.batch, 3)))
def gradient_penalty(model: nn.Module, x: Tensor) -> Tensor:
    (grad,) = torch.autograd.grad(model(x).sum(), x, create_graph=True)
    return ((grad.norm(2, dim=1) - 1) ** 2).mean()


@training.add(
    lambda d: (
        d.module(lambda: nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4))),
        d.normal(d.batch, 3),
    )
)
def evaluation_toggle(model: nn.Module, x: Tensor) -> Tensor:
    was = model.training
    model.eval()
    with torch.no_grad():
        out = model(x)
    model.train(was)
    return out


@torch.no_grad()
def _predict(model: nn.Module, x: Tensor) -> Tensor:
    return model(x).softmax(-1)


@training.add(lambda d: (d.module(lambda: nn.Linear(3, 2)), d.normal(d.batch, 3)))
def decorated_no_grad(model: nn.Module, x: Tensor) -> Tensor:
    return _predict(model, x)


@training.add(lambda d: (d.module(lambda: nn.Linear(3, 2)), d.normal(d.batch, 3)))
def autocast_block(model: nn.Module, x: Tensor) -> Tensor:
    with torch.autocast("cpu", dtype=torch.bfloat16):
        out = model(x)
    return out.float().log_softmax(-1)


@training.add(lambda d: (d.module(lambda: nn.Linear(3, 2)), d.normal(d.batch, 3), bool(d.call % 2)))
def optional_context(model: nn.Module, x: Tensor, amp: bool) -> Tensor:
    context = torch.autocast("cpu", dtype=torch.bfloat16) if amp else contextlib.nullcontext()
    with context:
        return model(x)


@training.add(lambda d: (d.leaf(d.batch, 3), bool(d.call % 2)))
def grad_enabled_by_flag(x: Tensor, train: bool) -> Tensor:
    with torch.set_grad_enabled(train):
        return x.exp().sum(-1)


@contextlib.contextmanager
def _evaluating(model: nn.Module) -> Iterator[nn.Module]:
    was = model.training
    model.eval()
    try:
        yield model
    finally:
        model.train(was)


@training.add(
    lambda d: (
        d.module(lambda: nn.Sequential(nn.Linear(3, 3), nn.Dropout(0.5))),
        d.normal(d.batch, 3),
    )
)
def evaluating_manager(model: nn.Module, x: Tensor) -> tuple[Tensor, bool]:
    with _evaluating(model) as quiet:
        out = quiet(x)
    return out, model.training


@training.add(lambda d: (d.module(lambda: nn.Linear(3, 2)), d.normal(6, 3), d.normal(6, 2)))
def accumulated_loss(model: nn.Module, x: Tensor, y: Tensor) -> Tensor:
    total = torch.zeros(())
    chunks = zip(x.split(2), y.split(2), strict=False)
    for i, (xs, ys) in enumerate(chunks, start=1):
        total = total + F.mse_loss(model(xs), ys) / i
    return total


@training.add(
    lambda d: (d.module(lambda: nn.Sequential(nn.Linear(3, 3), nn.ReLU(), nn.Linear(3, 2))),)
)
def parameter_groups(model: nn.Module) -> tuple[Tensor, list[dict[str, Any]]]:
    decay, no_decay = [], []
    for name, p in model.named_parameters():
        if not p.requires_grad:
            continue
        (no_decay if p.ndim < 2 or name.endswith("bias") else decay).append(p)
    penalty = torch.stack([p.norm() for p in decay]).sum()
    return penalty, [
        {"params": decay, "weight_decay": 0.1},
        {"params": no_decay, "weight_decay": 0.0},
    ]


@training.add(
    lambda d: (
        d.module(lambda: nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 2))),
        d.normal(d.batch, 3),
    )
)
def freeze_then_forward(model: nn.Sequential, x: Tensor) -> tuple[Tensor, int]:
    for p in model[0].parameters():
        p.requires_grad_(False)
    trainable = sum(p.numel() for p in model.parameters() if p.requires_grad)
    return model(x), trainable


@training.add(lambda d: (d.module(lambda: nn.Linear(3, 2)), d.normal(d.batch, 3)))
def weight_decay_term(model: nn.Module, x: Tensor) -> Tensor:
    l2 = sum((p**2).sum() for n, p in model.named_parameters() if "bias" not in n)
    return model(x).sum() + 0.01 * l2


@training.add(lambda d: (d.module(lambda: nn.Linear(3, 3)), d.module(lambda: nn.Linear(3, 3))))
def copy_weights(source: nn.Module, target: nn.Module) -> None:
    with torch.no_grad():
        for p, q in zip(source.parameters(), target.parameters(), strict=False):
            q.copy_(0.5 * q + 0.5 * p)


@training.add(lambda d: (d.leaf(d.batch, 3),))
def straight_through(x: Tensor) -> Tensor:
    return x + (x.round() - x).detach()


@training.add(lambda d: (d.leaf(d.batch, 3),))
def inference_mode_block(x: Tensor) -> Tensor:
    with torch.inference_mode():
        stats = x.mean(0).tolist() if False else x.shape
    return x.sum() / stats[0]


@training.add(lambda d: (d.module(lambda: nn.Linear(3, 2)), d.normal(d.batch, 3)))
def profiled(model: nn.Module, x: Tensor) -> Tensor:
    with torch.profiler.record_function("forward"):
        return model(x)


@training.add(lambda d: (d.normal(d.batch, 3), d.call))
def seeded_noise(x: Tensor, seed: int) -> Tensor:
    torch.manual_seed(seed)
    return x + torch.randn(x.shape) + torch.randint(0, 3, (3,))


@training.add(lambda d: (d.normal(d.batch, 3),))
def nan_check(x: Tensor) -> Tensor:
    bad = ~torch.isfinite(x)
    return torch.nan_to_num(x).masked_fill(bad, 0.0) * (~bad).all()


@training.add(lambda d: (nn.Parameter(d.normal(4, 3)), d.normal(d.batch, 3)))
def power_iteration(w: nn.Parameter, x: Tensor) -> Tensor:
    u = torch.ones(4)
    with torch.no_grad():
        for _ in range(2):
            v = F.normalize(w.t() @ u, dim=0)
            u = F.normalize(w @ v, dim=0)
    sigma = torch.dot(u, w @ v)
    return x @ (w / sigma).t()
