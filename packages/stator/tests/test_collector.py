"""Thresholds of the cyclic garbage collector while entries are made."""

import gc
from collections.abc import Iterator

import pytest
import stator
import torch
from stator._capture._collector import rare_collections


@pytest.fixture(autouse=True)
def _same_thresholds() -> Iterator[None]:
    before = gc.get_threshold()
    yield
    gc.set_threshold(*before)


def test_collections_are_rare_within_the_block_only() -> None:
    gc.set_threshold(300, 7, 5)
    with rare_collections():
        assert gc.get_threshold() == (200_000, 7, 5)
    assert gc.get_threshold() == (300, 7, 5)


def test_nested_blocks_restore_at_the_outer_end() -> None:
    gc.set_threshold(300, 7, 5)
    with rare_collections():
        with rare_collections():
            pass
        assert gc.get_threshold() == (200_000, 7, 5)
    assert gc.get_threshold() == (300, 7, 5)


@pytest.mark.parametrize("threshold", [0, 2_000_000])
def test_rarer_collections_of_the_program_stay(threshold: int) -> None:
    gc.set_threshold(threshold, 7, 5)
    with rare_collections():
        assert gc.get_threshold() == (threshold, 7, 5)
    assert gc.get_threshold() == (threshold, 7, 5)


def test_thresholds_set_meanwhile_stay() -> None:
    with rare_collections():
        gc.set_threshold(11, 12, 13)
    assert gc.get_threshold() == (11, 12, 13)


def test_an_error_restores_them() -> None:
    gc.set_threshold(300, 7, 5)
    with pytest.raises(ZeroDivisionError), rare_collections():
        raise ZeroDivisionError
    assert gc.get_threshold() == (300, 7, 5)


def test_compiled_code_reads_and_sets_the_thresholds_of_the_program() -> None:
    def program(x: torch.Tensor) -> tuple[torch.Tensor, tuple[int, int, int]]:
        read = gc.get_threshold()
        gc.set_threshold(read[0] + 1, *read[1:])
        return x + read[0], read

    gc.set_threshold(300, 7, 5)
    compiled = stator.compile(program, backend="eager")
    found = [compiled(torch.zeros(())) for _ in range(3)]

    assert [float(total) for total, _ in found] == [300, 301, 302]
    assert [read for _, read in found] == [(300, 7, 5), (301, 7, 5), (302, 7, 5)]
    assert gc.get_threshold() == (303, 7, 5)
