"""Our own backends under the kit, and backends with one fault each, which the kit must notice."""

from __future__ import annotations

import pytest
from stator_backends import (
    Backend,
    BackendRegistry,
    BackendSpec,
    CountingBackend,
    aot_eager,
    aot_eager_decomp_partition,
    eager,
    inductor,
)
from stator_backends.conformance import BackendConformance, main


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


class TestOnlyStaticInference(BackendConformance):
    @pytest.fixture
    def backend(self) -> Backend:
        spec = BackendSpec("static_inference", symbolic_shapes=False, training=False)
        return BackendRegistry().register(eager, name="static_inference", spec=spec)


def test_table_needs_one_backend(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 2
    assert capsys.readouterr().out.startswith("usage: python -m stator_backends.conformance NAME")


@pytest.mark.slow
class TestInductor(BackendConformance):
    @pytest.fixture
    def backend(self) -> Backend:
        return inductor
