"""Models written in plain torch: the encoder torch ships, a recurrent network as a Python loop, a
residual network."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from integration_tests.corpora.models._sample import Item
from integration_tests.support.arguments import Call


class Recurrent(nn.Module):
    """Stacked gated cells stepped by a Python loop over time: no ``nn.LSTM``, lists of states,
    in-place list writes."""

    def __init__(self, layers: int, width: int = 32) -> None:
        super().__init__()
        self.gates = nn.ModuleList(nn.Linear(2 * width, 2 * width) for _ in range(layers))
        self.news = nn.ModuleList(nn.Linear(2 * width, width) for _ in range(layers))

    def forward(
        self, steps: Tensor, states: list[Tensor] | None = None
    ) -> tuple[Tensor, list[Tensor]]:
        if states is None:
            states = [steps.new_zeros(steps.shape[0], steps.shape[2]) for _ in self.gates]
        seen = []
        for step in steps.unbind(1):
            below = step
            for i, (gate, new) in enumerate(zip(self.gates, self.news, strict=True)):
                keep, reset = gate(torch.cat([below, states[i]], -1)).sigmoid().chunk(2, -1)
                fresh = new(torch.cat([below, reset * states[i]], -1)).tanh()
                states[i] = below = keep * states[i] + (1 - keep) * fresh
            seen.append(below)
        return torch.stack(seen, 1), states


class Block(nn.Module):
    """Two convolutions and a way around them, with a projection where the shape changes."""

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.first = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
        self.second = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
        self.norms = nn.ModuleList([nn.BatchNorm2d(outputs), nn.BatchNorm2d(outputs)])
        self.around = None
        if stride != 1 or inputs != outputs:
            self.around = nn.Sequential(
                nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs)
            )

    def forward(self, x: Tensor) -> Tensor:
        y = torch.relu(self.norms[0](self.first(x)))
        y = self.norms[1](self.second(y))
        y += x if self.around is None else self.around(x)
        return torch.relu_(y)


class ResNet(nn.Module):
    """The eighteen-layer residual network, narrow; in training mode it updates its running
    statistics."""

    def __init__(self, blocks: int, width: int = 8) -> None:
        super().__init__()
        self.stem = nn.Sequential(
            nn.Conv2d(3, width, 3, 1, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU(inplace=True)
        )
        sizes = [
            (width, width, 1),
            (width, 2 * width, 2),
            (2 * width, 4 * width, 2),
            (4 * width, 8 * width, 2),
        ]
        self.stages = nn.ModuleList(
            nn.Sequential(Block(i, o, s), *(Block(o, o, 1) for _ in range(1, blocks)))
            for i, o, s in sizes
        )
        self.head = nn.Linear(8 * width, 10)

    def forward(self, x: Tensor) -> Tensor:
        x = self.stem(x)
        for stage in self.stages:
            x = stage(x)
        return self.head(x.mean((2, 3)))  # type: ignore[no-any-return]


def _encoder(depth: int) -> nn.Module:
    layer = nn.TransformerEncoderLayer(32, 4, 64, batch_first=True)
    return nn.TransformerEncoder(layer, depth, enable_nested_tensor=False)


def _vectors(batch: int) -> Call:
    return Call(args=(torch.randn(batch, 12, 32),))


def _pictures(batch: int) -> Call:
    """An even number: of odd ones, channels last, torch 2.13's own `convolution_backward` writes
    beyond its memory on CPUs with AVX-512, and Inductor puts channels last."""
    return Call(args=(torch.randn(batch + batch % 2, 3, 32, 32),))


PLAIN = (
    Item("encoder", _encoder, _vectors),
    Item("recurrent", Recurrent, _vectors, depth=2),
    Item("resnet", ResNet, _pictures, depth=2, shallow=1),
)
