"""What Python's own tools see of a compiled function: pickle, inspect, debuggers, profilers, mocks,
reload.

Each does to the compiled function what it does to the plain one.
"""

from __future__ import annotations

import bdb
import copy
import doctest
import functools
import importlib
import inspect
import io
import logging
import pathlib
import pickle
import pydoc
import sys
import trace
import typing
import unittest.mock
import warnings
from collections.abc import Callable, Iterator
from types import FrameType, ModuleType
from typing import Any

import pytest
import stator
import torch
from torch import Tensor

X = torch.arange(3.0)
SCALE = 2


def scaled(x: Tensor, by: int = 3, *rest: Any, flag: bool = False, **named: Any) -> Tensor:
    """Scale it.

    >>> scaled(torch.ones(1), 4).item()
    8.0
    """
    return x * by * SCALE


def outer(x: Tensor) -> Tensor:
    y = x + 1
    stator.graph_break()
    return inner(y) * SCALE


def inner(y: Tensor) -> Tensor:
    z = y * 2
    return z + 1


def doubled(x: Tensor) -> Tensor:
    return x * 2


class Shop:
    rate = 2

    def __init__(self, base: int) -> None:
        self.base = base

    def method(self, x: Tensor) -> Tensor:
        return x * self.base * self.rate

    @classmethod
    def of_class(cls, x: Tensor) -> Tensor:
        return x * cls.rate

    @staticmethod
    def of_none(x: Tensor) -> Tensor:
        return x * SCALE

    @property
    def price(self) -> Tensor:
        return X * self.base


def compiled(fn: Callable[..., Any]) -> Any:
    return stator.compile(fn, backend="eager")


# -- what it says of itself ------------------------------------------------------------------------
FACETS: dict[str, Callable[[Any], Any]] = {
    "signature": inspect.signature,
    "type hints": typing.get_type_hints,
    "name": lambda fn: (fn.__name__, fn.__qualname__, fn.__module__),
    "documentation": inspect.getdoc,
    "help": lambda fn: pydoc.plain(pydoc.render_doc(fn)),
    "source": lambda fn: inspect.getsource(inspect.unwrap(fn)),
    "wrapped": inspect.unwrap,
    "annotations": lambda fn: fn.__annotations__,
    "is a function": lambda fn: (inspect.isfunction(fn), callable(fn), inspect.isroutine(fn)),
    "bound arguments": lambda fn: inspect.signature(fn).bind(1, 2, flag=True).arguments,
}


@pytest.mark.parametrize("facet", FACETS)
def test_facet_is_that_of_the_function(facet: str) -> None:
    assert FACETS[facet](compiled(scaled)) == FACETS[facet](scaled)


def test_wraps_around_a_compiled_function() -> None:
    fn = compiled(scaled)

    @functools.wraps(fn)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        return fn(*args, **kwargs) + 1

    assert wrapper.__doc__ == scaled.__doc__
    assert inspect.signature(wrapper) == inspect.signature(scaled)
    again = compiled(wrapper)
    assert torch.equal(again(X, 4), scaled(X, 4) + 1)
    assert inspect.signature(again) == inspect.signature(scaled)


def test_documentation_is_run_by_doctest() -> None:
    fn = compiled(scaled)
    finder, runner = doctest.DocTestFinder(), doctest.DocTestRunner(verbose=False)
    for test in finder.find(fn, "scaled", globs={"scaled": fn, "torch": torch}):
        runner.run(test, out=io.StringIO().write)
    assert runner.summarize(verbose=False) == (0, 1)


# -- copies ----------------------------------------------------------------------------------------
PICKLED: Any = stator.compile(doubled, backend="eager")


def test_copies_of_a_function_are_the_function() -> None:
    assert copy.copy(PICKLED) is PICKLED
    assert copy.deepcopy([PICKLED])[0] is PICKLED


def test_function_under_its_own_name_is_pickled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.modules[__name__], "doubled", PICKLED)
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        assert pickle.loads(pickle.dumps(PICKLED, protocol)) is PICKLED


def test_bound_method_of_a_copy_is_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Shop, "method", compiled(Shop.method))
    shop = Shop(3)
    for copied in (copy.copy(shop), copy.deepcopy(shop), pickle.loads(pickle.dumps(shop))):
        assert torch.equal(copied.method(X), X * 6)
        copied.base = 4
        assert torch.equal(copied.method(X), X * 8)
    assert torch.equal(pickle.loads(pickle.dumps(shop.method))(X), X * 6)
    assert Shop.__dict__["method"].report.entry_count >= 1


# -- methods of every kind -------------------------------------------------------------------------
def test_methods_of_every_kind() -> None:
    class Compiled(Shop):
        rate = 5
        method = compiled(Shop.method)
        of_class = compiled(Shop.__dict__["of_class"])
        of_none = compiled(Shop.__dict__["of_none"])
        price = property(compiled(Shop.price.fget))  # type: ignore[attr-defined]

    class Plain(Shop):
        rate = 5

    ours, plain = Compiled(3), Plain(3)
    for rate in (5, 7):
        Compiled.rate = Plain.rate = rate
        for name in ("method", "of_class", "of_none"):
            assert torch.equal(getattr(ours, name)(X), getattr(plain, name)(X))
            assert getattr(ours, name).__name__ == name
        assert torch.equal(ours.price, plain.price)
    assert torch.equal(Compiled.method(ours, X), plain.method(X))
    assert inspect.signature(ours.method) == inspect.signature(plain.method)
    assert torch.equal(compiled(plain.method)(X), plain.method(X))


# -- changes between calls -------------------------------------------------------------------------
def reads_all(x: Tensor, shop: Shop) -> Tensor:
    return shop.method(inner(x)) * SCALE + Shop.of_class(x)


CHANGES: dict[str, Callable[[pytest.MonkeyPatch, Shop], Any]] = {
    "a global": lambda patch, shop: patch.setattr(sys.modules[__name__], "SCALE", 9),
    "a global function": lambda patch, shop: patch.setattr(sys.modules[__name__], "inner", doubled),
    "a method": lambda patch, shop: patch.setattr(Shop, "method", lambda self, x: x - 1),
    "a method of one object": lambda patch, shop: patch.setattr(
        shop, "method", lambda x: x - 2, raising=False
    ),
    "a class method": lambda patch, shop: patch.setattr(
        Shop, "of_class", classmethod(lambda cls, x: x * 11)
    ),
    "a class attribute": lambda patch, shop: patch.setattr(Shop, "rate", 13),
    "an attribute": lambda patch, shop: patch.setattr(shop, "base", 17),
    "the code of a function": lambda patch, shop: patch.setattr(
        inner, "__code__", doubled.__code__.replace()
    ),
    "an operator of torch": lambda patch, shop: patch.setattr(Tensor, "__mul__", Tensor.__add__),
}


@pytest.mark.parametrize("what", CHANGES)
def test_patch_between_calls_is_seen_and_its_end_too(
    what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    fn, shop = compiled(reads_all), Shop(3)
    before = reads_all(X, shop)
    for _ in range(4):  # until its guards are watched
        assert torch.equal(fn(X, shop), before)
    with monkeypatch.context() as patch:
        CHANGES[what](patch, shop)
        expected = reads_all(X, shop)
        assert not torch.equal(expected, before)
        assert torch.equal(fn(X, shop), expected)
    assert torch.equal(fn(X, shop), before)


def test_mocks_are_called_and_count() -> None:
    fn, shop = compiled(reads_all), Shop(3)
    fn(X, shop)
    with unittest.mock.patch.object(Shop, "method", autospec=True, return_value=X) as method:
        assert torch.equal(fn(X, shop), X * SCALE + Shop.of_class(X))
        assert method.call_count == 1
    with unittest.mock.patch(f"{__name__}.inner", side_effect=lambda y: y * 7) as mock:
        assert torch.equal(fn(X, shop), shop.method(X * 7) * SCALE + Shop.of_class(X))
        fn(X, shop)
        assert mock.call_count == 2
    with unittest.mock.patch.dict(Shop.__init__.__globals__, SCALE=5):
        assert torch.equal(fn(X, shop), reads_all(X, shop))
    assert torch.equal(fn(X, shop), reads_all(X, shop))


@pytest.fixture
def reloaded(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[[str], ModuleType]]:
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)

    def load(text: str) -> ModuleType:
        (tmp_path / "reloaded_by_test.py").write_text(text)
        importlib.invalidate_caches()
        module = sys.modules.get("reloaded_by_test")
        return importlib.reload(module) if module else importlib.import_module("reloaded_by_test")

    yield load
    sys.modules.pop("reloaded_by_test", None)


def test_reload_between_calls_is_seen(reloaded: Callable[[str], ModuleType]) -> None:
    module = reloaded(
        "K = 2\ndef scale(x): return x * K\nclass C:\n    def m(self, x): return x + 1\n"
    )
    fn = compiled(lambda x: module.scale(x) + module.C().m(x))
    for _ in range(4):
        assert torch.equal(fn(X), X * 2 + X + 1)
    reloaded(
        "K = 3\nL = 1\ndef scale(x): return x * K * 2\nclass C:\n    def m(self, x): return x + 5\n"
    )
    assert torch.equal(fn(X), X * 6 + X + 5)


# -- those who watch -------------------------------------------------------------------------------
def lines_of(fn: Callable[[Tensor], Any], install: Callable[[Any], None]) -> set[tuple[str, int]]:
    """The lines of this file that a trace function is told of, in functions under test."""
    seen: set[tuple[str, int]] = set()

    def follow(frame: FrameType, event: str, arg: object) -> Any:
        if frame.f_code.co_filename == __file__ and event in ("line", "call"):
            # stubs begin in the middle
            seen.add((frame.f_code.co_name, frame.f_lineno if event == "line" else 0))
        return follow

    install(follow)
    try:
        fn(X)
    finally:
        install(None)
    return seen


@pytest.mark.parametrize("install", [sys.settrace, sys.setprofile])
def test_trace_function_sees_lines_of_the_program_and_changes_nothing(
    install: Callable[[Any], None],
) -> None:
    fn = compiled(outer)
    first = lines_of(fn, install)
    assert torch.equal(fn(X), outer(X))
    assert lines_of(fn, install) <= first | lines_of(outer, install)
    assert first <= lines_of(outer, install)
    assert torch.equal(fn(X), outer(X))


class Stepper(bdb.Bdb):
    """Steps into everything, and stops at breakpoints."""

    def __init__(self) -> None:
        super().__init__()
        self.stops: list[tuple[str, str]] = []

    def user_line(self, frame: FrameType) -> None:
        self.stops.append(
            (frame.f_code.co_filename, self.format_stack_entry((frame, frame.f_lineno)))
        )
        self.set_step()


def test_debugger_steps_through_generated_code_with_its_lines() -> None:
    fn = compiled(outer)
    fn(X)
    stepper = Stepper()
    assert str(stepper.runcall(fn, X)) == str(outer(X))
    generated = [text for name, text in stepper.stops if name.startswith("<stator entry")]
    assert any("graph" in text for text in generated), stepper.stops  # the line's text was found
    assert torch.equal(fn(X), outer(X))


def test_breakpoint_in_code_that_runs_natively() -> None:
    fn = compiled(outer)
    code, first = inspect.getsourcelines(outer)
    line = first + next(i for i, text in enumerate(code) if "graph_break" in text)
    debugger = Stepper()
    debugger.set_break(__file__, line)
    assert str(debugger.runcall(fn, X)) == str(outer(X))
    assert torch.equal(fn(X), outer(X))


def test_coverage_by_trace() -> None:
    tracer = trace.Trace(count=1, trace=0)
    fn = compiled(outer)
    assert torch.equal(tracer.runfunc(fn, X), outer(X))
    assert torch.equal(tracer.runfunc(fn, X), outer(X))


AUDITED: list[str] = []


def test_audit_hook_around_calls() -> None:
    on = [True]
    sys.addaudithook(lambda event, args: AUDITED.append(event) if on else None)  # cannot be removed
    fn = compiled(outer)
    assert torch.equal(fn(X), outer(X))
    count = len(AUDITED)
    assert torch.equal(fn(X), outer(X))
    assert not {"compile", "exec"} & set(AUDITED[count:])  # a hit compiles nothing
    on.clear()


# -- where messages come from ----------------------------------------------------------------------
def warns(x: Tensor, level: int) -> Tensor:
    y = x + 1
    warns_deeper(level)
    warnings.warn("here", stacklevel=level)
    return y


def warns_deeper(level: int) -> None:
    warnings.warn("deeper", UserWarning, stacklevel=level)


def place_of_warnings(fn: Callable[..., Any], level: int) -> list[tuple[str, str, int]]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        fn(X, level)
    return [(str(each.message), each.filename, each.lineno) for each in caught]


@pytest.mark.parametrize("level", [1, 2])
def test_warnings_name_the_line_of_the_program(level: int) -> None:
    fn = compiled(warns)
    expected = place_of_warnings(warns, level)
    for _ in range(3):
        found = place_of_warnings(fn, level)
        own = [(text, name, line) for text, name, line in expected if line]
        assert [each[0] for each in found] == [each[0] for each in own]
        inside = range(
            inspect.getsourcelines(warns)[1], inspect.getsourcelines(place_of_warnings)[1]
        )
        assert [each for each in found if each[2] in inside] == [
            each for each in own if each[2] in inside
        ]


def test_log_records_name_the_line_of_the_program(caplog: pytest.LogCaptureFixture) -> None:
    logger = logging.getLogger("stator.test_facade")

    def logs(x: Tensor) -> Tensor:
        y = x + 1
        logger.warning("shape %s", tuple(y.shape))
        return deeper(y) * 2

    def deeper(y: Tensor) -> Tensor:
        logger.error("deep", stacklevel=2)
        logger.info("%d", 3)
        return y

    def places(fn: Callable[[Tensor], Tensor]) -> list[Any]:
        caplog.clear()
        with caplog.at_level(logging.INFO, logger.name):
            fn(X)
        return [
            (r.getMessage(), r.levelname, r.pathname, r.lineno, r.funcName) for r in caplog.records
        ]

    fn = compiled(logs)
    for _ in range(3):
        assert places(fn) == places(logs)
