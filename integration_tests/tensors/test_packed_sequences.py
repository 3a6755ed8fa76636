"""Packed sequences: each of packing, a recurrent layer and unpacking is one break, whatever the
lengths."""

from __future__ import annotations

from typing import Any

import pytest
import stator
import torch
from torch import Tensor, nn
from torch.nn.utils import rnn

LENGTHS = [[5, 3, 2], [6, 6, 1], [4, 2, 7], [3, 3, 3, 2], [8, 1, 5]]


class Packed(nn.Module):
    def __init__(self, layer: type[nn.RNNBase]) -> None:
        super().__init__()
        self.embedding = nn.Embedding(20, 8)
        self.layer = layer(8, 6, batch_first=True)  # type: ignore[call-arg, arg-type]
        self.out = nn.Linear(6, 3)

    def forward(self, ids: Tensor, lengths: Tensor) -> Any:
        x = self.embedding(ids).tanh()
        packed = rnn.pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
        y, state = self.layer(packed)
        y, lengths = rnn.pad_packed_sequence(y, batch_first=True)
        return self.out(y).relu(), state, lengths


def run(layer: Any, compile: bool) -> Any:
    torch.manual_seed(0)
    model = Packed(layer)
    called: Any = stator.compile(model, backend="eager") if compile else model
    found = []
    for lengths in LENGTHS:
        ids = torch.randint(0, 20, (len(lengths), max(lengths)))
        result = called(ids, torch.tensor(lengths))
        model.zero_grad()
        result[0].sum().backward()
        found.append((result, [parameter.grad for parameter in model.parameters()]))
    return found, called


@pytest.mark.parametrize("layer", [nn.GRU, nn.LSTM, nn.RNN])
def test_series_of_lengths_needs_few_graphs(layer: Any) -> None:
    found, compiled = run(layer, compile=True)
    torch.testing.assert_close(found, run(layer, compile=False)[0])
    assert len(compiled.report.graphs) <= 6
    assert {met.reason for met in compiled.report.breaks} == {"data-dependent-shape"}


@pytest.mark.parametrize("layer", [nn.GRU, nn.LSTM, nn.RNN])
def test_layer_over_a_plain_tensor_is_captured(layer: Any) -> None:
    model = layer(8, 6, batch_first=True)
    compiled = stator.compile(lambda x: model(x)[0] * 2, backend="eager", fullgraph=True)
    for x in (torch.ones(2, 3, 8), torch.ones(2, 5, 8)):
        torch.testing.assert_close(compiled(x), model(x)[0] * 2)


def test_sequences_of_tensors() -> None:
    def f(rows: list[Tensor]) -> Any:
        packed = rnn.pack_sequence([row * 2 for row in rows], enforce_sorted=False)
        return [row + 1 for row in rnn.unpack_sequence(packed)], packed.batch_sizes

    compiled = stator.compile(f, backend="eager")
    for lengths in LENGTHS:
        rows = [torch.arange(float(length)) for length in lengths]
        torch.testing.assert_close(compiled(rows), f(rows))
