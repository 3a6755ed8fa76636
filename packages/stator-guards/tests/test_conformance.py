"""Our guard compiler is the first subclass of the kit; known-bad ones must fail it."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from stator_guards import Guard, GuardSet, ParameterSource, compile_guards
from stator_guards._cells import Cells
from stator_guards._guard_cases import attribute_of
from stator_guards._memory import layout
from stator_guards.conformance import (
    CompileGuards,
    GuardCompilerKit,
    Scene,
    WatchKit,
    _guards_on_parts,
    _large,
    cases,
    mutations,
)


class TestCompiler(GuardCompilerKit):
    @pytest.fixture
    def compile_guards(self) -> CompileGuards:
        return compile_guards


class TestCompilerWithoutWatches(GuardCompilerKit):
    @pytest.fixture
    def compile_guards(self) -> CompileGuards:
        return lambda guards, parameters: compile_guards(guards, parameters, watch=False)


class TestGuardsEvaluatedOneByOne(GuardCompilerKit):
    """How a large set is walked before its text is written."""

    @pytest.fixture
    def compile_guards(self) -> CompileGuards:
        return evaluated


class TestWatches(WatchKit):
    @pytest.fixture
    def compile_guards(self) -> CompileGuards:
        return compile_guards


class TestWithoutWatches(WatchKit):
    """The identity walk, the fallback where the layout of memory is not known."""

    @pytest.fixture
    def compile_guards(self) -> CompileGuards:
        return lambda guards, parameters: compile_guards(guards, parameters, watch=False)


def test_the_engine_of_this_interpreter_is_known() -> None:
    assert layout() is not None


@pytest.mark.parametrize("name", sorted(mutations()))
def test_words_prove_each_fact_that_the_kit_breaks(name: str) -> None:
    """Otherwise the kit would test nothing but generated Python."""
    mutation = mutations()[name]
    root = _large(mutation.make())
    own = mutation.guards(attribute_of(ParameterSource("a"), "subject"), root.subject)
    guard_set = compile_guards([*_guards_on_parts(ParameterSource("a")), *own], ["a"])
    assert guard_set.check(root)
    assert guard_set.watching is not None
    assert guard_set.watching.plan is not None
    assert guard_set.watching.plan.residual == []


def test_the_kit_refuses_an_engine_that_misses_a_word(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Cells, "mapping", lambda self, mapping: True)
    mutation = mutations()["instance attribute set"]
    root = _large(mutation.make())
    own = mutation.guards(attribute_of(ParameterSource("a"), "subject"), root.subject)
    guard_set = compile_guards([*_guards_on_parts(ParameterSource("a")), *own], ["a"])
    assert guard_set.check(root)
    with pytest.raises(AssertionError):
        WatchKit().test_the_next_call_detects_a_mutation(
            Scene(mutation, root, root.subject, guard_set, (root,))
        )


def evaluated(guards: Sequence[Guard], parameters: Sequence[str]) -> GuardSet:
    guard_set = compile_guards(guards, parameters, watch=False)
    guard_set.check = lambda *state: guard_set.walk.evaluate(guard_set.state(state))
    return guard_set


def always_true(guards: Sequence[Guard], parameters: Sequence[str]) -> GuardSet:
    guard_set = compile_guards(guards, parameters)
    guard_set.check = lambda *state: True
    return guard_set


def forgets_the_last_guard(guards: Sequence[Guard], parameters: Sequence[str]) -> GuardSet:
    return compile_guards(guards[:-1], parameters)


def never_looks_again(guards: Sequence[Guard], parameters: Sequence[str]) -> GuardSet:
    guard_set = compile_guards(guards, parameters)
    check, seen = guard_set.check, [False]

    def stale(*state: object) -> bool:
        seen[0] = seen[0] or check(*state)
        return seen[0]

    guard_set.check = stale
    return guard_set


def failed_tests(compiler: Callable[..., Any]) -> set[str]:
    """The names of the kit's tests that a compiler fails, over all cases."""
    kit, failed = GuardCompilerKit(), set()
    for name, test in inspect.getmembers(kit, inspect.ismethod):
        if not name.startswith("test_") or name == "test_nothing_weakened":
            continue
        takes_case = "case" in inspect.signature(test).parameters
        for case in cases().values() if takes_case else [None]:
            try:
                test(compiler, case) if takes_case else test(compiler)
            except (AssertionError, ValueError, pytest.fail.Exception):
                failed.add(name)
    return failed


def test_the_kit_accepts_our_compiler() -> None:
    assert failed_tests(compile_guards) == set()


@pytest.mark.parametrize("bad", [always_true, forgets_the_last_guard, never_looks_again])
def test_the_kit_refuses_known_bad_compilers(bad: Callable[..., Any]) -> None:
    assert "test_a_broken_fact_misses_and_is_explained" in failed_tests(bad)


def test_a_weakened_kit_is_noticed() -> None:
    class Weakened(GuardCompilerKit):
        def test_no_guards_always_hold(self, compile_guards: CompileGuards) -> None:
            pass

    with pytest.raises(AssertionError, match="replaces a test"):
        Weakened().test_nothing_weakened()
