"""Everyday code gives what plain Python gives, nearly all in one graph; docs/reference/snippets.md
has which."""

from __future__ import annotations

import pytest
import stator

from integration_tests.corpora.snippets import (
    COLLECTIONS,
    PAGE,
    SNIPPETS,
    listed_breaks,
    page,
    reason_to_break,
)
from integration_tests.support.oracle import assert_same

LISTED = listed_breaks()


@pytest.mark.parametrize("name", SNIPPETS)
def test_snippet_gives_what_plain_python_gives(name: str) -> None:
    snippet = SNIPPETS[name]
    compiled = stator.compile(snippet.function, backend="eager")
    assert_same(snippet.function, compiled, snippet.numbered())
    assert compiled.report.graph_count or name in LISTED


@pytest.mark.parametrize("name", SNIPPETS)
def test_snippet_is_one_graph_or_listed_with_its_reason(name: str) -> None:
    assert reason_to_break(SNIPPETS[name]) == LISTED.get(name)


def test_at_least_140_snippets_are_one_graph() -> None:
    assert set(LISTED) <= set(SNIPPETS)
    assert len(SNIPPETS) >= 150
    assert len(SNIPPETS) - len(LISTED) >= 140
    assert PAGE.read_text() == page(COLLECTIONS, LISTED)
