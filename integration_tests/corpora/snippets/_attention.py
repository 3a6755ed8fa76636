"""Attention, position encodings and masks."""

# mypy: ignore-errors

from __future__ import annotations

import math
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from integration_tests.corpora.snippets._collection import Collection

attention = Collection("attention and masks")


@attention.add(
    lambda d: (d.leaf(d.batch, 2, 5, 4), d.leaf(d.batch, 2, 5, 4), d.leaf(d.batch, 2, 5, 4))
)
def scaled_dot_product(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.size(-1))
    causal = torch.tril(torch.ones(q.size(-2), k.size(-2), dtype=torch.bool))
    return F.softmax(scores.masked_fill(~causal, float("-inf")), dim=-1) @ v


class SelfAttention(nn.Module):
    def __init__(self, dim: int = 8, heads: int = 2, p: float = 0.0) -> None:
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(dim, 3 * dim)
        self.proj = nn.Linear(dim, dim)
        self.drop = nn.Dropout(p)
        self.register_buffer("bias", torch.tril(torch.ones(16, 16)).view(1, 1, 16, 16))

    def forward(self, x: Tensor) -> Tensor:
        B, T, C = x.size()
        q, k, v = self.qkv(x).split(C, dim=2)
        q, k, v = (
            part.view(B, T, self.heads, C // self.heads).transpose(1, 2) for part in (q, k, v)
        )
        att = (q @ k.transpose(-2, -1)) * (1.0 / math.sqrt(k.size(-1)))
        att = att.masked_fill(self.bias[:, :, :T, :T] == 0, float("-inf"))
        y = self.drop(F.softmax(att, dim=-1)) @ v
        return self.proj(y.transpose(1, 2).contiguous().view(B, T, C))


@attention.add(lambda d: (d.module(SelfAttention), d.normal(d.batch, 6, 8)))
def causal_self_attention(model: nn.Module, x: Tensor) -> Tensor:
    return model(x)


@attention.add(
    lambda d: (
        d.module(lambda: nn.MultiheadAttention(8, 2, batch_first=True)),
        d.normal(d.batch, 5, 8),
    )
)
def multihead_attention_module(model: nn.Module, x: Tensor) -> tuple[Tensor, Tensor]:
    out, weights = model(x, x, x, need_weights=True)
    return out, weights


@attention.add(lambda d: (d.normal(d.batch, 2, 6, 8),))
def rotary_embedding(x: Tensor, base: float = 10000.0) -> Tensor:
    dim = x.shape[-1]
    inv_freq = 1.0 / (base ** (torch.arange(0, dim, 2).float() / dim))
    freqs = torch.outer(torch.arange(x.shape[-2]).float(), inv_freq)
    emb = torch.cat((freqs, freqs), dim=-1)
    half = torch.cat((-x[..., dim // 2 :], x[..., : dim // 2]), dim=-1)
    return x * emb.cos() + half * emb.sin()


@attention.add(lambda d: (d.normal(d.batch, 2, 6, 8),))
def complex_rotary_embedding(x: Tensor) -> Tensor:
    freqs = 1.0 / (10000 ** (torch.arange(0, 8, 2).float() / 8))
    angles = torch.outer(torch.arange(x.shape[2]).float(), freqs)
    rotation = torch.polar(torch.ones_like(angles), angles)
    xc = torch.view_as_complex(x.reshape(*x.shape[:-1], -1, 2))
    return torch.view_as_real(xc * rotation).flatten(-2).type_as(x)


@attention.add(lambda d: (6 + d.call, 8))
def sinusoidal_positions(length: int, dim: int) -> Tensor:
    position = torch.arange(length).unsqueeze(1)
    div_term = torch.exp(torch.arange(0, dim, 2) * (-math.log(10000.0) / dim))
    pe = torch.zeros(length, dim)
    pe[:, 0::2] = torch.sin(position * div_term)
    pe[:, 1::2] = torch.cos(position * div_term)
    return pe


@attention.add(lambda d: (d.normal(d.batch, 4, 5, 5),))
def alibi(scores: Tensor) -> Tensor:
    heads, length = scores.shape[1], scores.shape[-1]
    slopes = torch.tensor([2 ** (-8 * (i + 1) / heads) for i in range(heads)])
    distance = torch.arange(length)[None, :] - torch.arange(length)[:, None]
    return scores + slopes[:, None, None] * distance


@attention.add(lambda d: (d.integers(7, d.batch) + 1, 7))
def padding_mask(lengths: Tensor, max_len: int) -> Tensor:
    return torch.arange(max_len).expand(len(lengths), max_len) < lengths.unsqueeze(1)


@attention.add(lambda d: (8, 3))
def sliding_window_mask(length: int, window: int) -> Tensor:
    i, j = torch.meshgrid(torch.arange(length), torch.arange(length), indexing="ij")
    return (j <= i) & (i - j < window)


@attention.add(
    lambda d: (d.normal(d.batch, 8, 5, 4), d.normal(d.batch, 2, 5, 4), d.normal(d.batch, 2, 5, 4))
)
def grouped_query_attention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    n_rep = q.shape[1] // k.shape[1]
    if n_rep > 1:
        k = k[:, :, None].expand(-1, -1, n_rep, -1, -1).flatten(1, 2)
        v = v.repeat_interleave(n_rep, dim=1)
    return F.scaled_dot_product_attention(q, k, v, is_causal=True)


class KVCache:
    """Keys and values of all layers, grown step by step."""

    def __init__(self) -> None:
        self.keys: list[Tensor] = []
        self.values: list[Tensor] = []

    def update(self, layer: int, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
        if len(self.keys) <= layer:
            self.keys.append(key)
            self.values.append(value)
        else:
            self.keys[layer] = torch.cat([self.keys[layer], key], dim=-2)
            self.values[layer] = torch.cat([self.values[layer], value], dim=-2)
        return self.keys[layer], self.values[layer]


@attention.add(lambda d: (KVCache(), d.normal(d.batch, 2, 1, 4)))
def growing_cache(cache: KVCache, x: Tensor) -> Tensor:
    for step in range(3):
        for layer in range(2):
            k, v = cache.update(layer, x + step, x * (layer + 1))
            x = F.scaled_dot_product_attention(x, k, v)
    return x


@attention.add(lambda d: (torch.zeros(2, 8, 4), torch.tensor([2, 3]), d.normal(2, 2, 4)))
def static_cache(cache: Tensor, positions: Tensor, new: Tensor) -> Tensor:
    cache.index_copy_(1, positions, new)
    return cache[:, :4].sum(1)


class AttentionOutput(NamedTuple):
    out: Tensor
    weights: Tensor | None = None


@attention.add(
    lambda d: (
        d.normal(d.batch, 5, 4),
        d.normal(d.batch, 3, 4),
        d.mask(d.batch, 3),
        bool(d.call % 2),
    )
)
def cross_attention(x: Tensor, memory: Tensor, mask: Tensor, need_weights: bool) -> AttentionOutput:
    scores = torch.einsum("bqd,bkd->bqk", x, memory) * x.shape[-1] ** -0.5
    weights = scores.masked_fill(~mask[:, None, :], torch.finfo(scores.dtype).min).softmax(-1)
    out = torch.einsum("bqk,bkd->bqd", weights, memory)
    return AttentionOutput(out, weights if need_weights else None)


@attention.add(lambda d: (d.normal(d.batch, 6, 4),))
def linear_attention(x: Tensor) -> Tensor:
    q, k = F.elu(x) + 1, F.elu(x) + 1
    kv = torch.einsum("bnd,bne->bde", k, x)
    z = 1 / (torch.einsum("bnd,bd->bn", q, k.sum(dim=1)) + 1e-6)
    return torch.einsum("bnd,bde,bn->bne", q, kv, z)


@attention.add(lambda d: (d.normal(d.batch, 2, 4, 4), nn.Parameter(d.normal(49, 2))))
def relative_position_bias(scores: Tensor, table: Tensor) -> Tensor:
    coords = torch.stack(torch.meshgrid(torch.arange(2), torch.arange(2), indexing="ij")).flatten(1)
    relative = (coords[:, :, None] - coords[:, None, :]).permute(1, 2, 0).contiguous() + 1
    index = (relative[..., 0] * 3 + relative[..., 1]).view(-1)
    return scores + table[index].view(4, 4, -1).permute(2, 0, 1).unsqueeze(0)


@attention.add(lambda d: (d.normal(d.batch, 8, 4),))
def windows_and_back(x: Tensor, window: int = 4) -> Tensor:
    B, L, C = x.shape
    windows = x.reshape(B, L // window, window, C)
    mixed = windows.softmax(-2) @ windows.new_ones(C, C)
    return torch.roll(mixed.reshape(B, L, C), shifts=-(window // 2), dims=1)
