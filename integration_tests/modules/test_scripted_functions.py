"""Scripted functions and modules called in a region: what TorchScript gives, in as few graphs as
possible."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import pytest
import stator
import torch
from torch import Tensor, nn

from integration_tests.support.oracle import assert_same

script: Any = torch.jit.script
jit: Any = torch.jit
script_if_tracing: Callable[[Callable[..., Any]], Callable[..., Any]] = jit.script_if_tracing
is_scripting = jit.is_scripting
X = torch.linspace(-1, 1, 3)

pytestmark = pytest.mark.filterwarnings("ignore:`torch.jit.script")


def plus_one(x):  # type: ignore[no-untyped-def]
    return x + 1


def by_number(x, scale: float = 2.0):  # type: ignore[no-untyped-def]
    if torch.jit.is_scripting():  # type: ignore[attr-defined]
        return x * scale
    return x - scale


def several(x) -> tuple[Tensor, int]:  # type: ignore[no-untyped-def]
    return x.sin(), x.size(0)


def to_list(x, kept: list[Tensor]):  # type: ignore[no-untyped-def]
    kept.append(x)
    return x + len(kept)


def picked(x, i):  # type: ignore[no-untyped-def]
    return x[i]


def maybe(x: Tensor, y: Tensor | None = None) -> Tensor:
    return x if y is None else x + y


SCRIPTED = {
    fn.__name__: script(fn) for fn in (plus_one, by_number, several, to_list, picked, maybe)
}

PROGRAMS: dict[str, tuple[Callable[[Tensor], Any], int]] = {
    "tensor": (lambda x: SCRIPTED["plus_one"](x) * 2, 0),
    "by keyword": (lambda x: SCRIPTED["plus_one"](x=x), 0),
    "default": (lambda x: SCRIPTED["by_number"](x) + 0, 0),
    "number of its type": (lambda x: SCRIPTED["by_number"](x, scale=3.0), 0),
    "number of another type": (lambda x: SCRIPTED["by_number"](x, 3), 1),
    "an optional tensor": (lambda x: SCRIPTED["maybe"](x, x) + SCRIPTED["maybe"](x, None), 0),
    "no optional tensor": (lambda x: SCRIPTED["maybe"](x) + 1, 0),
    "tuple": (lambda x: SCRIPTED["several"](x)[::-1], 0),
    "list": (lambda x: (kept := [x], SCRIPTED["to_list"](x, kept), len(kept))[1:], 1),
    "scripted or not": (lambda x: (SCRIPTED["by_number"](x), is_scripting()), 0),
}


@pytest.fixture(autouse=True)
def _called_as_torch_has_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Put back what `torch.testing._internal.common_utils` replaces, where another test imported
    it."""
    replaced: Any = sys.modules.get("torch.testing._internal.common_utils")
    if replaced is not None:
        monkeypatch.setattr(torch._C.ScriptFunction, "__call__", replaced.func_call)
        monkeypatch.setattr(torch._C.ScriptMethod, "__call__", replaced.meth_call)


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_scripted_function_gives_what_torchscript_gives(name: str) -> None:
    program, breaks = PROGRAMS[name]
    compiled = stator.compile(program, backend="eager")
    for number in range(3):
        x = X * number
        torch.testing.assert_close(compiled(x), program(x))
    assert len(compiled.report.breaks) == breaks


def test_a_break_in_a_scripted_function_is_one_at_its_call() -> None:
    def gives_a_number(x):  # type: ignore[no-untyped-def]
        if torch.jit.is_scripting():  # type: ignore[attr-defined]
            return x * float(x.sum().item())
        return x

    scripted = script(gives_a_number)
    compiled = stator.compile(lambda x: scripted(x.cos()) + 1, backend="eager")
    for _ in range(2):
        assert compiled(X).equal(X.cos() * float(X.cos().sum()) + 1)
    assert len(compiled.report.breaks) == 1


def test_an_operator_that_raises_does_so_in_torchscripts_words() -> None:
    compiled = stator.compile(_pick, backend="eager")
    assert compiled(X, torch.tensor([1])).equal(X[[1]])
    with pytest.raises(RuntimeError, match="TorchScript interpreter"):
        compiled(X, torch.tensor([7]))


def _pick(x: Tensor, i: Tensor) -> Any:
    return SCRIPTED["picked"](x, i)


def test_another_scripted_function_in_its_place_is_noticed() -> None:
    first, second = script(plus_one), SCRIPTED["by_number"]
    compiled = stator.compile(lambda x, fn: fn(x), backend="eager")
    for fn in (first, second, first, second):
        assert compiled(X, fn).equal(fn(X))
    assert compiled.report.graph_count == 2


def test_a_scripted_module_in_a_model_costs_one_break() -> None:
    model = nn.Sequential(nn.Linear(3, 3), script(nn.Linear(3, 3)), nn.ReLU())
    compiled: Any = stator.compile(model, backend="eager")
    for _ in range(2):
        assert compiled(X).equal(model(X))
    assert len(compiled.report.breaks) == 1
    assert compiled.report.graph_count == 2


@script_if_tracing
def doubled(x: torch.Tensor, times: int = 2) -> torch.Tensor:
    """The sum of several."""
    for _ in range(times):
        x = x + x
    return x


def unwrapped(x: torch.Tensor) -> Any:
    return jit._unwrap_optional(x) * 2


def unwrapped_none(x: torch.Tensor) -> Any:
    try:
        return jit._unwrap_optional(None)
    except AssertionError as error:
        return x * 2, str(error)


ONLY_FOR_SCRIPTS: dict[str, Any] = {
    "script_if_tracing": lambda x: doubled(x, times=3) - doubled(x),
    "its original": lambda x: (doubled.__doc__, doubled(x * 2)),
    "_unwrap_optional": unwrapped,
    "_unwrap_optional of None": unwrapped_none,
}


@pytest.mark.parametrize("title", ONLY_FOR_SCRIPTS)
def test_what_only_scripts_need_is_captured(title: str) -> None:
    program = ONLY_FOR_SCRIPTS[title]
    compiled = stator.compile(program, backend="eager", fullgraph=True)
    assert_same(program, compiled, lambda: (torch.ones(2),))
