"""Each option of stator takes effect, rejects what is no value of it, and is in the reference."""

from __future__ import annotations

import math
import pathlib
import random
import re
import threading
import warnings
from typing import Any

import attrs
import pytest
import stator
import torch
from stator._settings._options import ENVIRONMENT, OURS
from stator.errors import InvalidOption, UncompiledWarning
from stator_backends import CountingBackend, aot_eager, eager
from stator_bytecode import HandlerTable
from stator_variables import ConstantTracker
from torch.utils.checkpoint import checkpoint

X = torch.arange(3.0)


def plus(x: torch.Tensor) -> torch.Tensor:
    return x.sin() + 1


def failing(graph: Any, inputs: Any) -> Any:
    raise ValueError("of the backend")


def report_of(fn: Any = plus, *args: Any, **options: Any) -> Any:
    compiled = stator.compile(fn, backend="eager", options=options)
    compiled(*(args or (X,)))
    return compiled.report


def test_recompile_limit() -> None:
    compiled = stator.compile(
        lambda x, name: x * len(name), backend="eager", options={"recompile_limit": 2}
    )
    compiled(X, "a")
    compiled(X, "bb")
    with pytest.warns(UserWarning, match="was compiled 2 times"):
        compiled(X, "ccc")


def test_fallback() -> None:
    with pytest.raises(stator.BackendFailed):
        stator.compile(plus, backend=failing)(X)
    forgiving = stator.compile(plus, backend=failing, options={"fallback": True})
    assert torch.equal(forgiving(X), plus(X))


def test_break_everywhere() -> None:
    assert report_of().graph_break_count == 0
    assert report_of(break_everywhere=True).graph_break_count == 1
    assert report_of(break_everywhere="operations").graph_break_count > 1


def test_oracle(monkeypatch: pytest.MonkeyPatch) -> None:
    def wrong(graph: Any, inputs: Any) -> Any:
        return lambda *args: (args[0] * 0,)

    with pytest.raises(stator.OracleMismatch):
        stator.compile(plus, backend=wrong, options={"oracle": True})(X)
    monkeypatch.setenv("STATOR_ORACLE", "1")
    with pytest.raises(stator.OracleMismatch):
        stator.compile(plus, backend=wrong)(X)


@pytest.mark.parametrize("captured", [False, True])
def test_compiled_autograd(captured: bool) -> None:
    graphs: list[Any] = []

    def backend(graph: Any, inputs: Any) -> Any:
        graphs.append(graph)
        return graph.forward

    def step(x: torch.Tensor) -> None:
        x.sin().sum().backward()  # type: ignore[no-untyped-call]

    options = {"compiled_autograd": captured}
    x = X.clone().requires_grad_()
    stator.compile(step, backend=backend, options=options)(x)
    assert x.grad is not None
    assert torch.equal(x.grad, X.cos())
    assert any("SinBackward0" in graph.code for graph in graphs) == captured


@pytest.mark.parametrize(("repeats", "count"), [(True, 2), (False, 1)])
def test_repeat_effects(repeats: bool, count: int) -> None:
    calls: list[int] = []

    def body(x: torch.Tensor) -> torch.Tensor:
        calls.append(1)
        return x.sin()

    def fn(x: torch.Tensor) -> Any:
        return checkpoint(body, x, use_reentrant=False)

    compiled = stator.compile(fn, backend="eager", options={"repeat_effects": repeats})
    compiled(X.clone().requires_grad_()).sum().backward()
    assert len(calls) == count


def test_keep_text() -> None:
    assert "x.sin()" in report_of().entries[0].graph_text
    assert report_of(keep_text=False).entries[0].graph_text == ""


def test_measure() -> None:
    compiled = stator.compile(plus, backend="eager", options={"measure": True})
    for _ in range(3):
        assert torch.equal(compiled(X), plus(X))
    (entry,) = compiled.report.entries
    assert (entry.calls, entry.run_seconds > 0, entry.guard_seconds > 0) == (3, True, True)
    assert report_of().entries[0].calls is None

    other = stator.compile(plus, backend="eager", options={"measure": True})
    other(X)
    assert other.report.entries[0].calls == 1


def test_capture_data() -> None:
    def fn(x: torch.Tensor) -> torch.Tensor:
        return x[x > 0].sum() + 1

    assert report_of(fn).graph_count > 1
    assert report_of(fn, capture_data=True).graph_count == 1


def test_uncompiled() -> None:
    def fn(x: torch.Tensor) -> torch.Tensor:
        return (x.to_sparse() * 2).to_dense() + 1

    def call(policy: str | None, fullgraph: bool = False) -> list[str]:
        stator.reset()
        options = {"uncompiled": policy} if policy else {}
        compiled = stator.compile(fn, backend="aot_eager", fullgraph=fullgraph, options=options)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            for _ in range(2):
                assert compiled(torch.ones(2)).tolist() == [3.0, 3.0]
        return [str(each.message) for each in caught if each.category is UncompiledWarning]

    (text,) = call(None)
    assert ".fn run uncompiled (3 of 4)" in text
    assert "sparse tensors" in text
    assert "test_options.py" in text
    assert call("warn") == [text]
    assert call("allow") == call("allow", fullgraph=True) == []
    assert call("warn", fullgraph=True) == [text]
    line = fn.__code__.co_firstlineno + 1
    for policy, fullgraph in (("error", False), ("error", True), (None, True)):
        with pytest.raises(stator.Unsupported, match="3 of 4 operators") as refused:
            call(policy, fullgraph)
        error = str(refused.value)
        assert "  3 run as they are: sparse tensors\n" in error
        assert f'test_options.py", line {line}, in ' in error
        assert "fn: to_sparse, mul, to_dense\n" in error
        assert 'try: options={"uncompiled": "warn"}' in error
        assert refused.value.where.line == line
    with pytest.raises(InvalidOption):
        call("no")


def test_check(monkeypatch: pytest.MonkeyPatch) -> None:
    checked: list[Any] = []
    monkeypatch.setattr("stator._entries._entry._check", checked.append)
    monkeypatch.delenv("STATOR_CHECK", raising=False)
    report_of()
    assert not checked
    report_of(check=True)
    assert len(checked) == 1
    monkeypatch.setenv("STATOR_CHECK", "1")
    stator.reset()
    report_of()
    assert len(checked) == 2


def test_regions() -> None:
    class Layer(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            y = x.sin().cos().tanh().exp()
            return x + y.sqrt().relu().abs().neg()

    def compiled_operators(policy: str) -> int:
        counting = CountingBackend(aot_eager)
        layers = [Layer() for _ in range(4)]

        def fn(x: torch.Tensor) -> torch.Tensor:
            for layer in layers:
                x = layer(x)
            return x

        compiled = stator.compile(fn, backend=counting, options={"regions": policy})
        assert torch.equal(compiled(X), fn(X))
        return sum(counting.ops)

    found = [(compiled_operators(policy), policy) for policy in ("off", "auto", "always")]
    assert found == [(4 * 9, "off"), (4 * 9, "auto"), (9, "always")]
    with pytest.raises(InvalidOption, match="regions='on' is not valid"):
        stator.compile(lambda x: x, backend="eager", options={"regions": "on"})


def growing(x: torch.Tensor) -> torch.Tensor:
    counts = [1, 2]
    counts.append(3)
    return x * len(counts) + random.random()


def breaks_of(without: list[str] | None) -> list[str]:
    """Compile with these captures switched off; return the calls that were breaks."""
    options = {} if without is None else {"without": without}
    compiled = stator.compile(growing, backend="eager", options=options)
    for _ in range(3):
        random.seed(1)
        expected, after = growing(X), random.getstate()
        random.seed(1)
        assert torch.equal(compiled(X), expected)
        assert random.getstate() == after
    return [reason.detail.rpartition(" ")[2] for reason in compiled.report.breaks]


def test_without() -> None:
    found = {
        "nothing": breaks_of([]),
        "one": breaks_of(["library.random"]),
        "a folder": breaks_of(["library", "objects.deque_methods"]),
        "two": breaks_of(["library.random", "objects.list_methods"]),
        "all": breaks_of(["*"]),
    }
    assert found == {
        "nothing": [],
        "one": ["Random.Random.random"],
        "a folder": ["Random.Random.random"],
        "two": ["list.list.append", "list.list.__len__", "Random.Random.random"],
        "all": ["list.list.append", "builtins.len", "Random.Random.random"],
    }


def test_captures_that_are_off_are_part_of_the_key_of_entries() -> None:
    for _ in range(2):
        assert len(breaks_of(None)) == len(breaks_of([])) == 0
        assert len(breaks_of(["library.random"])) == 1
    counting = CountingBackend(eager)
    for names in (["library", "objects"], ["objects", "library", "objects"]):
        compiled = stator.compile(growing, backend=counting, options={"without": names})
        random.seed(1)
        compiled(X)
        assert len(compiled.report.breaks) == 3
        assert len(counting.ops) == 2  # of the first


@pytest.mark.parametrize(
    ("name", "near"),
    [
        ("library.randon", "'library.random'"),
        ("random", "'library.random'"),
        ("tensor.storages", "'tensors.storages'"),
        ("librar", "'library'"),
        ("operators.", "'operators'"),
        ("", "list_captures"),
        ("**", "list_captures"),
    ],
)
def test_unknown_capture_is_an_error_with_those_that_are_near(name: str, near: str) -> None:
    assert name not in stator.list_captures()
    with pytest.raises(InvalidOption, match=re.escape(f"no capture is called {name!r}")) as caught:
        stator.compile(growing, backend="eager", options={"without": ["library.random", name]})
    assert near in caught.value.hint


def test_capture_of_a_stack_is_switched_off_by_the_name_of_its_module() -> None:
    def handle(t: Any, args: list[Any], kwargs: dict[str, Any]) -> Any:
        return ConstantTracker(7.0)

    table: HandlerTable[Any, Any] = HandlerTable("callable", {math.dist: handle})
    stack = stator.Stack(handlers=lambda: stator.default_handlers().merged_with(table))

    def fn(x: torch.Tensor) -> torch.Tensor:
        return x * math.dist((0.0,), (2.0,))

    def result(**options: Any) -> torch.Tensor:
        return stator.compile(fn, backend="eager", stack=stack, options=options)(X)

    assert torch.equal(result(), X * 7)
    for off in (__name__, "*"):
        assert torch.equal(result(without=[off]), X * 2)
    with pytest.raises(InvalidOption):
        stator.compile(fn, backend="eager", options={"without": [__name__]})


def test_cache(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STATOR_CACHE_DIR", str(tmp_path))
    for chosen in (False, True):
        compiled = stator.compile(lambda x: x + 1, backend="eager", options={"cache": chosen})
        compiled(X)
        assert any(tmp_path.glob("*/*.entry")) is chosen


def test_tiered() -> None:
    threads: list[int] = []

    def noting(graph: Any, inputs: Any) -> Any:
        threads.append(threading.get_ident())
        return graph.forward

    for options in ({"tiered": True}, {}):
        compiled = stator.compile(lambda x: x + 1, backend=noting, options=options)
        assert torch.equal(compiled(X), X + 1)
        assert stator.wait(compiled, 20)
    assert [each == threading.get_ident() for each in threads] == [False, True]
    with pytest.raises(InvalidOption, match="tiered and uncompiled='error' are both given"):
        stator.compile(plus, options={"tiered": True, "uncompiled": "error"})


def test_guard_filter_fn() -> None:
    assert not report_of(guard_filter_fn=lambda entries: [False] * len(entries)).guards


WRONG: dict[str, Any] = {
    **dict.fromkeys(OURS, "yes"),
    "recompile_limit": 0,
    "break_everywhere": "never",
}


@pytest.mark.parametrize("name", OURS)
def test_wrong_value_is_rejected(name: str) -> None:
    with pytest.raises(stator.InvalidOption, match=f"{name}={WRONG[name]!r} is not valid"):
        stator.compile(plus, options={name: WRONG[name]})


def test_every_option_is_a_field_with_a_default_and_a_test() -> None:
    fields = {field.name: field for field in attrs.fields(stator.Options)}
    for name in OURS:
        assert fields[name].default is not attrs.NOTHING
        assert f"test_{name}" in globals()
    assert ENVIRONMENT.keys() <= OURS.keys()


def test_misspelt_option_is_an_error() -> None:
    with warnings.catch_warnings(), pytest.raises(stator.InvalidOption, match="did you mean"):
        stator.compile(plus, options={"recompile_limits": 3})


def test_backends_and_options_that_share_entries() -> None:
    """One method of one object is one backend; options that cannot be compared are never equal."""

    class Backend:
        count = 0

        def compile(self, graph: Any, inputs: Any, **options: Any) -> Any:
            self.count += 1
            return graph.forward

    backend = Backend()
    for _ in range(2):
        assert torch.equal(stator.compile(plus, backend=backend.compile)(X), plus(X))
    assert backend.count == 1
    for _ in range(2):
        settings: Any = {"backend": backend.compile, "options": {"levels": [1]}}
        assert torch.equal(stator.compile(plus, **settings)(X), plus(X))
    assert backend.count == 3


GIVEN: dict[str, Any] = {
    "an option of a backend": {"max_autotune": True},
    "no option": {},
    "a filter of guards": {"guard_filter_fn": lambda entries: [True] * len(entries)},
    "one of each": {"oracle": True, "max_autotune": True},
}


@pytest.mark.parametrize("options", GIVEN.values(), ids=GIVEN)
def test_a_mode_and_options_are_an_error_as_for_torch(options: dict[str, Any]) -> None:
    with pytest.raises(RuntimeError, match="both"):
        torch.compile(plus, mode="default", options=options)
    with pytest.raises(RuntimeError, match="both") as raised:
        stator.compile(plus, mode="default", options=options)
    assert isinstance(raised.value, stator.InvalidOption)


def test_a_mode_and_options_of_stator() -> None:
    compiled = stator.compile(plus, mode="default", options={"check": True}, backend="eager")
    assert torch.equal(compiled(torch.ones(2)), plus(torch.ones(2)))
