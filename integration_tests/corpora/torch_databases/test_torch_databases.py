"""Every operator and every module that torch's own tests cover, with their samples of arguments,
beside plain Python.

One sample of every third operator and of every module in the default tier; the slow tier has the
other operators, all samples of float32, and a few of other dtypes.
"""

from __future__ import annotations

import itertools
import pathlib
import subprocess
import sys
from collections.abc import Iterator

import pytest
import torch

from integration_tests.corpora.torch_databases import comparison
from integration_tests.corpora.torch_databases.comparison import (
    MODULES,
    OPERATORS,
    Sample,
    module_samples,
    operator_samples,
)

DTYPES = (torch.float32, torch.complex64, torch.int64, torch.bool)
CHECKED = {
    name: op
    for name, op in OPERATORS.items()
    if any(op.supports_dtype(dtype, "cpu") for dtype in DTYPES)
}
pytestmark = pytest.mark.filterwarnings("ignore:Sparse CSR tensor support is in beta")
WITHOUT_GRAPH = 12
"""The most entries of float32 of which no sample may be captured; docs/reference/torch-databases.md
lists them."""
SAMPLED = [
    pytest.param(name, marks=[pytest.mark.slow] if at % 3 else [])
    for at, name in enumerate(CHECKED)
]


@pytest.fixture(autouse=True)
def _warns_each_time() -> Iterator[None]:
    with comparison.warning_each_time():
        yield


def check(samples: Iterator[Sample], count: int) -> None:
    for sample in itertools.islice(samples, count):
        sample.check()


@pytest.mark.parametrize("name", SAMPLED)
def test_operator(name: str) -> None:
    op = CHECKED[name]
    dtype = next(dtype for dtype in DTYPES if op.supports_dtype(dtype, "cpu"))
    check(operator_samples(op, dtype), 1)


@pytest.mark.parametrize("training", [True, False], ids=["training", "evaluating"])
@pytest.mark.parametrize("name", MODULES)
def test_module(name: str, training: bool) -> None:
    check(module_samples(MODULES[name], training), 1)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", DTYPES[1:], ids=str)
@pytest.mark.parametrize("name", CHECKED)
def test_more_samples_of_an_operator(name: str, dtype: torch.dtype) -> None:
    if CHECKED[name].supports_dtype(dtype, "cpu"):
        check(operator_samples(CHECKED[name], dtype), 4)


@pytest.mark.slow
def test_all_samples_of_float32(tmp_path: pathlib.Path) -> None:
    found = comparison.run(tmp_path / "found.jsonl", torch.float32, seconds=120)
    assert [finding.incorrect for finding in found if finding.incorrect] == []
    assert [finding.name for finding in found if finding.late] == []
    assert sum(finding.has_no_graph for finding in found) <= WITHOUT_GRAPH


def test_utilities_of_torch_may_be_imported_before_stator() -> None:
    """They replace the call of scripted functions, which stator has a handler for."""
    program = "import torch.testing._internal.common_optimizers, stator"

    subprocess.run([sys.executable, "-c", program], check=True)
