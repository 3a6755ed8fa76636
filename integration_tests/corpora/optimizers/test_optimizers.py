"""Three steps with each sample of options that torch tests its optimizers with.

A sample of each optimizer in the default tier, all of them in the slow one, also with ``foreach``.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch import nn, optim
from torch.optim import Optimizer

from integration_tests.training.optimizer_pair import OptimizerPair, step

LOOPS_ON_DATA = (optim.LBFGS, optim.SparseAdam)
"""Optimizers that break: one where the loss ends a loop, one at the contents of sparse tensors."""
OF_MATRICES = (optim.Muon,)


def samples() -> Iterator[Any]:
    # Imported behind stator: it replaces functions of TorchScript.
    from torch.testing._internal.common_optimizers import optim_db

    for info in optim_db:
        has_foreach = "foreach" in info.supported_impls
        cls: Any = info.optim_cls
        for number, sample in enumerate(info.optim_inputs_func(device="cpu")):
            label = f"{cls.__name__}-{sample.desc.replace(' ', '_')}"
            marks = [] if number == 1 else [pytest.mark.slow]
            yield pytest.param(cls, sample.kwargs, id=label, marks=marks)
            if has_foreach:
                options = {**sample.kwargs, "foreach": True}
                marks = [pytest.mark.slow]
                yield pytest.param(cls, options, id=f"{label}-foreach", marks=marks)


def layers(cls: Any) -> nn.Module:
    torch.manual_seed(0)
    bias = cls not in OF_MATRICES
    return nn.Sequential(nn.Linear(4, 3, bias=bias), nn.Linear(3, 2, bias=bias))


def with_closure(model: nn.Module, optimizer: Optimizer) -> object:
    def loss() -> Any:
        optimizer.zero_grad()
        result: Any = model(torch.ones(2, 4)).square().sum()
        result.backward()
        return result

    return optimizer.step(loss)


@pytest.mark.parametrize(("cls", "options"), [*samples()])
def test_three_steps(cls: Any, options: dict[str, Any]) -> None:
    def make(model: nn.Module) -> Optimizer:
        made: Optimizer = cls([*model.parameters()], **copy.deepcopy(options))
        return made

    pair = OptimizerPair(
        make,
        with_closure if cls is optim.LBFGS else step,
        lambda: layers(cls),
        torch.sparse_coo if cls is optim.SparseAdam else torch.strided,
    )
    graphs = pair.run(3)
    if cls is optim.SparseAdam:
        assert len(pair.reasons) == 1
    if cls not in LOOPS_ON_DATA:
        assert graphs[0] == 1
        assert graphs[1] == graphs[2] <= 2  # one makes the state, one finds it
        assert not pair.reasons
