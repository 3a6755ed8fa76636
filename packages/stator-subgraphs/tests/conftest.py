"""What every test here starts from: a program on a known line, and a graph under construction."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch
from stator_subgraphs import OutputGraph
from stator_subgraphs.conformance import Driver, FixedLocations


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update-cases", action="store_true", help="rewrite tests/cases/*.txt; read the diff"
    )


@pytest.fixture
def places() -> FixedLocations:
    return FixedLocations()


@pytest.fixture
def driver(places: FixedLocations) -> Iterator[Driver]:
    graph = OutputGraph(places)
    with graph.tracing():
        yield Driver(graph)


@pytest.fixture
def scalar_driver(places: FixedLocations) -> Iterator[Driver]:
    """One that captures results that depend on data."""
    graph = OutputGraph(places, capture_data=True)
    with graph.tracing():
        yield Driver(graph)


@pytest.fixture(autouse=True)
def _seed() -> None:
    torch.manual_seed(0)
