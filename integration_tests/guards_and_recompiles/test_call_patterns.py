"""How often call patterns compile, exactly: no entry is made for what does not matter, and none is
missed."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import pytest
import stator
from stator_guards import RecompileLimitWarning

from integration_tests.corpora.facts import PRELUDE
from integration_tests.guards_and_recompiles.call_patterns import PATTERNS
from integration_tests.support.world import World


@pytest.fixture(autouse=True)
def _world() -> Iterator[None]:
    before = World.now()
    yield
    before.restore()


@pytest.mark.parametrize("name", PATTERNS)
def test_pattern_compiles_as_often_as_expected(name: str) -> None:
    setup, body, calls, entries = PATTERNS[name]
    names: dict[str, Any] = {"__name__": __name__, "stator": stator, "OPTIONS": {}}
    text = body if body.startswith("def ") else f"def f(x):\n    {body}"
    exec(f"{PRELUDE}\n{setup}\n{text}", names)
    names["f"] = compiled = stator.compile(names["f"], backend="eager", **names["OPTIONS"])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RecompileLimitWarning)
        for call in calls:
            exec(call, names)
    assert compiled.report.entry_count == entries, compiled.report
