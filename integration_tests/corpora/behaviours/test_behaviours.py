"""Every behaviour holds: programs give what plain Python gives over several calls, unbroken,
broken, in one graph."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import pytest
import stator

from integration_tests.corpora.behaviours import Kept, arguments, catalogue, load
from integration_tests.support.oracle import as_first_run, assert_same, refusing

CALLS = 4
ALL = [
    pytest.param(name, title, id=f"{name}-{title}")
    for name, found in catalogue().items()
    for title in found
]
BROKEN = [
    pytest.param(name, title, id=f"{name}-{title}")
    for name, found in catalogue().items()
    for title, marked in found.items()
    if marked.breaks
]
"""Those that `fullgraph=True` does not run to their end."""
SAMPLED = [
    *ALL[::4],
    *(
        pytest.param(*case.values, id=case.id, marks=pytest.mark.slow)
        for at, case in enumerate(ALL)
        if at % 4
    ),
]
SELDOM = {"operations": "operations", "instructions": "instructions", "every third": 3}


def changing() -> Callable[[], tuple[Any, ...]]:
    numbers = itertools.count()
    return lambda: arguments(next(numbers))


def check(name: str, title: str, **options: Any) -> Any:
    """Run a program of one copy of its module plainly and of another one compiled."""
    ours, theirs = load(name), load(name)
    plain, fn = ours.PROGRAMS[title].fn, theirs.PROGRAMS[title].fn
    compiled = stator.compile(fn, backend="eager", **options)
    refused: list[stator.Unsupported] = []
    call = refusing(compiled, as_first_run(fn), refused) if options.get("fullgraph") else compiled
    assert_same(as_first_run(plain), call, changing(), CALLS, owners=(Kept(ours), Kept(theirs)))
    return refused


@pytest.mark.parametrize(("name", "title"), BROKEN)
def test_program_gives_what_plain_python_gives(name: str, title: str) -> None:
    check(name, title)


@pytest.mark.parametrize(("name", "title"), SAMPLED)
def test_program_broken_at_every_call_gives_what_plain_python_gives(name: str, title: str) -> None:
    check(name, title, options={"break_everywhere": True})


@pytest.mark.parametrize(("name", "title"), ALL)
def test_fullgraph_holds_or_refuses_for_the_reason_that_is_known(name: str, title: str) -> None:
    known = catalogue()[name][title].breaks
    assert {error.reason for error in check(name, title, fullgraph=True)} == set(
        (known or "").split()
    )


@pytest.mark.slow
@pytest.mark.parametrize("mode", SELDOM)
@pytest.mark.parametrize(("name", "title"), ALL)
def test_program_broken_elsewhere_gives_what_plain_python_gives(
    name: str, title: str, mode: str
) -> None:
    check(name, title, options={"break_everywhere": SELDOM[mode]})
