"""Fake kernels of our own: each gives the sizes and strides that the real kernel gives."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest
import torch
from stator_subgraphs import add_fake_kernels
from stator_subgraphs._fake import new_fake_mode
from torch.fx.experimental.symbolic_shapes import ShapeEnv

SHAPES = [(5, 3, 2), (3, 3, 2), (3, 5, 2), (5, 3, 1), (1, 1, 1), (0, 3, 2), (3, 0, 2)]
BATCHES = [(), (2,), (2, 4), (0,)]


def layouts(tensors: Any) -> list[Any]:
    return [(tensor.shape, tensor.stride(), tensor.dtype) for tensor in tensors]


def fakes(env: ShapeEnv, *tensors: torch.Tensor) -> list[Any]:
    mode = new_fake_mode(env)
    add_fake_kernels(mode)
    return [mode.from_tensor(tensor, static_shapes=True) for tensor in tensors]


@pytest.mark.parametrize("driver", [None, "gelsy", "gels", "gelsd", "gelss"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.complex64])
def test_least_squares(driver: str | None, dtype: torch.dtype) -> None:
    for (rows, columns, count), batch in product(SHAPES, BATCHES):
        if driver in ("gelsd", "gelss") and rows > columns:
            continue
        matrix = torch.eye(rows, columns, dtype=dtype).repeat(*batch, 1, 1)
        pair = matrix, torch.ones(*batch, rows, count, dtype=dtype)
        real = torch.linalg.lstsq(*pair, driver=driver)
        fake = torch.linalg.lstsq(*fakes(ShapeEnv(), *pair), driver=driver)
        assert layouts(fake) == layouts(real)


def test_least_squares_whose_residuals_depend_on_the_rank_are_refused() -> None:
    matrix, right = fakes(ShapeEnv(), torch.ones(5, 3), torch.ones(5, 2))
    with pytest.raises(RuntimeError, match=r"aten\.linalg_lstsq"):
        torch.linalg.lstsq(matrix, right, driver="gelsd")


@pytest.mark.parametrize("lengths", [[4, 2, 0], [0, 0, 0]])
def test_table_of_ctc_loss_for_known_lengths(lengths: list[int]) -> None:
    log_probs, targets = torch.zeros(6, 3, 5), torch.ones(3, 4, dtype=torch.int64)
    real = torch._ctc_loss(log_probs, targets, [6, 6, 6], lengths)
    fake = torch._ctc_loss(*fakes(ShapeEnv(), log_probs, targets), [6, 6, 6], lengths)
    assert layouts(fake) == layouts(real)


def test_table_of_ctc_loss_for_lengths_in_a_tensor() -> None:
    env = ShapeEnv()
    sizes = torch.full((3,), 6), torch.tensor([4, 2, 0])
    given = fakes(env, torch.zeros(6, 3, 5), torch.ones(3, 4, dtype=torch.int64), *sizes)
    losses, table = torch.ops.aten._ctc_loss.Tensor(*given)
    assert losses.shape == (3,)
    assert table.shape[:2] == (3, 6)
    assert env.pending_fresh_unbacked_symbols == [table.shape[2].node.expr]
    gradient = torch.ops.aten._ctc_loss_backward.Tensor(losses, *given, losses, table, 0)
    assert layouts([gradient]) == layouts([given[0]])
