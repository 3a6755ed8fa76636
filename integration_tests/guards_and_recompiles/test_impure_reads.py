"""What no argument holds is guarded, read anew by every call, or a break: a row of `impure_reads`
each."""

from __future__ import annotations

from typing import Any

import pytest
import stator
import torch

from integration_tests.guards_and_recompiles import impure_reads
from integration_tests.guards_and_recompiles.impure_reads import (
    BREAK,
    GUARD,
    READS,
    REREAD,
    Read,
    seed_all,
)


def reading(read: Read) -> Any:
    value = read.read
    return lambda x: (value(x), x + 1)


def relying(read: Read) -> Any:
    value = read.read
    return lambda x: (str(value(x)), x + 1)


@pytest.fixture(autouse=True)
def _set() -> Any:
    token = impure_reads.SET.set(5)
    yield
    impure_reads.SET.reset(token)


@pytest.mark.parametrize(
    "read", [read for read in READS if read.policy == GUARD], ids=lambda read: read.name
)
def test_what_is_guarded_is_compiled_again_when_it_changes(read: Read) -> None:
    compiled: Any = stator.compile(relying(read), backend="eager", fullgraph=True)
    x = torch.ones(2)
    for _ in range(2):
        assert compiled(x)[0] == str(read.read(x))
    assert compiled.report.entry_count == 1
    assert read.change is not None
    undo = read.change()
    try:
        assert compiled(x)[0] == str(read.read(x))
        assert compiled.report.entry_count == 2
    finally:
        undo()
    assert compiled(x)[0] == str(read.read(x))
    assert compiled.report.entry_count == 2


@pytest.mark.parametrize(
    "read", [read for read in READS if read.policy == REREAD], ids=lambda read: read.name
)
def test_what_is_read_again_costs_one_entry(read: Read) -> None:
    compiled: Any = stator.compile(reading(read), backend="eager", fullgraph=True)
    for seed in range(4):
        x, results = torch.ones(2), []
        for run in (compiled, reading(read)):
            seed_all(seed)
            results.append(run(x))
        assert str(results[0]) == str(results[1])
    assert compiled.report.entry_count == 1


@pytest.mark.parametrize(
    "read", [read for read in READS if read.policy == BREAK], ids=lambda read: read.name
)
def test_what_is_neither_breaks(read: Read) -> None:
    compiled: Any = stator.compile(reading(read), backend="eager")
    value, result = compiled(torch.ones(2))
    assert type(value) is type(read.read(result))
    assert len(compiled.report.breaks) >= 1
    with pytest.raises(stator.Unsupported):
        stator.compile(reading(read), backend="eager", fullgraph=True)(torch.ones(2))
