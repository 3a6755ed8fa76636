"""Indexing, reshaping, einsum and other work on tensors."""

# mypy: ignore-errors

from __future__ import annotations

import itertools
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from integration_tests.corpora.snippets._collection import Collection

tensors = Collection("tensor work")


@tensors.add(lambda d: (d.normal(d.batch, 5, 3), d.integers(5, d.batch)))
def gather_last_token(x: Tensor, lengths: Tensor) -> Tensor:
    return x[torch.arange(x.size(0)), lengths]


@tensors.add(lambda d: (d.normal(d.batch, 5, 3), d.integers(5, d.batch, 2)))
def gather_spans(x: Tensor, spans: Tensor) -> Tensor:
    return x.gather(1, spans.unsqueeze(-1).expand(-1, -1, x.size(-1)))


@tensors.add(lambda d: (d.normal(d.batch, 4),))
def strided_slices(x: Tensor) -> tuple[Tensor, ...]:
    return x[:, ::2], x[..., None, 1:-1], x[-1], x[:, [0, 2]], x[1:3, ...].T


@tensors.add(lambda d: (d.normal(6), d.mask(6)))
def masked_assignment(x: Tensor, mask: Tensor) -> Tensor:
    out = x.clone()
    out[mask] = 0.0
    out[~mask] *= 2
    return out


@tensors.add(lambda d: (d.normal(d.batch, 2, 4, 4),))
def patchify(x: Tensor, p: int = 2) -> Tensor:
    B, C, H, W = x.shape
    x = x.reshape(B, C, H // p, p, W // p, p)
    return torch.einsum("nchpwq->nhwpqc", x).reshape(B, (H // p) * (W // p), p * p * C)


@tensors.add(lambda d: (d.normal(d.batch, 3), d.normal(d.batch, 3)))
def pairwise_distances(a: Tensor, b: Tensor) -> Tensor:
    squared = a.pow(2).sum(1)[:, None] + b.pow(2).sum(1)[None] - 2 * a @ b.t()
    return squared.clamp_min(0).sqrt()


@tensors.add(lambda d: (d.normal(d.batch, 3), d.normal(3, 3)))
def einsum_chain(x: Tensor, w: Tensor) -> Tensor:
    return torch.einsum("bi,ij,bj->b", x, w + w.mT, x) / x.numel()


@tensors.add(lambda d: (d.normal(4, 3), d.normal(2, 3)))
def broadcast_and_cat(a: Tensor, b: Tensor) -> Tensor:
    a, b = torch.broadcast_tensors(a[:, None], b[None])
    return torch.cat((a, b, (a - b).abs()), dim=-1)


@tensors.add(lambda d: (d.normal(d.batch, 4),))
def running_extremes(x: Tensor) -> dict[str, Tensor]:
    values, index = x.max(dim=1)
    return {"max": values, "at": index, "cummin": x.cummin(1).values, "aminmax": x.aminmax().max}


@tensors.add(lambda d: (d.normal(d.batch, 4),))
def standardise(x: Tensor) -> Tensor:
    std, mean = torch.std_mean(x, dim=0, keepdim=True)
    return (x - mean) / (std + 1e-6)


@tensors.add(lambda d: (d.normal(3, 3),))
def symmetric_inverse_root(x: Tensor) -> Tensor:
    values, vectors = torch.linalg.eigh(x @ x.T + torch.eye(3))
    return (vectors * values.rsqrt()) @ vectors.mT @ x


@tensors.add(lambda d: (d.integers(4, 6),))
def one_hot_by_hand(labels: Tensor, classes: int = 4) -> Tensor:
    out = labels.new_zeros((labels.shape[0], classes), dtype=torch.float32)
    return out.scatter_(1, labels[:, None], 1.0)


@tensors.add(lambda d: (d.normal(d.batch, 3, 2),))
def shapes_in_arithmetic(x: Tensor) -> Tensor:
    *lead, last = x.shape
    n = 1
    for size in lead:
        n *= size
    return x.reshape(n, last) / (n**0.5) + sum(lead)


@tensors.add(lambda d: (d.normal(5), 2 + d.call))
def padded_to_multiple(x: Tensor, multiple: int) -> Tensor:
    return F.pad(x, (0, -x.size(0) % multiple), value=-1.0)


@tensors.add(lambda d: (d.normal(2, 6),))
def moving_average(x: Tensor, k: int = 3) -> Tensor:
    kernel = torch.ones(1, 1, k) / k
    return F.conv1d(x[:, None], kernel, padding=k // 2).squeeze(1)


@tensors.add(lambda d: ([d.normal(2, 3) for _ in range(3)],))
def list_of_tensors(parts: list[Tensor]) -> tuple[Tensor, list[Any]]:
    pairs = list(itertools.combinations(range(len(parts)), 2))
    return torch.stack([parts[i] * parts[j] for i, j in pairs]).sum(0), pairs


@tensors.add(lambda d: (d.normal(d.batch, 3),))
def in_place_through_a_view(x: Tensor) -> Tensor:
    y = x.clone()
    top = y[:2]
    top.mul_(2).add_(1)
    y.T[0].fill_(7)
    return y


@tensors.add(lambda d: (d.normal(d.batch, 3), torch.empty(0)))
def out_argument(x: Tensor, buffer: Tensor) -> Tensor:
    out = torch.empty_like(x)
    torch.exp(x, out=out)
    return out


@tensors.add(lambda d: (d.normal(4, 4),))
def triangles(x: Tensor) -> Tensor:
    i, j = torch.triu_indices(4, 4, offset=1)
    return torch.stack([x[i, j], x.tril(-1).T[i, j]])


@tensors.add(lambda d: (d.normal(3), d.normal(4)))
def outer_by_vmap(a: Tensor, b: Tensor) -> Tensor:
    return torch.vmap(lambda x: x * b)(a)


@tensors.add(lambda d: (d.normal(d.batch, 4),))
def casts_and_constants(x: Tensor) -> Tensor:
    half = x.to(torch.float16).float()
    return half.clamp(
        torch.finfo(torch.float16).min, torch.finfo(torch.float16).max
    ) + x.new_tensor([1, 2, 3, 4])


@tensors.add(lambda d: (d.normal(d.batch, 3), d.normal(3)))
def quaternion_like_unpacking(x: Tensor, w: Tensor) -> Tensor:
    a, b, c = x.unbind(-1)
    p, q, r = w
    return torch.stack((a * q - b * p, b * r - c * q, c * p - a * r), dim=-1)


@tensors.add(lambda d: (d.normal(4, 3), d.integers(4, 5)))
def segment_softmax(x: Tensor, index: Tensor) -> Tensor:
    scores = x[index, 0]
    peak = torch.full((4,), float("-inf")).scatter_reduce(0, index, scores, reduce="amax")
    weight = (scores - peak[index]).exp()
    return weight / torch.zeros(4).index_add(0, index, weight)[index]


@tensors.add(lambda d: (d.normal(d.batch, 3),))
def chosen_by_condition(x: Tensor) -> Tensor:
    flags = {"big": x > 1, "small": x < -1}
    out = x
    for name, flag in flags.items():
        out = torch.where(flag, torch.full_like(out, 1.0 if name == "big" else -1.0), out)
    return out


@tensors.add(lambda d: (d.normal(4, 4), d.normal(4, 2)))
def linear_solve(a: Tensor, b: Tensor) -> Tensor:
    spd = a @ a.mT + 4 * torch.eye(a.shape[-1])
    return torch.cholesky_solve(b, torch.linalg.cholesky(spd))


@tensors.add(lambda d: (d.normal(2, 3, 4),))
def permutations(x: Tensor) -> tuple[Tensor, tuple[int, ...]]:
    y = x.permute(2, 0, 1).contiguous()
    return y.movedim(0, -1).swapaxes(0, 1), y.stride()
