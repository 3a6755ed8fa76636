"""Collating, augmenting, preprocessing."""

# mypy: ignore-errors

from __future__ import annotations

import random
from collections import defaultdict, namedtuple
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from integration_tests.corpora.snippets._collection import Collection, Draw

data = Collection("data handling")


def _ragged(d: Draw) -> list[Tensor]:
    return [d.integers(9, n) for n in (3, 5, 2)]


@data.add(lambda d: (_ragged(d),))
def pad_collate(items: list[Tensor], pad: int = 0) -> tuple[Tensor, Tensor]:
    lengths = torch.tensor([len(item) for item in items])
    longest = max(len(item) for item in items)
    out = items[0].new_full((len(items), longest), pad)
    for row, item in zip(out, items, strict=False):
        row[: len(item)] = item
    return out, lengths


@data.add(lambda d: (_ragged(d),))
def pad_sequence_collate(items: list[Tensor]) -> dict[str, Tensor]:
    ids = pad_sequence(items, batch_first=True, padding_value=-1)
    return {"input_ids": ids.clamp_min(0), "attention_mask": (ids != -1).long()}


@data.add(lambda d: ([{"x": d.normal(3), "y": i, "name": f"s{i}"} for i in range(3)],))
def dict_collate(batch: list[dict[str, Any]]) -> dict[str, Any]:
    out = {}
    for key in batch[0]:
        values = [sample[key] for sample in batch]
        if isinstance(values[0], Tensor):
            out[key] = torch.stack(values)
        elif isinstance(values[0], int | float):
            out[key] = torch.tensor(values)
        else:
            out[key] = values
    return out


Sample = namedtuple("Sample", ["image", "label"])


@data.add(lambda d: ([Sample(d.normal(2, 3), i % 2) for i in range(3)],))
def namedtuple_collate(batch: list[Sample]) -> Sample:
    images, labels = zip(*batch, strict=False)
    return Sample(torch.stack(images), torch.as_tensor(labels))


def _move(value: Any, fn: Callable[[Tensor], Tensor]) -> Any:
    if isinstance(value, Tensor):
        return fn(value)
    if isinstance(value, Mapping):
        return type(value)({k: _move(v, fn) for k, v in value.items()})
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(_move(v, fn) for v in value))
    if isinstance(value, Sequence) and not isinstance(value, str):
        return type(value)([_move(v, fn) for v in value])
    return value


@data.add(
    lambda d: ({"a": [d.normal(2), "text"], "b": (d.normal(3), None), "c": Sample(d.normal(1), 3)},)
)
def move_nested_batch(batch: dict[str, Any]) -> dict[str, Any]:
    return _move(batch, lambda t: t.to("cpu", torch.float64, non_blocking=True))


@data.add(lambda d: (d.normal(d.batch, 3, 4, 4),))
def normalize_images(
    x: Tensor, mean: Sequence[float] = (0.4, 0.5, 0.6), std: Sequence[float] = (1, 2, 3)
) -> Tensor:
    mean_t = torch.as_tensor(mean, dtype=x.dtype, device=x.device).view(-1, 1, 1)
    std_t = torch.as_tensor(std, dtype=x.dtype, device=x.device).view(-1, 1, 1)
    return (x - mean_t).div_(std_t)


@data.add(lambda d: (d.normal(d.batch, 3, 4, 4), d.call % 2))
def random_flip(x: Tensor, seed: int) -> Tensor:
    return torch.flip(x, dims=[-1]) if seed else x


@data.add(lambda d: (d.normal(d.batch, 3, 4, 4),))
def flip_some_rows(x: Tensor) -> Tensor:
    flips = torch.rand(x.shape[0]) < 0.5
    return torch.where(flips[:, None, None, None], x.flip(-1), x)


@data.add(lambda d: (d.normal(2, 3, 8, 8), 1 + d.call, 2))
def crop(x: Tensor, top: int, left: int, size: int = 4) -> Tensor:
    return x[..., top : top + size, left : left + size]


@data.add(lambda d: (d.normal(d.batch, 3, 4, 4), d.integers(5, d.batch)))
def mixup(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    lam = torch.rand(())
    index = torch.randperm(x.size(0))
    target = F.one_hot(y, 5).float()
    return lam * x + (1 - lam) * x[index], lam * target + (1 - lam) * target[index]


@data.add(lambda d: (d.normal(4, 3, 6, 6),))
def cutout(x: Tensor) -> Tensor:
    row, col = random.randrange(4), random.randrange(4)
    out = x.clone()
    out[:, :, row : row + 2, col : col + 2] = 0
    return out


@data.add(lambda d: (d.normal(d.batch, 1, 6, 6),))
def affine_augmentation(x: Tensor) -> Tensor:
    angle = (torch.rand(x.size(0)) - 0.5) * 0.5
    cos, sin, zero = angle.cos(), angle.sin(), torch.zeros_like(angle)
    theta = torch.stack([torch.stack([cos, -sin, zero], -1), torch.stack([sin, cos, zero], -1)], 1)
    grid = F.affine_grid(theta, list(x.shape), align_corners=False)
    return F.grid_sample(x, grid, align_corners=False)


@data.add(lambda d: (d.normal(3, 4, 4), [lambda x: x + 1, torch.abs, lambda x: x.flip(0)]))
def composed_transforms(x: Tensor, transforms: list[Callable[[Tensor], Tensor]]) -> Tensor:
    for transform in transforms:
        x = transform(x)
    return x


@data.add(lambda d: (d.integers(50, d.batch, 12),))
def mask_tokens(ids: Tensor, mask_id: int = 49, probability: float = 0.15) -> tuple[Tensor, Tensor]:
    labels = ids.clone()
    chosen = torch.bernoulli(torch.full(labels.shape, probability)).bool()
    labels[~chosen] = -100
    replaced = torch.bernoulli(torch.full(labels.shape, 0.8)).bool() & chosen
    ids = ids.clone()
    ids[replaced] = mask_id
    return ids, labels


@data.add(lambda d: (d.normal(d.batch, 16),))
def spectrogram_frames(x: Tensor) -> Tensor:
    frames = x.unfold(-1, 8, 4) * torch.hann_window(8)
    return torch.fft.rfft(frames).abs().clamp_min(1e-5).log()


@data.add(lambda d: (d.integers(20, 7), {i: f"w{i % 3}" for i in range(20)}))
def bucket_by_length(lengths: Tensor, names: dict[int, str]) -> dict[str, Tensor]:
    groups: dict[str, list[Tensor]] = defaultdict(list)
    for i, length in enumerate(lengths):
        groups[names[i]].append(length)
    return {name: torch.stack(group).float().mean() for name, group in groups.items()}


@data.add(lambda d: (d.normal(d.batch, 5), np.linspace(0, 1, 5, dtype=np.float32)))
def weights_from_numpy(x: Tensor, weights: np.ndarray[Any, Any]) -> Tensor:
    return x * torch.from_numpy(weights)


@data.add(lambda d: (d.normal(7, 3), d.integers(3, 7)))
def mean_by_group(x: Tensor, group: Tensor) -> Tensor:
    total = torch.zeros(3, x.shape[1]).index_add_(0, group, x)
    return total / torch.bincount(group, minlength=3).clamp(min=1).unsqueeze(1)


@data.add(lambda d: ("a: 1, b:2 ,c:3", d.normal(3)))
def parsed_settings(text: str, x: Tensor) -> dict[str, Tensor]:
    pairs = [part.split(":") for part in text.split(",")]
    return {key.strip(): x * int(value) for key, value in pairs}


@data.add(lambda d: (["the cat", "a dog sat"], d.normal(6, 3)))
def tokenise_and_embed(texts: list[str], table: Tensor) -> Tensor:
    vocab = {word: i for i, word in enumerate(sorted({w for t in texts for w in t.split()}))}
    rows = [table[torch.tensor([vocab[w] for w in t.split()])].mean(0) for t in texts]
    return torch.stack(rows)
