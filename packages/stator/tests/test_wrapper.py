"""Wrappers: any signature, the user's own tracebacks, defaults that stay those of the original."""

from __future__ import annotations

import copy
import inspect
import pickle
import traceback
import warnings
from collections.abc import Callable
from typing import Any

import pytest
import stator
import torch

X = torch.arange(3.0)
Compile = Callable[..., Any]


def kinds(a: Any, /, b: Any = 2, *rest: Any, c: Any, d: Any = 4, **named: Any) -> Any:
    return a * b, rest, c, d, named


CALLS: list[tuple[tuple[Any, ...], dict[str, Any]]] = [
    ((X,), {"c": 1}),
    ((X, 3), {"c": 1, "d": 2}),
    ((X,), {"b": 5, "c": 1}),
    ((X, 3, 6, 7), {"c": 1, "a": 8, "e": 9}),
]


@pytest.mark.parametrize("call", CALLS)
def test_every_kind_of_parameter(compile_: Compile, call: Any) -> None:
    args, kwargs = call
    assert str(compile_(kinds)(*args, **kwargs)) == str(kinds(*args, **kwargs))


@pytest.mark.parametrize("call", [((), {}), ((1, 2), {}), ((), {"a": 1, "c": 1})])
def test_wrong_call_is_refused_in_the_words_of_python(compile_: Compile, call: Any) -> None:
    args, kwargs = call
    with pytest.raises(TypeError) as plain:
        kinds(*args, **kwargs)
    with pytest.raises(TypeError) as compiled:
        compile_(kinds)(*args, **kwargs)
    assert str(compiled.value) == str(plain.value)


def test_parameters_named_like_what_generated_code_uses(compile_: Compile) -> None:
    def clash(g, v0, torch, list, x_1, entry, newest, run, type, result=1, *, Goto=2, **original):  # type: ignore[no-untyped-def]
        y = g + v0
        stator.graph_break()
        r1_1 = y * 2
        return g, v0, y, r1_1, torch, list, x_1, entry, newest, run, type, result, Goto, original

    args = (X, X + 1, 1, 2, 3, 4, 5, 6, 7)
    original: Any = clash
    compiled = compile_(original)
    assert str(compiled(*args, error=9)) == str(original(*args, error=9))
    assert compiled(*args)[0] is X
    assert inspect.signature(compiled) == inspect.signature(clash)


def test_lambda_and_odd_names(compile_: Compile) -> None:
    odd = lambda x: x + 1  # noqa: E731
    assert torch.equal(compile_(odd)(X), X + 1)
    odd.__name__ = "class"
    assert torch.equal(compile_(odd)(X), X + 1)
    assert compile_(odd).__name__ == "class"


def test_private_parameters_in_a_class(compile_: Compile) -> None:
    class Holder:
        def method(self, __x: Any) -> Any:
            return __x + 1

    assert torch.equal(compile_(Holder().method)(X), X + 1)


def test_changed_defaults_of_the_original_are_used(compile_: Compile) -> None:
    def scaled(x: Any, by: int = 2, *, plus: int = 0) -> Any:
        return x * by + plus

    compiled = compile_(scaled)
    assert torch.equal(compiled(X), X * 2)
    assert inspect.getfullargspec(compiled) == inspect.getfullargspec(scaled)
    scaled.__defaults__ = (5,)
    assert inspect.getfullargspec(compiled) == inspect.getfullargspec(scaled)
    assert inspect.signature(compiled) == inspect.signature(scaled)
    assert (
        inspect.signature(compiled, follow_wrapped=False).bind(X).signature.parameters["by"].default
        == 5
    )
    scaled.__kwdefaults__ = {"plus": 1}
    assert torch.equal(compiled(X), X * 5 + 1)
    scaled.__defaults__ = None
    with pytest.raises(TypeError, match="'by'"):
        compiled(X)


def test_traceback_has_the_users_frames_only(compile_: Compile) -> None:
    def raises(x: Any) -> Any:
        y = x + 1
        raise ValueError(y.shape)

    with pytest.raises(ValueError, match="Size") as error:
        compile_(raises)(X)
    assert [frame.name for frame in traceback.extract_tb(error.value.__traceback__)][1:] == [
        "raises"
    ]


def test_operator_that_raises_is_caught_by_the_function_itself(compile_: Compile) -> None:
    def caught(x: Any, y: Any) -> Any:
        try:
            return x @ y
        except RuntimeError as error:
            return type(error)

    assert compile_(caught)(X, torch.ones(4)) is RuntimeError


def test_entry_that_was_used_last_comes_first(compile_: Compile) -> None:
    compiled = compile_(lambda x, flag: x + 1 if flag else x - 1)
    for flag in (True, False, True, False):
        assert torch.equal(compiled(X, flag), X + 1 if flag else X - 1)
    assert compiled.report.entry_count == 2


def test_reset_compiles_again(compile_: Compile) -> None:
    compiled = compile_(lambda x: x + 1)
    compiled(X)
    stator.reset()
    assert compiled.report.entry_count == 0
    assert torch.equal(compiled(X), X + 1)
    assert compiled.report.entry_count == 1


@pytest.mark.filterwarnings("error")
def test_past_the_recompile_limit_one_graph_cannot_be_had(compile_: Compile) -> None:
    compiled = compile_(lambda x, text: (x + len(text), text), fullgraph=True, recompile_limit=2)
    assert compiled(X, "a")[1] + compiled(X, "bc")[1] == "abc"
    for _ in range(2):
        with pytest.raises(
            stator.Unsupported, match=r"another version .* text was 'bc', is now 'def'"
        ) as caught:
            compiled(X, "def")
        assert caught.value.reason == "recompile-limit"
    assert compiled(X, "a")[1] == "a"


def test_past_the_recompile_limit_it_runs_plainly(compile_: Compile) -> None:
    compiled = compile_(lambda x, name: (x + ord(name), name), recompile_limit=2)
    assert compiled(X, "a")[1] + compiled(X, "b")[1] == "ab"
    with pytest.warns(UserWarning, match="now runs plainly"):
        assert compiled(X, "c")[1] == "c"
    assert compiled(X, "d")[1] == "d"
    assert compiled.report.entry_count == 2


def listening(x: torch.Tensor, name: str) -> tuple[torch.Tensor, list[str]]:
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        stator.graph_break()
        y = x + ord(name)
        warnings.warn(f"of {name}", stacklevel=1)
    return y, [str(one.message) for one in heard]


def test_a_warning_of_ours_is_for_the_caller_not_for_the_program(compile_: Compile) -> None:
    compiled, said = compile_(listening, recompile_limit=2), []
    for name in "abcd":
        with warnings.catch_warnings(record=True) as heard:
            warnings.simplefilter("always")
            assert compiled(X, name)[1] == [f"of {name}"]
        said += [(one.filename, str(one.message)) for one in heard]
    assert [filename for filename, text in said if "now runs plainly" in text] == [__file__]


def test_a_warning_made_an_error_inside_of_the_program_is_none(compile_: Compile) -> None:
    done = []

    def strict(x: torch.Tensor, name: str) -> torch.Tensor:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            try:
                stator.graph_break()
                return x + ord(name)
            finally:
                done.append(name)

    compiled = compile_(strict, recompile_limit=2)
    for name in "ab":
        assert torch.equal(compiled(X, name), X + ord(name))
    with pytest.warns(UserWarning, match="now runs plainly"):
        assert torch.equal(compiled(X, "c"), X + ord("c"))
    assert done == ["a", "b", "c"]


def shifted(x: Any, by: int = 2) -> Any:
    return x + by


def test_shown_default_and_copies_of_the_signature() -> None:
    compiled = stator.compile(shifted, backend="eager")
    assert repr(compiled.__defaults__) == "(<the default of the original>,)"
    signature = inspect.signature(compiled)
    for copied in (copy.copy(signature), pickle.loads(pickle.dumps(signature))):
        assert copied == inspect.signature(shifted)
