"""How often series of calls with similar arguments are compiled: never more often than under
torch.compile.

`TORCH_COMPILE` says, for each program and call, how many graphs torch.compile has made by then.
"""

from __future__ import annotations

import operator
import warnings
from collections.abc import Callable
from typing import Any

import pytest
import stator
import torch

from integration_tests.guards_and_recompiles.call_series import programs
from integration_tests.support.counting import Counting
from integration_tests.support.description import EXACT, describe, differences

PROGRAMS = programs()

TORCH_COMPILE = {
    "T x, i k: x * k": "12222222",
    "T x, f k: x + k": "12333333",
    "V x, i k: x / (k + 1) - k": "12222222",
    "V x, i k: x[: k + 1]": "12233333",
    "T x, i k: x[k % 2] * k": "12222222",
    "T x, f k: torch.full((2, 3), k) + x[0, 0]": "12333333",
    "T x, i k: torch.zeros(k + 2, 4) + x[0] * k": "12222222",
    "T x, f f, i k: x.sum() * f + k": "12333333",
    "T x, f f: torch.softmax(x / f, -1)": "12222222",
    "V x, f f: x.clamp(-f, f) ** 2": "12222222",
    "T x, i k: torch.arange(x.shape[0]) < k": "12222222",
    "T x, i k: x.repeat(k + 1, 1).mean(0)": "12222222",
    "V x, i k, f f: x * math.sqrt(k) + math.cos(f)": "12333333",
    "V x, i k, f f: x.mul_(f).add_(k)": "12333333",
    "T x: F.dropout(x, 0.5, False) * x.shape[0] / x.numel()": "12222222",
    "T x, T y: x @ x.T + y[: x.shape[0] - 1].sum()": "11233333",
    "T x, T y, i k: torch.cat([x, y]) * k": "12222222",
    "T x, i k, f f: torch.stack([x, x * f, x + k], 1).flatten(1)": "12222222",
    "V x, I k: x * k": "11111111",
    "V x, H k: x * k": "11111111",
    "T x, I k: x + k / 2": "12222222",
    "V x, I k: x * np.sqrt(k + 1) - k": "11111111",
    "V x, I k: x[:k]": "11222222",
    "T x, J k, H f: x * int(k) + float(f)": "24444444",
    "V x, I k, D f: x.long() * k + k * f": "11111111",
    "V x, J k, H f: (x * (k * 2 + 1), k, k + f)": "11111111",
    "T x, H k: torch.full((3,), k) + x[:1, :3]": "12222222",
    "T x, o o: o.scaled(x)": "12222222",
    "V x, o o: x * o.ratio + o.inner.n": "12222222",
    "V x, O o: x * o.n + o.f": "11111111",
    "T x, c o: x * o.n + o.f": "12222222",
    "V x, p o: x * o.n + o.f": "12222222",
    "V x, l l: x * l[0] + l[1]": "12222222",
    'T x, d d: x * d["n"] + d["f"]': "12222222",
    "T x, m m: m(x)": "12334555",
    "t t: sum(each.sum() * k for k, each in enumerate(t))": "12333333",
    "A a: torch.from_numpy(a) * 2 + len(a)": "12222222",
    "T x, s s: x.flatten()[s] + 1": "12334444",
    "T x, s s: x.flatten()[: s.stop] * s.stop": "12344444",
    "T x, s s: (x + 1, s == slice(2), s != slice(3, None))": "12222222",
    "t t: torch.cat([each[: min(len(one) for one in t)] for each in t])": "12333333",
    "t t: t[0] * max([len(each) for each in t]) - max(map(len, t), default=0)": "24444444",
    "t t: [F.pad(each, (0, 0, 0, max(len(one) for one in t) - len(each))) for each in t]": "12222222",
    "T x, A a: x * a.mean() + a[0]": "12222222",
    "T x, A a, f f: x * (a * f).sum() + a.max() / len(a)": "12345678",
    "T x, f f: x * np.float32(f) + np.exp(-f)": "12345667",
    'b b: (b["x"] * b["mask"]).sum() * b["weights"][0] + b["id"]': "12222222",
    'b b: {**b, "x": b["x"] * b["weights"][1], "size": len(b["x"])}': "12222222",
    "L t: torch.stack([each.mean(0) for each in t]).sum(0) / len(t)": "12222334",
    "T x, N m: x if m is None else x.masked_fill(m, 0.0)": "12222222",
    'T x, w w: x.sum(0) if w == "sum" else x.mean(0)': "12333333",
    "T x, w w: getattr(x, w)(0) * len(w)": "12333333",
    "T x, e e: x.sum(0) if e is Mode.SUM else x.mean(0)": "12233333",
    "T x, k k: (x.sum(0) if k.mode is Mode.SUM else x.mean(0)) * k.config.n + k.area": "12333333",
    "T x, c c: x * dataclasses.replace(c, f=c.f / 2).f + c.n": "12222222",
    'T x, i i, i k: F.interpolate(x[None, None], size=(i + 2, k + 2), mode="nearest")': "12333333",
    "V x, p l: x * max(l.f, 0.5) + max([l.f, 1.0]) - min((l.f, 2.0))": "12222222",
    "V x, f f, f g: x * max(f, g, 0.5) + min([f, g])": "12222222",
    "counter_of_a_module": "12345678",
    "temperature_of_a_module": "12333333",
    "schedule_of_a_module": "12345678",
    "property_with_invalidation": "12333333",
    "attribute_of_an_object": "12222222",
    "closure_cell": "12222222",
    "elements_of_containers": "12222222",
    "globals_that_change": "12345678",
    "blocks_with_an_index": "12222222",
    "growing_cache": "12333333",
    "moving_average": "12222222",
    "rates_of_groups": "12222222",
    "latest_losses": "12333333",
    "counts_by_name": "12333333",
}


def run_series(name: str, compiler: Callable[..., Any] | None) -> tuple[str, list[Any]]:
    """Return the number of graphs after each call, as digits, and a description of each call."""
    (function, change), calls = PROGRAMS[name]()
    backend = Counting()
    compiled = function if compiler is None else compiler(function, backend=backend)
    graphs, found = "", []
    for number, arguments in enumerate(calls):
        change(number)
        result = compiled(*arguments)
        graphs += str(backend.count)
        found.append(describe(result=result, arguments=arguments))
    return graphs, found


@pytest.mark.parametrize("name", PROGRAMS)
def test_series_is_compiled_no_more_often_than_under_torch_compile(name: str) -> None:
    _, expected = run_series(name, None)
    graphs, found = run_series(name, stator.compile)
    for call, (wanted, given) in enumerate(zip(expected, found, strict=True)):
        assert not differences(wanted, given, EXACT), f"call {call}"
    assert all(map(operator.le, graphs, TORCH_COMPILE[name])), (graphs, TORCH_COMPILE[name])


@pytest.mark.slow
@pytest.mark.parametrize("name", PROGRAMS)
def test_reference_counts_are_those_of_torch_compile(name: str) -> None:
    torch.compiler.reset()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        graphs, _ = run_series(name, torch.compile)
    torch.compiler.reset()
    assert graphs == TORCH_COMPILE[name]
