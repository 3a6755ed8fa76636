"""Programs that put something else in place of a builtin: their code calls that, ours does not."""

from __future__ import annotations

import builtins
import math
import types
from collections.abc import Callable
from typing import Any
from unittest import mock

import pytest
import stator
import torch
from torch import Tensor

REAL = dict(vars(builtins))
Fake = Callable[..., Any]


def makes_a_class(x: Tensor) -> Any:
    class Made:
        y = 1

    return Made.y


def asks_super(x: Tensor) -> Any:
    class Base:
        def f(self) -> int:
            return 1

    class Made(Base):
        def f(self) -> int:
            return super().f() + 1

    return Made().f()


def imports(x: Tensor) -> Any:
    import math

    return math.pi


USES: dict[str, Callable[[Tensor], Any]] = {
    "len": lambda x: len([1, 2]),
    "isinstance": lambda x: isinstance(x, Tensor),
    "issubclass": lambda x: issubclass(bool, int),
    "sorted": lambda x: sorted([2, 1]),
    "sum": lambda x: sum([1, 2]),
    "print": lambda x: print("said", end=""),
    "open": lambda x: open("/dev/null").close(),
    "type": lambda x: type(x),  # noqa: PLW0108
    "getattr": lambda x: getattr(x, "shape"),
    "zip": lambda x: [*zip([1], [2], strict=True)],
    "list": lambda x: list((1, 2)),  # noqa: C410
    "dict": lambda x: dict(a=1),  # noqa: C408
    "__import__": imports,
    "__build_class__": makes_a_class,
    "super": asks_super,
    "vars": lambda x: math.pi,  # nothing the program uses
}


def outcome(fn: Callable[..., Any], *arguments: Any) -> Any:
    try:
        return fn(*arguments)
    except Exception as error:
        return type(error), str(error)
    finally:
        vars(builtins).update(REAL)  # also those that were removed: what runs the tests needs them


@pytest.mark.parametrize("gives", ["what it gave", "something else"])
@pytest.mark.parametrize("breaks", [False, True])
@pytest.mark.parametrize("name", USES)
def test_a_replaced_builtin_is_called_by_the_program_alone(name: str, breaks: bool, gives: str) -> None:
    use, heard = USES[name], list[str]()

    def fake(*args: Any, **kwargs: Any) -> Any:
        heard.append(name)
        return REAL[name](*args, **kwargs) if gives == "what it gave" else 42

    def program(x: Tensor) -> Any:
        if breaks:
            stator.graph_break()
        used = use(x)
        if breaks:
            stator.graph_break()
        return x + 1, used

    def replacing(fn: Callable[..., Any], x: Tensor) -> Any:
        with mock.patch(f"builtins.{name}", fake):
            return fn(x)

    compiled = stator.compile(program, backend="eager")
    for size in (2, 3, 4):
        expected = outcome(replacing, program, torch.ones(size))
        plainly = heard.copy()
        heard.clear()
        assert repr(outcome(replacing, compiled, torch.ones(size))) == repr(expected)
        assert heard == plainly
        heard.clear()
    assert repr(outcome(compiled, torch.ones(2))) == repr(outcome(program, torch.ones(2)))
    assert not heard
    expected = outcome(replacing, program, torch.ones(2))
    plainly = heard.copy()
    heard.clear()
    assert repr(outcome(replacing, compiled, torch.ones(2))) == repr(expected)  # though there is an entry now
    assert heard == plainly


heard: list[Any] = []


def noted(real: Fake) -> Fake:
    def fake(*args: Any) -> Any:
        heard.append(args)
        return real(*args)

    return fake


def assigns(x: Tensor, items: list[int]) -> Any:
    builtins.len = noted(REAL["len"])
    try:
        return x * len(items)
    finally:
        builtins.len = REAL["len"]


def breaks_meanwhile(x: Tensor, items: list[int]) -> Any:
    builtins.len = noted(REAL["len"])
    builtins.isinstance = noted(REAL["isinstance"])
    try:
        y = x * len(items)
        stator.graph_break()
        y = y + isinstance(items, list)
        stator.graph_break()
        return y * len(items)
    finally:
        builtins.len, builtins.isinstance = REAL["len"], REAL["isinstance"]


def replaces_what_statements_use(x: Tensor, items: list[int]) -> Any:
    def build(*args: Any, **kwargs: Any) -> Any:
        heard.append(args[1:])
        return REAL["__build_class__"](*args, **kwargs)

    builtins.__build_class__ = build
    builtins.__import__ = noted(REAL["__import__"])
    try:

        class Made:
            y = len(items)

        import json

        return x * Made.y, json.dumps(items)
    finally:
        builtins.__build_class__, builtins.__import__ = REAL["__build_class__"], REAL["__import__"]


def removes(x: Tensor, items: list[int]) -> Any:
    del builtins.len
    stator.graph_break()
    try:
        return x * len(items)
    except NameError as error:
        return x, str(error)
    finally:
        builtins.len = REAL["len"]


def under_a_patch(x: Tensor, items: list[int]) -> Any:
    with mock.patch("builtins.len", noted(REAL["len"])), mock.patch("builtins.sum", noted(REAL["sum"])):
        y = x * len(items)
        stator.graph_break()
        return y + sum(items) + len(items)


def shadows(x: Tensor, items: list[int]) -> Any:
    namespace: dict[str, Any] = {"len": lambda items: 7, "x": x, "items": items}
    exec("def f():\n    return x * len(items)", namespace)
    stator.graph_break()
    return namespace["f"]()


def in_a_namespace(x: Tensor, items: list[int]) -> Any:
    own = {"__builtins__": {"len": noted(REAL["len"])}, "items": items}
    return types.FunctionType((lambda: len(items)).__code__, own, closure=(types.CellType(items),))() * x


PROGRAMS = [assigns, breaks_meanwhile, replaces_what_statements_use, removes, under_a_patch, shadows, in_a_namespace]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_a_builtin_replaced_by_the_region_is_called_by_the_program_alone(program: Callable[..., Any]) -> None:
    compiled = stator.compile(program, backend="eager")
    for size in (2, 3, 4, 2):
        expected = outcome(program, torch.ones(size), [1] * size)
        plainly = [repr(args) for args in heard]
        heard.clear()
        assert repr(outcome(compiled, torch.ones(size), [1] * size)) == repr(expected)
        assert [repr(args) for args in heard] == plainly
        heard.clear()


def test_compiling_calls_no_replaced_builtin() -> None:
    heard.clear()
    with mock.patch("builtins.len", noted(REAL["len"])), mock.patch("builtins.isinstance", noted(isinstance)):
        compiled = stator.compile(assigns, backend="eager")
    assert not heard
    assert torch.equal(compiled(torch.ones(2), [1, 2]), torch.full((2,), 2.0))


def test_what_was_made_before_uses_no_replaced_builtin() -> None:
    def program(x: Tensor, items: list[Tensor]) -> Tensor:
        return x + items[0]

    compiled = stator.compile(program, backend="eager")
    for _ in range(40):
        compiled(torch.ones(2), [torch.ones(2)])
    heard.clear()
    with mock.patch("builtins.len", noted(REAL["len"])), mock.patch("builtins.type", noted(type)):
        compiled(torch.ones(2), [torch.ones(2)])
    assert not heard
