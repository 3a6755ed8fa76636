"""Numbers of NumPy as arguments of torch: functions in Python tell them from Python's own,
functions in C do not."""

from __future__ import annotations

import linecache
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import stator
import torch
import torch.nn.functional as F
from torch import nn

from integration_tests.support.oracle import EXACT, Tolerance, assert_same

NUMBERS = [
    "np.int64(2)",
    "np.uint8(1)",
    "np.float32(1)",
    "np.float64(1.5)",
    "np.bool_(True)",
    "n",
    "2",
]
CALLS = """
torch.broadcast_shapes({0})
torch.broadcast_shapes((1, 3), ({0}, 1))
x.split({0})
torch.split(x, [{0}, 1])
torch.sym_max({0}, 1)
F.adaptive_avg_pool2d(x[None], {0})
F.adaptive_max_pool2d(x[None], ({0}, 2))
F.max_pool2d(x[None], {0})
F.interpolate(x[None, None], scale_factor={0})
F.pad(x, ({0}, 0))
F.layer_norm(x, x.shape[1:], eps={0})
F.softmax(x, {0})
torch.cdist(x, x, {0})
torch.tensordot(x, x.T, {0})
torch.norm(x, {0})
x.norm({0}, dim={0})
x.unflatten(0, (1, {0}))
torch.nn.init.constant_(x, {0})
x.new_tensor({0})
torch.full(({0}, 2), {0})
x.expand({0}, 3, 4)
x[{0}] + {0}
torch.where(x > 0, {0}, x)
""".strip().splitlines()
HIDDEN = """
torch._VF.cdist(x, x, 2.0, None)
torch._VF.tensordot(x, x.T, [1], [0])
torch._VF.block_diag([x, x])
torch._VF.cartesian_prod([x[0], x[1]])
torch._VF.broadcast_tensors([x, x[0]])
torch._VF.meshgrid([x[0], x[1]])
torch._VF.einsum("ij->i", [x])
torch._VF.split(x, 2, 0)
torch._VF.norm(x, 2)
""".strip().splitlines()
NAMES = {"torch": torch, "np": np, "F": F, "nn": nn, "stator": stator}


def made(text: str, before: str = "pass") -> Callable[..., Any]:
    source, names = f"def f(x, n):\n    {before}\n    return {text}\n", dict(NAMES)
    name = f"<{text}>"
    linecache.cache[name] = (len(source), None, source.splitlines(True), name)
    exec(compile(source, name, "exec"), names)
    return names["f"]  # type: ignore[return-value]


def arguments() -> tuple[torch.Tensor, np.int32]:
    return torch.arange(12.0).reshape(3, 4) - 3, np.int32(2)


@pytest.mark.parametrize("call", CALLS)
def test_number_of_numpy_is_taken_where_torch_takes_it(call: str) -> None:
    for number in NUMBERS:
        plain = made(call.format(number))
        assert_same(plain, stator.compile(plain, backend="eager"), arguments, 1, gradients=False)


@pytest.mark.parametrize("call", HIDDEN)
@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_function_in_c_behind_one_in_python_of_its_name(call: str, backend: str) -> None:
    tolerance = EXACT if backend == "eager" else Tolerance(1e-5, 1e-6, strides=False)
    for before in ("pass", "stator.graph_break()"):
        plain = made(call, before)
        compiled = stator.compile(plain, backend=backend)
        assert_same(plain, compiled, arguments, tolerance=tolerance)
        assert len(compiled.report.breaks) == (before != "pass")


def test_dtype_of_a_result_is_known() -> None:
    """It hangs on what is guarded anyway: dtypes, whether there are dimensions, classes of
    numbers."""

    def fn(x: torch.Tensor, y: torch.Tensor, n: Any) -> Any:
        found = torch.result_type(x, y)
        kinds = torch.result_type(x, n), torch.result_type(n, x), torch.result_type(1, n)
        return (
            x.to(found),
            found,
            kinds,
            torch.result_type(x, x.shape[0]),
            torch.result_type(x.sum(), 1.5),
        )

    single, whole = torch.ones(3), torch.ones(5, dtype=torch.int8)
    number = torch.tensor(2.0, dtype=torch.float64)
    given = iter(
        [
            (single, single.double(), 2),
            (single, number, 3),
            (whole, whole.sum(), 2.5),
            (whole, number, True),
        ]
    )
    assert_same(
        fn, stator.compile(fn, backend="eager", fullgraph=True), lambda: next(given), calls=4
    )
