"""The suite under oracle mode: nothing differs, and a program does what it does without it, once.

Calls that reach something without a faithful copy are not compared, and say so; they are few.
"""

from __future__ import annotations

import contextlib
import itertools
import warnings
from collections.abc import Callable
from typing import Any

import pytest
import stator

from integration_tests.breaks.test_stress import changing_args
from integration_tests.corpora.behaviours import Kept, arguments, catalogue, load
from integration_tests.corpora.models import SHALLOW
from integration_tests.support.oracle import assert_same
from integration_tests.support.programs import PROGRAMS

ORACLE: dict[str, Any] = {"backend": "eager", "options": {"oracle": True}}
CALLS = 4
ALL = [(name, title) for name, found in catalogue().items() for title in found]
SAMPLED = [
    pytest.param(name, title, id=f"{name}-{title}", marks=[pytest.mark.slow] if at % 6 else [])
    for at, (name, title) in enumerate(ALL)
]


def changing() -> Callable[[], tuple[Any, ...]]:
    numbers = itertools.count()
    return lambda: arguments(next(numbers))


@pytest.mark.parametrize(("name", "title"), SAMPLED)
def test_behaviour_does_the_same_beside_the_plain_function(name: str, title: str) -> None:
    ours, theirs = load(name), load(name)
    plain, fn = ours.PROGRAMS[title].fn, theirs.PROGRAMS[title].fn
    assert_same(
        plain, stator.compile(fn, **ORACLE), changing(), CALLS, owners=(Kept(ours), Kept(theirs))
    )


@pytest.mark.parametrize("title", PROGRAMS)
def test_program_does_the_same_beside_the_plain_function(title: str) -> None:
    assert_same(PROGRAMS[title], stator.compile(PROGRAMS[title], **ORACLE), changing_args(), CALLS)


@pytest.mark.parametrize("name", ["encoder", "resnet", "recurrent", "gpt2", "t5"])
def test_model_does_the_same_beside_the_plain_one(name: str) -> None:
    ours, theirs, call, other = SHALLOW[name].make_twins()
    calls = iter((call, other))
    assert_same(
        ours, stator.compile(theirs, **ORACLE), lambda: next(calls), calls=2, owners=(ours, theirs)
    )


def is_compared(fn: Callable[..., Any]) -> bool:
    with (
        warnings.catch_warnings(record=True) as warned,
        contextlib.suppress(Exception),
    ):  # which it raises either way
        warnings.simplefilter("always")
        stator.compile(fn, **ORACLE)(*arguments(0))
    return not any(warning.category is stator.OracleWarning for warning in warned)


def test_nearly_everything_is_compared() -> None:
    sample = ALL[::6]
    left = [title for name, title in sample if not is_compared(load(name).PROGRAMS[title].fn)]
    assert len(left) <= len(sample) / 10, left
