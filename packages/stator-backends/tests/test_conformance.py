"""Our own backends under the kit, and backends with one fault each, which the kit must notice."""

from __future__ import annotations

import pytest
from stator_backends import (
    Backend,
    CountingBackend,
    aot_eager,
    aot_eager_decomp_partition,
    eager,
    inductor,
)
from stator_backends.conformance import BackendConformance


class TestEager(BackendConformance):
    @pytest.fixture
    def backend(self) -> Backend:
        return eager


class TestCounting(BackendConformance):
    @pytest.fixture
    def backend(self) -> Backend:
        return CountingBackend()


class TestAotEager(BackendConformance):
    @pytest.fixture
    def backend(self) -> Backend:
        return aot_eager


class TestAotEagerDecompPartition(BackendConformance):
    @pytest.fixture
    def backend(self) -> Backend:
        return aot_eager_decomp_partition


@pytest.mark.slow
class TestInductor(BackendConformance):
    @pytest.fixture
    def backend(self) -> Backend:
        return inductor
