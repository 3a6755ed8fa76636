"""The oracle sees planted differences, and sees none where there is none."""

from __future__ import annotations

import copy
import random
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from integration_tests.corpora.models import ZOO, Call
from integration_tests.support.description import Tolerance
from integration_tests.support.oracle import assert_same


def plain(x: Tensor, box: dict[str, Any]) -> Any:
    """The function whose imitations below are each wrong in one thing."""
    box["seen"] = x
    box["log"].append(1)
    return {"y": x * 2, "view": x[0], "box": box}


def make_args() -> Call:
    return Call((torch.arange(6.0).reshape(2, 3), {"log": []}))


def changed(change: Callable[[dict[str, Any], Tensor, dict[str, Any]], Any]) -> Callable[..., Any]:
    def imitation(x: Tensor, box: dict[str, Any]) -> Any:
        result = plain(x, box)
        replaced = change(result, x, box)
        return result if replaced is None else replaced

    return imitation


def exit_with(mode: Callable[[], Any]) -> Callable[..., Any]:
    return changed(lambda result, x, box: (mode(), None)[1])


WRONG: dict[str, Callable[..., Any]] = {
    "a value": changed(lambda r, x, b: r.update(y=r["y"] + 1)),
    "the sign of zero": changed(lambda r, x, b: r["y"][0].neg_() and None),
    "a dtype": changed(lambda r, x, b: r.update(y=r["y"].double())),
    "a stride": changed(lambda r, x, b: r.update(y=r["y"].t().contiguous().t())),
    "a type": changed(lambda r, x, b: tuple(r.items())),
    "the order of keys": changed(lambda r, x, b: dict(reversed(r.items()))),
    "a missing key": changed(lambda r, x, b: r.pop("y") is None or None),
    "a copy for a view": changed(lambda r, x, b: r.update(view=r["view"].clone())),
    "a copy for the argument": changed(lambda r, x, b: r.update(box=dict(b))),
    "an effect lost": changed(lambda r, x, b: b["log"].pop() and None),
    "an effect twice": changed(lambda r, x, b: b["log"].append(1)),
    "an argument written": changed(lambda r, x, b: x.add_(1) is None or None),
    "another tensor kept": changed(lambda r, x, b: b.update(seen=x.clone())),
    "an attribute of a tensor": changed(lambda r, x, b: setattr(x, "mark", 1)),
    "requires_grad": changed(lambda r, x, b: r["y"].requires_grad_() is None or None),
    "python's random stream": exit_with(random.random),
    "numpy's random stream": exit_with(np.random.rand),
    "torch's random stream": exit_with(lambda: torch.rand(1)),
    "grad mode": exit_with(lambda: torch._C._set_grad_enabled(False)),
    "autocast": exit_with(lambda: torch.set_autocast_enabled("cpu", True)),
    "the default dtype": exit_with(lambda: torch.set_default_dtype(torch.float64)),
    "determinism": exit_with(lambda: torch.use_deterministic_algorithms(True)),
    "output": exit_with(lambda: print("hello")),
    "a warning": exit_with(lambda: warnings.warn("hello", stacklevel=1)),
    "an exception": exit_with(lambda: 1 // 0),
}


def test_equal_functions_are_the_same() -> None:
    assert_same(plain, copy.copy(plain), make_args)


@pytest.mark.parametrize("title", WRONG)
def test_planted_difference_is_seen(title: str) -> None:
    with pytest.raises(AssertionError, match="not what plain Python gives"):
        assert_same(plain, WRONG[title], make_args)


def test_difference_in_a_later_call_is_seen() -> None:
    calls = []

    def second_is_wrong(x: Tensor) -> Tensor:
        calls.append(x)
        return x * len(calls)

    with pytest.raises(AssertionError, match="call 2"):
        assert_same(lambda x: x * 1, second_is_wrong, lambda: (torch.ones(2),))


def fails(message: str) -> None:
    raise ValueError(message)


def outer(message: str) -> None:
    fails(message)


def chained(message: str) -> None:
    try:
        fails(message)
    except ValueError as error:
        raise KeyError(message) from error


@pytest.mark.parametrize(
    ("one", "other"), [(fails, outer), (fails, chained), (outer, lambda m: fails(m + "!"))]
)
def test_other_exception_is_seen(one: Callable[..., Any], other: Callable[..., Any]) -> None:
    assert_same(one, one, lambda: ("no",))
    with pytest.raises(AssertionError, match="error"):
        assert_same(one, other, lambda: ("no",))


class Scaled(torch.autograd.Function):
    """Right forward, wrong backward."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        return x * 2

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        return grad * 3


def test_wrong_gradient_is_seen() -> None:
    def make() -> Call:
        return Call((torch.ones(3, requires_grad=True),))

    assert_same(lambda x: x * 2, lambda x: 2 * x, make)
    with pytest.raises(AssertionError, match="gradients"):
        assert_same(lambda x: x * 2, Scaled.apply, make)


class Counting(nn.Module):
    """Remembers its calls in a buffer and in a plain attribute."""

    calls: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("calls", torch.zeros(()))
        self.last = 0.0

    def forward(self, x: Tensor) -> Tensor:
        self.calls += 1
        self.last = float(x.sum())
        return x + self.calls


def test_change_of_a_module_is_compared() -> None:
    assert_same(Counting(), Counting(), lambda: (torch.ones(2),))
    ours, forgets = Counting(), Counting()

    def imitation(x: Tensor) -> Any:
        result = forgets(x)
        forgets.last = 0.0
        return result

    with pytest.raises(AssertionError, match=r"owner.*last"):
        assert_same(ours, imitation, lambda: (torch.ones(2),), owners=(ours, forgets))


def test_tolerance_is_kept() -> None:
    def off(x: Tensor) -> Tensor:
        return x * (1 + 1e-5)

    assert_same(lambda x: x * 1, off, lambda: (torch.ones(2),), tolerance=Tolerance(1e-4, 0))
    with pytest.raises(AssertionError):
        assert_same(lambda x: x * 1, off, lambda: (torch.ones(2),), tolerance=Tolerance(1e-6, 0))


@pytest.mark.parametrize("name", ["gpt2", "resnet", "recurrent"])
def test_model_is_the_same_as_its_twin(name: str) -> None:
    ours, theirs, call, other = ZOO[name].make_twins()
    assert_same(ours, theirs, lambda: call, calls=1)
    assert_same(ours, theirs, lambda: other, calls=1)


@pytest.mark.parametrize("name", ["bert", "recurrent", "resnet"])
def test_torch_compile_passes(name: str) -> None:
    ours, theirs, call, _ = ZOO[name].make_twins()
    torch.compiler.reset()
    assert_same(ours, torch.compile(theirs, backend="eager"), lambda: call, calls=2)
