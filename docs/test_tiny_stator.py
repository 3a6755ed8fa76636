"""The machine in one file does what it explains: the same answer as Python, a break is one graph
more, guards hold."""

from __future__ import annotations

import importlib.util
import pathlib
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest
import torch
from torch import Tensor

pytestmark = pytest.mark.skipif(
    sys.version_info[:2] != (3, 11), reason="it reads the bytecode of CPython 3.11 only"
)


@pytest.fixture(scope="module")
def tiny() -> ModuleType:
    path = pathlib.Path(__file__).with_name("explanation") / "tiny_stator.py"
    spec = importlib.util.spec_from_file_location("tiny_stator", path)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules["tiny_stator"] = module
    spec.loader.exec_module(module)
    return module


class Box:
    """Something to write to."""

    value: Any = None


BOX = Box()
FACTOR = 2


def straight(x: Tensor, n: int) -> Tensor:
    y = x * n + FACTOR
    return torch.relu(y).sum(0)


def in_place(x: Tensor, n: int) -> Tensor:
    y = x + n
    z = y
    y += 1
    z.mul_(2)
    x.add_(1)
    return y


def writes(x: Tensor, n: int) -> Any:
    BOX.value = x * n
    BOX.value = BOX.value + 1
    return BOX.value, x


def branches(x: Tensor, n: int) -> Tensor:
    i = 0
    while i < n:
        if x.sum() > i:
            x = x - 1
        else:
            x = x + 2
        i += 1
    return x


def inner(x: Tensor, n: int) -> Tensor:
    y = x.sin()
    print("inner", n)
    return y.cos()


def calls(x: Tensor, n: int) -> Tensor:
    return inner(inner(x + 1, n), n) * 2


def makes_lists(x: Tensor, n: int) -> Any:
    parts = [x, x + 1]
    parts[0] = torch.cat(parts)
    return (parts, parts[1], None)


def raises(x: Tensor, n: int) -> Any:
    return x + 1 // (n - n)


def handles(x: Tensor, n: int) -> Any:
    try:
        return raises(x, n)
    except ZeroDivisionError as error:
        return x * len(str(error))


def optional(x: Tensor, n: int) -> Any:
    return x if n is None else -x


FUNCTIONS = [straight, in_place, writes, branches, calls, makes_lists, handles, optional]


@pytest.mark.parametrize("fn", FUNCTIONS, ids=lambda fn: fn.__name__)
def test_same_answer_as_python(
    tiny: ModuleType, fn: Callable[..., Any], capsys: pytest.CaptureFixture[str]
) -> None:
    compiled = tiny.Compiled(fn)
    for shape, n in [((3, 2), 2), ((3, 2), 2), ((4,), 2), ((3, 2), 5)]:
        ours = torch.linspace(-1, 4, torch.Size(shape).numel()).reshape(shape)
        theirs = ours.clone()
        expected = fn(ours, n)
        printed = capsys.readouterr()
        torch.testing.assert_close(compiled(theirs, n), expected, rtol=0, atol=0)
        assert capsys.readouterr() == printed
        assert theirs.equal(ours)


def test_exception_is_real(tiny: ModuleType) -> None:
    with pytest.raises(ZeroDivisionError):
        tiny.Compiled(raises)(torch.ones(1), 3)


def test_identity_is_kept(tiny: ModuleType) -> None:
    x = torch.ones(2)
    assert tiny.Compiled(optional)(x, None) is x
    assert tiny.Compiled(writes)(x, 1)[1] is x
    assert tiny.Compiled(writes)(x, 1)[0] is BOX.value


def test_second_call_compiles_nothing_and_a_changed_global_does(
    tiny: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    compiled = tiny.Compiled(straight)
    x = torch.ones(2)
    compiled(x, 1)
    compiled(x, 1)
    assert len(compiled.all_entries) == 1
    monkeypatch.setattr(sys.modules[__name__], "FACTOR", 7)
    assert compiled(x, 1).equal(straight(x, 1))
    assert len(compiled.all_entries) == 2


def test_break_two_frames_deep_costs_one_graph(tiny: ModuleType) -> None:
    def graphs(fn: Callable[..., Any]) -> int:
        compiled = tiny.Compiled(fn)
        compiled(torch.ones(2), 1)
        return len(compiled.all_entries)

    assert graphs(straight) == 1
    assert graphs(inner) == 2
    assert graphs(calls) == 3  # two breaks, each in a callee


def test_past_the_limit_the_rest_runs_plainly(tiny: ModuleType) -> None:
    compiled = tiny.Compiled(straight, limit=2)
    for n in range(6):
        x = torch.ones(2) * n
        assert compiled(x, n).equal(straight(x, n))
    assert len(compiled.all_entries) == 2


def test_backend_gets_a_graph_and_data_free_examples(tiny: ModuleType) -> None:
    seen = []

    def backend(graph: torch.fx.GraphModule, examples: list[Tensor]) -> Callable[..., Any]:
        seen.append((graph, [(example.shape, example.device.type) for example in examples]))
        return graph.forward

    tiny.Compiled(straight, backend=backend)(torch.ones(3, 2), 2)
    ((graph, examples),) = seen
    assert [node.op for node in graph.graph.nodes].count("placeholder") == 1
    assert examples == [((3, 2), "meta")]
