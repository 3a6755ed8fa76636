"""Modules, functions and classes of a program that have the names of stator's, torch's or the
standard library's are the program's: they are guarded, traced and heard like any other."""

from __future__ import annotations

import functools
import sys
import types
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import stator
import torch
import torch._dynamo
import torch.fx.experimental.symbolic_shapes
from torch import Tensor

LOG: list[Any] = []


@pytest.fixture
def module(monkeypatch: pytest.MonkeyPatch) -> Callable[[str, str], Any]:
    def make(name: str, source: str) -> Any:
        found = types.ModuleType(name)
        monkeypatch.setitem(sys.modules, name, found)
        exec(compile(source, f"{name}.py", "exec"), vars(found))
        return found

    return make


@pytest.fixture(autouse=True)
def empty_log() -> Iterator[None]:
    LOG.clear()
    yield
    LOG.clear()


@pytest.mark.parametrize(
    "name",
    [
        "users._applevel",
        "users._applevel.constants",
        "stator_variables_of_users._applevel.constants",
        "torch_of_users.optim.constants",
        "stator_experiments",
    ],
)
def test_globals_of_any_module_are_guarded(module: Callable[[str, str], Any], name: str) -> None:
    found = module(name, "K = 3\ndef scale(x):\n    return x * K\n")

    def step(x: Tensor) -> Any:
        return found.scale(x)

    for compiled in (
        stator.compile(step, backend="eager"),
        stator.compile(found.scale, backend="eager"),
    ):
        found.K = 3
        assert compiled(torch.ones(1)).item() == 3
        found.K = 5
        assert compiled(torch.ones(1)).item() == 5


def test_every_module_of_app_level_code_declares_it() -> None:
    found = [name for name in sys.modules if name.startswith("stator") and "._applevel" in name]
    assert len(found) > 10
    for name in set(found) - {"stator_variables._applevel"}:
        assert vars(sys.modules[name])["__app_level__"] is True


@functools.wraps(torch._dynamo.mark_static)
def mark_static(x: Tensor, dim: int) -> Tensor:
    LOG.append(dim)
    return x + 1


@functools.wraps(torch.onnx.is_in_onnx_export)
def is_in_onnx_export() -> bool:
    return True


@functools.wraps(torch.fx.experimental.symbolic_shapes.guard_or_false)
def guard_or_false(value: bool) -> bool:
    return not value


@functools.wraps(torch.compiler.is_compiling)
def is_compiling() -> str:
    return "of the program"


@pytest.mark.parametrize(
    "fn",
    [
        lambda x: mark_static(x, 0) * 2,
        lambda x: x + 1 if is_in_onnx_export() else x,
        lambda x: x + 1 if guard_or_false(x.dim() == 1) else x,
        lambda x: x + 1 if is_compiling() == "of the program" else x,
    ],
)
def test_wrappers_of_functions_of_torch_run(fn: Callable[..., Any]) -> None:
    expected = fn(torch.ones(2))
    log = [*LOG]
    compiled = stator.compile(fn, backend="eager")
    for _ in range(2):
        LOG.clear()
        torch.testing.assert_close(compiled(torch.ones(2)), expected)
        assert log == LOG


_init_group: Any = torch.optim.Adam._init_group


class Counted(torch.optim.Adam):
    groups = 0

    @functools.wraps(_init_group)
    def _init_group(self, *args: Any) -> Any:
        self.groups += 1
        return _init_group(self, *args)


def test_a_wrapper_of_a_method_of_optimizers_runs_once_a_step() -> None:
    weight = torch.nn.Parameter(torch.ones(2))
    optimizer = Counted([weight])

    @stator.compile(backend="eager")
    def step() -> None:
        optimizer.step()

    for count in range(3):
        weight.grad = torch.ones(2)
        step()
        assert optimizer.groups == count + 1


MANAGER = """
class Swallow:
    def __init__(self, log): self.log = log
    def __enter__(self): return self
    def __exit__(self, *raised):
        self.log.append(raised[0] and raised[0].__name__)
        return True
"""


@pytest.mark.parametrize("name", ["torchtools.managers", "torch_tools"])
def test_managers_of_packages_named_like_torch_see_exceptions(
    module: Callable[[str, str], Any], name: str
) -> None:
    found = module(name, MANAGER)

    def fn(x: Tensor, rows: Tensor) -> Tensor:
        y = x + 1
        with found.Swallow(LOG):
            y.add_(1)
            y = torch.index_select(y, 0, rows)
            y = y + 1
        return y

    compiled = stator.compile(fn, backend="eager")
    for row in (0, 1, 9):
        rows = torch.tensor([row])
        LOG.clear()
        expected, log = fn(torch.ones(2), rows), [*LOG]
        LOG.clear()
        assert torch.equal(compiled(torch.ones(2), rows), expected)
        assert log == LOG


def test_callbacks_of_a_module_named_like_stator_are_called(
    module: Callable[[str, str], Any],
) -> None:
    found = module(
        "stator_experiments",
        "import weakref\n"
        "class Item: pass\n"
        "def watched(log):\n"
        "    item = Item()\n"
        "    return item, weakref.ref(item, lambda ref: log.append('died'))\n",
    )

    def fn(items: list[Any], x: Tensor) -> Tensor:
        items.pop()
        LOG.append("after")
        return x + 1

    compiled = stator.compile(fn, backend="eager")
    for run in (fn, compiled, compiled):
        LOG.clear()
        item, reference = found.watched(LOG)
        items = [item]
        del item
        run(items, torch.ones(1))
        assert LOG == ["died", "after"]
        assert isinstance(reference, weakref.ref)
