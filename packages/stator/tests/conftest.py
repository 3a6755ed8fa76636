"""The first compilation in a process imports half of torch; it is not to be part of any test's
time."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import pytest
import stator
import torch
from stator._entries._entry_pool import forget_pools
from stator_bytecode import Machine

os.environ.setdefault("STATOR_CHECK", "1")  # every graph of every test is looked at for faults


@pytest.fixture(scope="session", autouse=True)
def warm() -> None:
    compiled = stator.compile(lambda x: x + 1, backend="eager")
    for size in (2, 3, 4):
        compiled(torch.ones(size))


@pytest.fixture(autouse=True)
def no_shared_entries() -> None:
    """Let no test take an entry of an earlier one."""
    forget_pools()


@pytest.fixture
def compile_() -> Callable[..., Any]:
    """`stator.compile` with the backend that runs the graph as it is."""

    def make(subject: Any, **keywords: Any) -> Any:
        return stator.compile(subject, **{"backend": "eager", **keywords})

    return make


@pytest.fixture
def traces(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return a list that has an item for each function that is interpreted."""
    found: list[int] = []
    plain = Machine.run

    def counted(self: Any, frames: Any) -> Any:
        found.append(1)
        return plain(self, frames)

    monkeypatch.setattr(Machine, "run", counted)
    return found
