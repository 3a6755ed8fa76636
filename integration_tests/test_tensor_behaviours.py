"""Tensors, modules and modes behave as in plain Python over several calls: unbroken, broken at every call, and under
`fullgraph=True`, where a program may also be refused."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
import stator

from integration_tests.oracle import assert_same, refusing
from integration_tests.tensor_behaviours import Constants, arguments, catalogue, load, programs

CALLS = 4
ALL = [pytest.param(*key, id="-".join(key)) for key in catalogue()]
SAMPLE = [case for case in ALL[::4] if not str(case.id).startswith("module_")]


def check(name: str, title: str, *, may_refuse: bool = False, **options: Any) -> None:
    """Run a program of one copy of its module plainly and of another one compiled."""
    ours, theirs, numbers = load(name), load(name), itertools.count()
    plain, fn = programs(ours)[title], programs(theirs)[title]
    compiled = stator.compile(fn, backend="eager", **options)
    call = refusing(compiled, fn, []) if may_refuse else compiled
    assert_same(plain, call, lambda: arguments(next(numbers)), CALLS, owners=(Constants(ours), Constants(theirs)))


@pytest.mark.parametrize(("name", "title"), ALL)
def test_program_gives_what_plain_python_gives(name: str, title: str) -> None:
    check(name, title)


@pytest.mark.parametrize(("name", "title"), SAMPLE)
def test_program_broken_at_every_call_gives_what_plain_python_gives(name: str, title: str) -> None:
    check(name, title, options={"break_everywhere": True})


@pytest.mark.parametrize(("name", "title"), ALL)
def test_program_under_fullgraph_holds_or_is_refused(name: str, title: str) -> None:
    check(name, title, may_refuse=True, fullgraph=True)


@pytest.mark.slow
@pytest.mark.parametrize("places", [True, "operations"])
@pytest.mark.parametrize(("name", "title"), ALL)
def test_program_broken_everywhere_gives_what_plain_python_gives(name: str, title: str, places: Any) -> None:
    check(name, title, options={"break_everywhere": places})
