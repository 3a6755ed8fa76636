"""Texts and large ints that are others in each call: after six of them no entry is made for a
value, and the call stays compiled around what needs it."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import Any

import pytest
import stator
import torch

from integration_tests.support.counting import Counting

CALLS = 40


def entries_after_each_call(
    fn: Callable[..., Any], argument: Callable[[int], Any]
) -> tuple[list[int], Any]:
    compiled = stator.compile(fn, backend="eager")
    x = torch.ones(3)
    counts = []
    for number in range(CALLS):
        given = argument(number)
        expected = fn(x, given)
        actual = compiled(x, given)
        assert str(actual) == str(expected)
        counts.append(len(compiled.report.entries))
    return counts, compiled


def keyed(x: torch.Tensor, name: str) -> Any:
    return {name.upper(): x * 2}


def measured(x: torch.Tensor, name: bytes) -> Any:
    return x * len(name) + name[0]


def shortened(x: torch.Tensor, large: int) -> Any:
    return x * 2, str(large)[:3]


@pytest.mark.parametrize(
    ("fn", "argument"),
    [
        (keyed, lambda number: f"run-{number}"),
        (measured, lambda number: b"run-%d" % number),
        (shortened, lambda number: 10**30 + number),
    ],
)
def test_entries_stop_after_few_values(
    fn: Callable[..., Any], argument: Callable[[int], Any]
) -> None:
    counts, compiled = entries_after_each_call(fn, argument)
    assert counts[-1] == counts[-5]
    assert "changing-value" in str(compiled.report)


def test_values_that_recur_have_entries_of_their_own() -> None:
    names = ["relu", "gelu", "silu", "tanh"]
    counts, compiled = entries_after_each_call(keyed, lambda number: names[number % 4])
    assert counts[-1] == 4
    assert "changing-value" not in str(compiled.report)


def test_a_value_of_a_whole_graph_is_no_break() -> None:
    compiled = stator.compile(keyed, backend="eager", fullgraph=True)
    x = torch.ones(3)
    for number in range(7):
        assert torch.equal(compiled(x, f"run-{number}")[f"RUN-{number}"], x * 2)


@pytest.mark.filterwarnings("ignore::stator_guards.RecompileLimitWarning")
def test_a_function_that_only_works_on_text_breaks_a_few_times() -> None:
    """Past four such breaks the rest runs eagerly, as past the limit of recompilations."""

    def processed(x: torch.Tensor, name: str) -> Any:
        for old, new in [("a", "b"), ("r", "l"), ("u", "o"), ("n", "m"), ("-", "_"), ("l", "")]:
            name = name.upper().lower().replace(old, new).strip().title()
        return x * 2, name

    _, compiled = entries_after_each_call(processed, lambda number: f"run-{number}")
    reasons = [found.reason for found in compiled.report.breaks]
    assert 1 <= reasons.count("changing-value") <= 4


@pytest.mark.parametrize("kind", [int, float])
def test_texts_of_numbers_are_made_by_the_entry(kind: type) -> None:
    template, of_ints = "%5.2f|%+08.1e|%-7g|%s of %s", "%d %i %04d"

    def fn(x: torch.Tensor, n: Any) -> Any:
        text = template % (n, n, n, n, "a")
        whole = of_ints % (n, n, n) if isinstance(n, int) else f"{n * 1000:.2f} ms"
        return x + n, text, whole

    counts, _ = entries_after_each_call(fn, lambda number: kind(number * 1.5 + 3))
    assert counts[-1] == 2


def test_the_text_of_a_fresh_uuid_does_not_end_compilation() -> None:
    def fn(x: torch.Tensor) -> Any:
        y = x * 2
        name = f"run-{uuid.uuid4().hex}"
        return y + len(name)

    backend = Counting()
    compiled = stator.compile(fn, backend=backend)
    x = torch.ones(3)
    for _ in range(30):
        assert torch.equal(compiled(x), x * 2 + 36)
    made = len(compiled.report.entries)
    for _ in range(5):
        compiled(x)
    assert len(compiled.report.entries) == made
