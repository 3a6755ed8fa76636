"""Layers, norms, cells and blocks that people write themselves."""

# mypy: ignore-errors

from __future__ import annotations

from collections import OrderedDict
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from integration_tests.corpora.snippets._collection import Collection

layers = Collection("layers")


class RMSNorm(nn.Module):
    def __init__(self, dim: int, eps: float = 1e-6) -> None:
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(dim))

    def _norm(self, x: Tensor) -> Tensor:
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps)

    def forward(self, x: Tensor) -> Tensor:
        return self._norm(x.float()).type_as(x) * self.weight


@layers.add(lambda d: (d.module(lambda: RMSNorm(6)), d.normal(d.batch, 6)))
def rms_norm(model: nn.Module, x: Tensor) -> Tensor:
    return model(x)


class BatchNormByHand(nn.Module):
    def __init__(self, channels: int, momentum: float = 0.1) -> None:
        super().__init__()
        self.momentum = momentum
        self.register_buffer("running_mean", torch.zeros(channels))
        self.register_buffer("running_var", torch.ones(channels))
        self.register_buffer("steps", torch.tensor(0))

    def forward(self, x: Tensor) -> Tensor:
        if self.training:
            mean, var = x.mean(0), x.var(0, unbiased=False)
            with torch.no_grad():
                self.running_mean.lerp_(mean, self.momentum)
                self.running_var = (1 - self.momentum) * self.running_var + self.momentum * var
                self.steps += 1
        else:
            mean, var = self.running_mean, self.running_var
        return (x - mean) / torch.sqrt(var + 1e-5)


@layers.add(lambda d: (d.module(lambda: BatchNormByHand(6).train(d.call < 2)), d.leaf(d.batch, 6)))
def batch_norm_by_hand(model: nn.Module, x: Tensor) -> Tensor:
    return model(x)


def _conv_block() -> nn.Module:
    return nn.Sequential(
        OrderedDict(
            conv=nn.Conv2d(2, 4, 3, padding=1, bias=False),
            bn=nn.BatchNorm2d(4),
            act=nn.ReLU(inplace=True),
        )
    )


@layers.add(lambda d: (d.module(_conv_block), d.normal(d.batch, 2, 5, 5)))
def conv_bn_relu(model: nn.Module, x: Tensor) -> Tensor:
    return model(x)


class Residual(nn.Module):
    def __init__(self, fn: nn.Module, drop: float = 0.0) -> None:
        super().__init__()
        self.fn, self.drop = fn, drop

    def forward(self, x: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        if self.training and self.drop > 0.0:
            keep = torch.rand(x.shape[0], *[1] * (x.ndim - 1)) > self.drop
            return x + self.fn(x, *args, **kwargs) * keep / (1 - self.drop)
        return x + self.fn(x, *args, **kwargs)


@layers.add(lambda d: (d.module(lambda: Residual(nn.Linear(6, 6), 0.5)), d.normal(d.batch, 6)))
def stochastic_depth(model: nn.Module, x: Tensor) -> Tensor:
    return model(x)


ACT = partial(nn.ReLU, inplace=True)


class SqueezeExcite(nn.Module):
    def __init__(self, channels: int, act: Any = ACT) -> None:
        super().__init__()
        self.fc1, self.fc2 = nn.Conv2d(channels, 2, 1), nn.Conv2d(2, channels, 1)
        self.act = act()

    def forward(self, x: Tensor) -> Tensor:
        scale = F.adaptive_avg_pool2d(x, 1)
        return x * torch.sigmoid(self.fc2(self.act(self.fc1(scale))))


@layers.add(lambda d: (d.module(lambda: SqueezeExcite(4)), d.normal(d.batch, 4, 3, 3)))
def squeeze_excite(model: nn.Module, x: Tensor) -> Tensor:
    return model(x)


class GEGLU(nn.Module):
    def __init__(self, dim: int) -> None:
        super().__init__()
        self.up, self.down = nn.Linear(dim, 4 * dim), nn.Linear(2 * dim, dim)

    def forward(self, x: Tensor) -> Tensor:
        x, gate = self.up(x).chunk(2, dim=-1)
        return self.down(x * F.gelu(gate))


@layers.add(lambda d: (d.module(lambda: GEGLU(4)), d.normal(d.batch, 4)))
def gated_feed_forward(model: nn.Module, x: Tensor) -> Tensor:
    return model(x)


class GRUByHand(nn.Module):
    def __init__(self, inputs: int, hidden: int) -> None:
        super().__init__()
        self.hidden = hidden
        self.cell = nn.GRUCell(inputs, hidden)

    def forward(self, x: Tensor, h: Tensor | None = None) -> tuple[Tensor, Tensor]:
        if h is None:
            h = x.new_zeros(x.size(0), self.hidden)
        outputs = []
        for t in range(x.size(1)):
            h = self.cell(x[:, t], h)
            outputs.append(h)
        return torch.stack(outputs, dim=1), h


@layers.add(lambda d: (d.module(lambda: GRUByHand(3, 4)), d.normal(d.batch, 5, 3)))
def unrolled_gru(model: nn.Module, x: Tensor) -> tuple[Tensor, Tensor]:
    return model(x)


@layers.add(
    lambda d: (
        d.module(lambda: nn.LSTM(3, 4, 2, batch_first=True, bidirectional=True)),
        d.normal(d.batch, 5, 3),
    )
)
def lstm_last_state(model: nn.Module, x: Tensor) -> Tensor:
    out, (h, _) = model(x)
    return torch.cat([h[-2], h[-1]], dim=1) + out[:, -1]


@layers.add(
    lambda d: (
        d.normal(d.batch, 3),
        d.normal(d.batch, 4),
        d.normal(d.batch, 4),
        d.normal(16, 3),
        d.normal(16, 4),
    )
)
def lstm_cell_by_hand(
    x: Tensor, h: Tensor, c: Tensor, w_ih: Tensor, w_hh: Tensor
) -> tuple[Tensor, Tensor]:
    i, f, g, o = (F.linear(x, w_ih) + F.linear(h, w_hh)).chunk(4, 1)
    c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
    return torch.sigmoid(o) * torch.tanh(c), c


class MixtureOfExperts(nn.Module):
    def __init__(self, dim: int, experts: int = 3, k: int = 2) -> None:
        super().__init__()
        self.k = k
        self.gate = nn.Linear(dim, experts)
        self.experts = nn.ModuleList([nn.Linear(dim, dim) for _ in range(experts)])

    def forward(self, x: Tensor) -> Tensor:
        weights, chosen = self.gate(x).softmax(-1).topk(self.k, dim=-1)
        out = torch.zeros_like(x)
        for i, expert in enumerate(self.experts):
            weight = (weights * (chosen == i)).sum(-1, keepdim=True)
            out += weight * expert(x)
        return out


@layers.add(lambda d: (d.module(lambda: MixtureOfExperts(4)), d.normal(d.batch, 4)))
def mixture_of_experts(model: nn.Module, x: Tensor) -> Tensor:
    return model(x)


class Pyramid(nn.Module):
    """Features at several scales, kept by name."""

    def __init__(self) -> None:
        super().__init__()
        self.stages = nn.ModuleDict(
            {f"c{i}": nn.Conv2d(2, 2, 3, stride=2, padding=1) for i in range(3)}
        )
        self.laterals = nn.ModuleList(nn.Conv2d(2, 2, 1) for _ in range(3))

    def forward(self, x: Tensor) -> dict[str, Tensor]:
        features = {}
        for name, stage in self.stages.items():
            x = features[name] = stage(x)
        last = None
        for (name, feature), lateral in zip(
            reversed(features.items()), reversed(self.laterals), strict=False
        ):
            out = lateral(feature)
            if last is not None:
                out = out + F.interpolate(last, size=out.shape[-2:], mode="nearest")
            features[name] = last = out
        return features


@layers.add(lambda d: (d.module(Pyramid), d.normal(d.batch, 2, 16, 16)))
def feature_pyramid(model: nn.Module, x: Tensor) -> dict[str, Tensor]:
    return model(x)


class TiedAutoencoder(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weights = nn.ParameterList([torch.randn(4, 6), torch.randn(2, 4)])

    def forward(self, x: Tensor) -> Tensor:
        for w in self.weights:
            x = torch.tanh(F.linear(x, w))
        for i in reversed(range(len(self.weights))):
            x = F.linear(x, self.weights[i].t())
        return x


@layers.add(lambda d: (d.module(TiedAutoencoder), d.normal(d.batch, 6)))
def tied_autoencoder(model: nn.Module, x: Tensor) -> Tensor:
    return model(x)


def _hypernet() -> nn.Module:
    return nn.ModuleDict({"body": nn.Linear(4, 4), "hyper": nn.Linear(3, 20)})


@layers.add(lambda d: (d.module(_hypernet), d.normal(d.batch, 4), d.normal(3)))
def functional_call_with_made_weights(model: nn.ModuleDict, x: Tensor, z: Tensor) -> Tensor:
    flat = model["hyper"](z)
    made = {"weight": flat[:16].view(4, 4), "bias": flat[16:]}
    return torch.func.functional_call(model["body"], made, (x,))


@layers.add(
    lambda d: (d.module(lambda: nn.Embedding(10, 4, padding_idx=0)), d.integers(10, d.batch, 6))
)
def embedding_bag_of_words(model: nn.Embedding, ids: Tensor) -> Tensor:
    mask = (ids != model.padding_idx).unsqueeze(-1).to(model.weight.dtype)
    return (model(ids) * mask).sum(1) / mask.sum(1).clamp(min=1.0)


def _weight_normed() -> nn.Module:
    return nn.utils.parametrizations.weight_norm(nn.Linear(4, 4))


@layers.add(lambda d: (d.module(_weight_normed), d.normal(d.batch, 4)))
def weight_norm(model: nn.Module, x: Tensor) -> Tensor:
    return model(x)


@layers.add(
    lambda d: (
        d.normal(d.batch, 4),
        d.module(lambda: nn.Linear(4, 2)),
        d.normal(3, 4),
        d.normal(2, 3),
    )
)
def low_rank_adapter(x: Tensor, base: nn.Linear, a: Tensor, b: Tensor) -> Tensor:
    with torch.no_grad():
        frozen = base(x)
    return frozen + (x @ a.T @ b.T) * (16 / a.shape[0])


@layers.add(lambda d: (d.normal(d.batch, 6),))
def layers_made_inside(x: Tensor) -> Tensor:
    model = nn.Sequential(nn.LayerNorm(6, elementwise_affine=False), nn.GELU(), nn.Flatten())
    return model(x)


@layers.add(
    lambda d: (
        d.module(lambda: nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0)),
        d.normal(5, d.batch, 8),
    )
)
def encoder_layer(model: nn.Module, x: Tensor) -> Tensor:
    return model(x, src_mask=nn.Transformer.generate_square_subsequent_mask(x.size(0)))
