"""Losses and metrics as people write them."""

# mypy: ignore-errors

from __future__ import annotations

import math
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from integration_tests.corpora.snippets._collection import Collection

losses = Collection("losses and metrics")


@losses.add(lambda d: (d.leaf(d.batch, 5), d.integers(5, d.batch)))
def label_smoothed_cross_entropy(logits: Tensor, target: Tensor, smoothing: float = 0.1) -> Tensor:
    log_probs = F.log_softmax(logits, dim=-1)
    nll = -log_probs.gather(dim=-1, index=target.unsqueeze(1)).squeeze(1)
    return ((1.0 - smoothing) * nll - smoothing * log_probs.mean(dim=-1)).mean()


@losses.add(lambda d: (d.leaf(d.batch, 3), d.mask(d.batch, 3).float()))
def sigmoid_focal_loss(
    inputs: Tensor, targets: Tensor, alpha: float = 0.25, gamma: float = 2, reduction: str = "mean"
) -> Tensor:
    p = torch.sigmoid(inputs)
    ce = F.binary_cross_entropy_with_logits(inputs, targets, reduction="none")
    loss = ce * ((1 - (p * targets + (1 - p) * (1 - targets))) ** gamma)
    if alpha >= 0:
        loss = (alpha * targets + (1 - alpha) * (1 - targets)) * loss
    if reduction == "none":
        pass
    elif reduction == "mean":
        loss = loss.mean()
    elif reduction == "sum":
        loss = loss.sum()
    else:
        raise ValueError(f"Invalid value for 'reduction': '{reduction}'")
    return loss


@losses.add(lambda d: (d.uniform(d.batch, 2, 4, 4), d.mask(d.batch, 2, 4, 4).float()))
def dice_loss(probs: Tensor, target: Tensor, eps: float = 1e-6) -> Tensor:
    dims = tuple(range(1, probs.dim()))
    overlap = (probs * target).sum(dims)
    return 1 - ((2 * overlap + eps) / (probs.sum(dims) + target.sum(dims) + eps)).mean()


@losses.add(lambda d: (d.leaf(d.batch, 6), d.leaf(d.batch, 6)))
def info_nce(left: Tensor, right: Tensor, temperature: float = 0.07) -> Tensor:
    left, right = F.normalize(left, dim=-1), F.normalize(right, dim=-1)
    logits = left @ right.T / temperature
    labels = torch.arange(len(left), device=left.device)
    return (F.cross_entropy(logits, labels) + F.cross_entropy(logits.T, labels)) / 2


@losses.add(lambda d: (d.leaf(d.batch, 6), d.leaf(d.batch, 6), d.leaf(d.batch, 6)))
def triplet_loss(anchor: Tensor, positive: Tensor, negative: Tensor, margin: float = 1.0) -> Tensor:
    near = (anchor - positive).pow(2).sum(1)
    far = (anchor - negative).pow(2).sum(1)
    return F.relu(near - far + margin).mean()


@losses.add(lambda d: (d.leaf(d.batch, 4), d.leaf(d.batch, 4)))
def vae_loss(mu: Tensor, logvar: Tensor) -> dict[str, Tensor]:
    kl = -0.5 * torch.sum(1 + logvar - mu.pow(2) - logvar.exp(), dim=1)
    std = torch.exp(0.5 * logvar)
    return {"kl": kl.mean(), "sample": mu + torch.randn_like(std) * std}


@losses.add(lambda d: (d.leaf(d.batch, 5), d.normal(d.batch, 5)))
def distillation_loss(student: Tensor, teacher: Tensor, T: float = 2.0) -> Tensor:
    soft = F.kl_div(
        F.log_softmax(student / T, -1), F.softmax(teacher.detach() / T, -1), reduction="batchmean"
    )
    return soft * T**2


@losses.add(lambda d: (d.leaf(d.batch), d.normal(d.batch)))
def huber_by_hand(pred: Tensor, target: Tensor, delta: float = 1.0) -> Tensor:
    error = (pred - target).abs()
    return torch.where(error < delta, 0.5 * error**2, delta * (error - 0.5 * delta)).mean()


@losses.add(lambda d: (d.leaf(d.batch, 7, 5), d.integers(5, d.batch, 7), d.mask(d.batch, 7)))
def masked_language_model_loss(logits: Tensor, labels: Tensor, mask: Tensor) -> Tensor:
    labels = labels.masked_fill(~mask, -100)
    return F.cross_entropy(logits.view(-1, logits.size(-1)), labels.view(-1), ignore_index=-100)


@losses.add(lambda d: (d.normal(d.batch, 6), d.integers(6, d.batch)))
def top_k_accuracy(output: Tensor, target: Tensor, topk: tuple[int, ...] = (1, 3)) -> list[Tensor]:
    _, pred = output.topk(max(topk), 1, True, True)
    correct = pred.t().eq(target.view(1, -1).expand_as(pred.t()))
    return [correct[:k].reshape(-1).float().sum(0) * (100.0 / output.size(0)) for k in topk]


@losses.add(lambda d: (d.integers(3, d.batch, 8), d.integers(3, d.batch, 8)))
def confusion_matrix(pred: Tensor, target: Tensor, classes: int = 3) -> Tensor:
    index = target.flatten() * classes + pred.flatten()
    return (
        torch.zeros(classes * classes, dtype=torch.long)
        .scatter_add_(0, index, torch.ones_like(index))
        .view(3, 3)
    )


@losses.add(lambda d: (d.uniform(d.batch, 4), d.uniform(d.batch, 4)))
def pairwise_iou(first: Tensor, second: Tensor) -> Tensor:
    a = torch.cat([first[:, :2], first[:, :2] + first[:, 2:]], dim=1)
    b = torch.cat([second[:, :2], second[:, :2] + second[:, 2:]], dim=1)
    low = torch.max(a[:, None, :2], b[None, :, :2])
    high = torch.min(a[:, None, 2:], b[None, :, 2:])
    inter = (high - low).clamp(min=0).prod(dim=2)
    area_a, area_b = ((box[:, 2] - box[:, 0]) * (box[:, 3] - box[:, 1]) for box in (a, b))
    return inter / (area_a[:, None] + area_b - inter)


@losses.add(lambda d: (d.normal(d.batch, 3, 4, 4), d.normal(d.batch, 3, 4, 4)))
def psnr(left: Tensor, right: Tensor, peak: float = 1.0) -> Tensor:
    return 20 * math.log10(peak) - 10 * torch.log10(F.mse_loss(left, right))


@losses.add(lambda d: (d.leaf(d.batch, 7, 5), d.integers(5, d.batch, 7)))
def perplexity(logits: Tensor, tokens: Tensor) -> tuple[Tensor, Tensor]:
    shift_logits, shift_labels = logits[..., :-1, :].contiguous(), tokens[..., 1:].contiguous()
    loss = F.cross_entropy(shift_logits.flatten(0, 1), shift_labels.flatten())
    return loss, torch.exp(loss.detach())


class MultiTaskLoss(torch.nn.Module):
    """Losses weighted by learned uncertainty, chosen by name."""

    def __init__(self) -> None:
        super().__init__()
        self.log_vars = torch.nn.ParameterDict({"a": torch.zeros(()), "b": torch.full((), 0.5)})
        self.losses: dict[str, Any] = {"a": F.mse_loss, "b": F.l1_loss}

    def forward(self, outputs: dict[str, Tensor], targets: dict[str, Tensor]) -> Tensor:
        total = torch.zeros(())
        for name, loss in self.losses.items():
            precision = torch.exp(-self.log_vars[name])
            total = total + precision * loss(outputs[name], targets[name]) + self.log_vars[name]
        return total


@losses.add(
    lambda d: (
        d.module(MultiTaskLoss),
        {"a": d.normal(d.batch, 2), "b": d.normal(d.batch)},
        {"a": d.normal(d.batch, 2), "b": d.normal(d.batch)},
    )
)
def multi_task_loss(
    model: MultiTaskLoss, outputs: dict[str, Tensor], targets: dict[str, Tensor]
) -> Tensor:
    return model(outputs, targets)


@losses.add(lambda d: (d.normal(d.batch, 6), d.mask(d.batch, 6)))
def f1_score(logits: Tensor, target: Tensor) -> dict[str, Tensor]:
    pred = logits.sigmoid() > 0.5
    tp, fp, fn = (pred & target).sum(0), (pred & ~target).sum(0), (~pred & target).sum(0)
    precision, recall = tp / (tp + fp).clamp_min(1), tp / (tp + fn).clamp_min(1)
    return {
        "precision": precision,
        "recall": recall,
        "f1": 2 * precision * recall / (precision + recall).clamp_min(1e-8),
    }


class RunningMean:
    """A meter of the kind every training script has."""

    def __init__(self) -> None:
        self.total, self.count = torch.zeros(()), 0

    def update(self, value: Tensor, n: int = 1) -> None:
        self.total += value.detach() * n
        self.count += n

    @property
    def mean(self) -> Tensor:
        return self.total / max(self.count, 1)


@losses.add(lambda d: (RunningMean(), d.normal(3, d.batch)))
def meter_update(meter: RunningMean, losses_: Tensor) -> Tensor:
    for row in losses_:
        meter.update(row.mean(), n=len(row))
    return meter.mean
