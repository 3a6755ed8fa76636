"""The exact number of graphs for each sequence of sizes, and that it is nowhere higher than
torch.compile's."""

from __future__ import annotations

import pytest
import stator

from integration_tests.guards_and_recompiles.shape_sequences import SEQUENCES, counts, recorded


@pytest.mark.parametrize("name", SEQUENCES)
def test_sequence_takes_exactly_as_many_graphs_as_recorded(name: str) -> None:
    ours, theirs = recorded()[name]
    assert counts(stator.compile, name) == ours
    assert all(own <= other for own, other in zip(ours, theirs, strict=True))


def test_page_has_every_sequence_and_no_other() -> None:
    assert list(recorded()) == list(SEQUENCES)
