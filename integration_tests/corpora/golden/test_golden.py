"""Graphs of programs with higher-order operators are printed as the cases have them."""

from __future__ import annotations

from pathlib import Path

import pytest

from integration_tests.corpora.golden import FILES, cases, printout


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_graphs_are_as_written(path: Path) -> None:
    for program, printed in cases(path):
        assert printout(program, path) == printed


def test_each_operator_has_a_closure_a_nested_body_and_a_dynamic_shape() -> None:
    for path in FILES:
        programs = [program for program, _ in cases(path)]
        assert len(programs) >= 3
        assert any("dynamic=True" in program for program in programs), path.stem
