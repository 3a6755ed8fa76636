"""Every operator and every module that torch's own tests know, with their samples of arguments, beside plain Python.

One sample of every third operator and of every module in the default tier; the slow tier has the other operators, takes
more samples, and other dtypes.
"""

from __future__ import annotations

import copy
import itertools
import warnings
from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest
import stator
import torch
from torch.testing._internal.common_methods_invocations import op_db
from torch.testing._internal.common_modules import module_db
from torch.utils._pytree import tree_map

from integration_tests.corpora.models import Call
from integration_tests.support.oracle import assert_same

UNDEFINED = "empty empty_like empty_permuted empty_strided new_empty new_empty_strided resize_ resize_as_".split()
"""They give memory as it was found."""
NOT_COPIED = ("sparse.sampled_addmm", "sparse.mm", "sgn", "chalf")
"""torch cannot deep copy their samples, which are sparse, or not compare what they give."""
WARNING = ("cholesky", "triangular_solve", "index_reduce")
"""Their kernels alone warn, which no fake tells: the graph then names a line of its own."""
DTYPES = (torch.float32, torch.complex64, torch.int64, torch.bool)
OPERATORS = {
    f"{op.name} {op.variant_test_name}".strip(): op
    for op in op_db
    if op.name not in (*UNDEFINED, *NOT_COPIED, *WARNING)
    and any(op.supports_dtype(dtype, "cpu") for dtype in DTYPES)
}
SAMPLED = [
    pytest.param(name, marks=[pytest.mark.slow] if at % 3 else [])
    for at, name in enumerate(OPERATORS)
]
MODULES = {info.name: info for info in module_db}


@pytest.fixture(autouse=True)
def _warns_each_time() -> Iterator[None]:
    torch.set_warn_always(True)
    yield
    torch.set_warn_always(False)


def as_leaves(call: Call) -> Call:
    """Only leaves can be copied with what they share."""

    def leaf(value: Any) -> Any:
        made = isinstance(value, torch.Tensor) and not value.is_leaf
        return value.detach().requires_grad_() if made else value

    return Call(tree_map(leaf, tuple(call.args)), tree_map(leaf, call.kwargs))


def samples(op: Any, dtype: torch.dtype, count: int) -> Iterator[Call]:
    gradients = op.supports_autograd and (dtype.is_floating_point or dtype.is_complex)
    for sample in itertools.islice(op.sample_inputs("cpu", dtype, requires_grad=gradients), count):
        yield as_leaves(Call((sample.input, *sample.args), sample.kwargs))


def check_operator(op: Any, dtype: torch.dtype, count: int) -> None:
    def call(*args: Any, **kwargs: Any) -> Any:
        return op.op(*args, **kwargs)

    for sample in samples(op, dtype, count):
        assert_same(
            call, stator.compile(call, backend="eager"), partial(copy.copy, sample), calls=2
        )


def check_module(info: Any, training: bool, count: int) -> None:
    made = info.module_inputs_func(
        info, device="cpu", dtype=torch.float32, requires_grad=True, training=training
    )
    for sample in itertools.islice(made, count):
        constructor, forward = sample.constructor_input, sample.forward_input
        torch.manual_seed(0)
        with warnings.catch_warnings(action="ignore"):
            plain = info.module_cls(*constructor.args, **constructor.kwargs).train(training)
        other = copy.deepcopy(plain)
        compiled = stator.compile(other, backend="eager")
        given = as_leaves(Call(forward.args, forward.kwargs))
        assert_same(plain, compiled, partial(copy.copy, given), calls=2, owners=(plain, other))


@pytest.mark.parametrize("name", SAMPLED)
def test_operator(name: str) -> None:
    op = OPERATORS[name]
    dtype = next(dtype for dtype in DTYPES if op.supports_dtype(dtype, "cpu"))
    check_operator(op, dtype, 1)


@pytest.mark.parametrize("training", [True, False], ids=["training", "evaluating"])
@pytest.mark.parametrize("name", MODULES)
def test_module(name: str, training: bool) -> None:
    check_module(MODULES[name], training, 1)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("name", OPERATORS)
def test_more_samples_of_an_operator(name: str, dtype: torch.dtype) -> None:
    if OPERATORS[name].supports_dtype(dtype, "cpu"):
        check_operator(OPERATORS[name], dtype, 4)


@pytest.mark.slow
@pytest.mark.parametrize("training", [True, False], ids=["training", "evaluating"])
@pytest.mark.parametrize("name", MODULES)
def test_more_samples_of_a_module(name: str, training: bool) -> None:
    check_module(MODULES[name], training, 6)
